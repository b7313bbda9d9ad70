//! The part of a pool on the nodes that a bound server is allowed to use.

use host::{
    linux::numa::node::Node,
    server::{facts::Facts, state::AllowedNodes},
    units::{Bytes, PageSize, Pages},
};

/// The part of a pool on the nodes that a bound server is allowed to use. It cannot use other
/// nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPart {
    pub size: PageSize,
    /// Pages not faulted in, reserved or not.
    pub free: Pages,
    /// Persistent and surplus pages.
    pub total: Pages,
    pub surplus: Pages,
    /// The figures of each node, as they were read.
    pub nodes: Vec<NodePart>,
}

/// The part of a pool on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePart {
    /// Number of the node.
    pub number: u32,
    /// Persistent and surplus pages.
    pub total: Pages,
    /// Pages not faulted in, reserved or not.
    pub free: Pages,
    /// Available memory of the node. `None`: unknown.
    pub available: Option<Bytes>,
}

impl AllowedPart {
    /// `None`: a node has no part, or it cannot be read.
    fn of(nodes: &[Node], size: PageSize) -> Option<Self> {
        let mut all = Self {
            size,
            free: Pages(0),
            total: Pages(0),
            surplus: Pages(0),
            nodes: Vec::new(),
        };
        for node in nodes {
            let counters = node.part(size.0)?.counters?;
            let (total, free) = (Pages(counters.total), Pages(counters.free));
            all.total = all.total + total;
            all.free = all.free + free;
            all.surplus = all.surplus + Pages(counters.surplus);
            all.nodes.push(NodePart {
                number: node.number,
                total,
                free,
                available: node.memory.available.map(Bytes),
            });
        }
        Some(all)
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
