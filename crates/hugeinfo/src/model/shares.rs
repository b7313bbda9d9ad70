//! What each NUMA node should have of a pool: as much of it as it has of the memory.

use crate::{
    linux::{hugepages::Pool, numa::node::NodeCounters},
    model::{machine::Machine, need::Need},
    server::facts::AllowedNodes,
};

/// One node's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its number.
    pub node: u32,
    /// Pages that it has.
    pub has: u64,
    /// Pages that would be its share.
    pub fair: u64,
}

/// Of so many pages, over the nodes that the server may use and that have memory. Where the kernel
/// does not tell how much memory a node has, all get the same.
pub fn of_nodes(machine: &Machine, page_bytes: u64, total: u64) -> Vec<Share> {
    let nodes = match (&machine.facts.allowed_nodes, &machine.around) {
        (AllowedNodes::Only(nodes), _) => nodes.as_slice(),
        (_, Some(around)) => around.nodes.as_deref().unwrap_or_default(),
        _ => &[],
    };
    let parts: Vec<(u32, u64, Option<u64>)> = nodes
        .iter()
        .filter(|node| node.memory.total != Some(0))
        .filter_map(|node| {
            let part = node
                .pools
                .iter()
                .find(|part| part.page_bytes == page_bytes)?;
            Some((node.number, part.counters?.total, node.memory.total))
        })
        .collect();
    let of_nodes: u64 = parts.iter().map(|&(_, has, _)| has).sum();
    let total = match machine.facts.allowed_nodes {
        AllowedNodes::Only(_) => of_nodes,
        AllowedNodes::All | AllowedNodes::Untold(_) => total,
    };
    let memory: Option<Vec<u64>> = parts.iter().map(|&(_, _, memory)| memory).collect();
    let weights = memory.unwrap_or_else(|| vec![1; parts.len()]);
    let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    parts
        .iter()
        .zip(weights)
        .map(|(&(node, has, _), weight)| {
            let fair = u128::from(total) * u128::from(weight);
            let fair = fair.checked_div(all).unwrap_or(0);
            Share {
                node,
                has,
                fair: u64::try_from(fair).unwrap_or(u64::MAX),
            }
        })
        .collect()
}

/// The pool that is needed, with this server's part on the nodes that it may use, the nodes that
/// get more first. `None`: there is one node, or nodes cannot be seen.
pub fn of_need(machine: &Machine, page_bytes: u64) -> Option<Vec<Share>> {
    let nodes = machine.around.as_ref()?.nodes.as_ref().ok()?;
    let is_allowed = |number: u32| match &machine.facts.allowed_nodes {
        AllowedNodes::Only(nodes) => nodes.iter().any(|node| node.number == number),
        AllowedNodes::All | AllowedNodes::Untold(_) => true,
    };
    let pool: &Pool = machine.pool(page_bytes)?;
    let total = Need::of(&machine.planning(machine.aim()), pool)?.after_restart();
    let parts: Vec<(u32, NodeCounters, u64, bool)> = nodes
        .iter()
        .filter_map(|node| {
            let mut parts = node.pools.iter();
            let counters = parts.find(|part| part.page_bytes == page_bytes)?.counters?;
            let memory = node.memory.total?;
            Some((node.number, counters, memory, is_allowed(node.number)))
        })
        .collect();
    if parts.len() < 2 {
        return None;
    }
    // Others keep what they have on the other nodes.
    let kept: u64 = parts
        .iter()
        .filter(|part| !part.3)
        .map(|(_, counters, ..)| counters.total - counters.free.min(counters.total))
        .sum();
    let own = total.checked_sub(kept)?;
    let memory: u128 = parts
        .iter()
        .filter(|part| part.3)
        .map(|part| u128::from(part.2))
        .sum();
    let mut shares: Vec<Share> = parts
        .iter()
        .map(|&(node, counters, of_node, is_allowed)| {
            let share = (u128::from(own) * u128::from(of_node)).checked_div(memory);
            let share = u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX);
            let used = counters.total - counters.free.min(counters.total);
            Share {
                node,
                has: counters.total.saturating_sub(counters.surplus),
                fair: if is_allowed { share } else { used },
            }
        })
        .collect();
    let given: u64 = shares.iter().map(|share| share.fair).sum();
    let mut allowed = shares.iter_mut().filter(|share| is_allowed(share.node));
    if let Some(first) = allowed.next() {
        first.fair = first.fair.saturating_add(total.saturating_sub(given));
    }
    shares.retain(|share| share.has != share.fair);
    shares.sort_by_key(|share| share.has >= share.fair);
    Some(shares)
}
