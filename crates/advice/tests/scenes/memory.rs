//! RAM that the pools leave, and small pages that have not been faulted in yet.

use std::sync::Arc;

use advice::{
    answer::{self, Answer},
    model::{machine::Machine, step::Step},
    render,
};
use host::{
    linux::zfs::ZfsCache,
    server::{
        configuration::RequestedPages,
        facts::Facts,
        setting::{Setting, SettingSource},
        state::{HugePages, SharedMemoryType},
        visibility::Visibility,
    },
};

use expect_test::expect;

use crate::{scene::*, table::*};

#[test]
fn untouched_segments() {
    test(vec![
        when("two servers have faulted in little of 25 GB each", |m| {
            m.on_small_pages(25 * GB, 0);
            m.faulted_in(2 * GB);
            m.other(25 * GB, 4096, TRY).rss_shmem_bytes = Some(2 * GB);
            m.available = Some(58 * GB);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 12800 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 25600/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=12800
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12800 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 12800 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 25600/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=12800
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12800 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 2 MB; needed: 25600 = 12800 for this server + 12800 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # stop the server on port 5433, allocate 25600 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]])
        .see("memory_left", expect![["ok enough_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM."]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 25600/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=12800
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12800 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL
            # stop the server on port 5433, allocate 25600 huge pages of 2 MB, and start it again: memory cannot hold these pages in addition to the present segments, so they wait"#]]),
        when("the server has faulted in little of 20 of 32 GB", |m| {
            m.ram(32 * GB);
            m.on_small_pages(20 * GB, 0);
            m.faulted_in(GB / 2);
            m.available = Some(29 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 10240 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 10240/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=10240
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10240 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 10240 huge pages of 2 MB; 0 are available.
            # as huge_pages"#]])
        .see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 537 huge pages of 2 MB, and the pool has 0; 10240 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as huge_pages"#]])
        .see("pool_growth", expect![[r#"
            warning fragmented: The pool has to grow by 10240 huge pages of 2 MB; free memory has blocks for 2009. The kernel has to compact memory and might allocate fewer pages.
            # as huge_pages"#]]),
        when(
            "an idle pool leaves less than the segment on small pages",
            |m| {
                m.on_small_pages(30 * GB, 20_480);
                m.asked(0);
                m.faulted_in(4 * GB);
                m.available = Some(18 * GB);
            },
        )
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 15360/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (ends all sessions)
            # then, if no other program needs 5120 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=15360"#]])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 40 GB and leave 24 GB of 64 GB RAM. Segments on small pages still need 26 GB; 18 GB and 8 GB of swap are available, and 1311 MB should stay available.
            # as huge_pages"#]]),
        when("RAM holds the pool and the segment", |m| {
            m.on_small_pages(8 * GB, 0)
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=4096
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("RAM holds the pool only without the segment", |m| {
            m.on_small_pages(40 * GB, 0)
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=20480
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20480 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 20480 huge pages of 2 MB; 0 are available.
            # as huge_pages"#]])
        .see("pool_filled", expect![[r#"
            warning not_filled: /etc/sysctl.d/hugepages.conf:1 asked for 537 huge pages of 2 MB, and the pool has 0; 20480 are needed. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.
            # as huge_pages"#]])
        .see("how_to_set_2", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=20480
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20480 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("most pages exist, and RAM holds the rest", |m| {
            m.ram(128 * GB);
            m.on_small_pages(40 * GB, 20_479);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 20479 are available.
            # if no other program needs 19942 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=20480
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20480 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "available memory lacks as much as the segment releases",
            |m| {
                m.on_small_pages(8 * GB, 0);
                m.available = Some(2 * GB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4096/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=4096
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 4096 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when(
            "available memory lacks more than the segment releases",
            |m| {
                m.on_small_pages(8 * GB, 0);
                m.faulted_in(3 * GB);
                m.available = Some(2 * GB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # free 4383 MB of memory, or lower shared_buffers to 3398MB: too little memory is available for the pool"#]]),
        when(
            "available memory is small, and nothing is faulted in",
            |m| {
                m.on_small_pages(8 * GB, 0);
                m.faulted_in(0);
                m.available = Some(2 * GB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # free 7455 MB of memory, or lower shared_buffers to 326MB: too little memory is available for the pool"#]]),
    ]);
}

#[test]
fn a_tenth_of_ram() {
    test(vec![
        when("a segment of 59 GB would be on huge pages of 64 GB", |m| {
            m.on_small_pages(59 * GB, 0);
            m.faulted_in(GB);
            m.available = Some(62 * GB);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 30208 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 30208/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=30208
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 30208 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 30208 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 30208/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=30208
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 30208 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("memory_left", expect![["ok enough_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM."]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 30208 are needed.
            # as huge_pages"#]])
        .see("how_to_set_2", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 30208/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=30208
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 30208 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 30208/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=30208
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 30208 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("59 GB are pending", |m| {
            m.on_huge_pages(30 * GB, 30 * GB);
            m.waits(|next| next.shared_memory_bytes = 59 * GB);
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 30208 huge pages of 2 MB; 15360 are available. On small pages, the segment takes 59 GB; 26 GB and 8 GB of swap are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 4383 MB of memory, or lower shared_buffers by 4384MB: too little memory is available for the pool"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 15360 huge pages of 2 MB at boot; 30208 are needed.
            # as restart"#]]),
        when(
            "a smaller segment is pending that is still too large",
            |m| {
                m.on_small_pages(60 * GB, 0);
                m.waits(|next| next.shared_memory_bytes = 59 * GB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 30208 huge pages of 2 MB; 0 are available.
            # free 287 MB of memory, or lower shared_buffers by 288MB: with the pool, less than 1311 MB would stay available"#]])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM. 0 bytes is available, and 1311 MB should stay available.
            # as huge_pages"#]]),
        when(
            "a smaller segment is pending, and available memory is short",
            |m| {
                m.on_huge_pages(10 * GB, 10 * GB);
                m.waits(|next| next.shared_memory_bytes = 24 * GB);
                m.available = Some(2 * GB);
            },
        )
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 12288 huge pages of 2 MB; 5120 are available. On small pages, the segment takes 24 GB; 2 GB and 8 GB of swap are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 13599 MB of memory, or lower shared_buffers by 13600MB: too little memory is available for the pool"#]]),
        when("1 GB pages do not leave enough", |m| {
            m.ram(32 * GB);
            m.on_small_pages(4 * GB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.available = Some(6 * GB);
            m.faulted_in(0);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4 huge pages of 1 GB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            echo 4 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
            if ! [ "$(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)" -ge 4 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=1G hugepages=4 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("a small host cannot hold the pool", |m| {
            m.ram(1100 * MB);
            m.fall_back(0);
            m.available = Some(1000 * MB);
        })
        .see("how_to_set_2", expect!["# add 235 MB of memory: with the pool, less than 256 MB would stay available"]),
        when("available memory lacks a part of a 1 GB page", |m| {
            m.ram(32 * GB);
            m.on_small_pages(4 * GB, 0);
            m.state.server.huge_page_size_bytes = Some(GB);
            m.available = Some(GB);
            m.faulted_in(GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4 huge pages of 1 GB; 0 are available.
            # free 2704 MB of memory, or lower shared_buffers to 819MB: too little memory is available for the pool"#]]),
        when("an idle pool leaves too little", |m| {
            m.more(29_463);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 59 GB and leave 5536 MB of 64 GB RAM. 0 bytes is available, and 1311 MB should stay available.
            # as pool_size"#]]),
        when(
            "an idle pool leaves too little, and hidden servers could need it",
            |m| {
                m.more(29_463);
                m.facts.visibility = Visibility::Hidden;
            },
        )
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 59 GB and leave 5536 MB of 64 GB RAM. 0 bytes is available, and 1311 MB should stay available.
            # as root, check whether a server that is not visible from here needs the idle pages (29463 huge pages of 2 MB): processes of other users are not visible. If none does, release them"#]]),
        when(
            "an idle pool leaves too little, and another server might use it",
            |m| {
                m.more(29_463);
                m.other(MB, 4096, RequestedPages::Unknown(None));
            },
        )
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 59 GB and leave 5536 MB of 64 GB RAM. 0 bytes is available, and 1311 MB should stay available.
            # check whether the server on port 5433 is meant to use the idle pages (29463 huge pages of 2 MB). If it is not, release them"#]]),
        when("the segment leaves plenty", |_| {}).see("memory_left", expect![["ok enough_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM."]]),
    ]);
}

/// After each step and at the next start, the larger of 2% of RAM and 256 MB stays available.
#[test]
fn reserve() {
    /// A server on small pages without swap.
    fn small_host(m: &mut Scene, ram: u64, segment: u64, available: u64) {
        m.ram(ram);
        m.on_small_pages(segment, 0);
        m.asked(0);
        m.swap(0);
        m.available = Some(available);
    }
    test(vec![
        when("2 GB of RAM, and the pool fits once the server has stopped", |m| {
            small_host(m, 2000 * MB, 560 * MB, 620 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 280 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 280/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: sysctl -w vm.nr_hugepages=280
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 280 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("4 GB of RAM, and the pool would leave 90 MB", |m| {
            small_host(m, 4000 * MB, 1000 * MB, 1090 * MB);
            m.faulted_in(0);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 500 huge pages of 2 MB; 0 are available.
            # free 166 MB of memory, or lower shared_buffers to 784MB: with the pool, less than 256 MB would stay available"#]])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 4000 MB of 4000 MB RAM. Segments on small pages still need 1000 MB; 1090 MB is available, and 256 MB should stay available.
            # as huge_pages"#]]),
        when("1 MB is missing", |m| {
            small_host(m, 4000 * MB, 1000 * MB, 1255 * MB);
            m.faulted_in(0);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 4000 MB of 4000 MB RAM. Segments on small pages still need 1000 MB; 1255 MB is available, and 256 MB should stay available.
            # as huge_pages"#]])
        .see("runbook", expect!["# free 1 MB of memory, or lower shared_buffers to 948MB: with the pool, less than 256 MB would stay available"]),
        when("480 MB of RAM, and 1 MB is missing", |m| {
            small_host(m, 480 * MB, 150 * MB, 405 * MB);
            m.faulted_in(0);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 480 MB of 480 MB RAM. Segments on small pages still need 150 MB; 405 MB is available, and 256 MB should stay available.
            # as huge_pages"#]])
        .see("runbook", expect!["# free 1 MB of memory, or lower shared_buffers to 140MB: with the pool, less than 256 MB would stay available"]),
        when("480 MB of RAM, and a larger segment is pending", |m| {
            m.ram(480 * MB);
            m.on_huge_pages(150 * MB, 100 * MB);
            m.swap(0);
            m.available = Some(200 * MB);
            m.waits(|next| next.shared_memory_bytes = 160 * MB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 150 MB and leave 330 MB of 480 MB RAM. 200 MB is available, and 256 MB should stay available.
            # lower shared_buffers by 66MB, or free or add 56 MB of memory: too little memory is available"#]])
        .see("runbook", expect![[r#"
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 66 MB of memory, or lower shared_buffers by 66MB: with the pool, less than 256 MB would stay available
            # lower shared_buffers by 66MB, or free or add 56 MB of memory: too little memory is available"#]]),
        when("the pool was made smaller, and another server takes memory", |m| {
            m.on_huge_pages(20 * GB, 20 * GB);
            m.lowered(8000);
            m.swap(0);
            m.available = Some(8 * GB);
            m.other(10 * GB, 4096, OFF).rss_shmem_bytes = Some(GB);
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 20 GB, and other servers 9 GB; 12 GB is available.
            # lower shared_buffers of the server on port 5433 by 2335MB, or add 2335 MB of memory or swap: too little memory is available"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=10240
            # lower shared_buffers of the server on port 5433 by 2335MB, or add 2335 MB of memory or swap: too little memory is available"#]]),
        when("swap holds small pages, but not the pool", |m| {
            small_host(m, 4000 * MB, 1000 * MB, 1090 * MB);
            m.faulted_in(0);
            m.swap(8 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 500 huge pages of 2 MB; 0 are available.
            # free 166 MB of memory, or lower shared_buffers to 784MB: with the pool, less than 256 MB would stay available"#]])
        .see("memory_left", expect!["ok enough_left: The pools hold 0 bytes and leave 4000 MB of 4000 MB RAM."]),
        when("a fallback needs more than is available", |m| {
            m.on_huge_pages(10 * GB, 10 * GB);
            m.available = Some(12 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 40 * GB);
        })
        .see("status", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. Needs 20480 huge pages of 2 MB; 5120 are available. On small pages, the segment takes 40 GB; 12 GB is available. Settings are pending a restart.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 19743 MB of memory, or lower shared_buffers by 19744MB: too little memory is available for the pool"#]])
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 40 GB; 12 GB is available.
            # as restart"#]]),
        when("swap holds the rest of a fallback", |m| {
            m.on_huge_pages(10 * GB, 10 * GB);
            m.available = Some(12 * GB);
            m.swap(60 * GB);
            m.waits(|next| next.shared_memory_bytes = 40 * GB);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 20480 huge pages of 2 MB; 5120 are available.
            # free 19743 MB of memory, or lower shared_buffers by 19744MB: too little memory is available for the pool"#]])
        .see("memory_left", expect!["ok enough_left: The pools hold 10 GB and leave 54 GB of 64 GB RAM."]),
        when("released pages are just enough for the segment", |m| {
            m.on_small_pages(40 * GB, 4096);
            m.off();
            m.asked(0);
            m.faulted_in(0);
            m.swap(0);
            m.available = Some(32 * GB);
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 4096 huge pages of 2 MB (8 GB) are idle: PostgreSQL needs none of them.
            # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=0"#]])
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 40 GB; 32 GB is available.
            # lower shared_buffers to 29408MB, or add 9503 MB of memory or swap: too little memory is available"#]])
        .see("runbook", expect![[r#"
            # lower shared_buffers to 29408MB, or add 9503 MB of memory or swap: too little memory is available
            # if no other program needs 4096 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=0"#]]),
        when("memory is just enough for the segment", |m| {
            m.on_small_pages(40 * GB, 0);
            m.off();
            m.asked(0);
            m.faulted_in(0);
            m.swap(0);
            m.available = Some(40 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM. Segments on small pages still need 40 GB; 40 GB is available, and 1311 MB should stay available.
            # lower shared_buffers to 37600MB, or add 1311 MB of memory or swap: too little memory is available"#]])
        .see("status", expect!["ok turned_off: On 4 kB pages: huge_pages = off."]),
        when("all memory of a server on small pages is in use", |m| {
            m.on_small_pages(40 * GB, 0);
            m.off();
            m.asked(0);
            m.swap(0);
            m.available = Some(4 * GB);
        })
        .see("restart", expect!["ok does_not_ask: The next start uses huge_pages = off."])
        .see("memory_left", expect!["ok enough_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM."]),
        when("one process has faulted in a part of a segment that is all in use", |m| {
            m.on_small_pages(40 * GB, 0);
            m.off();
            m.asked(0);
            m.faulted_in(2 * GB);
            m.shmem = Some(41 * GB);
            m.swap(0);
            m.available = Some(4 * GB);
        })
        .see("restart", expect!["ok does_not_ask: The next start uses huge_pages = off."])
        .see("memory_left", expect!["ok enough_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM."]),
        when("a segment is larger than RAM and swap", |m| {
            m.waits(|next| {
                next.huge_pages = HugePages::Off;
                next.shared_memory_bytes = 80 * GB;
            });
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. The next start uses huge_pages = off. On small pages, the segment takes 80 GB; the kernel refuses more than RAM and swap (72 GB).
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); otherwise, lower shared_buffers by 18769MB, or add 18769 MB of memory or swap: too little memory is available"#]]),
        when("the kernel refuses no segment", |m| {
            m.file("proc/sys/vm/overcommit_memory", "1\n");
            m.waits(|next| {
                next.huge_pages = HugePages::Off;
                next.shared_memory_bytes = 80 * GB;
            });
        })
        .see("restart", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. The next start uses huge_pages = off. On small pages, the segment takes 80 GB; 55 GB and 8 GB of swap are available.
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); otherwise, lower shared_buffers by 18769MB, or add 18769 MB of memory or swap: too little memory is available"#]]),
        when("a limit of 500 MB under a segment of 600 MB that runs", |m| {
            m.on_small_pages(600 * MB, 0);
            m.off();
            m.asked(0);
            m.faulted_in(100 * MB);
            m.swap(0);
            m.memory_limit(500 * MB, 150 * MB, 0);
        })
        .see("status", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 500 MB and needs 650 MB once the whole segment is in use. The OOM killer will kill a process.
            # raise the memory limit of the server's cgroup by 150 MB, or lower shared_buffers by as much"#]])
        .see("restart", expect!["ok does_not_ask: The next start uses huge_pages = off."])
        .see("memory_left", expect![[r#"
            critical cgroup_out_of_memory: Cgroup /sys/fs/cgroup/pg has a memory limit of 500 MB and needs 650 MB once the whole segment is in use. The OOM killer will kill a process.
            # raise the memory limit of the server's cgroup by 150 MB, or lower shared_buffers by as much"#]]),
        when("idle pages of a line are enough for the segment", |m| {
            m.on_small_pages(30 * GB, 20_000);
            m.off();
            m.asked(20_000);
            m.faulted_in(0);
            m.swap(0);
            m.available = Some(20 * GB);
        })
        .see("status", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 30 GB; 20 GB is available.
            # release 5776 huge pages of 2 MB and lower /etc/sysctl.d/hugepages.conf:1 to 14224 if no other program needs them, lower shared_buffers to 17632MB, or add 11551 MB of memory or swap: too little memory is available"#]]),
        when("others have yet to use more than is available", |m| {
            m.swap(0);
            m.available = Some(8 * GB);
            m.other(10 * GB, 4096, OFF).rss_shmem_bytes = Some(GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM. The server on port 5433 still needs 9 GB for its segment on small pages; 8 GB is available.
            # lower shared_buffers of the server on port 5433 by 2335MB, or add 2335 MB of memory or swap: too little memory is available"#]])
        .see("status", expect!["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]),
    ]);
}

#[test]
fn pool_held_by_other_programs() {
    test(vec![
        when(
            "a fallback would not fit in addition to a pool that others hold",
            |m| {
                m.fall_back(25_600);
                m.pool(0).reserved = 25_600;
                m.asked(25_600);
                m.needs(16_000 * MB);
            },
        )
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 8000 huge pages of 2 MB; 0 are available.
            # free some of the 25600 huge pages of 2 MB that others hold (hugeinfo_holders), or add 3036 MB of memory: too little memory is available for the pool"#]])
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 50 GB and leave 14 GB of 64 GB RAM. 0 bytes is available, and 1311 MB should stay available.
            # as huge_pages"#]]),
        when(
            "a server that was turned off would not fit in addition to a pool that others hold",
            |m| {
                m.fall_back(25_600);
                m.pool(0).reserved = 25_600;
                m.asked(25_600);
                m.needs(16_000 * MB);
                m.off();
            },
        )
        .see("status", expect!["ok turned_off: On 4 kB pages: huge_pages = off."]),
        when("other programs have reserved the pool", |m| {
            m.fall_back(25_600);
            m.asked(25_600);
            m.pool(0).reserved = 25_600;
            m.needs(8 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # free 1311 MB of memory, or free some of the 25600 huge pages of 2 MB that others hold (hugeinfo_holders): with the pool, less than 1311 MB would stay available"#]]),
        when("/proc/meminfo is that of a container", |m| {
            m.fall_back(25_600);
            m.asked(25_600);
            m.pool(0).reserved = 25_600;
            m.needs(8 * GB);
            m.ram(16 * GB);
            m.available = Some(6 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # on the host, allocate 29696 huge pages of 2 MB, if it has the memory: its memory is unknown here"#]])
        .see("memory_left", expect![["unknown unknown: Cannot judge memory_left: /proc/meminfo or the pools are unknown, or not those of the host."]])
        .see("page_tables", expect![["ok small_page_tables: Page tables of 21 processes take 6300 kB."]]),
        when("MemTotal is less than the memory of the nodes", |m| {
            m.fall_back(25_600);
            m.pool(0).reserved = 25_600;
            m.needs(8 * GB);
            m.nodes(&[(12_800, 128 * GB), (12_800, 128 * GB)]);
            m.ram(70 * GB);
            m.available = Some(GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # on the host, allocate 29696 huge pages of 2 MB, if it has the memory: its memory is unknown here"#]]),
        when("memory is short, and huge_pages = on is pending", |m| {
            m.on_huge_pages(10 * GB, 10 * GB);
            m.available = Some(GB);
            m.waits(|next| {
                next.huge_pages = HugePages::On;
                next.shared_memory_bytes = 24 * GB;
            });
        })
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 12288 huge pages of 2 MB; 5120 are available. Settings are pending a restart.
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 14623 MB of memory, or lower shared_buffers by 14624MB: too little memory is available for the pool"#]])
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 12288 huge pages of 2 MB; 5120 are available.
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 14623 MB of memory, or lower shared_buffers by 14624MB: too little memory is available for the pool"#]])
        .see("pending_settings", expect![[r#"
            critical would_not_start: Settings are pending a restart (huge_pages, shared_buffers). A restart would fail, because huge_pages = on. Needs 12288 huge pages of 2 MB; 5120 are available.
            # as restart"#]])
        .see("runbook", expect![[r#"
            # undo the pending change: set huge_pages to its running value (SHOW huge_pages) and set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 14623 MB of memory, or lower shared_buffers by 14624MB: too little memory is available for the pool
            # lower shared_buffers by 14624MB, or free or add 287 MB of memory: too little memory is available"#]]),
        when(
            "the pool of a running server with huge_pages = on cannot be allocated again",
            |m| {
                m.on_huge_pages(40 * GB, 40 * GB);
                m.state.server.huge_pages = HugePages::On;
                m.pool(0).total += 1000;
                m.pool(0).surplus = 20_000;
                m.waits(|next| next.shared_memory_bytes = 54 * GB);
                m.available = Some(GB);
            },
        )
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 27648 huge pages of 2 MB; 480 are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers) and sysctl -w vm.nr_hugepages=21480; otherwise, free 14623 MB of memory, lower shared_buffers by 14624MB, or free some of the 1000 huge pages of 2 MB that others hold (hugeinfo_holders): too little memory is available for the pool"#]]),
        when("huge_pages = on is pending, and the pool can grow", |m| {
            m.fall_back(0);
            m.waits(|next| {
                next.huge_pages = HugePages::On;
                next.shared_memory_bytes = 40 * GB;
            });
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 20480 huge pages of 2 MB; 0 are available.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 20480 huge pages of 2 MB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=20480
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 20480/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 20480 ]; then echo 'too few pages, do not restart (huge_pages = on): free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
    ]);
}

#[test]
fn restart_that_would_fall_back() {
    test(vec![
        when("the commit limit refuses the segment on small pages", |m| {
            m.on_small_pages(8 * GB, 0);
            m.strict(11 * GB);
            m.waits(|next| next.shared_memory_bytes = 28 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 14336 huge pages of 2 MB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=14336
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 14336/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 14336 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("RAM outside of the pool is smaller than the segment", |m| {
            m.on_small_pages(8 * GB, 0);
            m.faulted_in(GB);
            m.available = Some(60 * GB);
            m.waits(|next| next.shared_memory_bytes = 36 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 18432 huge pages of 2 MB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=18432
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 18432/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 18432 ]; then echo 'too few pages, do not restart (the segment does not fit on small pages): free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the allowed nodes get too few pages", |m| {
            m.ram(128 * GB);
            m.on_small_pages(GB, 0);
            m.nodes(&[(0, 64 * GB), (0, 64 * GB)]);
            m.bound(&[1]);
            m.memory_limit(20 * GB, 2 * GB, 0);
            m.waits(|next| next.shared_memory_bytes = 30 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 15360 huge pages of 2 MB; 0 are available.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, allocate 15360 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 15360 there; node 1 has 0 of 0 pages free"#]]),
        when("the pool has the pages, and grows for another server", |m| {
            m.ram(128 * GB);
            m.on_small_pages(50 * GB, 25_600);
            m.faulted_in(GB);
            m.available = Some(70 * GB);
            m.other(8 * GB, 4096, TRY);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            echo 1 > /proc/sys/vm/compact_memory
            # if no other program needs 25063 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=29696
            # needed: 29696 = 25600 for this server + 4096 for the server on port 5433 (huge_pages = try)
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 29696/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 25600 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 29696 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart the server on port 5433 (ends all of its sessions)"#]]),
    ]);
}

/// A server that does not run, and has not run when the facts were read.
fn stopped(scene: Scene) -> Machine {
    let stopped = scene.machine().apply(&Step::Stop);
    let mut stopped = stopped.expect("a server that runs");
    stopped.facts = Arc::new(Facts {
        state: stopped.state.clone(),
        ..(*stopped.facts).clone()
    });
    stopped
}

#[test]
fn settings_of_a_stopped_server() {
    let remedy = |source: Option<SettingSource>| {
        let mut scene = Scene::healthy();
        scene.fall_back(0);
        scene.state.server.huge_pages = HugePages::On;
        let value = "on".to_owned();
        let setting = source.map(|source| Setting { value, source });
        scene
            .state
            .next
            .settings
            .extend(setting.map(|setting| ("huge_pages", setting)));
        let stopped = stopped(scene);
        let remedy = Answer::of(&stopped).remedy();
        render::remedy(&stopped, &remedy).expect("a remedy")
    };
    let line = "too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0; set huge_pages = try";
    for (source, place) in [
        (None, "in postgresql.auto.conf"),
        (
            Some(SettingSource::CommandLine),
            "on the command line of the server",
        ),
    ] {
        let remedy = remedy(source);
        assert!(
            remedy.contains(&format!("{line} {place}' >&2; false; fi\n")),
            "{remedy}"
        );
    }
}

/// A stopped server whose cgroup is too small for its segment on small pages.
#[test]
fn start_that_needs_all_pages() {
    for huge_pages in [HugePages::Try, HugePages::On] {
        let mut scene = Scene::healthy();
        scene.on_small_pages(8 * GB, 0);
        scene.faulted_in(0);
        scene.memory_limit(6 * GB, 100 * MB, 50 * MB);
        scene.state.server.huge_pages = huge_pages;
        let stopped = stopped(scene);
        let remedy = Answer::of(&stopped).remedy();
        let remedy = render::remedy(&stopped, &remedy).expect("a remedy");
        let line = "-ge 4096 ]; then echo 'too few pages, do not start (the segment does not fit on small pages), and undo the changes: sysctl -w vm.nr_hugepages=0' >&2; false; fi\n# start PostgreSQL";
        assert!(remedy.contains(line), "{remedy}");
    }
}

#[test]
fn in_a_container() {
    test(vec![
        when(
            "lxcfs shows the memory of the container, and the 1 GB pool is empty",
            |m| {
                m.container();
                m.ram(4 * GB);
                m.available = Some(GB);
                m.pool(0).total = 4096;
                m.pool(0).free = 3559 + 512;
            },
        )
        .see("page_tables", expect![["ok small_page_tables: Page tables of 21 processes take 6300 kB."]])
        .see("memory_left", expect![["unknown unknown: Cannot judge memory_left: /proc/meminfo or the pools are unknown, or not those of the host."]])
        .see("how_to_set_1024", expect![[r#"
            # on the host, allocate 2 huge pages of 1 GB, if it has the memory: its memory is unknown here
            # postgresql.conf: huge_page_size = 1GB"#]]),
        when("the pool of the node is short", |m| {
            m.fall_back(0);
            m.container();
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            # on the node, as root:
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /etc is not the host's (as in a container)"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            # on the node, as root:
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /etc is not the host's (as in a container)"#]])
        .see("reboot", expect![["unknown unknown: Cannot judge reboot: /etc is not the host's (as in a container)."]])
        .see("oom_protection", expect![["ok protected: The OOM killer prefers other processes to the postmaster (oom_score_adj = -900)."]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /etc is not the host's (as in a container)"#]]),
    ]);
}

#[test]
fn ram_and_a_cgroup_are_too_small() {
    test(vec![
        when("a higher limit of the cgroup would not be enough", |m| {
            m.on_huge_pages(20 * GB, GB);
            m.memory_limit(30 * GB, GB, 0);
            m.waits(|next| {
                next.huge_pages = HugePages::Off;
                next.shared_memory_bytes = 50 * GB;
            });
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 50 GB; 36 GB and 8 GB of swap are available.
            # as restart"#]]),
        when("all of this server is in use, and little of another one", |m| {
            m.on_small_pages(16 * GB, 0);
            m.off();
            m.faulted_in(16 * GB);
            m.swap(0);
            m.available = Some(5 * GB);
            m.shmem = Some(16 * GB + 100 * MB);
            m.other(8 * GB, 4096, OFF).rss_shmem_bytes = Some(100 * MB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM. The server on port 5433 still needs 8092 MB for its segment on small pages; 5 GB is available.
            # as reboot"#]]),
        when("swap on a disk holds a segment", |m| {
            m.on_small_pages(16 * GB, 0);
            m.off();
            m.faulted_in(GB);
            m.shmem = Some(GB);
            m.swap(16 * GB);
            m.available = Some(9 * GB);
        })
        .see("memory_left", expect!["ok enough_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM."]),
        when("swap on zram holds none of a segment", |m| {
            m.on_small_pages(16 * GB, 0);
            m.off();
            m.faulted_in(GB);
            m.shmem = Some(GB);
            m.swap(16 * GB);
            m.facts.free_zram_bytes = 16 * GB;
            m.available = Some(9 * GB);
        })
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 15 GB; 9 GB is available.
            # lower shared_buffers to 8109MB, or add 7455 MB of memory or swap on a disk: too little memory is available"#]]),
        when("only another server has yet to use its memory", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.available = Some(6 * GB);
            m.swap(0);
            let other = m.other(20 * GB, 4096, OFF);
            other.shared_memory_type = Some(SharedMemoryType::Sysv);
            other.rss_shmem_bytes = Some(2 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 16 GB and leave 48 GB of 64 GB RAM. The server on port 5433 still needs 18 GB for its segment on small pages; 6 GB is available.
            # lower shared_buffers of the server on port 5433 by 13599MB, or add 13599 MB of memory or swap: too little memory is available"#]])
        .see("runbook", expect!["# lower shared_buffers of the server on port 5433 by 13599MB, or add 13599 MB of memory or swap: too little memory is available"]),
        when("two other servers have yet to use their memory", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.available = Some(6 * GB);
            m.swap(0);
            m.other(6 * GB, 4096, OFF).rss_shmem_bytes = Some(2 * GB);
            m.other(20 * GB, 4096, OFF).rss_shmem_bytes = Some(2 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 16 GB and leave 48 GB of 64 GB RAM. Other servers still need 22 GB for their segments on small pages; 6 GB is available.
            # lower shared_buffers of the server on port 5434 by 17695MB, or add 17695 MB of memory or swap: too little memory is available"#]]),
        when("a higher limit of the cgroup is enough", |m| {
            m.on_huge_pages(20 * GB, GB);
            m.memory_limit(30 * GB, GB, 0);
            m.waits(|next| {
                next.huge_pages = HugePages::Off;
                next.shared_memory_bytes = 40 * GB;
            });
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, cgroup /sys/fs/cgroup/pg needs 41 GB; its memory limit is 30 GB.
            # as restart"#]]),
    ]);
}

#[test]
fn a_shortage_can_depend_on_all_processes() {
    let depends = |touched, available| {
        let mut scene = Scene::healthy();
        scene.on_small_pages(25 * GB, 0);
        scene.faulted_in(touched);
        scene.available = Some(available);
        scene.shmem = Some(25 * GB);
        answer::depends_on_processes(&scene.machine())
    };
    assert!(depends(2 * GB, 20 * GB));
    // All of the segment has been faulted in.
    assert!(!depends(25 * GB, 20 * GB));
    // There is enough memory, however much has been faulted in.
    assert!(!depends(2 * GB, 60 * GB));
}

#[test]
fn memory_in_use() {
    fn high(m: &mut Scene, limit: u64, used: u64, files: u64) {
        m.memory_limit(limit, used, files);
        let limits = m.state.memory_limits.as_mut().expect("limits");
        m.facts.memory_high = std::mem::take(limits);
    }
    fn zfs(m: &mut Scene, bytes: u64) {
        m.facts.zfs_cache = Some(ZfsCache {
            bytes,
            max_bytes: 32 * GB,
        });
    }
    test(vec![
        when("a container is near its memory limit", |m| {
            m.container();
            m.memory_limit(10_240 * MB, 10_220 * MB, 200 * MB);
            m.facts.cgroup_oom_kills = Some(155);
        })
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 10020 MB of its memory limit of 10 GB, without the file cache. The OOM killer has killed 155 processes of this cgroup.
            # raise the memory limit of cgroup /sys/fs/cgroup/pg by 308 MB, or let the server use less memory (shared_buffers, work_mem, max_connections)"#]])
        .see("status", expect!["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]),
        when("a container is full of cached files", |m| {
            m.container();
            m.memory_limit(10_240 * MB, 10_220 * MB, 7000 * MB);
        })
        .see("memory_left", expect!["ok enough_left: Cgroup /sys/fs/cgroup/pg uses 3220 MB of its memory limit of 10 GB, without the file cache."]),
        when(
            "a container is near its limit, and the RAM of the host is hidden",
            |m| {
                m.container();
                m.ram(10 * GB);
                m.memory_limit(10_240 * MB, 10_220 * MB, 200 * MB);
            },
        )
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 10020 MB of its memory limit of 10 GB, without the file cache.
            # raise the memory limit of cgroup /sys/fs/cgroup/pg by 308 MB, or let the server use less memory (shared_buffers, work_mem, max_connections)"#]]),
        when("the file cache of the cgroup is unknown", |m| {
            m.memory_limit(10 * GB, 10 * GB, 0).file_bytes = None;
        })
        .see("memory_left", expect!["ok enough_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM."]),
        when("the host has less memory than the limit leaves", |m| {
            m.available = Some(GB);
            m.memory_limit(10 * GB, 2 * GB, 0);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM. 1 GB is available, and 1311 MB should stay available.
            # free or add 287 MB of memory: too little memory is available"#]]),
        when("a cgroup is at memory.high", |m| {
            high(m, 6 * GB, 6140 * MB, 100 * MB)
        })
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 6040 MB of its memory.high of 6 GB, without the file cache. The kernel throttles its processes and reclaims their memory.
            # raise memory.high of cgroup /sys/fs/cgroup/pg by 214 MB, or let the server use less memory (shared_buffers, work_mem, max_connections)"#]]),
        when("a cgroup is below memory.high", |m| {
            high(m, 6 * GB, 6140 * MB, 4000 * MB)
        })
        .see("memory_left", expect!["ok enough_left: Cgroup /sys/fs/cgroup/pg uses 2140 MB of its memory.high of 6 GB, without the file cache."]),
        when("ZFS has half of RAM", |m| zfs(m, 31 * GB)).see("memory_left", expect!["ok enough_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM. The ZFS cache (ARC) uses 31 GB of RAM and can grow to 32 GB. MemAvailable does not include it, and it might not shrink in time."]),
        when("ZFS has little", |m| zfs(m, GB)).see("memory_left", expect!["ok enough_left: The pools hold 1074 MB and leave 63 GB of 64 GB RAM."]),
    ]);
}

/// A pending change is one decision, with one set of figures.
#[test]
fn pending_changes_and_memory() {
    test(vec![
        when("it ends the shortage of a server on huge pages", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 40 GB and leave 24 GB of 64 GB RAM. 1 GB is available, and 1311 MB should stay available.
            # restart PostgreSQL (its pending settings need 20480 MB less), or free or add 287 MB of memory: too little memory is available"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 20480$/vm.nr_hugepages = 10240/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (its pending settings need 20480 MB less), or free or add 287 MB of memory: too little memory is available"#]]),
        when("it ends a part of the shortage", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 40 * GB - 200 * MB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 40 GB and leave 24 GB of 64 GB RAM. 1 GB is available, and 1311 MB should stay available.
            # lower shared_buffers by 88MB, or free or add 287 MB of memory: too little memory is available"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 20480$/vm.nr_hugepages = 20380/' /etc/sysctl.d/hugepages.conf
            # lower shared_buffers by 88MB, or free or add 287 MB of memory: too little memory is available"#]]),
        when("it ends the shortage of a server on small pages", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.available = Some(GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 0 bytes and leave 64 GB of 64 GB RAM. 1 GB is available, and 1311 MB should stay available.
            # restart PostgreSQL (its pending settings need 20480 MB less), or free or add 287 MB of memory: too little memory is available"#]])
        .see("runbook", expect!["# restart PostgreSQL (its pending settings need 20480 MB less), or free or add 287 MB of memory: too little memory is available"]),
        when("it ends a shortage that is certain", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.faulted_in(20 * GB);
            m.available = Some(15 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 20 GB; 15 GB is available.
            # restart PostgreSQL (its pending settings need 20480 MB less), or add 6431 MB of memory or swap: too little memory is available"#]])
        .see("runbook", expect!["# restart PostgreSQL (its pending settings need 20480 MB less), or add 6431 MB of memory or swap: too little memory is available"]),
        when("the way back from its steps keeps it", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.faulted_in(30 * GB);
            m.available = Some(4 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("runbook", expect![[r#"
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 10240' >> /etc/sysctl.d/60-hugepages.conf)
            # stop PostgreSQL (ends all sessions)
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=10240
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10240 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("another page size is pending", |m| {
            m.on_huge_pages(30 * GB, 30 * GB);
            m.swap(0);
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 30 GB; 26 GB is available.
            # as restart"#]])
        .see("runbook", expect!["# undo the pending change: set huge_page_size to its running value (SHOW huge_page_size); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_page_size=1GB')"]),
        when("it makes a shortage", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(2 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 44 * GB);
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 44 GB; 2 GB is available.
            # as restart"#]])
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 3359 MB of memory, or lower shared_buffers by 3360MB: too little memory is available for the pool"]),
        when("it makes a start fail", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(2 * GB);
            m.swap(0);
            m.state.server.huge_pages = HugePages::On;
            m.waits(|next| next.shared_memory_bytes = 55 * GB);
        })
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 14623 MB of memory, or lower shared_buffers by 14624MB: too little memory is available for the pool"]),
        when("another page size is pending, and huge_pages = on", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(10 * GB);
            m.swap(0);
            m.state.server.huge_pages = HugePages::On;
            m.waits(|next| next.huge_page_size_bytes = Some(GB));
        })
        .see("runbook", expect!["# undo the pending change: set huge_page_size to its running value (SHOW huge_page_size); or, because the server does not start without huge pages, follow the steps of hugeinfo_runbook('huge_page_size=1GB')"]),
        when("it ends a shortage, and surplus pages vanish", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.available = Some(600 * MB);
            m.swap(0);
            m.lowered(12_000);
            m.asked(12_000);
            m.state.server.huge_pages = HugePages::On;
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("memory_left", expect![[r#"
            warning little_left: The pools hold 40 GB and leave 24 GB of 64 GB RAM. 600 MB is available, and 1311 MB should stay available.
            # restart PostgreSQL (its pending settings need 20480 MB less), or free or add 711 MB of memory: too little memory is available"#]]),
        when("it ends a part of a shortage on small pages", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.faulted_in(30 * GB);
            m.available = Some(4 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 36 * GB);
        })
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 10 GB; 4 GB is available.
            # lower shared_buffers by 3359MB, or add 7455 MB of memory or swap: too little memory is available"#]]),
        when("it would end a shortage, but not that of a cgroup", |m| {
            m.on_small_pages(40 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.faulted_in(20 * GB);
            m.available = Some(15 * GB);
            m.swap(0);
            m.memory_limit(18 * GB, 17 * GB, 0);
            m.waits(|next| next.shared_memory_bytes = 20 * GB);
        })
        .see("memory_left", expect![[r#"
            critical will_run_out_of_memory: The segment on small pages still needs 20 GB; 15 GB is available.
            # add 6431 MB of memory or swap: too little memory is available"#]]),
        when("it makes a shortage, and the running settings lack persistent pages", |m| {
            m.on_huge_pages(40 * GB, 40 * GB);
            m.lowered(20_000);
            m.asked(20_480);
            m.available = Some(2 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 50 * GB);
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 50 GB; 3008 MB is available.
            # as restart"#]])
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers) and sysctl -w vm.nr_hugepages=20480; otherwise, free 9503 MB of memory, or lower shared_buffers by 9504MB: too little memory is available for the pool"]),
        when("it ends a shortage of the cgroup", |m| {
            m.on_small_pages(10 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.memory_limit(11 * GB, 10 * GB + 800 * MB, 0);
            m.waits(|next| next.shared_memory_bytes = 4 * GB);
        })
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 11 GB of its memory limit of 11 GB, without the file cache.
            # restart PostgreSQL (its pending settings need 6144 MB less), or raise the memory limit of cgroup /sys/fs/cgroup/pg by 358 MB"#]]),
        when("the shortage of the cgroup is larger", |m| {
            m.on_small_pages(10 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.memory_limit(11 * GB, 10 * GB + 800 * MB, 0);
            m.waits(|next| next.shared_memory_bytes = 10 * GB - 100 * MB);
        })
        .see("memory_left", expect![[r#"
            warning near_cgroup_limit: Cgroup /sys/fs/cgroup/pg uses 11 GB of its memory limit of 11 GB, without the file cache.
            # raise the memory limit of cgroup /sys/fs/cgroup/pg by 358 MB, or let the server use less memory (shared_buffers, work_mem, max_connections)"#]]),
        when("it ends a shortage of the commit limit", |m| {
            m.on_small_pages(16 * GB, 0);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.off();
            m.strict(39 * GB);
            m.waits(|next| next.shared_memory_bytes = 8 * GB);
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 39 GB of 40 GB is committed.
            # restart PostgreSQL (its pending settings need 8192 MB less), set vm.overcommit_ratio to 51, add 287 MB of swap, or lower committed memory by as much"#]]),
        when("another size is pending, and the pages for it need those at boot", |m| {
            m.on_huge_pages(30 * GB, 30 * GB);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=30");
            (m.pool(0).total, m.pool(0).free) = (0, 0);
            m.pool(1).total = 30;
            m.state.server.huge_page_size_bytes = Some(GB);
            m.state.segment.as_mut().expect("a segment").page_bytes = Some(GB);
            m.available = Some(10 * GB);
            m.swap(0);
            m.waits(|next| next.huge_page_size_bytes = Some(2 * MB));
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 15360 are needed.
            # as restart"#]])
        .see("runbook", expect!["# undo the pending change: set huge_page_size to its running value (SHOW huge_page_size); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_page_size=2MB')"]),
        when("huge_pages = off is pending on a full host", |m| {
            m.on_huge_pages(16 * GB, 16 * GB);
            m.available = Some(10 * GB);
            m.swap(0);
            m.waits(|next| next.huge_pages = HugePages::Off);
        })
        .see("runbook", expect!["# undo the pending change: set huge_pages to its running value (SHOW huge_pages); or, because the segment does not fit on small pages, follow the steps of hugeinfo_runbook('huge_pages=off')"]),
        when("it needs more than RAM", |m| {
            m.on_huge_pages(20 * GB, 20 * GB);
            m.swap(0);
            m.waits(|next| next.shared_memory_bytes = 60 * GB);
        })
        .see("memory_left", expect![[r#"
            critical would_run_out_of_memory: After a restart, memory would run out. On small pages, the segment takes 60 GB; 36 GB is available.
            # as restart"#]])
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, free 5407 MB of memory, or lower shared_buffers by 5408MB: too little memory is available for the pool"]),
    ]);
}
