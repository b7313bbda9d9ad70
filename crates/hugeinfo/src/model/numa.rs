//! NUMA nodes: pages on the nodes that the server is allowed to use, and the distribution of a pool
//! over the nodes.

use super::{
    machine::Machine,
    pool_change::set_persistent,
    units::{Bytes, PageSize, Pages},
};
use crate::{linux::numa::node::NodeCounters, server::facts::AllowedNodes};

/// A node keeps this share of its memory outside of the pools.
const MOST_PERCENT: u64 = 95;
/// This share of a node's memory stays available while its part of a pool grows.
const SPARE_PERCENT: u64 = 2;

/// A node with memory, and its part of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the node.
    pub node: u32,
    /// Its part of the pool.
    pub counters: NodeCounters,
    /// Its memory. `None`: unknown.
    pub memory: Option<Bytes>,
    /// Pages that it can allocate in addition. `None`: unknown.
    pub room: Option<Pages>,
    /// Whether the server is allowed to use it. Unknown counts as allowed.
    pub is_allowed: bool,
}

impl Part {
    fn used(&self) -> Pages {
        Pages(self.counters.total) - Pages(self.counters.free)
    }

    /// Persistent pages: what the node's `nr_hugepages` shows and sets.
    pub fn persistent(&self) -> Pages {
        Pages(self.counters.persistent())
    }

    /// Pages that the node can have while everything else stays in its memory.
    fn most(&self) -> Pages {
        self.room
            .map_or(Pages(u64::MAX), |room| Pages(self.counters.total) + room)
    }
}

/// The parts of a pool on all nodes with memory. `None`: unknown.
pub fn parts(machine: &Machine, size: PageSize) -> Option<Vec<Part>> {
    let allowed = &machine.facts.allowed_nodes;
    let nodes = machine.nodes()?.iter();
    let with_memory = nodes.filter(|node| node.memory.total != Some(0));
    with_memory
        .map(|node| {
            let counters = node.part(size.0)?.counters?;
            let memory = node.memory.total.map(Bytes);
            let most = memory.map(|memory| memory.percent(MOST_PERCENT).whole_pages(size));
            let available = node.memory.available.map(Bytes);
            let available = available.zip(memory).map(|(available, memory)| {
                (available - memory.percent(SPARE_PERCENT)).whole_pages(size)
            });
            let room = most.map(|most| most - Pages(counters.total));
            Some(Part {
                node: node.number,
                counters,
                memory,
                room: room.map(|room| available.map_or(room, |available| room.min(available))),
                is_allowed: allowed.allows(node.number) != Some(false),
            })
        })
        .collect()
}

/// Pages that a bound server can have from its nodes after a stop, as bounds: `(certain, most)`.
/// `None`: unknown.
///
/// The kernel compares a new mapping with the free pages of the allowed nodes
/// (mm/hugetlb.c `allowed_mems_nr`) and does not know on which node pages are reserved.
pub fn supply_on_allowed(machine: &Machine, size: PageSize) -> Option<(Pages, Pages)> {
    let parts = parts(machine, size)?;
    let allowed = parts.iter().filter(|part| part.is_allowed);
    let free: Pages = allowed.map(|part| Pages(part.counters.free)).sum();
    let held = machine.pages_held(size)?;
    let reserved = Pages(machine.pool(size)?.reserved);
    Some((free + held - reserved, free + held))
}

/// If the allowed nodes have fewer pages than the server has mapped, how many they have. Touching
/// the rest raises SIGBUS. `None`: they have enough, or unknown.
pub fn most_for_mapped(machine: &Machine, size: PageSize) -> Option<Pages> {
    if !machine.is_bound_to_nodes() {
        return None;
    }
    let pool = machine.pool(size)?;
    let held = machine.pages_held(size)?;
    let surplus = Pages(pool.overcommit) - Pages(pool.surplus);
    // The pages that it has faulted in can be on other nodes, from before it was bound.
    let of_nodes = parts(machine, size)?.into_iter().map(|part| {
        if part.is_allowed {
            Pages(part.counters.total)
        } else {
            part.used()
        }
    });
    let most = surplus + of_nodes.sum();
    (held > most).then_some(most)
}

/// Pages of this many that a bound server can use if the boot spreads them evenly over all nodes
/// with memory. A server that is not bound can use all.
pub fn of_even_boot(machine: &Machine, pages: Pages) -> Pages {
    let with_memory = machine.nodes().unwrap_or_default().iter();
    let all = with_memory
        .filter(|node| node.memory.total != Some(0))
        .count();
    let allowed = allowed_numbers(machine).len();
    if !machine.is_bound_to_nodes() || allowed >= all {
        return pages;
    }
    let share = u128::from(pages.0) * allowed as u128 / all as u128;
    Pages(u64::try_from(share).unwrap_or(u64::MAX))
}

/// The numbers of the nodes that a bound server is allowed to use.
pub fn allowed_numbers(machine: &Machine) -> Vec<u32> {
    match &machine.facts.allowed_nodes {
        AllowedNodes::Only(nodes) => nodes.iter().map(|node| node.number).collect(),
        AllowedNodes::All | AllowedNodes::Untold(_) => Vec::new(),
    }
}

/// Reserved pages of other processes. They could be needed on any node, because the other processes
/// might be bound to it. `None`: unknown.
pub fn reserved_by_others(machine: &Machine, size: PageSize) -> Option<Pages> {
    let pool = machine.pool(size)?;
    let of_others = Pages(pool.committed()) - machine.pages_held(size)?;
    Some(of_others.min(Pages(pool.reserved)))
}

/// Why a pool cannot be distributed over the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodesLack {
    /// Pages that do not fit.
    pub missing: Pages,
}

/// The number of pages for each node so that all have `pages` in total, in proportion to memory,
/// and the allowed ones at least `on_allowed` beyond what others use there. No node gets fewer
/// than are in use on it or could be reserved on it by others.
pub fn distribute(
    machine: &Machine,
    size: PageSize,
    pages: Pages,
    on_allowed: Pages,
) -> Option<Result<Vec<(u32, Pages)>, NodesLack>> {
    let parts = parts(machine, size)?;
    let reserved = reserved_by_others(machine, size)?;
    let mut target: Vec<Pages> = parts
        .iter()
        .map(|part| part.used() + reserved.min(Pages(part.counters.free)))
        .collect();
    let held = machine.pages_held(size)?;
    // Those in use by the running server are released on the allowed nodes.
    let in_use = held - (Pages(machine.pool(size)?.reserved) - reserved);
    let is_allowed = |index: usize| parts[index].is_allowed;
    let floor: Pages = (0..parts.len())
        .filter(|&index| is_allowed(index))
        .map(|index| target[index])
        .sum();
    let wanted =
        (floor - in_use) + on_allowed.max(if on_allowed > Pages(0) { held } else { in_use });
    let mut missing = fill(&mut target, &parts, wanted - floor, is_allowed);
    let so_far: Pages = target.iter().copied().sum();
    missing = missing + fill(&mut target, &parts, pages - so_far, |_| true);
    if missing > Pages(0) {
        return Some(Err(NodesLack { missing }));
    }
    Some(Ok(parts.iter().map(|part| part.node).zip(target).collect()))
}

/// The part of a pool on each node that the server is allowed to use, and the pages that it would
/// have if those not in use were distributed by memory. Surplus pages count: they are there.
pub fn fair_parts(machine: &Machine, size: PageSize) -> Option<Vec<(Part, Pages)>> {
    let mut parts = parts(machine, size)?;
    parts.retain(|part| part.is_allowed);
    let mut target: Vec<Pages> = parts.iter().map(Part::used).collect();
    let free = parts.iter().map(|part| Pages(part.counters.free)).sum();
    fill(&mut target, &parts, free, |_| true);
    Some(parts.into_iter().zip(target).collect())
}

/// Adds pages to the chosen nodes, as far as each has room, first to those that have less than
/// their share by memory. Returns the number that did not fit.
fn fill(
    target: &mut [Pages],
    parts: &[Part],
    pages: Pages,
    is_chosen: impl Fn(usize) -> bool,
) -> Pages {
    let mut left = pages;
    let memory = |index: usize| parts[index].memory.map_or(1, |memory| memory.0.max(1));
    let chosen = || (0..parts.len()).filter(|&index| is_chosen(index));
    let memory_of_all: u128 = chosen().map(|index| u128::from(memory(index))).sum();
    let wanted = chosen().map(|index| target[index]).sum::<Pages>() + pages;
    let share = |index: usize| {
        let share = u128::from(wanted.0) * u128::from(memory(index)) / memory_of_all.max(1);
        Pages(u64::try_from(share).unwrap_or(u64::MAX))
    };
    while left > Pages(0) {
        let open: Vec<usize> = (0..parts.len())
            .filter(|&index| is_chosen(index) && target[index] < parts[index].most())
            .collect();
        if open.is_empty() {
            return left;
        }
        let lacks: Vec<u64> = open
            .iter()
            .map(|&index| (share(index) - target[index]).0)
            .collect();
        let weights: Vec<u64> = if lacks.iter().all(|&lack| lack == 0) {
            open.iter().map(|&index| memory(index)).collect()
        } else {
            lacks
        };
        let all: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        let round = left;
        for (index, weight) in open
            .into_iter()
            .zip(weights)
            .filter(|(_, weight)| *weight > 0)
        {
            let share = u128::from(round.0) * u128::from(weight) / all;
            // A page at least: the loop ends.
            let share = Pages(u64::try_from(share).unwrap_or(u64::MAX).max(1));
            let given = share.min(left).min(parts[index].most() - target[index]);
            target[index] = target[index] + given;
            left = left - given;
        }
    }
    left
}

/// The machine with the counters of its nodes as after a write for the whole pool.
pub(crate) fn after_one_write(machine: &Machine, size: PageSize, pages: Pages) -> Machine {
    let mut after = machine.clone();
    set(&mut after, size, pages, &[]);
    after
}

/// Sets the pages of the given nodes, or of the whole pool, and all counters with them. A write for
/// the whole pool changes nodes in turn. The kernel frees pages of a node as long as the whole pool
/// keeps as many as are in use or reserved (mm/hugetlb.c `set_max_huge_pages`).
pub(super) fn set(machine: &mut Machine, size: PageSize, pages: Pages, by_node: &[(u32, Pages)]) {
    if by_node.is_empty() {
        let nodes = even(machine, size, pages).unwrap_or_default();
        set_nodes(machine, size, &nodes);
        set_whole(machine, size, pages);
        return;
    }
    let parts = parts(machine, size).unwrap_or_default();
    for &(node, pages) in by_node {
        let part = parts.iter().find(|part| part.node == node);
        let had = part.map_or(Pages(0), Part::persistent);
        let whole = machine.pool(size).map_or(0, |pool| pool.persistent());
        set_nodes(machine, size, &[(node, pages)]);
        set_whole(machine, size, Pages(whole) + pages - had);
    }
}

fn set_whole(machine: &mut Machine, size: PageSize, pages: Pages) {
    if let Some(pool) = machine.pool_mut(size) {
        let reserved = pool.reserved;
        set_persistent(pool, reserved, pages.0);
    }
}

fn set_nodes(machine: &mut Machine, size: PageSize, numbers: &[(u32, Pages)]) {
    let pool = machine.pool(size);
    let mut idle = pool.map_or(Pages(0), |pool| Pages(pool.free) - Pages(pool.reserved));
    for &(number, pages) in numbers {
        let on_nodes = machine.env.iter_mut().flat_map(|env| &mut env.nodes);
        let allowed = match &mut machine.facts.allowed_nodes {
            AllowedNodes::Only(nodes) => nodes.as_mut_slice(),
            AllowedNodes::All | AllowedNodes::Untold(_) => &mut [],
        };
        let nodes = on_nodes.flatten().chain(allowed);
        let mut freed = Pages(0);
        for node in nodes.filter(|node| node.number == number) {
            let mut parts = node.pools.iter_mut();
            let part = parts.find(|part| part.page_bytes == size.0);
            let Some(counters) = part.and_then(|part| part.counters.as_mut()) else {
                continue;
            };
            let before = Pages(counters.total);
            let kept = counters.free.saturating_sub(idle.0);
            set_persistent(counters, kept, pages.0);
            freed = before - Pages(counters.total);
            let (before, after) = (before * size, Pages(counters.total) * size);
            let memory = &mut node.memory;
            let moved = |bytes: u64| (Bytes(bytes) + before - after).0;
            memory.available = memory.available.map(moved);
            memory.free = memory.free.map(moved);
        }
        idle = idle - freed;
    }
}

/// The pages of each node after a write for the whole pool, which adds or removes one page on each
/// node in turn.
fn even(machine: &Machine, size: PageSize, pages: Pages) -> Option<Vec<(u32, Pages)>> {
    let parts = parts(machine, size)?;
    let persistent: Pages = parts.iter().map(Part::persistent).sum();
    let mut target: Vec<Pages> = parts.iter().map(Part::persistent).collect();
    let equal: Vec<Part> = parts
        .iter()
        .map(|part| Part {
            memory: Some(Bytes(1)),
            ..*part
        })
        .collect();
    if pages >= persistent {
        // Surplus pages become persistent where they are.
        let mut left = pages - persistent;
        for (target, part) in target.iter_mut().zip(&parts) {
            let converted = left.min(Pages(part.counters.surplus));
            *target = *target + converted;
            left = left - converted;
        }
        fill(&mut target, &equal, left, |_| true);
    } else {
        let mut to_remove = persistent - pages;
        let mut open: Vec<usize> = (0..parts.len()).collect();
        while to_remove > Pages(0) && !open.is_empty() {
            open.retain(|&index| target[index] > Pages(0));
            let share = Pages((to_remove.0 / (open.len() as u64).max(1)).max(1));
            for &index in &open {
                let removed = share.min(to_remove).min(target[index]);
                target[index] = target[index] - removed;
                to_remove = to_remove - removed;
            }
        }
    }
    Some(parts.iter().map(|part| part.node).zip(target).collect())
}
