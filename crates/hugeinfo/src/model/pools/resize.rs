//! The size of a pool is set (mm/hugetlb.c, `set_max_huge_pages`).

use super::{Pool, turns::in_turn};
use crate::model::refusal::Refusal;

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resized {
    /// Surplus pages that are persistent now.
    pub made_persistent: u64,
    /// Pages that were made of ordinary memory.
    pub fresh: u64,
    /// Pages that became ordinary memory.
    pub freed: u64,
    /// Pages in use, which will be freed when they are given back.
    pub made_surplus: u64,
    /// Short of what was asked for by this many pages, without an error.
    pub missing: u64,
}

impl Pool {
    /// Writes `nr_hugepages` of all nodes together.
    pub fn set(&mut self, pages: u64) -> Resized {
        self.resize(pages, None)
    }

    /// Writes `nr_hugepages` of one node.
    pub fn set_on_node(&mut self, number: u32, pages: u64) -> Result<Resized, Refusal> {
        let place = self
            .nodes
            .iter()
            .position(|node| node.number == number)
            .ok_or(Refusal::Missing)?;
        let node = &self.nodes[place];
        let others = if self.rules.spares_other_nodes {
            (self.persistent()).saturating_sub(node.total.saturating_sub(node.surplus))
        } else {
            self.total().saturating_sub(node.total)
        };
        Ok(self.resize(pages.saturating_add(others), Some(place)))
    }

    /// Writes `nr_overcommit_hugepages`.
    pub fn set_overcommit(&mut self, pages: u64) -> Result<(), Refusal> {
        if self.is_gigantic {
            return Err(Refusal::Gigantic);
        }
        self.overcommit = pages;
        Ok(())
    }

    /// So many persistent pages on all nodes together, by changing all of them or only one.
    fn resize(&mut self, pages: u64, only: Option<usize>) -> Resized {
        let mut done = Resized::default();

        let wanted = pages.saturating_sub(self.persistent());
        done.made_persistent = self.give(
            wanted,
            only,
            |node| node.surplus,
            |node, pages| {
                node.surplus -= pages;
            },
        );
        let wanted = pages.saturating_sub(self.persistent());
        done.fresh = self.give(
            wanted,
            only,
            |node| node.room.unwrap_or(u64::MAX),
            |node, pages| {
                node.add(pages);
                node.free = node.free.saturating_add(pages);
            },
        );
        done.missing = wanted - done.fresh;

        let kept = pages.max(self.kept());
        let unwanted = self.persistent().saturating_sub(kept);
        done.freed = self.free_up(
            unwanted,
            only,
            |node| node.free,
            |node, pages| {
                node.free -= pages;
                node.remove(pages);
            },
        );
        let unwanted = self.persistent().saturating_sub(pages);
        done.made_surplus = self.free_up(
            unwanted,
            only,
            |node| node.total.saturating_sub(node.surplus),
            |node, pages| node.surplus += pages,
        );
        done
    }

    /// Persistent pages that are in use or promised, and cannot be freed now: `min_count`.
    fn kept(&self) -> u64 {
        let free = self.free();
        let (counted, free) = if self.rules.frees_beside_surplus {
            let persistent = self.persistent();
            let free_persistent = if free > persistent {
                free.saturating_sub(self.surplus())
            } else {
                free
            };
            (persistent, free_persistent)
        } else {
            (self.total(), free)
        };
        self.reserved.saturating_add(counted).saturating_sub(free)
    }

    fn give(
        &mut self,
        pages: u64,
        only: Option<usize>,
        most: impl Fn(&super::Node) -> u64,
        give: impl Fn(&mut super::Node, u64),
    ) -> u64 {
        let turn = self.turn_to_give;
        let (given, turn) = self.change(pages, only, turn, most, give);
        self.turn_to_give = turn;
        given
    }

    pub(super) fn free_up(
        &mut self,
        pages: u64,
        only: Option<usize>,
        most: impl Fn(&super::Node) -> u64,
        free: impl Fn(&mut super::Node, u64),
    ) -> u64 {
        let turn = self.turn_to_free;
        let (freed, turn) = self.change(pages, only, turn, most, free);
        self.turn_to_free = turn;
        freed
    }

    /// Changes this many pages of the nodes in turn. Returns how many changed, and the next node.
    fn change(
        &mut self,
        pages: u64,
        only: Option<usize>,
        turn: usize,
        most: impl Fn(&super::Node) -> u64,
        change: impl Fn(&mut super::Node, u64),
    ) -> (u64, usize) {
        if pages == 0 {
            return (0, turn);
        }
        let able = |(place, node)| match only {
            Some(only) if only != place => 0,
            _ => most(node),
        };
        let most: Vec<u64> = self.nodes.iter().enumerate().map(able).collect();
        let (shares, turn) = in_turn(pages, turn, &most);
        let mut all = 0_u64;
        for (node, share) in self.nodes.iter_mut().zip(shares) {
            change(node, share);
            all = all.saturating_add(share);
        }
        // a single node comes after itself
        (all, only.unwrap_or(turn))
    }
}

#[cfg(test)]
#[path = "resize_tests.rs"]
mod tests;
