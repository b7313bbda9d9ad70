//! `hugeinfo_host`: the host in one row.

use host::linux::{
    cgroup::{memory, memory_events},
    error::fact,
    hugepages, meminfo,
    numa::nodes,
    pages,
    process::Process,
    processors,
    root::Root,
    sysctl, transparent_hugepage,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    numbers::{bigint, bigint_or_null, integer_or_null},
    postgres::{encoding::shown, server::subject},
};

functions! {
    cost = 10000;
    /// The host in one row: kernel, memory, the kernel settings for memory, and the memory of the
    /// server's cgroups.
    view hugeinfo_host;
    columns (
        /// Version of the kernel (uname -r).
        name!(kernel_release, String),
        /// Processor architecture (uname -m).
        name!(machine, String),
        /// Bytes of a small (regular) page.
        name!(base_page_size_bytes, i64),
        /// Bytes of a huge page of the default size (Hugepagesize); NULL if the kernel has no huge
        /// pages.
        name!(default_huge_page_size_bytes, Option<i64>),
        /// Bytes of usable RAM, including huge page pools (MemTotal).
        name!(memory_total_bytes, Option<i64>),
        /// Bytes that new programs could use without swapping, excluding huge page pools
        /// (MemAvailable).
        name!(memory_available_bytes, Option<i64>),
        /// Bytes of swap space (SwapTotal).
        name!(swap_total_bytes, Option<i64>),
        /// Bytes of unused swap space (SwapFree).
        name!(swap_free_bytes, Option<i64>),
        /// Bytes of page tables of all processes of the host (PageTables).
        name!(page_table_bytes, Option<i64>),
        /// Bytes of RAM in huge page pools of all sizes, used or not (Hugetlb).
        name!(hugetlb_bytes, Option<i64>),
        /// vm.overcommit_memory: 0 refuses obvious overcommits, 1 nothing, and 2 everything beyond
        /// commit_limit_bytes.
        name!(overcommit_memory, Option<i32>),
        /// vm.overcommit_ratio: the percentage of RAM without huge page pools that
        /// commit_limit_bytes includes.
        name!(overcommit_ratio, Option<i32>),
        /// vm.overcommit_kbytes in bytes, which replaces overcommit_ratio; NULL if it is 0.
        name!(overcommit_bytes, Option<i64>),
        /// Limit on committed bytes with vm.overcommit_memory = 2 (CommitLimit).
        name!(commit_limit_bytes, Option<i64>),
        /// Bytes committed now, without huge pages (Committed_AS).
        name!(committed_as_bytes, Option<i64>),
        /// vm.swappiness, from 0 to 200: how much the kernel prefers swapping to dropping cached
        /// files.
        name!(swappiness, Option<i32>),
        /// Mode of transparent huge pages for private memory: always, madvise or never.
        name!(thp_enabled, Option<String>),
        /// When a process waits while the kernel allocates a transparent huge page: always, defer,
        /// defer+madvise, madvise or never.
        name!(thp_defrag, Option<String>),
        /// Mode of transparent huge pages for shared memory: always, within_size, advise, never,
        /// deny or force.
        name!(thp_shmem_enabled, Option<String>),
        /// vm.hugetlb_shm_group, which does not affect PostgreSQL.
        name!(hugetlb_shm_group, Option<i64>),
        /// Number of NUMA nodes that are online, with or without memory.
        name!(numa_nodes, Option<i32>),
        /// Number of processors that are online.
        name!(processors, Option<i32>),
        /// Whether the kernel frees most page structures of new huge pages
        /// (vm.hugetlb_optimize_vmemmap); NULL if this kernel cannot.
        name!(hugetlb_optimize_vmemmap, Option<bool>),
        /// Bytes of page structures of all huge page pools that vm.hugetlb_optimize_vmemmap saves,
        /// or would save if it were on.
        name!(vmemmap_saving_bytes, Option<i64>),
        /// Lowest limit on the memory of the server's cgroup and the cgroups above it (v1
        /// memory.limit_in_bytes, v2 memory.max); NULL if there is none.
        name!(cgroup_memory_limit_bytes, Option<i64>),
        /// Bytes that the server's cgroup uses, including the file cache (v1 memory.usage_in_bytes,
        /// v2 memory.current).
        name!(cgroup_memory_used_bytes, Option<i64>),
        /// Number of processes of the server's cgroup that the OOM killer killed.
        name!(cgroup_oom_kills, Option<i64>),
    );
    fn hugeinfo_host() {
        rows()
    }
}

/// Returns one row: kernel, memory, overcommit, transparent huge pages, NUMA nodes, processors, and
/// the memory of the server's cgroups.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<[Row; 1], Error> {
    let root = Root::system();
    let kernel = rustix::system::uname();
    let (meminfo, usage) = meminfo::read(&root)?;
    let default_huge_page = meminfo
        .ok()
        .and_then(|meminfo| meminfo.default_huge_page_bytes);
    let usage = usage.unwrap_or_default();
    let thp = fact(transparent_hugepage::read(&root))?.unwrap_or_default();
    let vm = sysctl::read(&root)?;
    let nodes = fact(nodes::read(&root))?
        .ok()
        .map(|nodes| nodes.len() as u64);
    let pools = fact(hugepages::read(&root))?;
    let base = pages::base_page_bytes();
    let savings = pools.map(|pools| {
        let each = pools.iter().map(|pool| pool.vmemmap_saving_bytes(base));
        each.fold(0, u64::saturating_add)
    });
    let saving = savings.ok();
    let processors = fact(processors::online(&root))?
        .ok()
        .map(|list| list.count());
    let postmaster = subject().postmaster.unwrap_or_else(std::process::id);
    let postmaster = fact(Process::open(&root, postmaster))?.ok();
    let (limits, group) = match &postmaster {
        Some(process) => (
            fact(memory::read(&root, process))?.unwrap_or_default(),
            fact(memory_events::read(&root, process))?.unwrap_or_default(),
        ),
        None => Default::default(),
    };
    let limit = limits.iter().map(|limit| limit.limit_bytes).min();
    Ok([(
        shown(kernel.release().to_string_lossy().as_ref()),
        shown(kernel.machine().to_string_lossy().as_ref()),
        bigint(base)?,
        bigint_or_null(default_huge_page),
        // lxcfs can report 0.
        bigint_or_null(usage.total.filter(|&bytes| bytes > 0)),
        bigint_or_null(usage.available),
        bigint_or_null(usage.swap_total),
        bigint_or_null(usage.swap_free),
        bigint_or_null(usage.page_tables),
        bigint_or_null(usage.hugetlb),
        integer_or_null(vm.overcommit_memory),
        integer_or_null(vm.overcommit_ratio),
        vm.overcommit_bytes.filter(|&bytes| bytes != 0),
        bigint_or_null(usage.commit_limit),
        bigint_or_null(usage.committed),
        integer_or_null(vm.swappiness),
        thp.enabled.map(shown),
        thp.defrag.map(shown),
        thp.shmem_enabled.map(shown),
        vm.hugetlb_shm_group,
        integer_or_null(nodes),
        integer_or_null(processors),
        vm.hugetlb_optimize_vmemmap,
        bigint_or_null(saving),
        bigint_or_null(limit),
        bigint_or_null(group.used_bytes),
        bigint_or_null(group.oom_kills),
    )])
}
