use crate::scene::MB;

table! { pool_filled;
    "as asked" |_| {} Ok "the pools hold what was asked for at boot";
    "fewer than asked, as many as needed" |m| { m.asked(600) } Ok "as far as needed";
    "far fewer than asked, as many as needed" |m| { m.asked(32_000) } Ok "as far as needed";
    "fewer than needed" |m| { m.fall_back(500) }
        Warning "/etc/sysctl.d/hugepages.conf asked for 537 huge pages of 2 MB; needed: 537; in the pool: 500"
        => "sysctl -w vm.nr_hugepages=537";
    "fewer than a waiting setting needs" |m| { m.asked(600); m.waits(|next| next.shared_memory_bytes = 1200 * MB) }
        Warning "asked for 600 huge pages of 2 MB; needed: 600; in the pool: 537"
        => "sysctl -w vm.nr_hugepages=600";
    "more than asked" |m| { m.asked(500) } Ok;
    "gigantic pages that nobody needs" |m| { m.file("proc/cmdline", "hugepagesz=1G hugepages=0:2,1:2 quiet\n") }
        Ok "as far as needed";
    "nobody asked" |m| { m.file("etc/sysctl.d/hugepages.conf", None) } Ok "ask for huge pages";
    "sysctl runs after the kernel has started, and wins"
        |m| { m.file("proc/cmdline", "hugepages=10000\n") } Ok;
    "surplus pages were not asked for" |m| { m.pool(0).surplus = 100 }
        Warning "asked for 537" "in the pool: 437" => "sysctl -w vm.nr_hugepages=537";
}
