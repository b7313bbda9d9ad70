//! Strict overcommit, and pools that lower its limit.
use expect_test::expect;

use crate::{scene::*, table::*};

const RATIO: &str = "proc/sys/vm/overcommit_ratio";
const KBYTES: &str = "proc/sys/vm/overcommit_kbytes";

/// A small machine whose programs commit more than its RAM.
fn tiny(m: &mut Scene, ratio: &str) {
    m.ram(972_160 << 10);
    m.fall_back(0);
    m.needs(143 * MB);
    m.file(
        "proc/meminfo",
        "MemTotal: 972160 kB\nMemFree: 300000 kB\nMemAvailable: 638576 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n\
         CommitLimit: 486080 kB\nCommitted_AS: 1211052 kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB\n",
    );
    m.available = Some(638_576 << 10);
    m.strict(1_211_052 << 10);
    m.file(RATIO, ratio);
}

#[test]
fn overcommit() {
    test(vec![
        when("overcommit is not strict", |_| {}).see("overcommit", expect![["ok not_strict: No strict overcommit (vm.overcommit_memory = 0): the pools do not lower a commit limit."]]),
        when("little is committed", |m| m.strict(4 * GB)).see("overcommit", expect![["ok within_commit_limit: Strict overcommit: 4 GB of 39 GB is committed. The pools lower the limit by 537 MB."]]),
        when("nearly everything is committed", |m| m.strict(38 * GB + 512 * MB))
            .see("overcommit", expect![[r#"
                warning near_commit_limit: Strict overcommit: 39 GB of 39 GB is committed. The pools lower the limit by 537 MB.
                # set vm.overcommit_ratio to 51, add 312 MB of swap, or lower committed memory by as much"#]])
            .see("runbook", expect!["# set vm.overcommit_ratio to 51, add 312 MB of swap, or lower committed memory by as much"]),
        when("the limit is in kilobytes", |m| {
            m.strict(39 * GB);
            m.file(KBYTES, "33554432\n");
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 39 GB of 40 GB is committed.
            # add 287 MB of swap, raise vm.overcommit_kbytes by as much, or lower committed memory by as much"#]]),
        when("more is committed than RAM and swap hold", |m| {
            m.strict(70 * GB);
            m.file(RATIO, "100\n");
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 70 GB of 71 GB is committed. The pools lower the limit by 1074 MB.
            # add 337 MB of swap, or lower committed memory by as much"#]]),
        when("available memory contradicts the counter", |m| {
            m.ram(16 * GB);
            m.strict(61 * GB);
            m.available = Some(11 * GB);
        })
        .see("overcommit", expect![[r#"
            warning wrong_commit_counter: Strict overcommit: 61 GB of 15 GB is committed, but 11 GB of RAM is available. The kernel's counter is wrong, so the kernel refuses free memory.
            # do not add swap: Committed_AS is wrong (11 GB of RAM is available). Update the kernel and reboot; only a reboot corrects the counter (since Linux 6.5, mremap can count memory twice)"#]])
        .see("runbook", expect!["# do not add swap: Committed_AS is wrong (11 GB of RAM is available). Update the kernel and reboot; only a reboot corrects the counter (since Linux 6.5, mremap can count memory twice)"]),
        when("the counter is wrong, and the pool has to grow", |m| {
            m.ram(16 * GB);
            m.fall_back(0);
            m.strict(61 * GB);
            m.available = Some(11 * GB);
        })
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail. Needs 537 huge pages of 2 MB; 0 are available. On small pages, the segment takes 1073 MB; CommitLimit leaves 0 bytes.
            # do not add swap: Committed_AS is wrong (11 GB of RAM is available). Update the kernel and reboot; only a reboot corrects the counter (since Linux 6.5, mremap can count memory twice)"#]]),
        when("the counter is as large, but little memory is available", |m| {
            m.ram(16 * GB);
            m.strict(61 * GB);
            m.available = Some(3 * GB);
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 61 GB of 15 GB is committed. The pools lower the limit by 537 MB.
            # add 46945 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"#]]),
        when("the ratio is 50, and 100 would not be enough", |m| {
            tiny(m, "50\n")
        })
        .see("status", expect![[r#"
            critical would_not_start: A restart would fail. Needs 72 huge pages of 2 MB; 0 are available. On small pages, the segment takes 143 MB; CommitLimit leaves 0 bytes.
            # add 893 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 72 huge pages of 2 MB; 0 are available.
            # add 893 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"#]])
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. Needs 72 huge pages of 2 MB; 0 are available. On small pages, the segment takes 143 MB; CommitLimit leaves 0 bytes.
            # as huge_pages"#]])
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 1183 MB of 475 MB is committed.
            # add 964 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"#]])
        .see("how_to_set_2", expect!["# add 893 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"]),
        when("the ratio is 80, and 100 would not be enough", |m| {
            tiny(m, "80\n")
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 1183 MB of 759 MB is committed.
            # add 680 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 80, and 100 would not be enough"#]]),
        when("the ratio is 100, and it is not enough", |m| {
            tiny(m, "100\n")
        })
        .see("overcommit", expect![[r#"
            warning near_commit_limit: Strict overcommit: 1183 MB of 949 MB is committed.
            # as huge_pages"#]]),
        when(
            "the pool lowers the limit, and a higher ratio makes up for it",
            |m| {
                m.on_small_pages(24 * GB, 0);
                m.strict(30 * GB);
            },
        )
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 12288 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 12288/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=12288
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12288 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]])
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 12288 huge pages of 2 MB; 0 are available.
            # as huge_pages"#]])
        .see("how_to_set_2", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 12288/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=12288
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 12288 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("only the pages of another server would exceed the limit with any ratio", |m| {
            m.fall_back(537);
            m.file(RATIO, "95\n");
            m.other(8 * GB, 4096, TRY);
            m.strict(63 * GB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4633/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (ends all sessions)
            # add 3102 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 95, and 100 would not be enough"#]])
        .see("runbook", expect![[r#"
            sed -i 's/^vm\.nr_hugepages = 537$/vm.nr_hugepages = 4633/' /etc/sysctl.d/hugepages.conf
            # restart PostgreSQL (ends all sessions)
            # add 3102 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 95, and 100 would not be enough"#]]),
        when("the limit refuses a fallback", |m| {
            m.on_huge_pages(50 * GB, GB);
            m.lowered(100);
            m.strict(3 * GB);
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. Needs 25600 huge pages of 2 MB; 100 are available. On small pages, the segment takes 50 GB; CommitLimit leaves 12 GB.
            sysctl -w vm.nr_hugepages=25600"#]]),
        when("the reserve of root is not for the server", |m| {
            m.on_huge_pages(50 * GB, GB);
            m.lowered(100);
            m.file("proc/sys/vm/admin_reserve_kbytes", "2097152\n");
            m.strict(3 * GB);
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. Needs 25600 huge pages of 2 MB; 100 are available. On small pages, the segment takes 50 GB; CommitLimit leaves 10240 MB.
            sysctl -w vm.nr_hugepages=25600"#]]),
        when("the reserves cannot be read, so the largest defaults count", |m| {
            m.on_huge_pages(50 * GB, GB);
            m.lowered(100);
            m.file("proc/sys/vm/admin_reserve_kbytes", None);
            m.file("proc/sys/vm/user_reserve_kbytes", None);
            m.strict(14 * GB);
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. Needs 25600 huge pages of 2 MB; 100 are available. On small pages, the segment takes 50 GB; CommitLimit leaves 888 MB.
            sysctl -w vm.nr_hugepages=25600"#]]),
        when("a quarter of RAM is in pools, and the ratio is 80", |m| {
            m.on_huge_pages(16 * GB, GB);
            m.strict(20 * GB);
            m.file(RATIO, "80\n");
        })
        .see("overcommit", expect![["ok within_commit_limit: Strict overcommit: 20 GB of 46 GB is committed. The pools lower the limit by 13 GB."]]),
    ]);
}

/// The kernel keeps a part of the limit from each process of an ordinary user.
#[test]
fn user_reserve() {
    fn scene(m: &mut Scene, left: u64) {
        m.on_small_pages(16 * GB, 0);
        m.asked(0);
        m.file("proc/sys/vm/admin_reserve_kbytes", "8192\n");
        m.file("proc/sys/vm/user_reserve_kbytes", "131072\n");
        // Half of 48 GB outside of the pool of 16 GB.
        m.strict(24 * GB - left);
        m.swap(0);
    }
    test(vec![
        when("the pool would leave 56 MB to commit before the restart", |m| {
            scene(m, 56 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 8192 huge pages of 2 MB; 0 are available.
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 8192/' /etc/sysctl.d/hugepages.conf
            # stop PostgreSQL (ends all sessions)
            # then: echo 1 > /proc/sys/vm/compact_memory
            # then: sysctl -w vm.nr_hugepages=8192
            # then: if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8192 ]; then echo 'too few pages, undo the changes before the start: sysctl -w vm.nr_hugepages=0' >&2; false; fi
            # start PostgreSQL"#]]),
        when("the pool would leave enough to commit before the restart", |m| {
            scene(m, 137 * MB + 1311 * MB);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 8192 huge pages of 2 MB; 0 are available.
            echo 1 > /proc/sys/vm/compact_memory
            sysctl -w vm.nr_hugepages=8192
            sed -i 's/^vm\.nr_hugepages = 0$/vm.nr_hugepages = 8192/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 8192 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
    ]);
}

#[test]
fn limit_of_the_next_boot() {
    test(vec![
        when("a larger pool leaves too little at boot with any ratio", |m| {
            m.on_huge_pages(10 * GB, 5 * GB);
            m.strict(32 * GB);
            m.waits(|next| next.shared_memory_bytes = 40 * GB);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 5120 huge pages of 2 MB at boot; 20480 are needed.
            # as restart"#]]),
        when("the ratio has to be higher before the pool grows", |m| {
            m.on_huge_pages(10 * GB, 5 * GB);
            m.strict(20 * GB);
            m.waits(|next| next.shared_memory_bytes = 40 * GB);
        })
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail. Needs 20480 huge pages of 2 MB; 5120 are available. On small pages, the segment takes 40 GB; CommitLimit leaves 15 GB.
            # undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, set vm.overcommit_ratio to 56, add 1311 MB of swap, or lower committed memory by as much"#]])
        .see("runbook", expect!["# undo the pending change: set shared_buffers to its running value (SHOW shared_buffers); otherwise, set vm.overcommit_ratio to 56, add 1311 MB of swap, or lower committed memory by as much"])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 5120 huge pages of 2 MB at boot; 20480 are needed.
            # as restart"#]]),
        when("the pool of now has the pages, and the ratio is that of now", |m| {
            m.on_huge_pages(40 * GB, 5 * GB);
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.strict(22 * GB);
        })
        .see("reboot", expect![[r#"
            warning not_set_at_boot: Nothing sets 2 MB pages at boot; 20480 are needed.
            (umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = 20480' >> /etc/sysctl.d/60-hugepages.conf)"#]]),
        when("a file sets more pages than are needed", |m| {
            m.on_huge_pages(GB, GB);
            m.strict(30 * GB);
            m.asked(20_000);
        })
        .see("reboot", expect![[r#"
            warning too_many_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 20000 huge pages of 2 MB at boot, which would leave a CommitLimit of 20 GB; programs need 31 GB.
            # lower /etc/sysctl.d/hugepages.conf:1 from 20000 to at most 8929 huge pages of 2 MB (512 are needed)"#]]),
        when("this boot has the same pool and ratio", |m| {
            m.on_huge_pages(10 * GB, 5 * GB);
            m.strict(30 * GB);
        })
        .see("reboot", expect![["ok set_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 5120 huge pages of 2 MB at boot."]]),
    ]);
}

#[test]
fn unknown_limit() {
    test(vec![
        when("the mode cannot be read", |m| {
            m.on_small_pages(20 * GB, 0);
            m.file("proc/sys/vm/overcommit_memory", None);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 10240 huge pages of 2 MB; 0 are available.
            # on the host, allocate 10240 huge pages of 2 MB, if it has the memory: vm.overcommit_memory cannot be read"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 10240 are needed.
            # as huge_pages"#]])
        .see("overcommit", expect![["unknown unknown: Cannot judge overcommit: vm.overcommit_memory cannot be read."]]),
        when("the mode cannot be read, and a smaller pool is enough", |m| {
            m.on_huge_pages(4 * GB, GB);
            m.more(2000);
            m.file("proc/sys/vm/overcommit_memory", None);
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 2000 huge pages of 2 MB (4000 MB) are idle: PostgreSQL needs none of them; 2048 are needed.
            # if no other program needs 2000 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=2048"#]]),
        when("the kernel does not report the limit", |m| {
            m.on_small_pages(20 * GB, 0);
            m.strict(38 * GB);
            let usage = m.state.usage.as_mut().expect("meminfo");
            usage.swap_total = None;
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 10240 huge pages of 2 MB; 0 are available.
            # on the host, allocate 10240 huge pages of 2 MB, if it has the memory: /proc/meminfo has no CommitLimit"#]])
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot; 10240 are needed.
            # as huge_pages"#]]),
    ]);
}
