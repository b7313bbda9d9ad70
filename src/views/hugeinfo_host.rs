//! `hugeinfo_host`: the host in one row.

use hugeinfo::{
    linux::{
        cgroup::{memory, memory_events},
        error::fact,
        hugepages,
        process::Process,
        root::Root,
    },
    server::host::Host,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    numbers::{bigint, bigint_or_null, integer_or_null},
    postgres::{encoding::shown, server::subject},
    views::answer,
};

/// Returns one row: kernel, memory, overcommit, transparent huge pages, NUMA nodes, processors, and
/// the memory of the server's cgroups.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_host() -> Result<
    TableIterator<
        'static,
        (
            name!(kernel_release, String),
            name!(machine, String),
            name!(base_page_size_bytes, i64),
            name!(default_huge_page_size_bytes, Option<i64>),
            name!(memory_total_bytes, Option<i64>),
            name!(memory_available_bytes, Option<i64>),
            name!(swap_total_bytes, Option<i64>),
            name!(swap_free_bytes, Option<i64>),
            name!(page_table_bytes, Option<i64>),
            name!(hugetlb_bytes, Option<i64>),
            name!(overcommit_memory, Option<i32>),
            name!(overcommit_ratio, Option<i32>),
            name!(overcommit_bytes, Option<i64>),
            name!(commit_limit_bytes, Option<i64>),
            name!(committed_as_bytes, Option<i64>),
            name!(swappiness, Option<i32>),
            name!(thp_enabled, Option<String>),
            name!(thp_defrag, Option<String>),
            name!(thp_shmem_enabled, Option<String>),
            name!(hugetlb_shm_group, Option<i64>),
            name!(numa_nodes, Option<i32>),
            name!(processors, Option<i32>),
            name!(hugetlb_optimize_vmemmap, Option<bool>),
            name!(vmemmap_saving_bytes, Option<i64>),
            name!(cgroup_memory_limit_bytes, Option<i64>),
            name!(cgroup_memory_used_bytes, Option<i64>),
            name!(cgroup_oom_kills, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let row = || {
        let root = Root::system();
        let host = Host::read(&root)?;
        let usage = host.usage.unwrap_or_default();
        let thp = host.thp.unwrap_or_default();
        let vm = host.vm;
        let nodes = host.nodes.ok().map(|nodes| nodes.len() as u64);
        let pools = fact(hugepages::read(&root))?;
        let base = host.base_page_bytes;
        let savings = pools.map(|pools| {
            let each = pools.iter().map(|pool| pool.vmemmap_saving_bytes(base));
            each.fold(0, u64::saturating_add)
        });
        let saving = savings.ok();
        let processors = host.processors.ok().map(|list| list.count());
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
        Ok::<_, Error>((
            shown(host.kernel_release),
            shown(host.machine),
            bigint(host.base_page_bytes)?,
            bigint_or_null(host.default_huge_page_bytes),
            bigint_or_null(usage.total),
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
        ))
    };
    Ok(TableIterator::once(answer(row)?))
}

extension_sql_file!("hugeinfo_host.sql", requires = [hugeinfo_host]);
