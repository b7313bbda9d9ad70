//! The counters of a pool after a write to `nr_hugepages`, a start or a stop
//! (mm/hugetlb.c `set_max_huge_pages`, `hugetlb_acct_memory`, `free_huge_folio`).

use host::linux::hugepages::Pool;

/// Sets the number of persistent pages, as the kernel does if it finds the memory.
///
/// Growing makes surplus pages persistent before it allocates any. Shrinking frees pages that are
/// neither in use nor reserved; the rest of the difference becomes surplus.
pub fn set_persistent(pool: &mut Pool, pages: u64) {
    let (total, persistent) = (pool.total, pool.persistent());
    let after = if pages >= persistent {
        total.max(pages)
    } else {
        total
            .saturating_sub(persistent.saturating_sub(pages.max(pool.committed().unwrap_or(total))))
    };
    pool.free = pool.free.saturating_add(after).saturating_sub(total);
    pool.total = after;
    pool.surplus = after.saturating_sub(pages);
}

/// Removes what a mapping had, of which `faulted_in` pages were in use and the rest reserved.
/// Surplus pages cease to exist as soon as nobody uses or reserves them.
pub fn release(pool: &mut Pool, pages: u64, faulted_in: u64) {
    pool.free = pool.free.saturating_add(faulted_in).min(pool.total);
    pool.reserved = pool
        .reserved
        .saturating_sub(pages.saturating_sub(faulted_in));
    let idle = pool.free.saturating_sub(pool.reserved);
    let gone = idle.min(pool.surplus);
    pool.total -= gone;
    pool.free -= gone;
    pool.surplus -= gone;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(total: u64, free: u64, reserved: u64, surplus: u64) -> Pool {
        Pool {
            page_bytes: 2 << 20,
            total,
            free,
            reserved,
            surplus,
            overcommit: 0,
            demote_bytes: None,
            below_zero: Vec::new(),
        }
    }

    #[test]
    fn a_write_to_nr_hugepages() {
        for (before, pages, after) in [
            // Growing allocates.
            (pool(10, 4, 2, 0), 15, pool(15, 9, 2, 0)),
            // Surplus pages become persistent first.
            (pool(10, 0, 0, 4), 8, pool(10, 0, 0, 2)),
            (pool(10, 0, 0, 4), 12, pool(12, 2, 0, 0)),
            // Shrinking frees idle pages ...
            (pool(10, 4, 1, 0), 8, pool(8, 2, 1, 0)),
            // ... and turns pages that are in use or reserved into surplus.
            (pool(10, 4, 1, 0), 2, pool(7, 1, 1, 5)),
            (pool(10, 0, 0, 0), 0, pool(10, 0, 0, 10)),
            (pool(15, 0, 0, 5), 3, pool(15, 0, 0, 12)),
        ] {
            let mut counters = before.clone();
            set_persistent(&mut counters, pages);
            assert_eq!(counters, after, "{before:?} set to {pages}");
        }
    }

    #[test]
    fn released_surplus_pages_cease_to_exist() {
        let mut counters = pool(10, 4, 4, 6);
        release(&mut counters, 10, 6);
        assert_eq!(counters, pool(4, 4, 0, 0));
        let mut counters = pool(10, 4, 4, 0);
        release(&mut counters, 8, 5);
        assert_eq!(counters, pool(10, 9, 1, 0));
    }
}
