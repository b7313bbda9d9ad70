# The programs that only tests use: what others monitor servers with, and what looks at pages as
# people do.

# Debian's packages of these start a service, on this boot and the next. They are unpacked, not
# installed: for ordinary users, too, and `make clean` takes them away.
unpacked=(prometheus prometheus-postgres-exporter prometheus-sql-exporter zabbix-agent2)
tools=$PWD/target/tools

# What may be installed; adds to what is missing, as set-up's own list does.
check_tools() {
    need python3 command -v python3
}

unpack_tools() {
    local package directory
    for package in "${unpacked[@]}"; do
        [ ! -d "$tools/$package" ] || continue
        offered "$package" || die "setup: apt has no $package here, or there is no apt"
        say "unpacking $package below target/tools"
        directory=$(mktemp -d)
        (cd "$directory" && apt-get download -qq "$package" 2>/dev/null && dpkg-deb --extract ./*.deb root) ||
            die "setup: the package $package could not be had"
        mkdir -p "$tools"
        mv "$directory/root" "$tools/$package"
        rm -rf "$directory"
    done
}
