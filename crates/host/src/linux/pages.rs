//! Page sizes, and the number of pages for a number of bytes.

/// Size of a small page of the running kernel.
pub fn base_page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Pages needed to hold `bytes`, rounded up.
///
/// Panics if `page_bytes` is 0, which no reader returns.
///
/// ```
/// // A main segment of 8402592 kB on pages of 2048 kB is 4102.8 pages.
/// assert_eq!(host::linux::pages::pages_required(8402592 << 10, 2048 << 10), 4103);
/// ```
pub fn pages_required(bytes: u64, page_bytes: u64) -> u64 {
    bytes.div_ceil(page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_multiple_needs_no_additional_page() {
        assert_eq!(pages_required(4 << 20, 2 << 20), 2);
        assert_eq!(pages_required((4 << 20) + 1, 2 << 20), 3);
        assert_eq!(pages_required(0, 2 << 20), 0);
    }

    #[test]
    fn published_footprints() {
        // 148392404 kB is VmPeak, which is more than the segment needs.
        assert_eq!(pages_required(148_392_404 << 10, 2 << 20), 72_458);
        assert_eq!(pages_required(548_864 << 10, 2 << 20), 268);
    }

    #[test]
    fn pages_hold_any_size() {
        for page in [64 << 10, 2 << 20, 512 << 20, 1 << 30, 16_u64 << 30] {
            for bytes in [1, page - 1, page, page + 1, 3 << 40, (3 << 40) + 4096] {
                let pages = pages_required(bytes, page);
                assert!(pages * page >= bytes);
                assert!((pages - 1) * page < bytes);
            }
        }
    }
}
