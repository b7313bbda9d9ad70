//! Strict overcommit, and pools that lower its limit.

use crate::{scene::*, table::*};

const RATIO: &str = "proc/sys/vm/overcommit_ratio";
const KBYTES: &str = "proc/sys/vm/overcommit_kbytes";
const CONF: &str = "etc/sysctl.d/m.conf";

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
        when("overcommit is not strict", |_| {}).says("overcommit", OK, "not_strict", "No strict overcommit (vm.overcommit_memory = 0): the pools do not lower a commit limit.", &[]),
        when("little is committed", |m| m.strict(4 * GB)).says("overcommit", OK, "within_commit_limit", "Strict overcommit: 4 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &[]),
        when("nearly everything is committed", |m| m.strict(38 * GB))
            .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &["sysctl -w vm.overcommit_ratio=55", "(umask 022 && echo 'vm.overcommit_ratio = 55' >> /etc/sysctl.d/60-hugepages.conf)"])
            .runbook(&["sysctl -w vm.overcommit_ratio=55", "(umask 022 && echo 'vm.overcommit_ratio = 55' >> /etc/sysctl.d/60-hugepages.conf)"]),
        when("a file sets the ratio", |m| {
            m.strict(38 * GB);
            m.file(CONF, "vm.overcommit_memory=2\nvm.overcommit_ratio=50\n");
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &["sysctl -w vm.overcommit_ratio=55", "sed -i 's/^vm\\.overcommit_ratio=50$/vm.overcommit_ratio = 55/' /etc/sysctl.d/m.conf"]),
        when("a file sets the ratio that is needed", |m| {
            m.strict(38 * GB);
            m.file(CONF, "vm.overcommit_ratio=55\n");
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &["sysctl -w vm.overcommit_ratio=55"]),
        when("a later file sets kilobytes", |m| {
            m.strict(38 * GB);
            m.file(CONF, "vm.overcommit_ratio=50\n");
            m.file("usr/lib/sysctl.d/n.conf", "vm.overcommit_kbytes=0\n");
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &["sysctl -w vm.overcommit_ratio=55", "(umask 022 && echo 'vm.overcommit_ratio = 55' >> /etc/sysctl.d/zz-hugepages.conf)"]),
        when("the boot configuration cannot be read", |m| {
            m.strict(38 * GB);
            m.env.next_boot = Err(denied("/etc"));
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 39 GB is committed. The pools lower the limit by 537 MB.", &["sysctl -w vm.overcommit_ratio=55", "# also set it for the next boot by hand"]),
        when("the limit is in kilobytes", |m| {
            m.strict(38 * GB);
            m.file(KBYTES, "33554432\n");
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 38 GB of 40 GB is committed.", &["# add 2276 MB of swap, raise vm.overcommit_kbytes by as much, or lower committed memory by as much"]),
        when("more is committed than RAM and swap hold", |m| {
            m.strict(70 * GB);
            m.file(RATIO, "100\n");
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 70 GB of 71 GB is committed. The pools lower the limit by 1074 MB.", &["# add 6991 MB of swap, or lower committed memory by as much"]),
        when("the ratio is 50, and 100 would not be enough", |m| {
            tiny(m, "50\n")
        })
        .status(CRITICAL, "would_not_start", "A restart would fail. Needs 72 huge pages of 2 MB; 0 are available. On small pages, the segment takes 143 MB; CommitLimit leaves 0 bytes.", &["# add 350 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"])
        .says("huge_pages", WARNING, "fell_back", "On 4 kB pages: huge_pages = try fell back. Needs 72 huge pages of 2 MB; 0 are available.", &["# add 350 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"])
        .says("restart", CRITICAL, "would_not_start", "A restart would fail. Needs 72 huge pages of 2 MB; 0 are available. On small pages, the segment takes 143 MB; CommitLimit leaves 0 bytes.", &["# as huge_pages"])
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 1183 MB of 475 MB is committed.", &["# as huge_pages"])
        .how_to_set(2, &["# add 350 MB of swap, or lower committed memory by as much: vm.overcommit_ratio is 50, and 100 would not be enough"]),
        when("the ratio is 80, and 100 would not be enough", |m| {
            tiny(m, "80\n")
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 1183 MB of 759 MB is committed.", &["# as huge_pages"]),
        when("the ratio is 100, and it is not enough", |m| {
            tiny(m, "100\n")
        })
        .says("overcommit", WARNING, "near_commit_limit", "Strict overcommit: 1183 MB of 949 MB is committed.", &["# as huge_pages"]),
        when(
            "the pool lowers the limit, and a higher ratio makes up for it",
            |m| {
                m.on_small_pages(24 * GB, 0);
                m.strict(30 * GB);
            },
        )
        .says("huge_pages", WARNING, "fell_back", "On 4 kB pages: huge_pages = try fell back. Needs 12288 huge pages of 2 MB; 0 are available.", &["sed -i 's/^vm\\.nr_hugepages = 537$/vm.nr_hugepages = 12288/' /etc/sysctl.d/hugepages.conf", "# stop PostgreSQL (ends all sessions)", "# then: echo 1 > /proc/sys/vm/compact_memory", "# then: sysctl -w vm.nr_hugepages=12288", "# if the pool has fewer than 12288 pages of 2 MB, set it back to 0 first", "# start PostgreSQL"])
        .says("restart", WARNING, "would_not_get", "A restart would not get huge pages. Needs 12288 huge pages of 2 MB; 0 are available.", &["# as huge_pages"])
        .how_to_set(2, &["sysctl -w vm.overcommit_ratio=64", "(umask 022 && echo 'vm.overcommit_ratio = 64' >> /etc/sysctl.d/60-hugepages.conf)", "echo 1 > /proc/sys/vm/compact_memory", "sysctl -w vm.nr_hugepages=12288", "sed -i 's/^vm\\.nr_hugepages = 537$/vm.nr_hugepages = 12288/' /etc/sysctl.d/hugepages.conf"]),
        when("the limit refuses a fallback", |m| {
            m.on_huge_pages(50 * GB, GB);
            m.lowered(100);
            m.strict(3 * GB);
        })
        .says("restart", CRITICAL, "would_not_start", "A restart would fail. Needs 25600 huge pages of 2 MB; 100 are available. On small pages, the segment takes 50 GB; CommitLimit leaves 12 GB.", &["sysctl -w vm.nr_hugepages=25600"]),
        when("the reserve of root is not for the server", |m| {
            m.on_huge_pages(50 * GB, GB);
            m.lowered(100);
            m.file("proc/sys/vm/admin_reserve_kbytes", "2097152\n");
            m.strict(3 * GB);
        })
        .says("restart", CRITICAL, "would_not_start", "A restart would fail. Needs 25600 huge pages of 2 MB; 100 are available. On small pages, the segment takes 50 GB; CommitLimit leaves 10240 MB.", &["sysctl -w vm.nr_hugepages=25600"]),
        when("a quarter of RAM is in pools, and the ratio is 80", |m| {
            m.on_huge_pages(16 * GB, GB);
            m.strict(20 * GB);
            m.file(RATIO, "80\n");
        })
        .says("overcommit", OK, "within_commit_limit", "Strict overcommit: 20 GB of 46 GB is committed. The pools lower the limit by 13 GB.", &[]),
    ]);
}
