//! The part of the segment that has been faulted in.

use host::linux::meminfo::Usage;
use host::server::state::State;
use host::units::{Bytes, PageSize, Pages};

/// Bytes of the segment that have been faulted in, as bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultedIn {
    pub least: Bytes,
    pub most: Bytes,
}

impl FaultedIn {
    /// Whether the bounds are equal.
    pub(crate) fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// Bounds for the present segment. Each process reports only the pages that it has faulted in
    /// itself. The kernel counts all shared memory together.
    pub(crate) fn of(state: &State) -> Self {
        let Ok(segment) = &state.segment else {
            return Self {
                least: Bytes(0),
                most: Bytes(state.server.shared_memory_bytes),
            };
        };
        let page_bytes = segment.page_bytes.unwrap_or(state.base_page_bytes);
        if page_bytes <= state.base_page_bytes {
            let processes = state.processes.iter();
            let seen = processes.filter_map(|process| process.rss_shmem).max();
            let least = seen.unwrap_or(0).min(segment.bytes);
            let shared = state.usage.as_ref().ok().and_then(Usage::shared);
            let others = state.other_servers.iter().flatten();
            let by_others: Bytes = others
                .filter_map(|other| other.rss_shmem_bytes)
                .map(Bytes)
                .sum();
            let Bytes(most) = Bytes(shared.unwrap_or(u64::MAX)) - by_others;
            return Self {
                least: Bytes(least),
                most: Bytes(most.clamp(least, segment.bytes)),
            };
        }
        let Some(pool) = state.pool(page_bytes) else {
            return Self {
                least: Bytes(0),
                most: Bytes(segment.bytes),
            };
        };
        // Pages that are no longer reserved have been faulted in; free ones have not.
        let in_use = Pages(pool.total) - Pages(pool.free);
        let size = PageSize(page_bytes);
        Self {
            least: Bytes(segment.bytes) - Pages(pool.reserved) * size,
            most: Bytes(segment.bytes).min(in_use * size),
        }
    }
}
