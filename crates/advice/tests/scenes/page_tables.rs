//! Page tables, swap and major faults.

use host::server::state::{ProcessFigures, SharedMemoryType};

use expect_test::expect;

use crate::{scene::*, table::*};

/// 138 GiB on small pages, 80 connections, 24 GB of page tables, as published.
fn published(m: &mut Scene) {
    m.ram(256 * GB);
    m.on_small_pages(138 * GB, 0);
}

#[test]
fn page_tables() {
    test(vec![
        when("there are few connections", |_| {}).see("page_tables", expect![["ok small_page_tables: Page tables of 21 processes take 6300 kB."]]),
        when("80 backends have faulted in all of 138 GB", |m| {
            published(m);
            m.page_tables(MB / 2, 277 * MB);
        })
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 22 GB; on 2 MB pages they would take about 124 MB.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 70656 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 70656/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=70656
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 70656 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("a server that is turned off has large page tables", |m| {
            published(m);
            m.page_tables(MB / 2, 277 * MB);
            m.off();
        })
        .see("status", expect!["ok turned_off: On 4 kB pages: huge_pages = off."])
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 22 GB; on 2 MB pages they would take about 124 MB.
            env -i PATH="$PATH" runuser --pty -u postgres -- psql -X -h /run/postgresql -p 5432 -d postgres -c "ALTER SYSTEM SET huge_pages = 'try';" </dev/null
            # stop here if psql failed
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 70656/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=70656
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 70656 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0; set huge_pages to its old value in postgresql.auto.conf; set /etc/sysctl.d/hugepages.conf:1 to 537' >&2; false; fi
            # start PostgreSQL"#]]),
        when("page tables are large, and huge pages are about to be turned off", |m| {
            published(m);
            m.page_tables(MB / 2, 277 * MB);
            m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv);
        })
        .see("runbook", expect![[r#"
            # do nothing if shared_memory_type = sysv is intended; otherwise, for the next start, set shared_memory_type to its running value (SHOW shared_memory_type)
            # lower max_connections, or use a connection pooler"#]]),
        when("page tables have used up the memory that the pool needs", |m| {
            m.ram(192 * GB);
            m.on_small_pages(141 * GB, 0);
            m.page_tables(284 * MB, 284 * MB);
            m.faulted_in(141 * GB);
            m.available = Some(GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 72192 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 72192/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=72192
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 72192 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 72192 are needed.
            # as huge_pages"#]])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 192 GB of 192 GB RAM. 1 GB is available, and 3932 MB should stay available.
            # as huge_pages"#]]),
        when("page tables are larger than the segment", |m| {
            m.ram(64 * GB);
            m.on_small_pages(16 * GB, 0);
            m.page_tables(390 * MB, 390 * MB);
            m.faulted_in(16 * GB);
            m.available = Some(GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 8192 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 8192/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=8192
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8192 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("the postmaster has faulted in as much as its backends", |m| {
            m.ram(256 * GB);
            m.on_small_pages(70 * GB, 0);
            m.page_tables(150 * MB, 150 * MB);
        })
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 12 GB; on 2 MB pages they would take about 832 MB.
            # as huge_pages"#]]),
        when("backends have faulted in a part of the segment", |m| {
            m.ram(64 * GB);
            m.on_small_pages(9444 * MB, 0);
            m.page_tables(256 << 10, 1900 << 10);
            m.state.processes.truncate(57);
            m.faulted_in(800 * MB);
            m.state.processes[0].rss_shmem = Some(10 * MB);
        })
        .see("page_tables", expect![["ok small_page_tables: Page tables of 57 processes take 104 MB; on 2 MB pages they would take about 17 MB."]]),
        when("the server has just started", |m| {
            published(m);
            m.page_tables(MB / 2, MB);
            m.faulted_in(100 * MB);
        })
        .see("page_tables", expect![["ok small_page_tables: Page tables of 81 processes take 81 MB; on 2 MB pages they would take about 65 MB."]]),
        when("page tables are large compared with the segment", |m| {
            m.fall_back(537);
            m.ram(256 * GB);
            m.page_tables(MB / 2, 3 * MB);
        })
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 241 MB; on 2 MB pages they would take about 73 MB.
            # as huge_pages"#]]),
        when(
            "page tables are large on huge pages, and RAM is small",
            |m| {
                m.ram(8 * GB);
                m.page_tables(MB / 2, 3 * MB);
            },
        )
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 241 MB.
            # lower max_connections, or use a connection pooler"#]]),
        when("page tables on huge pages are small compared with RAM", |m| {
            m.ram(256 * GB);
            m.page_tables(MB / 2, 3 * MB);
        })
        .see("page_tables", expect![["ok small_page_tables: Page tables of 81 processes take 241 MB."]]),
        when("the server is tiny", |m| {
            m.on_small_pages(16 * MB, 0);
            m.page_tables(MB / 2, 700 << 10);
        })
        .see("page_tables", expect![["ok small_page_tables: Page tables of 81 processes take 55 MB; on 2 MB pages they would take about 53 MB."]]),
        when(
            "no saving is expected, because private memory has the page tables",
            |m| {
                m.ram(16 * GB);
                m.on_small_pages(144 * MB, 0);
                m.faulted_in(MB);
                m.page_tables(12 * MB, 12 * MB);
            },
        )
        .see("page_tables", expect![[r#"
            warning large_page_tables: Page tables of 81 processes take 972 MB; on 2 MB pages they would take about 949 MB.
            # lower max_connections, or use a connection pooler"#]]),
        when("the kernel reports no page tables", |m| {
            for process in &mut m.state.processes {
                process.page_tables = None;
            }
        })
        .see("page_tables", expect![["unknown unknown: Cannot judge page_tables: the kernel reports page tables for no process."]]),
    ]);
}

#[test]
fn swap() {
    /// Each of nine backends has swapped out this much, and the host has in total.
    fn swapped(m: &mut Scene, each: u64, of_host: u64) {
        let swap = Some(each);
        m.state.processes = processes(
            9,
            ProcessFigures {
                swap,
                ..ProcessFigures::default()
            },
        );
        m.state.processes[0].swap = Some(0);
        m.state.usage.as_mut().expect("meminfo").swap_free = Some(8 * GB - of_host);
    }
    test(vec![
        when("nothing is swapped out", |_| {}).see("swap", expect![["ok not_swapped_out: 0 bytes of this server's private memory is swapped out."]]),
        when("much private memory is swapped out", |m| swapped(m, 20 * MB, 300 * MB))
            .see("swap", expect![[r#"
                warning swapped_out: 180 MB of this server's private memory is swapped out.
                # find out which processes use the memory (hugeinfo_footprint, hugeinfo_host); lower work_mem or shared_buffers, or add memory"#]])
            .see("runbook", expect![["# find out which processes use the memory (hugeinfo_footprint, hugeinfo_host); lower work_mem or shared_buffers, or add memory"]]),
        when("little is swapped out", |m| swapped(m, MB, 300 * MB)).see("swap", expect![["ok not_swapped_out: 9 MB of this server's private memory is swapped out."]]),
        when(
            "backends inherit the swapped pages of the postmaster",
            |m| {
                swapped(m, 20 * MB, 300 * MB);
                m.state.processes[0].swap = Some(20 * MB);
            },
        )
        .see("swap", expect![["ok not_swapped_out: 20 MB of this server's private memory is swapped out."]]),
        when(
            "the host has swapped out less than the processes report",
            |m| {
                swapped(m, 20 * MB, 30 * MB);
            },
        )
        .see("swap", expect![["ok not_swapped_out: 30 MB of this server's private memory is swapped out."]]),
        when("the kernel reports no swap", |m| {
            m.state.processes[0].swap = None;
            m.state.processes.truncate(1);
        })
        .see("swap", expect![["unknown unknown: Cannot judge swap: the kernel reports it for no process."]]),
    ]);
}

#[test]
fn major_faults() {
    fn each(m: &mut Scene, major_faults: u64) {
        m.state.processes = processes(
            9,
            ProcessFigures {
                major_faults,
                ..ProcessFigures::default()
            },
        );
    }
    test(vec![
        when("there are none", |_| {}).see("major_faults", expect![["ok few_major_faults: The current processes have had 0 major faults in 86400 s."]]),
        when("there are many", |m| each(m, 100_000)).see("major_faults", expect![[r#"
            warning many_major_faults: The current processes have had 1000000 major faults in 86400 s.
            # look at the rate now (SELECT * FROM hugeinfo_fault_rates()), then free memory"#]]),
        when("there are few", |m| each(m, 11)).see("major_faults", expect![["ok few_major_faults: The current processes have had 110 major faults in 86400 s."]]),
        when("the server has just started", |m| {
            each(m, 100_000);
            for process in &mut m.state.processes {
                process.age_seconds = Some(10);
            }
        })
        .see("major_faults", expect![["ok few_major_faults: The current processes have had 1000000 major faults in 10 s."]]),
    ]);
}
