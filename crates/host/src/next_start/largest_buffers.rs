//! The largest `shared_buffers` whose main shared memory segment fits into a number of huge pages.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, PageSize, Pages};

use crate::server::state::Server;

/// PostgreSQL's minimum of `shared_buffers`, in blocks.
const LEAST_BLOCKS: u64 = 16;

/// PostgreSQL's maximum of `shared_buffers`, in blocks (utils/misc/guc_tables.c, `INT_MAX / 2`).
const MOST_BLOCKS: u64 = 1_073_741_823;

/// Probes that are placed by interpolation, more than are usually needed. The search for a jump of
/// the size, which PostgreSQL's hash tables cause when they double, then continues as a bisection.
const INTERPOLATIONS: usize = 6;

/// The largest `shared_buffers` for a number of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// `shared_buffers` in blocks.
    pub blocks: u64,
    /// Bytes of the main shared memory segment.
    pub segment_bytes: u64,
    /// Huge pages of the segment.
    pub required: Pages,
    /// Unused bytes at the end of these pages.
    pub tail_waste: Bytes,
}

/// Computes the largest `shared_buffers` with which a start with the other settings of `next` maps
/// at most that many pages of that size. One block more does not fit, unless the result is
/// PostgreSQL's maximum. `TooFewPages`: even the minimum does not fit.
///
/// `segment_bytes` returns the bytes of the segment for a number of blocks.
///
/// Errors: those of `segment_bytes`.
pub fn fit<E>(
    next: &Server,
    pages: Pages,
    size: PageSize,
    block_bytes: u64,
    segment_bytes: impl FnMut(u64) -> Result<u64, E>,
) -> Result<Result<Fit, TooFewPages>, E> {
    // PostgreSQL rounds the segment up to the requested size, as in [`Server::pages`].
    let step = next
        .huge_page_size_bytes
        .map_or(size.0, |told| told.min(size.0));
    let limit = (pages * size).0;
    let limit = limit - limit % step.max(1);
    let Buffers {
        blocks,
        segment_bytes,
    } = largest(limit, block_bytes, segment_bytes)?;
    let next = Server {
        shared_memory_bytes: segment_bytes,
        ..next.clone()
    };
    let required = Pages(next.pages(size.0));
    if segment_bytes > limit {
        return Ok(Err(TooFewPages { required }));
    }
    Ok(Ok(Fit {
        blocks,
        segment_bytes,
        required,
        tail_waste: required * size - Bytes(segment_bytes),
    }))
}

/// Even PostgreSQL's minimum of `shared_buffers` needs more pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooFewPages {
    /// Huge pages that the minimum needs.
    pub required: Pages,
}

/// A value of `shared_buffers` in blocks, and the size of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Buffers {
    blocks: u64,
    segment_bytes: u64,
}

/// Searches for the largest `shared_buffers` whose segment has at most `limit_bytes`. The size has
/// been computed for the result and for one block more, unless the result is PostgreSQL's maximum.
/// If even the minimum does not fit, returns the minimum.
///
/// With more blocks, `segment_bytes` must not return less.
fn largest<E>(
    limit_bytes: u64,
    block_bytes: u64,
    mut segment_bytes: impl FnMut(u64) -> Result<u64, E>,
) -> Result<Buffers, E> {
    let mut probe = |blocks| {
        Ok(Buffers {
            blocks,
            segment_bytes: segment_bytes(blocks)?,
        })
    };
    let least = probe(LEAST_BLOCKS)?;
    if least.segment_bytes > limit_bytes {
        return Ok(least);
    }
    let (mut fitting, mut too_many) = (least, MOST_BLOCKS + 1);
    let mut nearest = least;
    let distance = |buffers: Buffers| buffers.segment_bytes.abs_diff(limit_bytes);
    let mut interpolations = 0..INTERPOLATIONS;
    while fitting.blocks + 1 < too_many {
        let blocks = match interpolations.next() {
            Some(_) => {
                // From the nearest size, with the average size of a buffer.
                let (buffers, bytes) = match nearest.blocks - least.blocks {
                    0 => (1, block_bytes),
                    more => (more, nearest.segment_bytes - least.segment_bytes),
                };
                let blocks = u128::from(distance(nearest)) * u128::from(buffers);
                let blocks = blocks / u128::from(bytes.max(1));
                let blocks = u64::try_from(blocks).unwrap_or(u64::MAX);
                if nearest.segment_bytes <= limit_bytes {
                    nearest.blocks.saturating_add(blocks)
                } else {
                    nearest.blocks.saturating_sub(blocks + 1)
                }
            }
            None => fitting.blocks.midpoint(too_many),
        };
        let probed = probe(blocks.clamp(fitting.blocks + 1, too_many - 1))?;
        if probed.segment_bytes <= limit_bytes {
            fitting = probed;
        } else {
            too_many = probed.blocks;
        }
        if distance(probed) < distance(nearest) {
            nearest = probed;
        }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::server::state::{HugePages, SharedMemoryType};

    /// About the size that PostgreSQL computes: buffers with their descriptors, a hash table that
    /// doubles, WAL buffers up to 16 MB, and everything else.
    fn segment(blocks: u64) -> u64 {
        let hash = 40 * blocks + 8 * (blocks + 128).next_power_of_two();
        let wal = (blocks / 32).clamp(8, 2048) * 8192;
        let bytes = blocks * (8192 + 64 + 16 + 20) + hash + wal + (9 << 20);
        bytes + 8192 - bytes % 8192
    }

    /// Returns the result and the number of probes.
    fn search(limit: u64, size: impl Fn(u64) -> u64) -> (Buffers, usize) {
        let mut probes = 0;
        let counted = |blocks| {
            probes += 1;
            Ok::<_, Infallible>(size(blocks))
        };
        let Ok(found) = largest(limit, 8192, counted);
        (found, probes)
    }

    #[test]
    fn result_fits_and_one_block_more_does_not() {
        let mut total = 0;
        let mut count = 0;
        for bits in 24..43 {
            for part in 0..97 {
                let limit = ((1 << bits) + (part << bits) / 97) & !((2 << 20) - 1);
                let (found, probes) = search(limit, segment);
                assert_eq!(found.segment_bytes, segment(found.blocks));
                assert!(found.segment_bytes <= limit, "{limit}");
                assert!(segment(found.blocks + 1) > limit, "{limit}");
                assert!(probes <= 14, "{limit}: {probes} probes");
                total += probes;
                count += 1;
            }
        }
        assert!(total < 6 * count, "{total} probes for {count} limits");
    }

    #[test]
    fn jump_is_found() {
        for jump in [17, 1000, 4_000_000, 1 << 29] {
            for height in [1 << 20, 1 << 30, 1 << 40] {
                let size = |blocks| segment(blocks) + height * u64::from(blocks >= jump);
                let (found, probes) = search(segment(jump) + height - 1, size);
                assert_eq!(found.blocks, jump - 1);
                assert!(probes <= 1 + INTERPOLATIONS + 30, "{probes} probes");
            }
        }
    }

    #[test]
    fn result_is_within_the_limits_of_the_setting() {
        for limit in [0, segment(LEAST_BLOCKS) - 1, segment(LEAST_BLOCKS)] {
            assert_eq!(search(limit, segment).0.blocks, LEAST_BLOCKS);
        }
        for limit in [segment(MOST_BLOCKS), 1 << 62, u64::MAX] {
            assert_eq!(search(limit, segment).0.blocks, MOST_BLOCKS);
        }
        assert_eq!(
            search(segment(MOST_BLOCKS) - 1, segment).0.blocks,
            MOST_BLOCKS - 1
        );
    }

    /// PostgreSQL passes a size that is not a power of two, and the kernel maps larger pages.
    #[test]
    fn required_pages_are_those_of_a_start() {
        const MB: u64 = 1 << 20;
        for (told, size) in [(None, 2), (Some(2), 2), (Some(3), 4), (Some(1536), 2048)] {
            let next = Server {
                huge_pages: HugePages::Try,
                shared_memory_type: SharedMemoryType::Mmap,
                huge_page_size_bytes: told.map(|told| told * MB),
                shared_memory_bytes: 0,
            };
            let required = |blocks| {
                let shared_memory_bytes = segment(blocks);
                let next = Server {
                    shared_memory_bytes,
                    ..next.clone()
                };
                next.pages(size * MB)
            };
            let fit = |pages| {
                let size_of = |blocks| Ok::<_, Infallible>(segment(blocks));
                let Ok(fit) = fit(&next, Pages(pages), PageSize(size * MB), 8192, size_of);
                fit
            };
            let least = required(LEAST_BLOCKS);
            assert_eq!(
                fit(least - 1),
                Err(TooFewPages {
                    required: Pages(least)
                })
            );
            for pages in least..least + 50 {
                let Ok(found) = fit(pages) else {
                    panic!("{pages} pages of {size} MB");
                };
                assert_eq!(found.required.0, required(found.blocks));
                assert!(found.required.0 <= pages);
                assert!(required(found.blocks + 1) > pages);
                let bytes = found.segment_bytes + found.tail_waste.0;
                assert_eq!(bytes, found.required.0 * size * MB);
            }
        }
    }
}
