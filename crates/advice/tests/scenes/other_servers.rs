//! Other PostgreSQL servers of the host.

use host::{
    linux::hugepages::Pool,
    server::{
        configuration::RequestedPages,
        state::{HugePages, SharedMemoryType},
        visibility::Visibility,
    },
};

use expect_test::expect;

use crate::{scene::*, table::*};

#[test]
fn other_servers() {
    test(vec![
        when("there are none", |_| {}).see("other_servers", expect![["ok alone: No other PostgreSQL server runs on this host."]]),
        when("one requests huge pages", |m| {
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
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]]),
        // With pages beyond the limit, it would start and crash later.
        when("a cgroup allows one too few pages", |m| {
            m.other(143 * MB, 4096, TRY).fault_limits = vec![(2 * MB, 142 * MB), (GB, 0)];
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed. 72 more are needed if the server on port 5433 is to use huge pages, but a hugetlb limit of its cgroup is lower: raise that limit first."]])
        .see("runbook", expect![[""]]),
        when("a cgroup allows one its pages", |m| {
            m.other(143 * MB, 4096, TRY).fault_limits = vec![(2 * MB, 144 * MB), (GB, 0)];
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("one was turned off", |m| {
            m.other(40 * GB, 4096, OFF);
        })
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]])
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed."]])
        .see("reboot", expect![["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot."]])
        .see("how_to_set_2", expect![[""]])
        .see("runbook", expect![[""]]),
        when("this server uses System V shared memory", |m| {
            m.on_small_pages(8 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.state.server.shared_memory_type = SharedMemoryType::Sysv;
            m.other(8 * GB, 4096, TRY);
        })
        .see("how_to_set_2", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 4096' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]])
        .see("runbook", expect![[r##"
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 4096' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"##]]),
        when("the settings of one are unknown", |m| {
            m.other(280 * MB, 4096, RequestedPages::Unknown(None));
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed. 140 more are needed if the server on port 5433 is to use huge pages."]])
        .see("runbook", expect![[""]]),
        when("one includes files that could set huge_pages", |m| {
            let file = b"/srv/a\n/postgresql.conf".to_vec();
            m.other(280 * MB, 4096, RequestedPages::Unknown(Some(file)));
        })
        .see("other_servers", expect![[r"ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed. 140 more are needed if the server on port 5433 is to use huge pages (look at /srv/a\012/postgresql.conf)."]])
        .see("runbook", expect![[""]]),
        when("one requests pages of another size", |m| {
            m.other(4 * GB, 4096, RequestedPages::Known(HugePages::On, Some(GB)));
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 1 GB; needed: 4 for the server on port 5433 (huge_pages = on). The last server to start would get no huge pages. With huge_pages = on, the next start of the server on port 5433 would then fail.
            echo 1 > /proc/sys/vm/compact_memory
            echo 4 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 4 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=4 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("reboot", expect![["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot."]]),
        when("pages of another size are ready for one that requests them", |m| {
            m.other(4 * GB, 4096, RequestedPages::Known(HugePages::On, Some(GB)));
            m.pool(1).total = 4;
            m.pool(1).free = 4;
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed."]])
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]])
        .see("runbook", expect![[""]]),
        when("one requests a size that the kernel does not have", |m| {
            m.other(4 * GB, 4096, RequestedPages::Known(HugePages::Try, Some(16 * MB)));
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed."]])
        .see("runbook", expect![[""]]),
        when("the page size that one requests is unknown", |m| {
            m.other(2 * MB, 4096, RequestedPages::Known(HugePages::Try, None));
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed. 1 more is needed if the server on port 5433 is to use huge pages."]])
        .see("runbook", expect![[""]]),
        when("pages are idle, and the settings of one are unknown", |m| {
            m.more(4096);
            m.other(8 * GB, 4096, RequestedPages::Unknown(None));
        })
        .see("pool_size", expect![["unknown unknown: 4096 huge pages of 2 MB (8 GB) are idle; 537 are needed. They could be meant for the server on port 5433."]])
        .see("how_to_set_2", expect![[""]])
        .see("runbook", expect![[""]]),
        when("pages of another size are idle, and the settings of one are unknown", |m| {
            m.other(8 * GB, 4096, RequestedPages::Unknown(None));
            m.pool(1).total = 8;
            m.pool(1).free = 8;
        })
        .see("pool_size", expect![["unknown unknown: 8 huge pages of 1 GB (8 GB) are idle; none is needed. They could be meant for the server on port 5433."]]),
        when("a pending restart leaves idle pages to one that requests them", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            m.more(2048);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.available = Some(2 * GB);
            m.waits(|next| next.shared_memory_bytes = 4 * GB);
            m.other(8 * GB, 4096, TRY);
        })
        .see("status", expect!["ok on_huge_pages: On 4096 huge pages of 2 MB. A restart would get 2048 huge pages of 2 MB. Settings are pending a restart."])
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]])
        .see("runbook", expect![["(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 6144' >> /etc/sysctl.d/60-hugepages.conf)"]]),
        when("memory is too small for one, and this server leaves shared_memory_type = sysv", |m| {
            m.on_small_pages(4 * GB, 8000);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.faulted_in(GB);
            m.available = Some(GB);
            m.state.server.shared_memory_type = SharedMemoryType::Sysv;
            m.other(40 * GB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 8000 huge pages of 2 MB; needed: 20480 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # stop the server on port 5433, allocate 20480 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]])
        .see("runbook", expect![[r#"
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';
            # check whether the server on port 5433 is meant to use the idle pages (8000 huge pages of 2 MB). If it is not, release them
            # stop the server on port 5433, allocate 20480 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]]),
        when("pages are idle, and memory is too small for one that requests them", |m| {
            m.more(4096);
            m.other(70 * GB, 4096, TRY);
        })
        .see("pool_size", expect![["unknown unknown: 4096 huge pages of 2 MB (8 GB) are idle; 537 are needed. They could be meant for the server on port 5433."]])
        .see("runbook", expect!["# lower shared_buffers of a server, move it to another host, or free memory: there is too little for 36377 huge pages of 2 MB"]),
        when(
            "this server fell back, and two others were turned off",
            |m| {
                m.on_small_pages(144 * MB, 0);
                m.asked(0);
                m.other(9444 * MB, 4096, OFF);
                m.other(280 * MB, 4096, OFF);
            },
        )
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 72 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=72
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 72/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 72 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("other_servers", expect![["ok pool_short: 2 other servers run on this host. The pool has 0 huge pages of 2 MB; 72 are needed."]])
        .see("how_to_set_2", expect![[r#"
            sysctl -w vm.nr_hugepages=72
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 72/' /etc/sysctl.d/hugepages.conf"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=72
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 72/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 72 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("this server fell back, and one requests 140 pages", |m| {
            m.on_small_pages(144 * MB, 0);
            m.asked(0);
            m.other(280 * MB, 4096, TRY);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 72 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=212
            # needed: 212 = 72 for this server + 140 for the server on port 5433 (huge_pages = try)
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 212/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 72 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 212 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 2 MB; needed: 212 = 72 for this server + 140 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 0 huge pages of 2 MB at boot; needed: 212 = 72 for this server + 140 for the server on port 5433 (huge_pages = try).
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=212
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 212/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 72 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 212 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when("pages were set for one that was turned off", |m| {
            m.more(4096);
            m.other(8 * GB, 4096, OFF);
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 4096 huge pages of 2 MB (8 GB) are idle: PostgreSQL needs none of them; 537 are needed.
            # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"#]])
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 4633 huge pages of 2 MB; 537 are needed."]]),
        when("idle pages would be enough for one that was turned off", |m| {
            m.on_huge_pages(144 * MB, 16 * MB);
            m.more(140);
            m.other(280 * MB, 4096, OFF);
        })
        .see("pool_size", expect!["ok few_idle_pages: 140 huge pages of 2 MB (280 MB) are idle: PostgreSQL needs none of them; 72 are needed."])
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 212 huge pages of 2 MB; 72 are needed."]])
        .see("runbook", expect![[""]]),
        when("pages are ready for one that requests them", |m| {
            m.more(2048);
            m.other(4 * GB, 4096, TRY);
        })
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]])
        .see("other_servers", expect!["ok enough_for_all: Another server runs on this host. The pool has 2585 huge pages of 2 MB; needed: 2585 = 537 for this server + 2048 for the server on port 5433 (huge_pages = try). The server on port 5433 gets its pages when it restarts."]),
        when("nr_overcommit_hugepages would allow pages for both", |m| {
            m.other(143 * MB, 4096, TRY);
            m.pool(0).overcommit = 72;
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("the pool is enough for both", |m| {
            m.other(143 * MB, 4096, TRY);
            m.more(72);
        })
        .see("other_servers", expect!["ok enough_for_all: Another server runs on this host. The pool has 609 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). The server on port 5433 gets its pages when it restarts."]),
        when("another program holds 500 pages", |m| {
            m.other(143 * MB, 4096, TRY);
            m.pool(0).total = 1037;
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 1037 huge pages of 2 MB; needed: 1109 = 537 for this server + 500 that no visible server holds + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("one is larger than the host", |m| {
            m.other(70 * GB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 36377 = 537 for this server + 35840 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # lower shared_buffers of a server, move it to another host, or free memory: there is too little for 36377 huge pages of 2 MB"#]])
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]]),
        when("this server was turned off", |m| {
            m.fall_back(100);
            m.off();
            m.other(143 * MB, 4096, TRY);
        })
        .see("other_servers", expect!["ok enough_for_all: Another server runs on this host. The pool has 100 huge pages of 2 MB; needed: 72 for the server on port 5433 (huge_pages = try). The server on port 5433 gets its pages when it restarts."]),
        when("one has pages of another size", |m| {
            m.other(9 * GB, GB, TRY);
            *m.pool(1) = Pool {
                total: 9,
                free: 0,
                ..m.pool(1).clone()
            };
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed."]]),
        when("servers in other containers are not visible", |m| {
            m.facts.visibility = Visibility::Namespace
        })
        .see("other_servers", expect![["ok alone: No other PostgreSQL server runs among the visible processes."]]),
        when("processes of other users are hidden", |m| {
            m.facts.visibility = Visibility::Hidden
        })
        .see("other_servers", expect![["unknown unknown: Cannot judge other_servers: processes of other users are not visible."]]),
        when("the pool is enough, and processes are hidden", |m| {
            m.other(143 * MB, 4096, TRY);
            m.more(72);
            m.facts.visibility = Visibility::Hidden;
        })
        .see("other_servers", expect![["unknown unknown: Another server runs among the visible processes. The pool has 609 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). There could be more servers: processes of other users are not visible."]]),
        when("the pool is short, and processes are hidden", |m| {
            m.other(143 * MB, 4096, TRY);
            m.facts.visibility = Visibility::Hidden;
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs among the visible processes. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("the memory of two cannot be read", |m| {
            m.other(MB, 4096, TRY).segment = None;
            m.other(MB, 4096, TRY).segment = None;
        })
        .see("other_servers", expect![["unknown unknown: 2 other servers run on this host. The pool has 537 huge pages of 2 MB; 537 are needed. There could be more servers: the memory of 2 other servers cannot be read."]]),
        when("one uses System V shared memory", |m| {
            m.other(143 * MB, 4096, TRY).shared_memory_type = Some(SharedMemoryType::Sysv);
        })
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; 537 are needed."]]),
        when(
            "three servers are on small pages, and there is no pool",
            |m| {
                m.fall_back(0);
                m.other(143 * MB, 4096, TRY);
                m.other(143 * MB, 4096, TRY);
            },
        )
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: 2 other servers run on this host. The pool has 0 huge pages of 2 MB; needed: 681 = 537 for this server + 72 for the server on port 5433 (huge_pages = try) + 72 for the server on port 5434 (huge_pages = try). The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=681
            # needed: 681 = 537 for this server + 72 for the server on port 5433 (huge_pages = try) + 72 for the server on port 5434 (huge_pages = try)
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 681/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 681 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)
            # restart the server on port 5434 (ends all of its sessions)"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=681
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 681/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 681 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)
            # restart the server on port 5434 (ends all of its sessions)"#]]),
        when(
            "six servers are on small pages, and there is no pool",
            |m| {
                m.fall_back(0);
                for _ in 0..5 {
                    m.other(143 * MB, 4096, TRY);
                }
            },
        )
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: 5 other servers run on this host. The pool has 0 huge pages of 2 MB; needed: 897 = 537 for this server + 72 for the server on port 5433 (huge_pages = try) + 72 for the server on port 5434 (huge_pages = try) + 216 for 3 others. The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=897
            # needed: 897 = 537 for this server + 72 for the server on port 5433 (huge_pages = try) + 72 for the server on port 5434 (huge_pages = try) + 216 for 3 others
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 897/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 897 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)
            # restart the server on port 5434 (ends all of its sessions)
            # restart the server on port 5435 (ends all of its sessions)
            # restart the server on port 5436 (ends all of its sessions)
            # restart the server on port 5437 (ends all of its sessions)"#]]),
        when("RAM holds the own pool only without the own segment", |m| {
            m.on_small_pages(40 * GB, 0);
            m.other(144 * MB, 4096, TRY);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 2 MB; needed: 20552 = 20480 for this server + 72 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20552/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=20552
            # needed: 20552 = 20480 for this server + 72 for the server on port 5433 (huge_pages = try)
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20480 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20552 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
        when("the port of one is unknown", |m| {
            m.other(143 * MB, 4096, TRY).port = None;
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server with pid 815 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("two other servers use the same port", |m| {
            m.other(143 * MB, 4096, TRY);
            m.other(143 * MB, 4096, TRY).port = Some(5433);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: 2 other servers run on this host. The pool has 537 huge pages of 2 MB; needed: 681 = 537 for this server + 72 for the server on port 5433 with pid 815 (huge_pages = try) + 72 for the server on port 5433 with pid 816 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("another server uses the port of this one", |m| {
            m.other(143 * MB, 4096, TRY).port = Some(5432);
        })
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 609 = 537 for this server + 72 for the server on port 5432 with pid 815 (huge_pages = try). The last server to start would get no huge pages.
            # as reboot"#]]),
        when("two of three servers that could use idle pages ask for them", |m| {
            m.ram(88 * GB);
            m.more(16_000);
            m.other(GB, 4096, RequestedPages::Unknown(None)).rss_shmem_bytes = Some(0);
            m.other(31 * GB, 4096, TRY).rss_shmem_bytes = Some(0);
            m.other(40 * GB, 4096, TRY).rss_shmem_bytes = Some(0);
        })
        .see("pool_size", expect![["unknown unknown: 16000 huge pages of 2 MB (31 GB) are idle; 537 are needed. They could be meant for the server on port 5434."]]),
        when("the next boot is unknown, one asks, and one is not readable", |m| {
            m.fall_back(537);
            m.state.next_boot = Err(denied("/proc/cmdline"));
            m.other(8 * GB, 4096, TRY);
            m.other(MB, 4096, RequestedPages::Unknown(None)).segment = None;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)
            # on the host, allocate 4633 huge pages of 2 MB, if it has the memory: the memory of another server cannot be read
            # allocate 4633 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /proc/cmdline cannot be read (permission denied)"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: 2 other servers run on this host. The pool has 537 huge pages of 2 MB; needed: 4633 = 537 for this server + 4096 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            # restart PostgreSQL (ends all sessions)
            # on the host, allocate 4633 huge pages of 2 MB, if it has the memory: the memory of another server cannot be read
            # allocate 4633 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /proc/cmdline cannot be read (permission denied)"#]]),
        when("the pool is enough for this server, one asks, and one is not readable", |m| {
            m.fall_back(537);
            m.other(8 * GB, 4096, TRY);
            m.other(MB, 4096, RequestedPages::Unknown(None)).segment = None;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4633/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (ends all sessions)
            # on the host, allocate 4633 huge pages of 2 MB, if it has the memory: the memory of another server cannot be read"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: 2 other servers run on this host. The pool has 537 huge pages of 2 MB; needed: 4633 = 537 for this server + 4096 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as huge_pages"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4633/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (ends all sessions)
            # on the host, allocate 4633 huge pages of 2 MB, if it has the memory: the memory of another server cannot be read"#]]),
    ]);
}
