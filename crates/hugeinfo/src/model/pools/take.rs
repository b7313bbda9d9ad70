//! Pages are promised, touched, and given back (mm/hugetlb.c).

use super::{Pool, turns::in_order};
use crate::model::refusal::Refusal;

impl Pool {
    /// Promises pages to a mapping of a process that may use these nodes; tells how many surplus
    /// pages that took (`hugetlb_acct_memory`, `gather_surplus_pages`). Those come from the first
    /// node that has memory: the nearest, in Linux 6.12 alone the one of the lowest number. Before
    /// 6.12 all nodes give them, also to a process that is bound to some.
    pub fn reserve(&mut self, pages: u64, nodes: &[u32]) -> Result<u64, Refusal> {
        let wanted = self.reserved.saturating_add(pages);
        let missing = wanted.saturating_sub(self.free());
        let shares = self.surplus_shares(missing, nodes);
        let made = sum(&shares);
        if made < missing {
            let missing = missing - made;
            return Err(Refusal::PoolExhausted { missing });
        }
        for (place, pages) in shares {
            let node = &mut self.nodes[place];
            node.add(pages);
            node.surplus = node.surplus.saturating_add(pages);
            node.free = node.free.saturating_add(pages);
        }
        self.reserved = wanted;

        // allowed_mems_nr: free pages there, promised or not
        let free = sum(&self.places(nodes, |node| node.free));
        if pages > free {
            self.unreserve(pages);
            let missing = pages - free;
            return Err(Refusal::NodesExhausted { missing });
        }
        Ok(made)
    }

    /// Takes back what was promised and not touched; as many free surplus pages cease to exist
    /// (`return_unused_surplus_pages`).
    pub(crate) fn unreserve(&mut self, pages: u64) {
        self.reserved = self.reserved.saturating_sub(pages);
        let unused = pages.min(self.surplus());
        let most = |node: &super::Node| node.surplus.min(node.free);
        self.free_up(unused, None, most, |node, pages| {
            node.surplus -= pages;
            node.free -= pages;
            node.remove(pages);
        });
    }

    /// Touches pages for a process that is served by these nodes, the first one first; tells how
    /// many of which node it got (`alloc_hugetlb_folio`). Who gets fewer than it touches dies of
    /// SIGBUS.
    pub fn touch(&mut self, pages: u64, is_reserved: bool, nodes: &[u32]) -> Vec<(u32, u64)> {
        let pages = if is_reserved {
            pages.min(self.reserved)
        } else {
            pages
        };
        let from_free = if is_reserved {
            pages
        } else {
            pages.min(self.available())
        };
        let free = in_order(from_free, &self.places(nodes, |node| node.free));
        let fresh = self.surplus_shares(pages - sum(&free), nodes);
        for &(place, pages) in &free {
            self.nodes[place].free -= pages;
        }
        for &(place, pages) in &fresh {
            let node = &mut self.nodes[place];
            node.add(pages);
            node.surplus = node.surplus.saturating_add(pages);
        }
        if is_reserved {
            let taken = sum(&free) + sum(&fresh);
            self.reserved = self.reserved.saturating_sub(taken);
        }
        let number = |(place, pages): (usize, u64)| (self.nodes[place].number, pages);
        free.into_iter().chain(fresh).map(number).collect()
    }

    /// Gives touched pages of a node back: while it has surplus pages, they cease to exist
    /// (`free_huge_folio`).
    pub fn give_back(&mut self, number: u32, pages: u64) {
        let Some(node) = self.nodes.iter_mut().find(|node| node.number == number) else {
            return;
        };
        let gone = pages.min(node.surplus);
        node.surplus -= gone;
        node.remove(gone);
        node.free = node.free.saturating_add(pages - gone);
    }

    /// As many surplus pages as overcommit and memory allow (`alloc_surplus_hugetlb_folio`).
    fn surplus_shares(&self, pages: u64, nodes: &[u32]) -> Vec<(usize, u64)> {
        let rooms = self.places(nodes, |node| node.room.unwrap_or(u64::MAX));
        in_order(pages.min(self.overcommit_left()), &rooms)
    }

    /// Of these nodes: where they are in the list, and a figure of each.
    fn places(&self, nodes: &[u32], of: impl Fn(&super::Node) -> u64) -> Vec<(usize, u64)> {
        let place = |number| self.nodes.iter().position(|node| node.number == number);
        let places = nodes.iter().filter_map(|&number| place(number));
        places
            .map(|place| (place, of(&self.nodes[place])))
            .collect()
    }
}

fn sum(shares: &[(usize, u64)]) -> u64 {
    let pages = shares.iter().map(|&(_, pages)| pages);
    pages.fold(0, u64::saturating_add)
}

#[cfg(test)]
#[path = "take_tests.rs"]
mod tests;
