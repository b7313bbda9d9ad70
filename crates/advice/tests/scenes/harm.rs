//! Remedies that would harm other programs, the next boot or the server itself.

use host::server::state::HugePages;

use expect_test::expect;

use crate::{scene::*, table::*};

const CONF: &str = "etc/sysctl.d/hugepages.conf";

#[test]
fn other_programs_keep_their_memory_at_boot() {
    test(vec![
        when(
            "another server requests more than other programs leave",
            |m| {
                m.available = Some(10 * GB);
                m.other(30 * GB, 4096, TRY).rss_shmem_bytes = Some(GB);
            },
        )
        .see("reboot", expect!["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot. 15360 more are needed if other servers that ask for huge pages start first: see other_servers."])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 537 huge pages of 2 MB; needed: 15897 = 537 for this server + 15360 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # lower shared_buffers of a server, move it to another host, or free memory: there is too little for 15897 huge pages of 2 MB"#]])
        .see("how_to_set_2", expect![[""]]),
        when("half of a large segment is in use", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file(CONF, None);
            m.faulted_in(20 * GB);
            m.available = Some(4 * GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 20480 are needed.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            # free 17695 MB of memory, or lower shared_buffers to 21215MB: too little memory is available for the pool"#]]),
        when("memory of another server stays in use at boot", |m| {
            m.on_small_pages(30 * GB, 0);
            m.file(CONF, None);
            m.faulted_in(GB);
            m.available = Some(20 * GB);
            m.other(20 * GB, 4096, TRY).rss_shmem_bytes = Some(20 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 15360 huge pages of 2 MB; 0 are available.
            # free 10527 MB of memory, or lower shared_buffers to 18655MB: too little memory is available for the pool"#]])
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 15360 are needed.
            # as huge_pages"#]]),
        when("a file that systemd does not read requests more", |m| {
            m.file("run/systemd/system/x", "");
            m.file(CONF, None);
            m.file("etc/sysctl.conf", "vm.nr_hugepages=2537\n");
            m.more(2000);
        })
        .see("pool_size", expect!["unknown unknown: 2000 huge pages of 2 MB (4000 MB) are idle; 537 are needed. The boot configuration could ask for them: /etc/sysctl.conf:1 sets vm.nr_hugepages=2537, but systemd does not read this file (Debian 13 and newer)."])
        .see("reboot", expect![[r#"
            warning no_effect_at_boot: /etc/sysctl.conf:1 sets vm.nr_hugepages=2537, but systemd does not read this file (Debian 13 and newer); 537 are needed.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 2537' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("the page size of another server is unknown", |m| {
            m.more(8000);
            let other = m.other(8 * GB, 4096, TRY);
            other.segment.as_mut().expect("a segment").page_bytes = None;
            other.rss_shmem_bytes = None;
        })
        .see("pool_size", expect![["unknown unknown: 8000 huge pages of 2 MB (16 GB) are idle; 537 are needed. They could be meant for the server on port 5433."]])
        .see("other_servers", expect![["ok enough_for_all: Another server runs on this host. The pool has 8537 huge pages of 2 MB; 537 are needed. 4096 more are needed if the server on port 5433 is to use huge pages."]]),
    ]);
}

#[test]
fn limits_hold_at_boot() {
    test(vec![
        when("a limit that only the pod can raise", |m| {
            m.fall_back(0);
            m.file(CONF, None);
            limited(&mut m.state, Some(100), None);
            m.state.hugetlb.as_mut().expect("a cgroup").groups[0].is_set_outside = true;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            # raise the limit on 2 MB pages to 1126170624 bytes (1074 MB), where it is set (its unit, for example)"#]])
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            # as huge_pages"#]])
        .see("how_to_set_2", expect!["# raise the limit on 2 MB pages to 1126170624 bytes (1074 MB), where it is set (its unit, for example)"]),
        when("a limit that can be raised", |m| {
            m.fall_back(0);
            m.file(CONF, None);
            limited(&mut m.state, Some(100), None);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sysctl -w vm.nr_hugepages=537
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]])
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            # as huge_pages"#]])
        .see("how_to_set_2", expect![[r#"
            echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max
            # also raise the limit where it is set (unit or container runtime), or the next start resets it
            sysctl -w vm.nr_hugepages=537
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 537' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("a memory limit that counts huge pages", |m| {
            m.fall_back(0);
            m.file(CONF, None);
            m.faulted_in(100 * MB);
            let limit = m.memory_limit(1000 * MB, 200 * MB, 0);
            limit.counts_hugetlb = true;
            limit.swap_room_bytes = Some(4 * GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 537 are needed.
            # as huge_pages"#]]),
    ]);
}

#[test]
fn small_pages_that_do_not_fit() {
    test(vec![
        when("off is pending, and only huge pages fit", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.waits(|next| next.huge_pages = HugePages::Off);
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. The next start uses huge_pages = off. On small pages, the segment takes 40 GB; 16 GB and 8 GB of swap are available.
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_pages=off')"#]]),
        when(
            "another page size is pending, and only huge pages fit",
            |m| {
                m.on_huge_pages(40 * GB, 40 * GB);
                m.file(CONF, None);
                m.waits(|next| next.huge_page_size_bytes = Some(GB));
            },
        )
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 40 huge pages of 1 GB; 0 are available. There are enough 2 MB pages for a start with huge_page_size = 2MB. On small pages, the segment takes 40 GB; 16 GB and 8 GB of swap are available.
            # undo the pending change: set huge_page_size to its running value (SHOW huge_page_size); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_page_size=1GB')"#]]),
        when("a server is turned off, and the pool is idle", |m| {
            m.on_small_pages(30 * GB, 20_000);
            m.off();
            m.asked(20_000);
        })
        .see("restart", expect!["ok does_not_ask: The next start uses huge_pages = off."]),
        when(
            "a larger segment is pending, and another server is off",
            |m| {
                m.ram(64 * GB);
                m.on_huge_pages(40 * GB, 40 * GB);
                m.other(30 * GB, 4096, OFF).rss_shmem_bytes = Some(0);
                m.waits(|next| next.shared_memory_bytes = 42 * GB);
            },
        )
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 21504 huge pages of 2 MB; 20480 are available. On small pages, the segment takes 42 GB, and other servers 30 GB; 16 GB and 8 GB of swap are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, lower shared_buffers by 9504MB, or add 9697 MB of memory: too little memory is available for the pool"#]])
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, lower shared_buffers by 9504MB, or add 9697 MB of memory: too little memory is available for the pool"]),
        when("a strict commit limit, and a ratio that is enough", |m| {
            m.on_small_pages(8 * GB, 0);
            m.off();
            m.strict(11 * GB);
            m.waits(|next| next.shared_memory_bytes = 40 * GB);
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. The next start uses huge_pages = off. On small pages, the segment takes 40 GB; CommitLimit leaves 37 GB.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, set vm.overcommit_ratio to 57, add 4383 MB of swap, or lower committed memory by as much"#]]),
        when("a segment larger than RAM is pending", |m| {
            m.waits(|next| next.shared_memory_bytes = 80 * GB);
        })
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, lower shared_buffers by 25888MB, or add 26416 MB of memory: too little memory is available for the pool"]),
    ]);
}

#[test]
fn setting_that_would_undo_a_remedy_is_named() {
    test(vec![
        when("sysctl.d sets the whole pool after the command line", |m| {
            m.on_huge_pages(10 * GB, 10 * GB);
            m.asked(537);
            m.nodes(&[(0, 32 * GB), (5120, 32 * GB)]);
            m.bound(&[1]);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 5120 are needed.
            # allocate 5120 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 5120 on node 1"#]]),
    ]);
}
