fn old_kernel(m: &mut crate::Scene) {
    m.around.uses_io_uring = true;
    m.around.host.kernel_release = "5.10.0-35-amd64".to_owned();
}

table! { memlock;
    "64 kB" |m| { m.fall_back(0) } Ok "does not affect PostgreSQL's huge pages";
    "nothing" |m| { m.fall_back(0); m.around.locked_memory = Ok(Some(0)) } Ok "does not affect PostgreSQL's huge pages";
    "unlimited" |m| { m.fall_back(0); m.around.locked_memory = Ok(None) } Ok "does not affect PostgreSQL's huge pages";
    "io_uring on a new kernel" |m| { m.around.uses_io_uring = true } Ok;
    "on an old one" |m| { old_kernel(m) }
        Warning "5.10" "64 kB" "huge pages do not need it"
        => "LimitMEMLOCK=infinity in the systemd unit; then restart PostgreSQL";
    "on an old one, unlimited" |m| { old_kernel(m); m.around.locked_memory = Ok(None) } Ok "unlimited";
}
