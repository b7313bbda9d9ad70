//! `hugeinfo_numa`: a row for each NUMA node and page size: its part of the pool, and its part of
//! the main segment. The row of small pages also has the figures of the whole node.

use host::linux::{
    error::absent_or,
    numa::node::{self, NodeCounters},
    root::Root,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    facts,
    numbers::{bigint, bigint_or_null},
    postgres::interrupts::check_for_interrupts,
    processes,
};

functions! {
    cost = 1000000;
    /// Each NUMA node and page size: its part of the pool, and its part of the main segment; the
    /// row of small pages also has the memory and the processors of the node.
    view hugeinfo_numa;
    columns (
        /// Number of the node; numbers can have gaps.
        name!(numa_node, i64),
        /// Bytes of a page: small pages, then each huge page size of the kernel.
        name!(page_size_bytes, i64),
        /// Whether the main shared memory segment is on pages of this size.
        name!(is_used_by_server, Option<bool>),
        /// Pages of the pool on this node, including surplus pages; NULL for small pages, and on
        /// a node without memory.
        name!(total_pages, Option<i64>),
        /// Pages of total_pages that no process has faulted in, reserved or not.
        name!(free_pages, Option<i64>),
        /// Pages of total_pages beyond the persistent ones.
        name!(surplus_pages, Option<i64>),
        /// Pages of the main segment on this node that one process has faulted in, a lower bound
        /// (numa_maps); NULL if it cannot be read.
        name!(touched_segment_pages, Option<i64>),
        /// Whether cpuset and numactl --membind allow this server to use memory of this node; NULL
        /// for huge pages.
        name!(is_allowed, Option<bool>),
        /// Number of processors of the node that are online, 0 for a node that has only memory;
        /// NULL for huge pages.
        name!(processors, Option<i64>),
        /// Bytes of RAM of the node (MemTotal), 0 for a node without memory; NULL for huge pages.
        name!(memory_total_bytes, Option<i64>),
        /// Bytes of unused RAM of the node, without cached files (MemFree); NULL for huge pages.
        name!(memory_free_bytes, Option<i64>),
    );
    fn hugeinfo_numa() {
        rows()
    }
}

/// Returns a row for each node and size, small pages first. No row: the kernel has no NUMA support,
/// or `/sys` cannot be read. Walks the page tables of one process, which takes time in proportion
/// to the small pages that it has faulted in.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<Vec<Row>, Error> {
    let root = Root::system();
    let nodes = absent_or(node::read(&root, check_for_interrupts))?.unwrap_or_default();
    let facts = facts::few()?;
    let faulted_in = processes::faulted_in_by_each()?;
    let of_segment = processes::segment_pages_by_node(facts.state.backing(), &faulted_in)?;
    let mut rows = Vec::new();
    for node in nodes {
        let processors = absent_or(node::read_processors(&root, node.number))?.ok();
        let processors = processors.map(|list| list.count());
        let has_memory = node.memory.total != Some(0);
        let is_allowed = facts.allowed_nodes.allows(node.number);
        let is_allowed = is_allowed.map(|is_allowed| is_allowed && has_memory);
        let small = (facts.state.base_page_bytes, None);
        let huge = node
            .pools
            .iter()
            .map(|pool| (pool.page_bytes, pool.counters));
        for (page_bytes, counters) in std::iter::once(small).chain(huge) {
            let is_small = page_bytes == facts.state.base_page_bytes;
            let is_used = facts
                .state
                .page_bytes()
                .map(|lies_on| lies_on == page_bytes);
            let touched_segment_pages = match (is_used, &of_segment) {
                (Some(true), Some(pages)) => Some(pages.get(&node.number).copied().unwrap_or(0)),
                (Some(false), Some(_)) => Some(0),
                _ => None,
            };
            let count = |of: fn(&NodeCounters) -> u64| bigint_or_null(counters.as_ref().map(of));
            rows.push((
                i64::from(node.number),
                bigint(page_bytes)?,
                is_used,
                count(|counters| counters.total),
                count(|counters| counters.free),
                count(|counters| counters.surplus),
                bigint_or_null(touched_segment_pages),
                is_allowed.filter(|_| is_small),
                bigint_or_null(processors.filter(|_| is_small)),
                bigint_or_null(node.memory.total.filter(|_| is_small)),
                bigint_or_null(node.memory.free.filter(|_| is_small)),
            ));
        }
    }
    Ok::<_, Error>(rows)
}
