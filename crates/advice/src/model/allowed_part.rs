//! The part of a pool on the nodes that a bound server is allowed to use, taken together.

use host::server::{facts::Facts, state::AllowedNodes};
use host::{
    linux::numa::node::Node,
    units::{Bytes, PageSize, Pages},
};

/// A node keeps this share of its memory outside of the pools.
const MOST_PERCENT: u64 = 95;
/// This share of a node's memory stays available while its part of a pool grows.
const SPARE_PERCENT: u64 = 2;

/// The part of a pool on the nodes that a bound server is allowed to use. It cannot use other
/// nodes. Counts are lower bounds: the kernel chooses the nodes of a write for the whole pool.
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

    /// Additional pages that fit on these nodes.
    pub fn room(&self) -> Pages {
        self.nodes.iter().map(|(_, _, room)| *room).sum()
    }

    /// The values of `nr_hugepages` of the nodes after adding this many pages, in proportion to the
    /// room on each node. Errors: the number of pages that do not fit.
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

    /// Updates the counts after a write for each of these nodes.
    pub(crate) fn grow(&mut self, by_node: &[(u32, Pages)]) {
        for (number, total, room) in &mut self.nodes {
            let written = by_node.iter().find(|(node, _)| node == number);
            let growth = written.map_or(Pages(0), |(_, pages)| *pages - *total);
            *total = *total + growth;
            *room = *room - growth;
            self.total = self.total + growth;
            self.free = self.free + growth;
        }
    }

    /// Updates the counts after a write for the whole pool that removes this many pages, possibly
    /// all from these nodes.
    pub(crate) fn shrink(&mut self, pages: Pages) {
        let removed = pages.min(self.free);
        self.total = self.total - removed;
        self.free = self.free - removed;
    }

    /// Updates the counts after the server has released this many pages that it had faulted in. The
    /// kernel frees surplus pages.
    pub(crate) fn release(&mut self, pages: Pages) {
        self.free = (self.free + pages).min(self.total);
        let gone = self.surplus.min(self.free);
        self.total = self.total - gone;
        self.free = self.free - gone;
        self.surplus = self.surplus - gone;
    }
}

/// The part of each pool on the nodes that the server is allowed to use. Empty: it is not bound.
pub(crate) fn allowed_parts(facts: &Facts) -> Vec<AllowedPart> {
    let AllowedNodes::Only(nodes) = &facts.allowed_nodes else {
        return Vec::new();
    };
    let pools = facts.state.pools.iter().flatten();
    pools
        .filter_map(|pool| AllowedPart::of(nodes, PageSize(pool.page_bytes)))
        .collect()
}
