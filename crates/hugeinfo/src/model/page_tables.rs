//! What page tables cost for a segment of shared memory: each process that has touched a page keeps
//! an entry for it.

use crate::{linux::pages::pages_required, server::facts::Facts};

/// Bytes of one entry of the lowest level used: the same on x86-64 and arm64. The levels above add
/// less than 1 %.
const ENTRY_BYTES: u64 = 8;

/// What page tables cost on pages of one size. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The size of the pages.
    pub page_bytes: u64,
    /// Whether the main segment lies on them. `None`: that cannot be seen.
    pub is_used: Option<bool>,
    /// Of one process that has touched the whole segment.
    pub one: u64,
    /// Of all processes that there are, once each has touched all of it.
    pub present: u64,
    /// The same of `max_connections` processes.
    pub max_connections: u64,
    /// What the processes have now, on the pages that the segment lies on. `None`: not told.
    pub now: Option<u64>,
    /// What they would have on these pages, estimated. `None`: these are smaller.
    pub then: Option<u64>,
}

/// For small pages and each huge page size, smallest first. `each` are the page tables of each
/// process of the server; `None`: the kernel doesn't tell.
pub fn on_each_size(facts: &Facts, each: &[Option<u64>], max_connections: u64) -> Vec<Cost> {
    let processes = u64::try_from(each.len()).unwrap_or(u64::MAX);
    let told: Vec<u64> = each.iter().copied().flatten().collect();
    let now = told.iter().copied().reduce(u64::saturating_add);
    let lies_on = facts.page_bytes();
    let segment = facts.needed_bytes();
    let huge = facts.pools.iter().flatten().map(|pool| pool.page_bytes);
    let sizes = std::iter::once(facts.base_page_bytes).chain(huge);
    let cost = |page_bytes| {
        let one = bytes_of_one(segment, page_bytes);
        Cost {
            page_bytes,
            is_used: lies_on.map(|lies_on| lies_on == page_bytes),
            one,
            present: one.saturating_mul(processes),
            max_connections: one.saturating_mul(max_connections),
            now,
            // Smaller pages would make much of what is only near to nothing.
            then: lies_on
                .filter(|&lies_on| lies_on <= page_bytes)
                .map(|lies_on| on_other_pages(&told, segment, lies_on, page_bytes)),
        }
    };
    sizes.map(cost).collect()
}

/// Bytes of page tables that one process needs once it has touched the whole segment on pages of
/// that size.
///
/// ```
/// use hugeinfo::model::page_tables::bytes_of_one;
///
/// // A segment of 138 GiB, and 80 connections: 21.6 GiB on small pages, 43.1 MiB on huge ones.
/// assert_eq!(80 * bytes_of_one(138 << 30, 4 << 10), 23_152_558_080);
/// assert_eq!(80 * bytes_of_one(138 << 30, 2 << 20), 45_219_840);
/// ```
pub fn bytes_of_one(segment_bytes: u64, page_bytes: u64) -> u64 {
    pages_required(segment_bytes, page_bytes).saturating_mul(ENTRY_BYTES)
}

/// Bytes of page tables that these processes would have if the segment lay on pages of another
/// size: an estimate, from those that each has now.
///
/// The process with the fewest has them for memory of its own, and none of the others needs less
/// for that. What is beyond, up to the whole segment, is for the segment, and grows and shrinks
/// with the number of its pages.
///
/// ```
/// use hugeinfo::model::page_tables::on_other_pages;
///
/// const MB: u64 = 1 << 20;
/// // 64 GB in small pages: a process that has touched half of it, and one that has touched nothing.
/// let now = [65 * MB, MB];
/// assert_eq!(on_other_pages(&now, 64 << 30, 4 << 10, 2 << 20), 2 * MB + MB / 8);
/// assert_eq!(on_other_pages(&now, 64 << 30, 4 << 10, 4 << 10), 66 * MB);
/// ```
pub fn on_other_pages(now: &[u64], segment_bytes: u64, page_bytes: u64, other_bytes: u64) -> u64 {
    let own = now.iter().copied().min().unwrap_or(0);
    let most = bytes_of_one(segment_bytes, page_bytes);
    let most_then = bytes_of_one(segment_bytes, other_bytes);
    let then = now.iter().map(|&now| {
        let of_segment = (now - own).min(most);
        let scaled = u128::from(of_segment) * u128::from(most_then);
        let scaled = scaled.div_ceil(u128::from(most.max(1)));
        (now - of_segment).saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
    });
    then.fold(0, u64::saturating_add)
}
