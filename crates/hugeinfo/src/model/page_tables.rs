//! What page tables cost for a segment of shared memory: each process that has touched a page keeps
//! an entry for it.

use crate::linux::pages::pages_required;

/// Bytes of one entry of the lowest level used: the same on x86-64 and arm64. The levels above add
/// less than 1 %.
const ENTRY_BYTES: u64 = 8;

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
