//! Memory of NUMA nodes outside of the pools: a node gives its own only, whatever the host has.

use crate::{linux::numa::node::Node, model::machine::Machine};

/// A node gives this share of what it has; its own kernel memory and files need the rest.
const MOST_PERCENT: u64 = 95;

/// This share of memory has to stay available while a pool grows: the kernel, and all programs that
/// ask for memory meanwhile, live on it.
pub(super) const SPARE_PERCENT: u64 = 2;

/// Pages that a node of so much memory can have at most.
pub(super) fn most_pages(memory_bytes: u64, page_bytes: u64) -> u64 {
    (memory_bytes / 100 * MOST_PERCENT)
        .checked_div(page_bytes)
        .unwrap_or(0)
}

/// Pages that the node can give beside those that it has. `None`: unknown.
pub(super) fn room(node: &Node, page_bytes: u64, has: u64) -> Option<u64> {
    let total = node.memory.total?;
    let most = most_pages(total, page_bytes).saturating_sub(has);
    let available = node.memory.available.map(|available| {
        let spared = available.saturating_sub(total / 100 * SPARE_PERCENT);
        spared.checked_div(page_bytes).unwrap_or(0)
    });
    Some(most.min(available.unwrap_or(u64::MAX)))
}

/// Bytes of the main segment on small pages come back: to the nodes that the server may use, as
/// they have memory in use. Where they lie is not asked: that takes the longer, the more there are.
pub(super) fn give_back(machine: &mut Machine, bytes: u64) {
    let allowed = &machine.facts.allowed_nodes;
    let in_use = |node: &Node| {
        let may_use = allowed.allows(node.number) != Some(false);
        let total = node.memory.total.filter(|_| may_use)?;
        let mut left = total.saturating_sub(node.memory.available?);
        for part in &node.pools {
            let pages = part.counters.map_or(0, |counters| counters.total);
            left = left.saturating_sub(pages.saturating_mul(part.page_bytes));
        }
        Some(left)
    };
    let nodes = machine
        .around
        .iter_mut()
        .flat_map(|around| &mut around.nodes);
    let mut nodes: Vec<&mut Node> = nodes.flatten().collect();
    let parts: Vec<u64> = nodes.iter().map(|node| in_use(node).unwrap_or(0)).collect();
    let all: u128 = parts.iter().copied().map(u128::from).sum();
    for (node, in_use) in nodes.iter_mut().zip(parts) {
        let part = u128::from(bytes) * u128::from(in_use);
        let part = part
            .checked_div(all)
            .and_then(|part| u64::try_from(part).ok());
        let part = part.unwrap_or(0).min(in_use);
        let available = &mut node.memory.available;
        *available = available.map(|available| available.saturating_add(part));
    }
}
