//! Pages that back the segment, forecasts of a restart, and commands that set the pool.

use advice::{
    answer,
    model::{forecast::Forecast, machine::Machine},
};
use host::{
    linux::{error::Absent, hugepages::Pool, meminfo::Meminfo},
    server::state::{Files, HugePages, Server, SharedMemoryType},
    units::Pages,
};

use expect_test::expect;

use crate::{scene::*, table::*};

#[test]
fn on_huge_pages() {
    test(vec![
        when("all is healthy", |_| {})
            .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]])
            .see("huge_pages", expect![["ok on_huge_pages: On 537 huge pages of 2 MB."]])
            .see("restart", expect![["ok fits: A restart would get them again."]])
            .see("runbook", expect![[""]]),
        when("the kernel decremented a counter of the pool below zero", |m| {
            let pool = m.pool(0);
            (pool.reserved, pool.below_zero) = (pool.free, vec!["resv_hugepages"]);
        })
            .see("status", expect!["unknown unknown: Cannot judge restart: /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero."])
            .see("huge_pages", expect!["ok on_huge_pages: On 537 huge pages of 2 MB."])
            .see("restart", expect!["unknown unknown: Cannot judge restart: /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero."])
            .see("reboot", expect!["unknown unknown: Cannot judge reboot: /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero."])
            .see("pool_size", expect!["unknown unknown: Cannot judge pool_size: /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero."])
            .see("pool_growth", expect!["unknown unknown: Cannot judge pool_growth: /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero."])
            .see("other_servers", expect!["ok alone: No other PostgreSQL server runs on this host."])
            .see("memory_left", expect!["ok enough_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM."])
            .see("pending_settings", expect!["ok nothing_pending: No pending setting changes the number or size of huge pages."])
            .see("cgroup_fault_limit", expect!["ok not_limited: No cgroup limits 2 MB pages for this server."])
            .see("runbook", expect![[""]]),
        when("a server fell back, and a counter of its pool is below zero", |m| {
            m.on_small_pages(8 * GB, 1000);
            m.asked(1000);
            m.pool(0).below_zero = vec!["resv_hugepages"];
        })
        .see("runbook", expect!["# find out why some facts are unknown (hugeinfo_sources): /sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages: a kernel counter went below zero"]),
        when("a counter of a pool that a healthy server does not use is below zero", |m| {
            m.pool(1).total = 4;
            m.pool(1).below_zero = vec!["resv_hugepages"];
        })
        .see("status", expect!["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."])
        .see("pool_size", expect!["ok no_idle_pages: No idle pages are known. One pool cannot be judged: /sys/kernel/mm/hugepages/hugepages-1048576kB/resv_hugepages: a kernel counter went below zero."])
        .see("pool_filled", expect!["ok filled: The pools hold all needed pages that this boot asked for."])
        .see("other_servers", expect!["ok alone: No other PostgreSQL server runs on this host."])
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot."]),
        when("a counter of a pool that the server does not use is below zero", |m| {
            m.on_small_pages(GB, 600);
            m.pool(1).below_zero = vec!["nr_overcommit_hugepages"];
        })
        .see("runbook", expect!["# restart PostgreSQL (ends all sessions)"]),
        when("terabytes are on 1 GB pages", |m| {
            m.ram(4 << 40);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.needs(3 << 40);
            m.state.segment.as_mut().expect("a segment").page_bytes = Some(GB);
            *m.pool(0) = Pool {
                total: 0,
                free: 0,
                reserved: 0,
                ..m.pool(0).clone()
            };
            m.pool(1).total = 3072;
        })
        .see("how_to_set_2", expect![[r#"
            # add 2760537 MB of memory, or set the pool at boot: too little memory is available for the pool
            # postgresql.conf: huge_page_size = 2MB"#]])
        .see("huge_pages", expect![["ok on_huge_pages: On 3072 huge pages of 1 GB."]]),
        when("a pool was lowered under the server", |m| m.lowered(100))
            .see("status", expect![[r#"
                warning would_lose_at_restart: A restart would lose huge pages. Needs 537 huge pages of 2 MB; 100 are available.
                sysctl -w vm.nr_hugepages=537"#]])
            .see("restart", expect![[r#"
                warning would_lose_at_restart: A restart would lose huge pages. Needs 537 huge pages of 2 MB; 100 are available.
                sysctl -w vm.nr_hugepages=537"#]])
            .see("runbook", expect![["sysctl -w vm.nr_hugepages=537"]]),
        when(
            "a pool was lowered under a server that requires huge pages",
            |m| {
                m.lowered(100);
                m.state.server.huge_pages = HugePages::On;
            },
        )
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 537 huge pages of 2 MB; 100 are available.
            sysctl -w vm.nr_hugepages=537"#]]),
        when("huge_pages = off is pending", |m| {
            m.waits(|next| next.huge_pages = HugePages::Off)
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. The next start uses huge_pages = off.
            # if huge_pages = off is intended, follow the steps of hugeinfo_runbook('huge_pages=off'), because a restart alone leaves huge pages idle; otherwise, for the next start, set huge_pages to its running value (SHOW huge_pages)"#]])
        .see("runbook", expect!["# if huge_pages = off is intended, follow the steps of hugeinfo_runbook('huge_pages=off'), because a restart alone leaves huge pages idle; otherwise, for the next start, set huge_pages to its running value (SHOW huge_pages)"])
        .see("pending_settings", expect![[r#"
            warning would_lose_at_restart: Settings are pending a restart (huge_pages). A restart would lose huge pages. The next start uses huge_pages = off.
            # as restart"#]]),
        when("shared_memory_type = sysv is pending", |m| {
            m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. The next start uses shared_memory_type = sysv, which cannot use huge pages.
            # if shared_memory_type = sysv is intended, follow the steps of hugeinfo_runbook('shared_memory_type=sysv'), because a restart alone leaves huge pages idle; otherwise, for the next start, set shared_memory_type to its running value (SHOW shared_memory_type)"#]]),
        when("shared_memory_type = sysv is pending on small pages", |m| {
            m.fall_back(0);
            m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. The next start uses shared_memory_type = sysv, which cannot use huge pages. Settings are pending a restart.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, set shared_memory_type to its running value (SHOW shared_memory_type)"#]])
        .see("runbook", expect!["# do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, set shared_memory_type to its running value (SHOW shared_memory_type)"]),
        when("shared_memory_type = sysv is pending, and huge_pages = on", |m| {
            m.state.server.huge_pages = HugePages::On;
            m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv);
        })
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. The next start uses shared_memory_type = sysv, which cannot use huge pages. Settings are pending a restart.
            ALTER SYSTEM SET shared_memory_type = 'mmap';"#]])
        .see("runbook", expect!["ALTER SYSTEM SET shared_memory_type = 'mmap';"]),
        when("surplus pages can be allocated again", |m| {
            *m.pool(0) = Pool {
                surplus: 537,
                overcommit: 600,
                ..m.pool(0).clone()
            };
        })
        .see("restart", expect![[r#"
            warning only_a_start_shows: Only a start shows whether the server gets huge pages. Needs 537 huge pages of 2 MB; the kernel has to allocate 537 of them during the start (vm.nr_overcommit_hugepages).
            sysctl -w vm.nr_hugepages=537"#]]),
        when(
            "surplus pages of the server can only partly be allocated again",
            |m| {
                *m.pool(0) = Pool {
                    surplus: 537,
                    overcommit: 500,
                    ..m.pool(0).clone()
                };
            },
        )
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 537 huge pages of 2 MB; 500 are available.
            sysctl -w vm.nr_hugepages=537"#]]),
        when("others hold surplus pages", |m| {
            *m.pool(0) = Pool {
                total: 637,
                surplus: 637,
                ..m.pool(0).clone()
            };
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=637
            # needed: 637 = 537 for this server + 100 that no visible server holds"#]]),
        when("huge_page_size is between two powers of two", |m| {
            m.state.server.huge_page_size_bytes = Some(1536 << 10);
        })
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]]),
        when(
            "default shared_buffers are on huge pages with 200 idle sessions",
            |m| {
                m.on_huge_pages(144 * MB, 20 * MB);
                m.page_tables(MB, MB);
            },
        )
        .see("page_tables", expect![["ok small_page_tables: Page tables of 81 processes take 81 MB."]])
        .see("status", expect![["ok on_huge_pages: On 72 huge pages of 2 MB. A restart would get them again."]]),
    ]);
}

#[test]
fn on_small_pages() {
    test(vec![
        when(
            "huge_pages = try fell back, because the pool is empty",
            |m| m.fall_back(0),
        )
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 537 huge pages of 2 MB; 0 are available.
            # as huge_pages"#]])
        .see("reboot", expect![[r#"
            warning boot_fell_short: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot, but the pool has 0. Unless the line is newer than this boot, the next boot might also fall short; 537 are needed.
            # as huge_pages"#]])
        .see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 537 huge pages of 2 MB, and the pool has 0; 537 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as huge_pages"#]])
        .see("pool_growth", expect![["ok can_grow: The pool has to grow by 537 huge pages of 2 MB; free memory has blocks for 2009."]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("how_to_set_2", expect![["sysctl -w vm.nr_hugepages=537"]]),
        when("the pool is short", |m| m.fall_back(500))
            .see("huge_pages", expect![[r#"
                warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 500 are available.
                sysctl -w vm.nr_hugepages=537
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart PostgreSQL (ends all sessions)"#]])
            .see("restart", expect![[r#"
                warning would_not_get: A restart would not get huge pages. Needs 537 huge pages of 2 MB; 500 are available.
                # as huge_pages"#]]),
        when("one page is missing", |m| m.fall_back(536)).see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 536 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("other programs have reserved a part of the pool", |m| {
            m.fall_back(600);
            m.pool(0).reserved = 100;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 500 are available.
            # if no other program needs 63 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=637
            # needed: 637 = 537 for this server + 100 that no visible server holds
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 574/' /etc/sysctl.d/hugepages.conf
            # 637 if the 63 that no visible server holds (hugeinfo_holders) are needed after a boot, too
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 637 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the cause no longer exists", |m| m.fall_back(537))
            .see("status", expect![[r#"
                warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
                # restart PostgreSQL (ends all sessions)"#]])
            .see("huge_pages", expect![[r#"
                warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
                # restart PostgreSQL (ends all sessions)"#]])
            .see("restart", expect![["ok fits: A restart would get huge pages."]]),
        when("pages of another size are idle", |m| {
            m.fall_back(0);
            m.pool(1).total = 2;
            m.pool(1).free = 2;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available. There are enough 1 GB pages for a start with huge_page_size = 1GB.
            # if no other program needs the 2 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, sysctl -w vm.nr_hugepages=537"#]]),
        when("the kernel does not have the size that is set", |m| {
            m.fall_back(600);
            m.state.server.huge_page_size_bytes = Some(16 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            ALTER SYSTEM SET huge_page_size = 0;
            -- restart PostgreSQL (ends all sessions)"#]])
        .see("huge_page_size", expect![[r#"
            warning no_such_size: huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            # as huge_pages"#]]),
        when("huge_page_size is rounded up to pages of the kernel", |m| {
            m.fall_back(512);
            m.state.server.huge_page_size_bytes = Some(1536 << 10);
            m.needs(1024 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 513 huge pages of 2 MB; 512 are available.
            sysctl -w vm.nr_hugepages=513
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 513 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("shared_memory_type = sysv", |m| {
            m.fall_back(0);
            m.state.server.shared_memory_type = SharedMemoryType::Sysv;
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"#]])
        .see("status", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = 'mmap';"#]]),
        when("shared_memory_type = sysv, and memory is too small for the rest of the pool", |m| {
            m.on_small_pages(10 * GB, 4000);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.faulted_in(GB);
            m.available = Some(GB);
            m.state.server.shared_memory_type = SharedMemoryType::Sysv;
        })
        .see("huge_pages", expect![[r#"
            warning sysv: On 4 kB pages: shared_memory_type = sysv cannot use huge pages.
            # release 656 huge pages of 2 MB if no other program needs them, lower shared_buffers to 8416MB, or add 1311 MB of memory or swap: too little memory is available"#]])
        .see("pool_size", expect![[r#"
            warning unused_pages: 4000 huge pages of 2 MB (8000 MB) are idle: PostgreSQL needs none of them.
            # if no other program needs 4000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=0"#]]),
        when("huge_pages = off", |m| {
            m.fall_back(537);
            m.off();
        })
        .see("status", expect![["ok turned_off: On 4 kB pages: huge_pages = off."]])
        .see("huge_pages", expect![["ok turned_off: On 4 kB pages: huge_pages = off."]])
        .see("pool_size", expect![["ok idle_by_configuration: 537 huge pages of 2 MB (1074 MB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; none is needed."]])
        .see("reboot", expect![["ok does_not_ask: This server does not ask for huge pages."]])
        .see("runbook", expect![[""]]),
        when("huge_pages = off, and page tables are large", |m| {
            m.on_small_pages(20 * GB, 0);
            m.off();
            m.page_tables(MB, 40 * MB);
        })
        .see("huge_pages", expect![["ok turned_off: On 4 kB pages: huge_pages = off."]])
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 3201 MB; on 2 MB pages they would take about 6402 kB.
            env -i PATH="$PATH" runuser --pty -u postgres -- psql -X -h /run/postgresql -p 5432 -d postgres -c "ALTER SYSTEM SET huge_pages = 'try';" </dev/null
            # stop here if psql failed
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=10240
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 10240/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10240 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "huge_pages = try is pending for a server that was turned off",
            |m| {
                m.fall_back(537);
                m.off();
                m.waits(|next| next.huge_pages = HugePages::Try);
            },
        )
        .see("huge_pages", expect![[r#"
            warning started_off: On 4 kB pages: the server was started with huge_pages = off. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]])
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]]),
        when("the kernel has no huge pages", |m| {
            m.fall_back(0);
            m.state.pools = Err(missing("/sys/kernel/mm/hugepages"));
            m.state.meminfo = Ok(Meminfo {
                total_bytes: Some(64 * GB),
                default_huge_page_bytes: None,
            });
        })
        .see("status", expect![["ok no_huge_pages: On 4 kB pages. This kernel or processor has no huge pages."]])
        .see("runbook", expect![[""]]),
        when("the pools cannot be read", |m| {
            m.fall_back(0);
            m.state.pools = Err(denied("/sys/kernel/mm/hugepages"));
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. /sys/kernel/mm/hugepages cannot be read (permission denied).
            # find out why some facts are unknown (hugeinfo_sources): /sys/kernel/mm/hugepages cannot be read (permission denied)"#]])
        .see("restart", expect![["unknown unknown: Cannot judge restart: /sys/kernel/mm/hugepages cannot be read (permission denied)."]]),
        when("the files keep the server from starting", |m| {
            m.fall_back(537);
            m.state.next.files = Files::Refused("syntax error".to_owned());
        })
        .see("status", expect![[r#"
            critical would_not_start: The next start would fail because of the configuration files: syntax error.
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # correct the configuration files (SELECT * FROM pg_file_settings WHERE NOT applied): syntax error"#]])
        .see("pending_settings", expect![[r#"
            critical would_not_start: The next start would fail because of the configuration files: syntax error.
            # as huge_pages"#]]),
        when(
            "the kernel has to allocate the pages during the start",
            |m| {
                m.fall_back(0);
                m.pool(0).overcommit = 600;
            },
        )
        .see("restart", expect![[r#"
            warning only_a_start_shows: Only a start shows whether the server gets huge pages. Needs 537 huge pages of 2 MB; the kernel has to allocate 537 of them during the start (vm.nr_overcommit_hugepages).
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; the kernel has to allocate 537 of them during the start (vm.nr_overcommit_hugepages).
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the pool was made only by nr_overcommit_hugepages", |m| {
            *m.pool(0) = Pool {
                surplus: 537,
                overcommit: 9000,
                ..m.pool(0).clone()
            };
            m.asked(0);
            m.state.server.huge_pages = HugePages::On;
        })
        .see("status", expect![[r#"
            warning only_a_start_shows: Only a start shows whether the server gets huge pages. Needs 537 huge pages of 2 MB; the kernel has to allocate 537 of them during the start (vm.nr_overcommit_hugepages).
            sysctl -w vm.nr_hugepages=537
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]])
        .see("restart", expect![[r#"
            warning only_a_start_shows: Only a start shows whether the server gets huge pages. Needs 537 huge pages of 2 MB; the kernel has to allocate 537 of them during the start (vm.nr_overcommit_hugepages).
            sysctl -w vm.nr_hugepages=537
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 0 huge pages of 2 MB at boot; 537 are needed.
            # as restart"#]]),
    ]);
}

#[test]
fn unknown_facts() {
    test(vec![
        when("the segment cannot be read", |m| {
            m.state.segment = Err(denied("/proc/4711/maps"))
        })
        .see("status", expect![["unknown unknown: Cannot judge huge_pages: /proc/4711/maps cannot be read (permission denied)."]])
        .see("pool_size", expect![["unknown unknown: Cannot judge pool_size: /proc/4711/maps cannot be read (permission denied)."]]),
        when("the page size of the segment is unknown", |m| {
            m.state.segment.as_mut().expect("a segment").page_bytes = None;
        })
        .see("status", expect![["unknown unknown: Cannot judge huge_pages: the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps for the segment."]])
        .see("huge_pages", expect![["unknown unknown: Cannot judge huge_pages: the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps for the segment."]]),
        when("the pools are missing", |m| {
            m.state.pools = Err(missing("/sys/kernel/mm/hugepages"))
        })
        .see("status", expect![["unknown unknown: Cannot judge restart: /sys/kernel/mm/hugepages is missing."]]),
        when("the cgroups cannot be read", |m| {
            m.state.hugetlb = Err(denied("/proc/4711/cgroup"));
        })
        .see("status", expect![["unknown unknown: Cannot judge cgroup_fault_limit: /proc/4711/cgroup cannot be read (permission denied)."]])
        .see("restart", expect![["unknown unknown: Cannot judge restart: /proc/4711/cgroup cannot be read (permission denied)."]]),
        when("/proc/meminfo is missing", |m| {
            m.state.meminfo = Err(missing("/proc/meminfo"))
        })
        .see("status", expect![["unknown unknown: Cannot judge cgroup_fault_limit: /proc/meminfo is missing."]]),
        when("everything is missing", |m| {
            m.state.segment = Err(missing("/proc/1/maps"));
            m.state.meminfo = Err(missing("/proc/meminfo"));
            m.state.pools = Err(missing("/sys/kernel/mm/hugepages"));
            m.state.hugetlb = Err(missing("/proc/1/cgroup"));
        })
        .see("status", expect![["unknown unknown: Cannot judge cgroup_fault_limit: /proc/meminfo is missing."]])
        .see("runbook", expect![[""]]),
    ]);
}

#[test]
fn growth() {
    fn fragmented(m: &mut Scene) {
        m.file(
            "proc/buddyinfo",
            "Node 0, zone   Normal   900000   400000    6    3    1    0     0     0      0      3   2\n",
        );
        m.file("proc/vmstat", "htlb_buddy_alloc_fail 17\n");
    }
    test(vec![
        when("the pool is enough, and memory is fragmented", |m| {
            fragmented(m)
        })
        .see("pool_growth", expect![["ok need_not_grow: The pool does not have to grow."]]),
        when("the pool is short, and memory is fragmented", |m| {
            m.fall_back(500);
            fragmented(m);
        })
        .see("pool_growth", expect![[r#"
            warning fragmented: The pool has to grow by 37 huge pages of 2 MB; free memory has blocks for 7. The kernel has to compact memory and might allocate fewer pages.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 500 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the pool is short, and memory has free blocks", |m| {
            m.fall_back(500)
        })
        .see("pool_growth", expect![["ok can_grow: The pool has to grow by 37 huge pages of 2 MB; free memory has blocks for 2009."]]),
        when("1 GB pages are missing", |m| {
            m.fall_back(0);
            m.state.server.huge_page_size_bytes = Some(GB);
        })
        .see("pool_growth", expect![[r#"
            warning too_large_for_blocks: The pool has to grow by 2 huge pages of 1 GB, which are larger than any free block. The kernel might not find memory for them before a reboot.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 2 huge pages of 1 GB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 2 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=2 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("how_to_set_1024", expect![[r#"
            echo 1 > /proc/sys/vm/compact_memory
            echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=2 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader
            # postgresql.conf: huge_page_size = 1GB"#]]),
        when("available memory is too small for 1 GB pages", |m| {
            m.ram(16 * GB);
            m.asked(0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.on_small_pages(5 * GB, 0);
            m.available = Some(3 * GB);
            m.faulted_in(100 * MB);
        })
        .see("how_to_set_1024", expect![[r#"
            # free 2276 MB of memory, or lower shared_buffers to 1791MB: too little memory is available for the pool
            # postgresql.conf: huge_page_size = 1GB"#]]),
        when("the server does not request huge pages", |m| {
            m.fall_back(0);
            fragmented(m);
            m.off();
        })
        .see("pool_growth", expect![["ok does_not_ask: This server does not ask for huge pages."]]),
    ]);
}

#[test]
fn other_page_sizes() {
    fn default_of_1_gb(m: &mut Scene) {
        let meminfo = CAPTURED[0]
            .1
            .replace("Hugepagesize:       2048 kB", "Hugepagesize:    1048576 kB");
        m.state
            .meminfo
            .as_mut()
            .expect("meminfo")
            .default_huge_page_bytes = Some(GB);
        m.file("proc/meminfo", meminfo.as_str());
        m.file("etc/sysctl.d/hugepages.conf", None);
    }
    test(vec![
        when(
            "huge pages have 1 GB by default, and the server has 2 MB pages",
            |m| {
                m.fall_back(500);
                default_of_1_gb(m);
                m.file(
                    "proc/cmdline",
                    "default_hugepagesz=1G hugepagesz=1G hugepages=2",
                );
                m.state.server.huge_page_size_bytes = Some(2 * MB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 500 are available.
            # if no other program needs 500 huge pages of 2 MB that are idle now: echo 537 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=2M hugepages=537 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            # as huge_pages"#]]),
        when(
            "a small segment is on a 1 GB page, and 512 pages of 2 MB are idle",
            |m| {
                default_of_1_gb(m);
                m.file(
                    "proc/cmdline",
                    "default_hugepagesz=1G hugepagesz=1G hugepages=1",
                );
                m.file("etc/sysctl.d/hugepages.conf", "vm.nr_hugepages = 1\n");
                m.state.segment.as_mut().expect("a segment").bytes = GB;
                m.state.segment.as_mut().expect("a segment").page_bytes = Some(GB);
                m.state.server.shared_memory_bytes = 148 * MB;
                m.pool(1).total = 1;
                *m.pool(0) = Pool {
                    total: 512,
                    free: 512,
                    reserved: 0,
                    ..m.pool(0).clone()
                };
            },
        )
        .see("pool_size", expect![[r#"
            warning unused_pages: 512 huge pages of 2 MB (1 GB) are idle: PostgreSQL needs none of them.
            # if no other program needs 512 huge pages of 2 MB that are idle now: echo 0 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"#]])
        .see("huge_pages", expect![["ok on_huge_pages: On 1 huge page of 1 GB."]]),
        when("12 pages of 1 GB were set up for a segment of 9 GB", |m| {
            m.state.server.huge_page_size_bytes = Some(GB);
            m.state.server.shared_memory_bytes = 9445 * MB;
            m.fall_back(0);
            m.state.segment.as_mut().expect("a segment").bytes = 9445 * MB;
            m.pool(1).total = 12;
            m.pool(1).free = 12;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)
            # then, if no other program needs 2 huge pages of 1 GB that are idle now: echo 10 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=10 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]])
        .see("pool_size", expect![[r#"
            warning unused_pages: 2 huge pages of 1 GB (2 GB) are idle: PostgreSQL needs none of them; 10 are needed.
            # as huge_pages"#]]),
        when(
            "a pod has 2 MB pages idle while the server uses 1 GB pages",
            |m| {
                m.ram(128 * GB);
                m.state.server.huge_page_size_bytes = Some(GB);
                m.needs(100 * GB);
                m.state.segment.as_mut().expect("a segment").page_bytes = Some(GB);
                m.pool(1).total = 105;
                m.pool(1).free = 5;
                *m.pool(0) = Pool {
                    total: 2048,
                    free: 2048,
                    reserved: 0,
                    ..m.pool(0).clone()
                };
            },
        )
        .see("pool_size", expect![[r#"
            warning unused_pages: 1511 huge pages of 2 MB (3022 MB) are idle, although /etc/sysctl.d/hugepages.conf:1 asks for 537 at boot; none is needed.
            # if no other program needs 1511 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=100 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("idle 1 GB pages can be split for the 2 MB pool", |m| {
            m.ram(128 * GB);
            m.on_small_pages(8 * GB, 0);
            m.asked(0);
            m.pool(1).total = 16;
            m.pool(1).free = 16;
            m.pool(1).demote_bytes = Some(2 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available. There are enough 1 GB pages for a start with huge_page_size = 1GB.
            # if no other program needs the 16 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, sysctl -w vm.nr_hugepages=4096"#]])
        .see("pool_size", expect![[r#"
            warning unused_pages: 16 huge pages of 1 GB (16 GB) are idle: PostgreSQL needs none of them.
            # as huge_pages"#]]),
        when("1 GB pages that could be split are reserved on a node", |m| {
            m.ram(128 * GB);
            m.on_small_pages(8 * GB, 0);
            m.asked(0);
            m.pool(1).total = 16;
            m.pool(1).free = 16;
            m.pool(1).reserved = 8;
            m.pool(1).demote_bytes = Some(2 * MB);
            m.nodes(&[(0, 64 * GB), (0, 64 * GB)]);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available. There are enough 1 GB pages for a start with huge_page_size = 1GB.
            # if no other program needs the 8 huge pages of 1 GB that are idle, ALTER SYSTEM SET huge_page_size = '1GB' and restart PostgreSQL; otherwise, sysctl -w vm.nr_hugepages=4096"#]]),
        when(
            "the cause is a memory limit, and 1 GB pages are idle",
            |m| {
                m.on_small_pages(8 * GB, 0);
                m.pool(1).total = 20;
                m.pool(1).free = 20;
                m.memory_limit(4 * GB, 3 * GB, 0).counts_hugetlb = true;
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available. There are enough 1 GB pages for a start with huge_page_size = 1GB.
            # if no other program needs 20 huge pages of 1 GB that are idle now: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            # raise the memory limit of the server's cgroup by 4096 MB, or lower shared_buffers by as much"#]])
        .see("pool_size", expect![[r#"
            warning unused_pages: 20 huge pages of 1 GB (20 GB) are idle: PostgreSQL needs none of them.
            # as huge_pages"#]])
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 4 GB and needs 8 GB once the whole segment is in use. The OOM killer will kill a process.
            # as huge_pages"#]]),
        when(
            "the server holds the 2 MB pool that 1 GB pages would need",
            |m| {
                m.on_huge_pages(52 * GB, 52 * GB);
                m.available = Some(4 * GB);
            },
        )
        .see("how_to_set_1024", expect![[r#"
            # add 51493 MB of memory: too little memory is available for the pool
            # postgresql.conf: huge_page_size = 1GB"#]])
        .see("how_to_set_2", expect![[""]]),
    ]);
}

#[test]
fn idle_pages() {
    test(vec![
        when("few pages are idle", |m| m.more(63)).see("pool_size", expect!["ok few_idle_pages: 63 huge pages of 2 MB (126 MB) are idle: PostgreSQL needs none of them; 537 are needed."]),
        when("many pages are idle", |m| m.more(3000))
            .see("status", expect![[r#"
                warning unused_pages: 3000 huge pages of 2 MB (6000 MB) are idle: PostgreSQL needs none of them; 537 are needed.
                # if no other program needs 3000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"#]])
            .see("pool_size", expect![[r#"
                warning unused_pages: 3000 huge pages of 2 MB (6000 MB) are idle: PostgreSQL needs none of them; 537 are needed.
                # if no other program needs 3000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"#]])
            .see("runbook", expect!["# if no other program needs 3000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=537"]),
        when("a boot file requests the idle pages", |m| {
            m.more(7655);
            m.asked(8192);
        })
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]])
        .see("pool_size", expect![["ok idle_by_configuration: 7655 huge pages of 2 MB (15 GB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; 537 are needed."]])
        .see("how_to_set_2", expect![[""]])
        .see("runbook", expect![[""]]),
        when("a boot file requests a part of the idle pages", |m| {
            m.more(7655);
            m.asked(600);
        })
        .see("status", expect![[r#"
            warning unused_pages: 7592 huge pages of 2 MB (15 GB) are idle, although /etc/sysctl.d/hugepages.conf:1 asks for 600 at boot; 537 are needed.
            # if no other program needs 7592 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=600"#]])
        .see("how_to_set_2", expect!["# if no other program needs 7592 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=600"])
        .see("runbook", expect!["# if no other program needs 7592 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=600"]),
        when("the kernel command line requests idle 1 GB pages", |m| {
            m.ram(512 * GB);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=64");
            m.pool(1).total = 64;
            m.pool(1).free = 64;
        })
        .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]])
        .see("pool_size", expect![["ok idle_by_configuration: 64 huge pages of 1 GB (64 GB) are not used now, but /proc/cmdline (hugepagesz=1G hugepages=64) asks for them at boot; none is needed."]])
        .see("how_to_set_1024", expect![[""]]),
        when("idle pages could be for hidden servers", |m| {
            m.more(1000);
            m.facts.visibility = host::server::visibility::Visibility::Hidden;
        })
        .see("pool_size", expect![["unknown unknown: 1000 huge pages of 2 MB (2000 MB) are idle; 537 are needed. Other servers could need them: processes of other users are not visible."]]),
        when("idle pages could be for servers in other containers", |m| {
            m.more(1000);
            m.facts.visibility = host::server::visibility::Visibility::Namespace;
        })
        .see("pool_size", expect![["unknown unknown: 1000 huge pages of 2 MB (2000 MB) are idle; 537 are needed. Other servers could need them: servers in other containers are not visible from here."]]),
        when("idle pages could be for settings that are refused", |m| {
            m.more(1000);
            m.state.next.files = Files::Refused("invalid value".to_owned());
        })
        .see("pool_size", expect![["unknown unknown: 1000 huge pages of 2 MB (2000 MB) are idle; 537 are needed. Pending settings could need them (invalid value)."]]),
        when(
            "hidden pending settings could need idle pages",
            |m| {
                m.more(1511);
                m.state.next.files = Files::Unknown {
                    why: "for superusers".to_owned(),
                    is_pending: true,
                };
            },
        )
        .see("status", expect![["unknown unknown: 1511 huge pages of 2 MB (3022 MB) are idle; 537 are needed. Pending settings could need them (for superusers). Settings are pending a restart, and the pages that they need are unknown."]])
        .see("pool_size", expect![["unknown unknown: 1511 huge pages of 2 MB (3022 MB) are idle; 537 are needed. Pending settings could need them (for superusers)."]])
        .see("how_to_set_2", expect![["# repeat the query as a role that can execute hugeinfo_plan: settings are pending a restart, and the pages that they need are unknown (for superusers)"]]),
        when("1 GB pages are idle", |m| {
            m.pool(1).total = 8;
            m.pool(1).free = 6;
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 6 huge pages of 1 GB (6 GB) are idle: PostgreSQL needs none of them; needed: 2 that no visible server holds.
            # if no other program needs 6 huge pages of 1 GB that are idle now: echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"#]]),
        when("pending settings need fewer pages", |m| {
            m.more(1511);
            m.waits(|next| next.shared_memory_bytes = GB);
        })
        .see("pool_size", expect!["ok idle_after_restart: 1511 huge pages of 2 MB (3022 MB) are idle: PostgreSQL needs none of them; 537 are needed. 25 more will be idle after the next restart."])
        .see("runbook", expect![[r#"sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 512/' /etc/sysctl.d/hugepages.conf"#]]),
        when("pending settings need a part of the idle pages", |m| {
            m.more(1511);
            m.waits(|next| next.shared_memory_bytes = 2 * GB);
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 1024 huge pages of 2 MB (2 GB) are idle: PostgreSQL needs none of them; 1024 are needed.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 1024/' /etc/sysctl.d/hugepages.conf
            # if no other program needs 1511 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=1024"#]]),
        when("pending settings need the idle pages", |m| {
            m.more(1511);
            m.waits(|next| next.shared_memory_bytes = 3 * GB + 900 * MB);
        })
        .see("pool_size", expect!["ok few_idle_pages: 62 huge pages of 2 MB (124 MB) are idle: PostgreSQL needs none of them; 1986 are needed."]),
        when("surplus pages are in the pool", |m| m.pool(0).surplus = 100).see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]]),
        when("the size of RAM is unknown", |m| {
            m.more(10_000);
            m.state.meminfo.as_mut().expect("meminfo").total_bytes = None;
        })
        .see("pool_size", expect![["unknown unknown: Cannot judge pool_size: /proc/meminfo has no MemTotal."]]),
        when("a boot file requests a pool that is shrunk", |m| {
            m.more(3000);
            m.asked(12_288);
        })
        .see("pool_size", expect![["ok idle_by_configuration: 3000 huge pages of 2 MB (6000 MB) are not used now, but /etc/sysctl.d/hugepages.conf:1 asks for them at boot; 537 are needed."]])
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 12288 huge pages of 2 MB at boot; 537 are needed."])
        .see("runbook", expect![[""]]),
    ]);
}

/// Idle pages stay if the boot configuration could ask for them.
#[test]
fn idle_pages_and_unreadable_boot_files() {
    test(vec![
        when("the boot configuration cannot be read", |m| {
            m.more(4096);
            m.state.next_boot = Err(denied("/proc/cmdline"));
        })
        .see("pool_size", expect!["unknown unknown: 4096 huge pages of 2 MB (8 GB) are idle; 537 are needed. The boot configuration could ask for them: /proc/cmdline cannot be read (permission denied)."])
        .see("runbook", expect![]),
        when("huge pages are turned off", |m| {
            m.on_small_pages(4 * GB, 4096);
            m.off();
            m.state.next_boot = Err(denied("/proc/cmdline"));
        })
        .see("pool_size", expect!["unknown unknown: 4096 huge pages of 2 MB (8 GB) are idle; none is needed. The boot configuration could ask for them: /proc/cmdline cannot be read (permission denied)."])
        .see("runbook", expect![]),
    ]);
}

#[test]
fn idle_pages_depend_on_boot_files() {
    let answer = |pages, reads_boot: bool| {
        let mut scene = Scene::healthy();
        scene.more(pages - 537);
        scene.asked(pages);
        let mut facts = scene.settled();
        if !reads_boot {
            facts.state.next_boot = Err(Absent::not_looked_at());
        }
        let machine = Machine::new(facts);
        let recommended = Forecast::for_target(&machine).and_then(|pool| pool.recommended());
        (answer::verdict(&machine).code, recommended)
    };
    assert_eq!(answer(1400, false), ("unused_pages", Some(Pages(537))));
    assert_eq!(answer(1400, true), ("on_huge_pages", Some(Pages(1400))));
    assert_eq!(answer(537, false), ("on_huge_pages", Some(Pages(537))));
}

#[test]
fn forecasts() {
    let forecast = |change: fn(&mut Scene)| {
        let mut scene = Scene::healthy();
        change(&mut scene);
        Forecast::for_target(&scene.machine()).expect("a pool")
    };
    // PostgreSQL reports 1082 MB. It has mapped 1081.25 MB, rounded up to whole pages.
    for (pages, stated) in [(541, 1082), (543, 1084)] {
        let mut scene = Scene::healthy();
        scene.state.server.huge_page_size_bytes = Some(1536 << 10);
        scene.state.segment.as_mut().expect("a segment").bytes = pages * 2 * MB;
        scene.state.server.shared_memory_bytes = stated * MB;
        let forecast = Forecast::for_target(&scene.machine()).expect("a pool");
        assert_eq!(forecast.required, Pages(pages));
    }
    // 8402592 kB, and a pool whose size was computed from VmPeak.
    let published = forecast(|m| {
        m.on_small_pages(8_402_592 << 10, 0);
        m.state.server.shared_memory_bytes = 8206 * MB;
        *m.pool(0) = Pool {
            total: 72_457,
            free: 70_919,
            reserved: 70_833,
            ..m.pool(0).clone()
        };
    });
    assert_eq!(published.required, Pages(4103));
    assert_eq!(published.others, Some(Pages(72_371)));
    let larger = forecast(|m| {
        let next = Server {
            shared_memory_bytes: 1076 * MB + 8192,
            ..m.state.server.clone()
        };
        m.state.next.server = Some(next);
    });
    assert_eq!(larger.required, Pages(539));
    assert_eq!(larger.recommended(), Some(Pages(539)));
    assert_eq!(larger.shortfall, Some(Pages(2)));
    assert_eq!(larger.held, Some(Pages(537)));
    assert_eq!(larger.fits_after_restart, Some(false));
    let allocatable = forecast(|m| {
        *m.pool(0) = Pool {
            surplus: 537,
            overcommit: 600,
            ..m.pool(0).clone()
        };
    });
    assert_eq!(
        (allocatable.shortfall, allocatable.fits_after_restart),
        (Some(Pages(0)), None)
    );
}
