//! A server that may use only some of the NUMA nodes.

use crate::{
    linux::{hugepages::Pool, numa::node::NodeCounters},
    model::{machine::Machine, need::own_pages},
    server::facts::AllowedNodes,
};

/// Pages that the nodes have at most for what the running server has mapped, where that is more:
/// who touches all of it dies of SIGBUS, whatever the pool has on others. What it has touched may
/// lie elsewhere, from before it was bound. `None`: enough, or unknown.
pub fn most_for_mapped(machine: &Machine, page_bytes: u64) -> Option<u64> {
    let allowed = &machine.facts.allowed_nodes;
    if !matches!(allowed, AllowedNodes::Only(_)) {
        return None;
    }
    let pool = machine.pool(page_bytes)?;
    let own = own_pages(&machine.facts, page_bytes)?;
    let mut most = pool.overcommit.saturating_sub(pool.surplus);
    for node in machine.nodes()?.ok()? {
        // A node without memory has no pages.
        if node.memory.total == Some(0) {
            continue;
        }
        let counters = node.part(page_bytes)?.counters?;
        most = most.saturating_add(if allowed.allows(node.number)? {
            counters.total
        } else {
            counters.total.saturating_sub(counters.free)
        });
    }
    (own > most).then_some(most)
}

/// Pages that the nodes lack for a start that maps so many, whatever the pool has on others
/// (mm/hugetlb.c `allowed_mems_nr`). `None`: unknown.
pub fn shortfall(machine: &Machine, pool: &Pool, required: u64) -> Option<u64> {
    let nodes = match &machine.facts.allowed_nodes {
        AllowedNodes::All => return Some(0),
        AllowedNodes::Untold(_) => return None,
        AllowedNodes::Only(nodes) => nodes,
    };
    let of_nodes: Option<Vec<NodeCounters>> = nodes
        .iter()
        .flat_map(|node| &node.pools)
        .filter(|part| part.page_bytes == pool.page_bytes)
        .map(|part| part.counters)
        .collect();
    let of_nodes = of_nodes?;
    let sum = |of: fn(&NodeCounters) -> u64| of_nodes.iter().map(of).fold(0, u64::saturating_add);
    let free = sum(|node| node.free);
    let used = sum(|node| node.total).saturating_sub(free);
    let surplus = sum(|node| node.surplus);
    let own = own_pages(&machine.facts, pool.page_bytes)?;
    // What the server gives back is free again on these nodes as far as it has been touched, and
    // how much that is can only be narrowed down. On a node with surplus pages these cease to exist
    // instead, also for what it has not touched (mm/hugetlb.c `free_huge_folio`,
    // `return_unused_surplus_pages`).
    let missing = |given_back: u64| required.saturating_sub(free.saturating_add(given_back));
    let touched = own.saturating_sub(pool.reserved).min(used);
    let left = free
        .saturating_add(touched)
        .saturating_sub(surplus.min(own));
    let at_worst = required.saturating_sub(left);
    let at_best = missing(own.min(used));
    match (at_best, at_worst) {
        (_, 0) => Some(0),
        (0, _) => None,
        (missing, _) => Some(missing),
    }
}
