//! `/sys/kernel/mm/hugepages`: the kernel's pools of huge pages
//! (Documentation/admin-guide/mm/hugetlbpage.rst; mm/hugetlb.c).

use std::path::Path;

use crate::linux::{
    error::{Absence, Absent, ReadError, fact},
    root::Root,
    text::{is_below_zero, parse_number},
};

/// The directory that holds one directory for each pool.
pub const DIRECTORY: &str = "/sys/kernel/mm/hugepages";

/// One pool, by its global counters. All counts are pages of `page_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Size of one page, from the directory's name.
    pub page_bytes: u64,
    /// `nr_hugepages`: persistent and surplus pages that exist.
    pub total: u64,
    /// `free_hugepages`: not faulted in yet, reserved or not.
    pub free: u64,
    /// `resv_hugepages`: reserved by a mapping, but not faulted in yet.
    pub reserved: u64,
    /// `surplus_hugepages`: pages beyond the persistent ones.
    pub surplus: u64,
    /// `nr_overcommit_hugepages`: how many surplus pages the kernel is allowed to allocate on
    /// demand.
    pub overcommit: u64,
    /// `demote_size` in bytes: size of the pages that writing to `demote` splits pages of this pool
    /// into. `None`: the kernel cannot split these pages (before 5.16, or the smallest size), or
    /// the pool is empty.
    pub demote_bytes: Option<u64>,
    /// Names of counters that the kernel decremented below zero. Their fields have a bound instead:
    /// `reserved` all free pages, others 0.
    pub below_zero: Vec<&'static str>,
}

impl Pool {
    /// A pool without pages, of this page size.
    pub fn empty(page_bytes: u64) -> Self {
        Self {
            page_bytes,
            total: 0,
            free: 0,
            reserved: 0,
            surplus: 0,
            overcommit: 0,
            demote_bytes: None,
            below_zero: Vec::new(),
        }
    }

    /// A counter that is below zero, so that the use of the pool is unknown.
    pub fn bad_counter(&self) -> Option<Absent> {
        Some(Absent {
            path: Path::new(&directory(self.page_bytes)).join(self.below_zero.first()?),
            why: Absence::BelowZero,
        })
    }

    /// The value of the counter in the file `name`. `None`: it is below zero.
    pub fn known(&self, name: &str, value: u64) -> Option<u64> {
        (!self.below_zero.contains(&name)).then_some(value)
    }

    /// Persistent pages, which stay when unused. `vm.nr_hugepages` shows and sets their number.
    pub fn persistent(&self) -> u64 {
        self.total.saturating_sub(self.surplus)
    }

    /// Pages in use or reserved. `None`: a counter is below zero.
    pub fn committed(&self) -> Option<u64> {
        let in_use = self.total.saturating_sub(self.free);
        let is_known = self.below_zero.is_empty();
        is_known.then_some(in_use.saturating_add(self.reserved))
    }

    /// Bytes of `struct page` entries (64 bytes for each base page) that the kernel can free for
    /// the pages of this pool: all but one base page of them for each huge page
    /// (Documentation/mm/vmemmap_dedup.rst). 0 where they fit into one base page.
    pub fn vmemmap_saving_bytes(&self, base_page_bytes: u64) -> u64 {
        const STRUCT_PAGE_BYTES: u64 = 64;
        let entries = (self.page_bytes / base_page_bytes.max(1)).saturating_mul(STRUCT_PAGE_BYTES);
        let saving = entries.saturating_sub(base_page_bytes);
        saving.saturating_mul(self.total)
    }

    /// Pages that a new mapping can get: free and not reserved, plus what overcommit still allows.
    /// `None`: a counter is below zero.
    pub fn available(&self) -> Option<u64> {
        let not_reserved = self.free.saturating_sub(self.reserved);
        let surplus = self.overcommit.saturating_sub(self.surplus);
        let is_known = self.below_zero.is_empty();
        is_known.then_some(not_reserved.saturating_add(surplus))
    }
}

/// Reads all pools, smallest page first.
///
/// Errors: absent if the kernel has no huge pages, if `/sys` is not mounted or hidden, or if the
/// number of pages of a pool is below zero.
pub fn read(root: &Root) -> Result<Vec<Pool>, ReadError> {
    let mut pools = page_sizes(root)?
        .into_iter()
        .map(|page_bytes| {
            let directory = directory(page_bytes);
            let path = |file| Path::new(&directory).join(file);
            let mut below_zero = Vec::new();
            let mut counter = |file, bound| match read_counter(root, &path(file)) {
                Err(ReadError::Absent(absent)) if absent.why == Absence::BelowZero => {
                    below_zero.push(file);
                    Ok(bound)
                }
                read => read,
            };
            let total = read_counter(root, &path("nr_hugepages"))?;
            let overcommit = counter("nr_overcommit_hugepages", 0)?;
            // The other counters of an empty pool are 0, and most pools are empty.
            let (free, reserved, surplus) = match total {
                0 => (0, 0, 0),
                _ => {
                    let free = counter("free_hugepages", 0)?;
                    let reserved = counter("resv_hugepages", free)?;
                    (free, reserved, counter("surplus_hugepages", 0)?)
                }
            };
            Ok(Pool {
                page_bytes,
                total,
                free,
                reserved,
                surplus,
                overcommit,
                demote_bytes: match total {
                    0 => None,
                    _ => read_demote_size(root, &directory)?,
                },
                below_zero,
            })
        })
        .collect::<Result<Vec<_>, ReadError>>()?;
    if pools.is_empty() {
        return Err(ReadError::missing(root.path(DIRECTORY)));
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    Ok(pools)
}

/// Page sizes of all pools, unsorted.
pub fn page_sizes(root: &Root) -> Result<Vec<u64>, ReadError> {
    if let Some(sizes) = root.steady().and_then(|steady| steady.page_sizes.clone()) {
        return Ok(sizes);
    }
    let names = root.names(DIRECTORY)?;
    Ok(names.iter().filter_map(|name| parse_name(name)).collect())
}

/// The pool's directory.
pub fn directory(page_bytes: u64) -> String {
    format!("{DIRECTORY}/hugepages-{}kB", page_bytes / 1024)
}

/// The page size in bytes, from the name of a pool's directory. `None`: not the name of a pool.
pub fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    parse_number(digits.as_bytes())?
        .checked_mul(1024)
        .filter(|&bytes| bytes > 0)
}

fn read_demote_size(root: &Root, directory: &str) -> Result<Option<u64>, ReadError> {
    let path = Path::new(directory).join("demote_size");
    let size = root.parse(path, "a page size in kB was expected", |bytes| {
        parse_demote_size(bytes).ok_or(1)
    });
    Ok(fact(size)?.ok())
}

/// `2048kB`, in bytes.
pub fn parse_demote_size(bytes: &[u8]) -> Option<u64> {
    parse_number(bytes.trim_ascii().strip_suffix(b"kB")?)?.checked_mul(1024)
}

/// Reads a file that holds one counter.
///
/// Errors: absent if there is no such file, or if the counter is below zero.
pub(crate) fn read_counter(root: &Root, path: &Path) -> Result<u64, ReadError> {
    let counter = root.parse(path, "a number was expected", |bytes| {
        parse_number(bytes.trim_ascii()).ok_or(1)
    })?;
    if is_below_zero(counter) {
        return Err(ReadError::Absent(Absent {
            path: root.path(path),
            why: Absence::BelowZero,
        }));
    }
    Ok(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vmemmap_saving_is_computed_per_page() {
        for (page_bytes, total, base, bytes) in [
            (2 << 20, 1, 4096, 28 << 10),
            (1 << 30, 2, 4096, 2 * ((16 << 20) - 4096)),
            (2 << 20, 5, 64 << 10, 0),
            (64 << 10, 7, 4096, 0),
        ] {
            let pool = Pool {
                total,
                ..Pool::empty(page_bytes)
            };
            assert_eq!(pool.vmemmap_saving_bytes(base), bytes, "{page_bytes}");
        }
    }

    #[test]
    fn names_of_pools() {
        for (name, bytes) in [
            ("hugepages-2048kB", Some(2 << 20)),
            ("hugepages-0002048kB", Some(2 << 20)),
            ("hugepages-18014398509481983kB", Some(u64::MAX - 1023)),
            ("hugepages-18014398509481984kB", None),
            ("hugepages-0kB", None),
            ("hugepages-kB", None),
            ("hugepages--1kB", None),
            ("hugepages-2MB", None),
        ] {
            assert_eq!(parse_name(name), bytes, "{name}");
        }
    }

    #[test]
    fn size_of_demoted_pages() {
        for (text, bytes) in [
            ("2048kB\n", Some(2 << 20)),
            ("64kB", Some(64 << 10)),
            ("2048\n", None),
            ("kB\n", None),
            ("18446744073709551615kB\n", None),
        ] {
            assert_eq!(parse_demote_size(text.as_bytes()), bytes, "{text:?}");
        }
    }
}
