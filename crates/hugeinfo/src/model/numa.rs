//! NUMA nodes: the pages on the nodes that a bound server is allowed to use, taken together.

use super::{
    machine::Machine,
    units::{Bytes, PageSize, Pages},
};
use crate::{linux::numa::node::Node, server::facts::AllowedNodes};

/// A node keeps this share of its memory outside of the pools.
const MOST_PERCENT: u64 = 95;
/// This share of a node's memory stays available while its part of a pool grows.
const SPARE_PERCENT: u64 = 2;

/// The part of a pool on the nodes that a bound server is allowed to use. Other nodes are of no use
/// to it. Counts are lower bounds: the kernel chooses the nodes of a write for the whole pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPart {
    /// Size of the pages.
    pub size: PageSize,
    /// Persistent and surplus pages.
    pub total: Pages,
    /// Pages not faulted in, reserved or not.
    pub free: Pages,
    /// Surplus pages.
    pub surplus: Pages,
    /// Each node, with the value of its `nr_hugepages` and the pages that fit in addition.
    nodes: Vec<(u32, Pages, Pages)>,
}

impl AllowedPart {
    /// The part of the pool of that size. `None`: a node has no part, or its memory is unknown.
    fn of(nodes: &[Node], size: PageSize) -> Option<Self> {
        let mut all = Self {
            size,
            total: Pages(0),
            free: Pages(0),
            surplus: Pages(0),
            nodes: Vec::new(),
        };
        for node in nodes {
            let counters = node.part(size.0)?.counters?;
            let total = Pages(counters.total);
            let memory = Bytes(node.memory.total?);
            let available = node.memory.available.map_or(memory, Bytes);
            let room = (memory.percent(MOST_PERCENT).whole_pages(size) - total)
                .min((available - memory.percent(SPARE_PERCENT)).whole_pages(size));
            all.total = all.total + total;
            all.free = all.free + Pages(counters.free);
            all.surplus = all.surplus + Pages(counters.surplus);
            all.nodes.push((node.number, total, room));
        }
        Some(all)
    }

    /// Pages that fit on these nodes in addition.
    pub fn room(&self) -> Pages {
        self.nodes.iter().map(|(_, _, room)| *room).sum()
    }

    /// The values of `nr_hugepages` of the nodes that add so many pages, in proportion to the room
    /// on each. Errors: the number of pages that do not fit.
    pub fn grown(&self, growth: Pages) -> Result<Vec<(u32, Pages)>, Pages> {
        let room = self.room();
        if growth > room {
            return Err(growth - room);
        }
        let mut left = growth;
        let mut numbers = Vec::new();
        let mut room_left = u128::from(room.0);
        for (node, total, room) in &self.nodes {
            // Rounded up; the last node with room takes the rest.
            let share = (u128::from(left.0) * u128::from(room.0)).div_ceil(room_left.max(1));
            let share = Pages(u64::try_from(share).unwrap_or(u64::MAX)).min(left);
            room_left -= u128::from(room.0);
            left = left - share;
            if share > Pages(0) {
                numbers.push((*node, *total + share));
            }
        }
        Ok(numbers)
    }

    /// After a write for each of these nodes.
    pub(super) fn grow(&mut self, by_node: &[(u32, Pages)]) {
        for (number, total, room) in &mut self.nodes {
            let written = by_node.iter().find(|(node, _)| node == number);
            let growth = written.map_or(Pages(0), |(_, pages)| *pages - *total);
            *total = *total + growth;
            *room = *room - growth;
            self.total = self.total + growth;
            self.free = self.free + growth;
        }
    }

    /// After a write for the whole pool that removes so many pages, perhaps all from these nodes.
    pub(super) fn shrink(&mut self, pages: Pages) {
        let removed = pages.min(self.free);
        self.total = self.total - removed;
        self.free = self.free - removed;
    }

    /// After the server has released so many pages that it had faulted in. Surplus pages cease to
    /// exist.
    pub(super) fn release(&mut self, pages: Pages) {
        self.free = (self.free + pages).min(self.total);
        let gone = self.surplus.min(self.free);
        self.total = self.total - gone;
        self.free = self.free - gone;
        self.surplus = self.surplus - gone;
    }
}

/// The part of each pool on the nodes that the server is allowed to use. Empty: it is not bound.
pub(super) fn allowed_parts(machine: &Machine) -> Vec<AllowedPart> {
    let AllowedNodes::Only(nodes) = &machine.facts.allowed_nodes else {
        return Vec::new();
    };
    let sizes = machine.pools().map(|pool| PageSize(pool.page_bytes));
    sizes
        .filter_map(|size| AllowedPart::of(nodes, size))
        .collect()
}

/// The part of that pool on the nodes that the server is allowed to use. `None`: the server is not
/// bound, or it is unknown.
pub fn allowed_part(machine: &Machine, size: PageSize) -> Option<&AllowedPart> {
    machine.allowed_parts.iter().find(|part| part.size == size)
}

/// Pages that a bound server can have from its nodes after a stop, as bounds: `(certain, most)`.
/// `None`: unknown.
///
/// The kernel compares a new mapping with the free pages of the allowed nodes
/// (mm/hugetlb.c `allowed_mems_nr`) and does not know on which node pages are reserved.
pub fn supply_on_allowed(machine: &Machine, size: PageSize) -> Option<(Pages, Pages)> {
    let part = allowed_part(machine, size)?;
    let held = machine.pages_held(size)?;
    let reserved = Pages(machine.pool(size)?.reserved);
    Some((part.free + held - reserved - part.surplus, part.free + held))
}

/// Pages that the allowed nodes have to get so that a start finds this many there, and the running
/// server those that it has mapped. Surplus pages count: they can be made persistent.
pub fn lacking_on_allowed(machine: &Machine, size: PageSize, required: Pages) -> Option<Pages> {
    let (certain, _) = supply_on_allowed(machine, size)?;
    let for_start = required - certain - allowed_part(machine, size)?.surplus;
    let for_mapped = match most_for_mapped(machine, size) {
        Some(most) => machine.pages_held(size)? - most,
        None => Pages(0),
    };
    Some(for_start.max(for_mapped))
}

/// If the allowed nodes have fewer pages than the server has mapped, how many they have. Touching
/// the rest raises SIGBUS. `None`: they have enough, or unknown.
pub fn most_for_mapped(machine: &Machine, size: PageSize) -> Option<Pages> {
    let pool = machine.pool(size)?;
    let held = machine.pages_held(size)?;
    let surplus = Pages(pool.overcommit) - Pages(pool.surplus);
    // The pages that it has faulted in can be on other nodes, from before it was bound.
    let in_use = Pages(pool.total) - Pages(pool.free);
    let most = surplus + in_use + allowed_part(machine, size)?.free;
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
