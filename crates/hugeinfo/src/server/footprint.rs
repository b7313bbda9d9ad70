//! What a server costs its host, without a walk of page tables.

use crate::{
    linux::process::status::Memory,
    server::facts::{Facts, LiesOn, SharedMemoryType},
};

/// Bytes of RAM or swap. Nothing is in two of them. `None`: the kernel does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// How many processes there are.
    pub processes: u64,
    /// Private memory: the sum of `RssAnon`. An upper bound: what a process has from the postmaster
    /// and hasn't written to since is the same memory, and counts for both.
    pub private: Option<u64>,
    /// The whole main segment.
    pub segment: Option<u64>,
    /// What of it has memory.
    ///
    /// On huge pages exactly all of it: what nobody has touched is reserved, and of no use to
    /// others. As System V memory exact, too, as the kernel counts it. Else a lower bound: what the
    /// process that has touched most has touched.
    pub segment_backed: Option<u64>,
    /// Dynamic shared memory, and the small segment that guards the data directory.
    pub other_shared: Option<u64>,
    /// The sum of `VmPTE`. An upper bound: processes can share tables of huge pages, which count
    /// for each.
    pub page_tables: Option<u64>,
    /// The sum of `VmSwap`, an upper bound as `private`; and what of a System V main segment is
    /// swapped out. Of other shared memory that isn't told, or is counted where it is counted.
    pub swap: Option<u64>,
    segment_swapped: u64,
}

/// Shared memory beside the main segment's mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Dynamic shared memory.
    pub dynamic: Option<u64>,
    /// The server's System V segment: the main one with `shared_memory_type = sysv`, else that
    /// which guards the data directory. In memory, and swapped out.
    pub system_v: Option<(u64, u64)>,
}

impl Footprint {
    /// Of the processes of a server. A zombie process has no memory.
    pub fn new(facts: &Facts, processes: &[Memory], shared: &Shared) -> Self {
        let living = || processes.iter().filter(|one| one.virtual_size.is_some());
        let sum = |figure: fn(&Memory) -> Option<u64>| {
            living().next()?;
            living()
                .map(figure)
                .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
        };
        let is_system_v = facts.server.shared_memory_type == SharedMemoryType::Sysv;
        let segment = facts.segment.as_ref().ok().map(|segment| segment.bytes);
        let guard = shared.system_v.filter(|_| !is_system_v);
        let other_shared = match (is_system_v, guard) {
            (false, None) => None,
            (_, guard) => shared
                .dynamic
                .map(|bytes| bytes.saturating_add(guard.map_or(0, |(resident, _)| resident))),
        };
        let counted = shared.system_v.filter(|_| is_system_v);
        let segment_backed = match (facts.lies_on(), counted) {
            (LiesOn::HugePages(_), _) => segment,
            (LiesOn::Unseen, _) => None,
            (LiesOn::SmallPages, Some((resident, _))) => Some(resident),
            (LiesOn::SmallPages, None) => {
                let most = living().filter_map(|one| one.rss_shmem).max();
                // That process may have touched all that is shared, too.
                let most = most.map(|most| most.saturating_sub(other_shared.unwrap_or(0)));
                most.zip(segment).map(|(most, segment)| most.min(segment))
            }
        };
        let segment_swapped = counted.map_or(0, |(_, swapped)| swapped);
        Self {
            processes: living().count() as u64,
            private: sum(|one| one.rss_anon),
            segment,
            segment_backed,
            other_shared,
            page_tables: sum(|one| one.page_tables),
            swap: sum(|one| one.swap).map(|swap| swap.saturating_add(segment_swapped)),
            segment_swapped,
        }
    }

    /// All of it, now.
    pub fn total(&self) -> Option<u64> {
        self.total_with(self.segment_backed?, self.swap?)
    }

    /// All of it, once the whole main segment has been touched: the same on pages of any size, but
    /// for the page tables.
    pub fn total_when_full(&self) -> Option<u64> {
        let swap = self.swap?.saturating_sub(self.segment_swapped);
        self.total_with(self.segment?, swap)
    }

    fn total_with(&self, segment: u64, swap: u64) -> Option<u64> {
        let parts = [
            self.private?,
            segment,
            self.other_shared?,
            self.page_tables?,
            swap,
        ];
        Some(parts.into_iter().fold(0, u64::saturating_add))
    }
}
