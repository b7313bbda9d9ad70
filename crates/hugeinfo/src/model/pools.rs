//! The pool of one page size, as mm/hugetlb.c counts it.
//!
//! The kernel serves nodes in turn (`for_each_node_mask_to_alloc`, `for_each_node_mask_to_free`).
//! Whose turn it is cannot be seen from outside. So on one node every counter here is exact; on
//! several the sums are, as long as no node has surplus pages or too little room, and a node may
//! have a page more or less. [`Pool::with_turn`] chooses whose turn it is: who tries them all has
//! seen all that can happen.

mod resize;
mod take;
mod turns;

pub use resize::Resized;

/// The pages of one size on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Node {
    /// Its number, as in `/sys/devices/system/node/nodeN`.
    pub number: u32,
    /// `nr_hugepages`: persistent and surplus ones.
    pub total: u64,
    /// `free_hugepages`: reserved ones are among them.
    pub free: u64,
    /// `surplus_hugepages`.
    pub surplus: u64,
    /// How many more pages its memory can give. `None`: as many as are asked for.
    pub room: Option<u64>,
}

impl Node {
    fn add(&mut self, pages: u64) {
        self.total = self.total.saturating_add(pages);
        self.room = self.room.map(|room| room.saturating_sub(pages));
    }

    fn remove(&mut self, pages: u64) {
        self.total = self.total.saturating_sub(pages);
        self.room = self.room.map(|room| room.saturating_add(pages));
    }
}

/// How the kernel counts where some nodes have surplus pages and others free ones. On one node it
/// makes no difference. A version does not tell: Debian's 6.12.117 has one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rules {
    /// What is written for one node leaves the others' pages alone (Linux 6.15, and backported).
    /// Before, their surplus pages counted as persistent, so that the node got as many too many.
    pub spares_other_nodes: bool,
    /// A smaller pool frees its free persistent pages (Linux 6.15). Before, surplus pages in use
    /// kept as many of them, which became surplus instead.
    pub frees_beside_surplus: bool,
}

impl Rules {
    /// Those that make more pages than were asked for.
    pub const BEFORE_6_15: Self = Self {
        spares_other_nodes: false,
        frees_beside_surplus: false,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            spares_other_nodes: true,
            frees_beside_surplus: true,
        }
    }
}

/// What `/sys/kernel/mm/hugepages/hugepages-*kB/` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// `nr_hugepages`.
    pub total: u64,
    /// `free_hugepages`.
    pub free: u64,
    /// `resv_hugepages`.
    pub reserved: u64,
    /// `surplus_hugepages`.
    pub surplus: u64,
    /// `nr_overcommit_hugepages`.
    pub overcommit: u64,
}

/// The pages of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Size of a page.
    pub page_bytes: u64,
    /// Larger than the largest block of `/proc/buddyinfo`: never overcommitted.
    pub is_gigantic: bool,
    /// Of the running kernel; by default of Linux 6.15.
    pub rules: Rules,
    /// Those with memory, in the order of their numbers.
    pub nodes: Vec<Node>,
    /// `resv_hugepages`: promised to mappings and not touched yet.
    pub reserved: u64,
    /// `nr_overcommit_hugepages`: this many surplus pages may be made when pages are wanted.
    pub overcommit: u64,
    /// Indices of the nodes whose turn it is: `next_nid_to_alloc` and `next_nid_to_free`.
    turn_to_give: usize,
    turn_to_free: usize,
}

impl Pool {
    /// As the kernel shows it. Without nodes it is a pool of one; where nodes and the global
    /// counters differ, which is a race of who reads them, the nodes are believed.
    pub fn new(page_bytes: u64, counters: &Counters, nodes: Vec<Node>) -> Self {
        let nodes = if nodes.is_empty() {
            vec![Node {
                number: 0,
                total: counters.total,
                free: counters.free,
                surplus: counters.surplus,
                room: None,
            }]
        } else {
            nodes
        };
        Self {
            page_bytes,
            is_gigantic: false,
            rules: Rules::default(),
            nodes,
            reserved: counters.reserved,
            overcommit: counters.overcommit,
            turn_to_give: 0,
            turn_to_free: 0,
        }
    }

    /// The node, by its place in the list, that is asked first for a page, and for one to be freed.
    #[must_use]
    pub fn with_turn(mut self, to_give: usize, to_free: usize) -> Self {
        self.turn_to_give = to_give;
        self.turn_to_free = to_free;
        self
    }

    /// All its counters.
    pub fn counters(&self) -> Counters {
        Counters {
            total: self.total(),
            free: self.free(),
            reserved: self.reserved,
            surplus: self.surplus(),
            overcommit: self.overcommit,
        }
    }

    /// `nr_hugepages`.
    pub fn total(&self) -> u64 {
        self.sum(|node| node.total)
    }

    /// `free_hugepages`.
    pub fn free(&self) -> u64 {
        self.sum(|node| node.free)
    }

    /// `surplus_hugepages`.
    pub fn surplus(&self) -> u64 {
        self.sum(|node| node.surplus)
    }

    /// Persistent pages, which stay when unused (`persistent_huge_pages`).
    pub fn persistent(&self) -> u64 {
        self.total().saturating_sub(self.surplus())
    }

    /// Free and not reserved (`available_huge_pages`).
    pub fn available(&self) -> u64 {
        self.free().saturating_sub(self.reserved)
    }

    /// Surplus pages that overcommit still allows, if there is memory for them.
    pub fn overcommit_left(&self) -> u64 {
        if self.is_gigantic {
            return 0;
        }
        self.overcommit.saturating_sub(self.surplus())
    }

    /// Memory that is in the pool.
    pub fn bytes(&self) -> u64 {
        self.total().saturating_mul(self.page_bytes)
    }

    /// The numbers of all nodes: what a process may use that is bound to none.
    pub(crate) fn node_numbers(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.number).collect()
    }

    fn sum(&self, of: impl Fn(&Node) -> u64) -> u64 {
        self.nodes.iter().map(of).fold(0, u64::saturating_add)
    }
}
