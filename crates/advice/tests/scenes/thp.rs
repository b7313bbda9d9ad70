//! Transparent huge pages.

use expect_test::expect;

use crate::{scene::*, table::*};

const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const OF_2MB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
const OF_64KB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
const SHARED: &str = "sys/kernel/mm/transparent_hugepage/shmem_enabled";
const SHARED_64KB: &str = "sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled";
const ALWAYS: &str = "[always] within_size advise never deny force\n";

#[test]
fn private() {
    test(vec![
        when("enabled = madvise", |_| {}).see("thp_private", expect![["ok thp_on_request: Private memory gets no transparent huge pages without a request (enabled = madvise). The host has 90 MB of memory on them."]]),
        when("enabled = always", |m| {
            m.file(ENABLED, "[always] madvise never\n")
        })
        .see("thp_private", expect![[r#"
            warning thp_always: Private memory gets transparent huge pages without a request (enabled = always). Processes grow by whole huge pages and can wait for compaction. The host has 90 MB of memory on them.
            echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]])
        .see("runbook", expect![[r#"
            echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]]),
        when("enabled = always on a machine with systemd", |m| {
            m.file("run/systemd/system/x", "");
            m.file(ENABLED, "[always] madvise never\n");
        })
        .see("thp_private", expect![[r#"
            warning thp_always: Private memory gets transparent huge pages without a request (enabled = always). Processes grow by whole huge pages and can wait for compaction. The host has 90 MB of memory on them.
            echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]]),
        when("enabled = never", |m| {
            m.file(ENABLED, "always madvise [never]\n")
        })
        .see("thp_private", expect![["ok thp_on_request: Private memory gets no transparent huge pages without a request (enabled = never). The host has 90 MB of memory on them."]]),
        when("only shmem_enabled is always", |m| {
            m.fall_back(0);
            m.file(SHARED, ALWAYS);
        })
        .see("thp_private", expect![["ok thp_on_request: Private memory gets no transparent huge pages without a request (enabled = madvise). The host has 90 MB of memory on them."]]),
        when("one size has always", |m| {
            m.file(OF_2MB, "[always] inherit madvise never\n")
        })
        .see("thp_private", expect![[r#"
            warning thp_always: Private memory gets transparent huge pages without a request (hugepages-2048kB/enabled = always). Processes grow by whole huge pages and can wait for compaction. The host has 90 MB of memory on them.
            echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]]),
        when("no size inherits always", |m| {
            m.file(ENABLED, "[always] madvise never\n");
            m.file(OF_2MB, "always inherit madvise [never]\n");
        })
        .see("thp_private", expect![["ok thp_on_request: Private memory gets no transparent huge pages without a request (enabled = always). The host has 90 MB of memory on them."]]),
        when("one size inherits always", |m| {
            m.file(ENABLED, "[always] madvise never\n");
            m.file(OF_2MB, "always [inherit] madvise never\n");
            m.file(OF_64KB, "always inherit madvise [never]\n");
        })
        .see("thp_private", expect![[r#"
            warning thp_always: Private memory gets transparent huge pages without a request (enabled = always). Processes grow by whole huge pages and can wait for compaction. The host has 90 MB of memory on them.
            echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]]),
        when("one size has always, and one inherits it", |m| {
            m.file(ENABLED, "[always] madvise never\n");
            m.file(OF_2MB, "always [inherit] madvise never\n");
            m.file(OF_64KB, "[always] inherit madvise never\n");
        })
        .see("thp_private", expect![[r#"
            warning thp_always: Private memory gets transparent huge pages without a request (hugepages-64kB/enabled = always, enabled = always). Processes grow by whole huge pages and can wait for compaction. The host has 90 MB of memory on them.
            echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled
            echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
            # also set it for the next boot (tmpfiles.d, tuned or the kernel command line)"#]]),
    ]);
}

#[test]
fn shared() {
    fn mode(m: &mut Scene, mode: &str) {
        m.fall_back(537);
        m.file(SHARED, mode);
    }
    test(vec![
        when("shmem_enabled = never", |m| m.fall_back(537)).see("thp_shared", expect![["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = never)."]]),
        when("a program has requested them", |m| {
            m.fall_back(537);
            m.file("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 52428800 kB\nShmemPmdMapped: 1048576 kB\n");
            m.state.segment_thp_bytes = Some(Ok(GB));
        })
        .see("thp_shared", expect!["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = never). One process has 1 GB of the segment on them."])
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages, perhaps partly on transparent 2 MB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)
            # for the next boot, in the configuration of the boot loader: add hugepagesz=2M hugepages=537 at the end of the kernel command line, before any -- (GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub), and update the boot loader"#]]),
        when("another program has requested them", |m| {
            m.fall_back(537);
            m.state.segment_thp_bytes = Some(Ok(0));
        })
        .see("thp_shared", expect!["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = never)."]),
        when("shmem_enabled = always", |m| {
            mode(m, ALWAYS);
            m.state.segment_thp_bytes = Some(Ok(10 * MB));
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = always), if the kernel finds free blocks. One process has 10 MB of the segment on them.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]])
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]]),
        when("nothing of the segment is on transparent huge pages", |m| {
            mode(m, ALWAYS);
            m.state.segment_thp_bytes = Some(Ok(0));
            m.facts.is_segment_aligned = Some(false);
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = always), if the kernel finds free blocks. One process has 0 bytes of the segment on them. The segment is not aligned to them.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the pages of the segment cannot be read", |m| {
            mode(m, ALWAYS);
            m.state.segment_thp_bytes = Some(Err(denied("/proc/1/smaps")));
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = always), if the kernel finds free blocks. The part of the segment on them is unknown (/proc/1/smaps cannot be read (permission denied)).
            # as huge_pages"#]]),
        when("shmem_enabled = always, and the pool is short", |m| {
            mode(m, ALWAYS);
            m.fall_back(0);
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = always), if the kernel finds free blocks. The part of the segment on them is unknown.
            # as huge_pages"#]]),
        when("shmem_enabled = advise", |m| {
            mode(m, "always within_size [advise] never deny force\n");
        })
        .see("thp_shared", expect![["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = advise)."]]),
        when("the segment is on huge pages of a pool", |m| {
            m.file(SHARED, ALWAYS)
        })
        .see("thp_shared", expect![["ok on_huge_pages: The segment is on huge pages of a pool; transparent huge pages do not affect it (shmem_enabled = always)."]]),
        when("only enabled is always", |m| {
            m.fall_back(537);
            m.file(ENABLED, "[always] madvise never\n");
        })
        .see("thp_shared", expect![["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = never)."]]),
        when("one size has always", |m| {
            m.fall_back(537);
            m.file(SHARED_64KB, "[always] inherit within_size advise never\n");
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (hugepages-64kB/shmem_enabled = always), if the kernel finds free blocks. The part of the segment on them is unknown.
            # as huge_pages"#]]),
        when("no size inherits always", |m| {
            mode(m, ALWAYS);
            m.file(SHARED_64KB, "always inherit within_size advise [never]\n");
        })
        .see("thp_shared", expect![["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = always)."]]),
        when("one size inherits always", |m| {
            mode(m, ALWAYS);
            m.file(SHARED_64KB, "always [inherit] within_size advise never\n");
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = always), if the kernel finds free blocks. The part of the segment on them is unknown.
            # as huge_pages"#]]),
        when("deny overrides the mode of a size", |m| {
            mode(m, "always within_size advise never [deny] force\n");
            m.file(SHARED_64KB, "[always] inherit within_size advise never\n");
        })
        .see("thp_shared", expect![["ok thp_on_request: Shared memory gets no transparent huge pages without a request (shmem_enabled = deny)."]]),
        when("force overrides the mode of a size", |m| {
            mode(m, "always within_size advise never deny [force]\n");
            m.file(SHARED_64KB, "always inherit within_size advise [never]\n");
        })
        .see("thp_shared", expect![[r#"
            warning transparent: Shared memory gets transparent huge pages without a request (shmem_enabled = force), if the kernel finds free blocks. The part of the segment on them is unknown.
            # as huge_pages"#]]),
    ]);
}
