//! Memory that a server costs its host, without walking page tables.

use crate::linux::process::status::Memory;

use crate::server::{
    state::State,
    state::{Backing, SharedMemoryType},
};

/// Bytes of RAM or swap. The parts do not overlap. `None`: not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    pub processes: u64,
    /// Private memory: the sum of `RssAnon`. An upper bound, because unmodified memory inherited
    /// from the postmaster is counted once for each process.
    pub private: Option<u64>,
    /// The whole main segment.
    pub segment: Option<u64>,
    /// The part of the main segment that uses memory.
    ///
    /// On huge pages, the whole segment, because pages that are not faulted in are reserved. For
    /// System V memory, the exact figure of the kernel. Otherwise a lower bound: the largest part
    /// that one process has faulted in.
    pub segment_backed: Option<u64>,
    /// Dynamic shared memory, and the small segment that guards the data directory.
    pub other_shared: Option<u64>,
    /// The sum of `VmPTE`. An upper bound, because page tables of huge pages that processes share
    /// are counted once for each.
    pub page_tables: Option<u64>,
    /// The sum of `VmSwap`, an upper bound like `private`, plus the swapped-out part of a System V
    /// main segment. Swapped-out parts of other shared memory are unknown, or in `other_shared`.
    pub swap: Option<u64>,
    segment_swapped: u64,
}

/// Shared memory other than the mapping of the main segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shared {
    /// Dynamic shared memory.
    pub dynamic: Option<u64>,
    /// Bytes in memory and bytes swapped out of the server's System V segment: the main one with
    /// `shared_memory_type = sysv`, else the one that guards the data directory.
    pub system_v: Option<(u64, u64)>,
}

impl Footprint {
    /// Sums over the processes of a server. A zombie has no memory.
    pub fn new(state: &State, processes: &[Memory], shared: &Shared) -> Self {
        let living = || processes.iter().filter(|one| one.virtual_size.is_some());
        let sum = |figure: fn(&Memory) -> Option<u64>| {
            living().next()?;
            living()
                .map(figure)
                .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
        };
        let is_system_v = state.server.shared_memory_type == SharedMemoryType::Sysv;
        let segment = state.segment.as_ref().ok().map(|segment| segment.bytes);
        let guard = shared.system_v.filter(|_| !is_system_v);
        let other_shared = match (is_system_v, guard) {
            (false, None) => None,
            (_, guard) => shared
                .dynamic
                .map(|bytes| bytes.saturating_add(guard.map_or(0, |(resident, _)| resident))),
        };
        let counted = shared.system_v.filter(|_| is_system_v);
        let segment_backed = match (state.backing(), counted) {
            (Backing::HugePages(_), _) => segment,
            (Backing::Unknown, _) => None,
            (Backing::SmallPages, Some((resident, _))) => Some(resident),
            (Backing::SmallPages, None) => {
                let most = living().filter_map(|one| one.rss_shmem).max();
                // That process might also have faulted in all other shared memory.
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

    /// The sum of all parts, now.
    pub fn total(&self) -> Option<u64> {
        self.total_with(self.segment_backed?, self.swap?)
    }

    /// The sum of all parts, once the whole main segment has been faulted in. Apart from the page
    /// tables, it does not depend on the page size.
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
