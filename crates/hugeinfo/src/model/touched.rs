//! What of the main segment has been touched so far, and counts in the server's control groups.

use crate::server::{facts::Facts, surroundings::Surroundings};

/// Bytes, between what is certain and what is not exceeded for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub least: u64,
    /// At most.
    pub most: u64,
}

impl Bounds {
    /// Of the present segment. Nothing of one on huge pages, unless the mount says so.
    pub fn of(facts: &Facts, around: &Surroundings) -> Self {
        let up_to = |most| Self { least: 0, most };
        let Ok(segment) = &facts.segment else {
            return up_to(facts.server.shared_memory_bytes);
        };
        let page_bytes = segment.page_bytes.unwrap_or(facts.base_page_bytes);
        if page_bytes <= facts.base_page_bytes {
            // Each process shows what it has touched itself.
            let processes = around.processes.iter();
            let most = processes.filter_map(|process| process.rss_shmem).max();
            return Self {
                least: most.unwrap_or(0).min(segment.bytes),
                most: segment.bytes,
            };
        }
        let mut limits = around.memory_limits.iter().flatten();
        let mut pools = facts.pools.iter().flatten();
        let pool = pools.find(|pool| pool.page_bytes == page_bytes);
        if !limits.any(|limit| limit.counts_hugetlb) {
            return Self::default();
        }
        let Some(pool) = pool else {
            return up_to(segment.bytes);
        };
        // What is no longer reserved has been touched; what is free has not.
        let used = pool.total.saturating_sub(pool.free);
        let promised = pool.reserved.saturating_mul(page_bytes);
        Self {
            least: segment.bytes.saturating_sub(promised),
            most: segment.bytes.min(used.saturating_mul(page_bytes)),
        }
    }
}
