//! Pages that the next boot sets up, and those that this boot requested.

use host::linux::{hugepages::Pool, process::segment::Segment};

use expect_test::expect;

use crate::{scene::*, table::*};

const CONF: &str = "etc/sysctl.d/hugepages.conf";

#[test]
fn reboot() {
    test(vec![
        when("a file requests the pages", |_| {}).see("reboot", expect![["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot."]]),
        when("a file requests one page too few", |m| m.asked(536)).see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 536 huge pages of 2 MB at boot; 537 are needed.
            sed -i 's/^vm\.nr_hugepages = 536$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]]),
        when(
            "nr_overcommit_hugepages would allow the missing page",
            |m| {
                m.asked(536);
                m.pool(0).overcommit = 1;
            },
        )
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 536 huge pages of 2 MB at boot; 537 are needed.
            sed -i 's/^vm\.nr_hugepages = 536$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]]),
        when("a file sets only nr_overcommit_hugepages", |m| {
            m.file(CONF, "vm.nr_overcommit_hugepages = 600\n");
            m.pool(0).overcommit = 600;
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            (umask 022 && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("nothing requests pages", |m| m.file(CONF, None))
            .see("reboot", expect![[r#"
                warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
                (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]])
            .see("runbook", expect![["(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"]]),
        when(
            "the name of the file that is read last cannot be quoted",
            |m| {
                m.file("etc/sysctl.d/zz\u{7f}.conf", "vm.nr_hugepages = 5\n");
            },
        )
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/zz\177.conf:1 sets 5 huge pages of 2 MB at boot; 537 are needed.
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: no command can change /etc/sysctl.d/zz\177.conf:1"#]]),
        when("a file that is read later requests fewer", |m| {
            m.file("etc/sysctl.d/zz.conf", "vm.nr_hugepages = 5\n");
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/zz.conf:1 sets 5 huge pages of 2 MB at boot; 537 are needed.
            sed -i 's/^vm\.nr_hugepages = 5$/vm.nr_hugepages = 537/' /etc/sysctl.d/zz.conf"#]]),
        when("systemd does not read /etc/sysctl.conf", |m| {
            m.file(CONF, None);
            m.file("run/systemd/system/x", "");
            m.file("etc/sysctl.conf", "vm.nr_hugepages = 537\n");
        })
        .see("reboot", expect![[r#"
            warning no_effect_at_boot: /etc/sysctl.conf:1 sets vm.nr_hugepages = 537, but systemd does not read this file (Debian 13 and newer); 537 are needed.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]])
        .see("pool_filled", expect![["ok not_asked: The boot configuration asks for no huge pages."]]),
        when("the kernel refuses the value", |m| {
            m.file(CONF, "vm.nr_hugepages = 537MB\n");
        })
        .see("reboot", expect![[r#"
            warning no_effect_at_boot: /etc/sysctl.d/hugepages.conf:1 sets vm.nr_hugepages = 537MB, but the kernel refuses this value; 537 are needed.
            sed -i 's/^vm\.nr_hugepages = 537MB$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]])
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537MB$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]]),
        when("/etc/sysctl.conf is read without systemd", |m| {
            m.file("etc/sysctl.conf", "vm.nr_hugepages = 5\n");
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.conf:1 sets 5 huge pages of 2 MB at boot; 537 are needed.
            sed -i 's/^vm\.nr_hugepages = 5$/vm.nr_hugepages = 537/' /etc/sysctl.conf"#]]),
        when("a file below /run requests the pages", |m| {
            m.file(CONF, None);
            m.file("run/sysctl.d/99-gone.conf", "vm.nr_hugepages = 600\n");
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("a file of a package requests too few", |m| {
            m.file(CONF, None);
            m.file("usr/lib/sysctl.d/50-vendor.conf", "vm.nr_hugepages = 5\n");
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /usr/lib/sysctl.d/50-vendor.conf:1 sets 5 huge pages of 2 MB at boot; 537 are needed.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("a file of tmpfiles.d sets the pool", |m| {
            m.file("run/systemd/system/x", "");
            m.file(
                "etc/tmpfiles.d/huge.conf",
                "w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages - - - - 2\n",
            );
        })
        .see("reboot", expect![["unknown unknown: /etc/tmpfiles.d/huge.conf:1 sets the pool in another way, so the number of 2 MB pages at boot is unknown; 537 are needed."]]),
        when("the kernel command line sets the pool twice", |m| {
            m.file(CONF, None);
            m.file("proc/cmdline", "hugepages=537 hugepages=600\n");
            m.pool(0).total = 1537;
            m.pool(0).free = 1512;
        })
        .see("reboot", expect![["unknown unknown: /proc/cmdline has unusual parameters for huge pages, so the number of 2 MB pages at boot is unknown; 537 are needed."]])
        .see("pool_filled", expect![["unknown unknown: /proc/cmdline has unusual parameters for huge pages, so the number of pages that this boot asked for is unknown."]])
        .see("pool_size", expect!["unknown unknown: 1000 huge pages of 2 MB (2000 MB) are idle; 537 are needed. The boot configuration could ask for them: /proc/cmdline has unusual parameters for huge pages."]),
        when("others have pages of the pool", |m| {
            m.pool(0).total = 737;
            m.pool(0).free = 512;
            m.facts.nodes = Ok(vec![on_node(0, 737)]);
        })
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot. 737 are needed if the 200 that no visible server holds (hugeinfo_holders) are also needed after the boot."]),
        when("the boot sets up too much", |m| m.asked(31_744)).see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 31744 huge pages of 2 MB at boot, 7455 MB more than other programs leave.
            # lower /etc/sysctl.d/hugepages.conf:1 from 31744 to at most 28016 huge pages of 2 MB (537 are needed)"#]]),
        when("the boot sets up too many 1 GB pages", |m| {
            m.file("proc/cmdline", "hugepagesz=1G hugepages=60");
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: The next boot sets up 61 GB in huge pages, 6481 MB more than other programs leave.
            # lower /proc/cmdline (hugepagesz=1G hugepages=60) from 60 to at most 53 huge pages of 1 GB (0 are needed)"#]]),
        when("lines for two pools need a person", |m| {
            m.ram(128 * GB);
            m.on_small_pages(10 * GB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.file(CONF, None);
            m.file("proc/cmdline", "hugepages=0x10");
            m.other(4 * GB, 4096, TRY);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 1 GB pages at boot; 10 are needed.
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            echo 10 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            sysctl -w vm.nr_hugepages=2048
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 10 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 2048 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=10 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader
            # check the configuration that sets the pool at boot: /proc/cmdline sets a number of pages that is not a plain number"#]]),
        when("the boot sets up too many pages of both sizes", |m| {
            m.asked(40_000);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=70");
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: The next boot sets up 148 GB in huge pages, 93 GB more than other programs leave.
            # lower /etc/sysctl.d/hugepages.conf:1 from 40000 to at most 537 huge pages of 2 MB (537 are needed), and lower /proc/cmdline (hugepagesz=1G hugepages=70) from 70 to at most 53 huge pages of 1 GB (0 are needed)"#]]),
        when("a line sets pages that other programs use", |m| {
            m.fall_back(0);
            m.asked(26_624);
            m.available = Some(20 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 26624 huge pages of 2 MB at boot, 32 GB more than other programs leave.
            # as huge_pages"#]]),
        when("this server needs all pages that the line sets", |m| {
            m.on_huge_pages(59 * GB, 59 * GB);
        })
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 30208 huge pages of 2 MB at boot."]),
        when("the pool has the pages that are too many for other programs", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(GB);
        })
        .see("reboot", expect![["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 20480 huge pages of 2 MB at boot."]]),
        when(
            "the boot sets up too much, and the server is turned off",
            |m| {
                m.fall_back(0);
                m.asked(31_744);
                m.off();
            },
        )
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 31744 huge pages of 2 MB at boot, 7455 MB more than other programs leave.
            # lower /etc/sysctl.d/hugepages.conf:1 from 31744 to at most 28016 huge pages of 2 MB (0 are needed)"#]]),
        when(
            "the server is turned off, and nothing requests pages",
            |m| {
                m.fall_back(0);
                m.file(CONF, None);
                m.off();
            },
        )
        .see("reboot", expect![["ok does_not_ask: This server does not ask for huge pages."]]),
        when("the server is turned off, and other programs use the memory of the line", |m| {
            m.fall_back(0);
            m.asked(26_624);
            m.available = Some(20 * GB);
            m.off();
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 26624 huge pages of 2 MB at boot, 32 GB more than other programs leave.
            # lower /etc/sysctl.d/hugepages.conf:1 from 26624 to at most 10121 huge pages of 2 MB (0 are needed)"#]]),
        when("a typo requests more than RAM, and the pool has taken most of it", |m| {
            m.more(21_000);
            m.asked(81_920);
            m.available = Some(GB);
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 81920 huge pages of 2 MB at boot, 118 GB more than other programs leave.
            # lower /etc/sysctl.d/hugepages.conf:1 from 81920 to at most 21393 huge pages of 2 MB (537 are needed)"#]])
        .see("pool_size", expect!["ok idle_by_configuration: 21000 huge pages of 2 MB (41 GB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; 537 are needed."])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 42 GB and leave 22 GB of 64 GB RAM. 1 GB is available, and 1311 MB should stay available.
            # release 144 huge pages of 2 MB and lower /etc/sysctl.d/hugepages.conf:1 to 21393 if no other program needs them, or free or add 287 MB of memory: too little memory is available"#]])
        .see("runbook", expect![[r#"
            # lower /etc/sysctl.d/hugepages.conf:1 from 81920 to at most 21393 huge pages of 2 MB (537 are needed)
            # release 144 huge pages of 2 MB and lower /etc/sysctl.d/hugepages.conf:1 to 21393 if no other program needs them, or free or add 287 MB of memory: too little memory is available"#]]),
        when("this server needs all pages of a line that is too large", |m| {
            m.on_small_pages(40 * GB, 0);
            m.asked(20_480);
            m.faulted_in(10 * GB);
            m.swap(0);
            m.available = Some(20 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            # free 11551 MB of memory, or lower shared_buffers to 27359MB: too little memory is available for the pool"#]])
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 20480 huge pages of 2 MB at boot, 11 GB more than other programs leave.
            # lower shared_buffers to 27359MB, restart PostgreSQL, and then lower /etc/sysctl.d/hugepages.conf:1 to 14704: the host cannot hold both the pool and the other programs"#]]),
        when("the boot configuration cannot be read", |m| {
            m.state.next_boot = Err(denied("/proc/cmdline"));
        })
        .see("reboot", expect![["unknown unknown: Cannot judge reboot: /proc/cmdline cannot be read (permission denied)."]]),
        when("memory is short now", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file(CONF, None);
            m.available = Some(5 * GB);
            m.faulted_in(GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 20480 are needed.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            # free 36127 MB of memory, or lower shared_buffers to 2783MB: too little memory is available for the pool"#]])
        .see("how_to_set_2", expect![["# free 36127 MB of memory, or lower shared_buffers to 2783MB: too little memory is available for the pool"]])
        .see("runbook", expect![[r#"
            # lower shared_buffers to 10976MB, or add 27935 MB of memory or swap: too little memory is available
            # free 36127 MB of memory, or lower shared_buffers to 2783MB: too little memory is available for the pool"#]]),
        when("another server needs pages at boot, too", |m| {
            m.other(143 * MB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try).
            sysctl -w vm.nr_hugepages=609
            # needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try)
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 609/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 609 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=609
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 609/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 609 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when(
            "the kernel command line has fewer 1 GB pages, and the same number of 2 MB pages",
            |m| {
                m.file(CONF, None);
                m.file(
                    "proc/cmdline",
                    "hugepagesz=2M hugepages=4 hugepagesz=1G hugepages=4",
                );
                m.state.server.huge_page_size_bytes = Some(GB);
                m.state.server.shared_memory_bytes = 5 * GB;
                m.state.segment = Ok(Segment {
                    bytes: 5 * GB,
                    page_bytes: Some(GB),
                    mappings: 1,
                });
                *m.pool(0) = Pool {
                    total: 4,
                    free: 4,
                    reserved: 0,
                    ..m.pool(0).clone()
                };
                m.pool(1).total = 5;
                m.ram(64 * GB);
            },
        )
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /proc/cmdline (hugepagesz=1G hugepages=4) sets 4 huge pages of 1 GB at boot; 5 are needed.
            # for the next boot, in the configuration of the boot loader: change hugepagesz=1G hugepages=4 to hugepagesz=1G hugepages=5 on the kernel command line (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("how_to_set_1024", expect![[r#"
            # for the next boot, in the configuration of the boot loader: change hugepagesz=1G hugepages=4 to hugepagesz=1G hugepages=5 on the kernel command line (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader
            # postgresql.conf: huge_page_size = 1GB"#]]),
        when("more 1 GB pages on the kernel command line would be too many", |m| {
            m.file(CONF, None);
            m.file("proc/cmdline", "hugepagesz=2M hugepages=28000\n");
            m.fall_back(537);
            m.on_small_pages(4 * GB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 1 GB pages at boot; 4 are needed.
            # as huge_pages"#]]),
        when("1 GB pages are missing at boot", |m| {
            m.fall_back(537);
            m.state.server.huge_page_size_bytes = Some(GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 1 GB pages at boot; 2 are needed.
            # as huge_pages"#]]),
    ]);
}

#[test]
fn this_boot() {
    test(vec![
        when("the pool has the requested pages", |_| {}).see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when(
            "the pool has fewer than requested, and as many as needed",
            |m| m.asked(600),
        )
        .see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when(
            "the pool has far fewer than requested, and as many as needed",
            |m| m.asked(32_000),
        )
        .see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when("the pool has fewer than needed", |m| m.fall_back(500))
            .see("pool_filled", expect![[r#"
                warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 537 huge pages of 2 MB, and the pool has 500; 537 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
                # as huge_pages"#]])
            .see("reboot", expect![[r#"
                warning boot_fell_short: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot, but the pool has 500. Unless the line is newer than this boot, the next boot might also fall short; 537 are needed.
                # as huge_pages"#]]),
        when("the pool has fewer than pending settings need", |m| {
            m.asked(600);
            m.waits(|next| next.shared_memory_bytes = 1200 * MB);
        })
        .see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 600 huge pages of 2 MB, and the pool has 537; 600 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as restart"#]]),
        when("the pool has more than requested", |m| m.asked(500)).see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when("1 GB pages were requested that no server needs", |m| {
            m.file("proc/cmdline", "hugepagesz=1G hugepages=0:2,1:2 quiet\n");
        })
        .see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when("nothing requests pages", |m| m.file(CONF, None)).see("pool_filled", expect![["ok not_asked: The boot configuration asks for no huge pages."]]),
        when("sysctl overrides the kernel command line", |m| {
            m.file("proc/cmdline", "hugepages=10000\n");
        })
        .see("pool_filled", expect![["ok filled: The pools hold all needed pages that this boot asked for."]]),
        when("a part of the pool is surplus", |m| m.pool(0).surplus = 100).see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 537 huge pages of 2 MB, and the pool has 437; 537 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as restart"#]]),
        when("this boot allocated 13 of 14 requested 1 GB pages", |m| {
            m.ram(16 * GB);
            m.file(CONF, None);
            m.file(
                "proc/cmdline",
                "default_hugepagesz=1G hugepagesz=1G hugepages=14",
            );
            m.state.server.huge_page_size_bytes = Some(GB);
            m.on_small_pages(13_800 * MB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.pool(1).total = 13;
            m.pool(1).free = 13;
        })
        .see("pool_filled", expect![[r#"
            warning not_filled: /proc/cmdline (hugepagesz=1G hugepages=14) asked for 14 huge pages of 1 GB, and the pool has 13; 14 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as huge_pages"#]])
        .see("reboot", expect![[r#"
            warning boot_fell_short: /proc/cmdline (hugepagesz=1G hugepages=14) sets 14 huge pages of 1 GB at boot, but the pool has 13. Unless the line is newer than this boot, the next boot might also fall short; 14 are needed.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 14 huge pages of 1 GB; 13 are available.
            # lower shared_buffers to 12622MB, so that the segment fits into the 13 huge pages of 1 GB that are available, or use a smaller huge_page_size: this boot could not allocate more pages of 1 GB"#]]),
        when("this boot allocated 13 of 14 pages, and small pages do not fit", |m| {
            m.ram(16 * GB);
            m.file(CONF, None);
            m.file(
                "proc/cmdline",
                "default_hugepagesz=1G hugepagesz=1G hugepages=14",
            );
            m.on_small_pages(13_800 * MB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.pool(1).total = 13;
            m.pool(1).free = 13;
            m.faulted_in(300 * MB);
            m.available = Some(1500 * MB);
        })
        .see("status", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 13 GB; 1500 MB and 8 GB of swap are available.
            # lower shared_buffers to 12622MB, or add 4136 MB of memory or swap: too little memory is available"#]])
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 13 GB; 1500 MB and 8 GB of swap are available.
            # lower shared_buffers to 12622MB, or add 4136 MB of memory or swap: too little memory is available"#]]),
        when("reboot is muted", |m| {
            m.fall_back(0);
            m.asked(100);
            m.muted = "reboot";
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("this boot allocated too few pages, and huge_pages is muted", |m| {
            m.ram(16 * GB);
            m.fall_back(0);
            m.on_small_pages(10 * GB, 5119);
            m.asked(5120);
            m.muted = "huge_pages, restart, pool_filled";
        })
        .see("reboot", expect![[r#"
            warning boot_fell_short: /etc/sysctl.d/hugepages.conf:1 sets 5120 huge pages of 2 MB at boot, but the pool has 5119. Unless the line is newer than this boot, the next boot might also fall short; 5120 are needed.
            # lower shared_buffers to 9397MB, add 337 MB of memory, or set the pool at boot: too little memory is available for the pool"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 5120 huge pages of 2 MB; 5119 are available.
            # remove huge_pages from pg_hugeinfo.muted_checks: while it is muted, no remedy moves the server to huge pages"#]]),
        when(
            "a sysctl file requests more than this boot allocated",
            |m| {
                m.fall_back(537);
                m.on_small_pages(20 * GB, 9000);
                m.asked(10_240);
            },
        )
        .see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 10240 huge pages of 2 MB, and the pool has 9000; 10240 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as huge_pages"#]])
        .see("reboot", expect![[r#"
            warning boot_fell_short: /etc/sysctl.d/hugepages.conf:1 sets 10240 huge pages of 2 MB at boot, but the pool has 9000. Unless the line is newer than this boot, the next boot might also fall short; 10240 are needed.
            # as huge_pages"#]]),
    ]);
}
