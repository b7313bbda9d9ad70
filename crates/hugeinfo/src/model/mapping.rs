//! Shared memory on huge pages, from mmap to the end of the last process that has it: pool and
//! control groups in the order in which the kernel asks them.

use crate::model::{
    cgroup::{Groups, Kind},
    pools::Pool,
    refusal::Refusal,
};

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Its control group. `None`: the root, or no controller.
    pub group: Option<usize>,
    /// Nodes that it may use (`Mems_allowed_list` and its memory policy), the nearest first.
    pub nodes: Vec<u32>,
}

/// Pages of one node, charged to one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Touched {
    node: u32,
    group: Option<usize>,
    pages: u64,
}

/// A shared mapping, as PostgreSQL's main segment is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pages: u64,
    is_reserved: bool,
    /// Who made it: promised pages stay charged there.
    group: Option<usize>,
    touched: Vec<Touched>,
}

impl Mapping {
    /// mmap (mm/hugetlb.c, `hugetlb_reserve_pages`): all pages are promised, or it fails. With
    /// `MAP_NORESERVE` nothing is promised.
    pub fn new(
        pages: u64,
        is_reserved: bool,
        place: &Place,
        pool: &mut Pool,
        groups: &mut Groups,
    ) -> Result<Self, Refusal> {
        if is_reserved {
            if let Some(group) = place.group {
                groups.charge(group, Kind::Reservation, pages)?;
            }
            if let Err(refusal) = pool.reserve(pages, &place.nodes) {
                if let Some(group) = place.group {
                    groups.uncharge(group, Kind::Reservation, pages);
                }
                return Err(refusal);
            }
        }
        Ok(Self {
            pages,
            is_reserved,
            group: place.group,
            touched: Vec::new(),
        })
    }

    /// As it is found: a running server's segment, of which this many pages have been touched on
    /// these nodes. All of it is charged to one group.
    pub fn found(pages: u64, touched: &[(u32, u64)], group: Option<usize>) -> Self {
        let touched = touched
            .iter()
            .map(|&(node, pages)| Touched { node, group, pages });
        Self {
            pages,
            is_reserved: true,
            group,
            touched: touched.collect(),
        }
    }

    /// Its size in pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that have been touched.
    pub fn touched(&self) -> u64 {
        let pages = self.touched.iter().map(|touched| touched.pages);
        pages.fold(0, u64::saturating_add)
    }

    /// A process touches further pages, one after the other, until one is refused, which is its
    /// death by SIGBUS. Tells how many it got (`alloc_hugetlb_folio`).
    pub fn touch(
        &mut self,
        pages: u64,
        place: &Place,
        pool: &mut Pool,
        groups: &mut Groups,
    ) -> (u64, Option<Refusal>) {
        let wanted = pages.min(self.pages.saturating_sub(self.touched()));
        // what every limit allows goes at once, the page after it is refused
        let mut most = wanted;
        if let Some(group) = place.group {
            let in_memory = groups.memory_room(group).checked_div(pool.page_bytes);
            most = most.min(groups.room(group, Kind::Fault));
            most = most.min(in_memory.unwrap_or(0));
            if !self.is_reserved {
                most = most.min(groups.room(group, Kind::Reservation));
            }
        }
        let given = pool.touch(most, self.is_reserved, &place.nodes);
        let mut got = 0;
        for (node, pages) in given {
            got += pages;
            self.touched.push(Touched {
                node,
                group: place.group,
                pages,
            });
        }
        // each within its limit
        let _ = self.charge(got, place, pool.page_bytes, groups);
        if got == wanted {
            return (got, None);
        }
        let refusal = match self.charge(1, place, pool.page_bytes, groups) {
            Err(refusal) => refusal,
            Ok(()) => {
                self.uncharge(1, place.group, pool.page_bytes, groups);
                Refusal::PoolExhausted { missing: 1 }
            }
        };
        (got, Some(refusal))
    }

    /// The last process that has it unmaps it or ends: touched pages go back first, then what was
    /// promised and never touched (`hugetlb_unreserve_pages`).
    pub fn unmap(self, pool: &mut Pool, groups: &mut Groups) {
        for touched in &self.touched {
            pool.give_back(touched.node, touched.pages);
            self.uncharge(touched.pages, touched.group, pool.page_bytes, groups);
        }
        if self.is_reserved {
            pool.unreserve(self.pages.saturating_sub(self.touched()));
            if let Some(group) = self.group {
                groups.uncharge(group, Kind::Reservation, self.pages);
            }
        }
    }

    /// Touched pages against the limits, in the order of the kernel: a page that nobody promised
    /// counts as promised, too.
    fn charge(
        &self,
        pages: u64,
        place: &Place,
        page_bytes: u64,
        groups: &mut Groups,
    ) -> Result<(), Refusal> {
        let Some(group) = place.group else {
            return Ok(());
        };
        let bytes = pages.saturating_mul(page_bytes);
        groups.charge_memory(group, bytes)?;
        if !self.is_reserved
            && let Err(refusal) = groups.charge(group, Kind::Reservation, pages)
        {
            groups.uncharge_memory(group, bytes);
            return Err(refusal);
        }
        if let Err(refusal) = groups.charge(group, Kind::Fault, pages) {
            groups.uncharge_memory(group, bytes);
            if !self.is_reserved {
                groups.uncharge(group, Kind::Reservation, pages);
            }
            return Err(refusal);
        }
        Ok(())
    }

    fn uncharge(&self, pages: u64, group: Option<usize>, page_bytes: u64, groups: &mut Groups) {
        let Some(group) = group else { return };
        groups.uncharge_memory(group, pages.saturating_mul(page_bytes));
        groups.uncharge(group, Kind::Fault, pages);
        if !self.is_reserved {
            groups.uncharge(group, Kind::Reservation, pages);
        }
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
