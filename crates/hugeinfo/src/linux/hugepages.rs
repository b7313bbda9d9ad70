//! `/sys/kernel/mm/hugepages`: the kernel's pools of huge pages
//! (Documentation/admin-guide/mm/hugetlbpage.rst; mm/hugetlb.c).

use std::path::Path;

use crate::linux::{error::ReadError, root::Root, text::parse_number};

/// The directory that holds one directory for each pool.
pub const DIRECTORY: &str = "/sys/kernel/mm/hugepages";

/// One pool, by its global counters. All counts are pages of `page_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Size of one page, from the directory's name.
    pub page_bytes: u64,
    /// `nr_hugepages`: persistent and surplus pages that exist.
    pub total: u64,
    /// `free_hugepages`: not touched yet, reserved or not.
    pub free: u64,
    /// `resv_hugepages`: reserved by a mapping, but not touched yet.
    pub reserved: u64,
    /// `surplus_hugepages`: existing beyond the persistent ones.
    pub surplus: u64,
    /// `nr_overcommit_hugepages`: how many surplus pages the kernel may make on demand.
    pub overcommit: u64,
}

impl Pool {
    /// Persistent pages, which stay when unused: what `vm.nr_hugepages` shows and sets.
    pub fn persistent(&self) -> u64 {
        self.total.saturating_sub(self.surplus)
    }

    /// Pages in use or reserved.
    pub fn committed(&self) -> u64 {
        let in_use = self.total.saturating_sub(self.free);
        in_use.saturating_add(self.reserved)
    }

    /// Pages that a new mapping can get: free and not reserved, plus what overcommit still allows.
    pub fn available(&self) -> u64 {
        let not_promised = self.free.saturating_sub(self.reserved);
        not_promised.saturating_add(self.overcommit.saturating_sub(self.surplus))
    }
}

/// All pools, smallest page first.
///
/// Errors: absent if the kernel has no huge pages, or `/sys` is not mounted or hidden.
pub fn read(root: &Root) -> Result<Vec<Pool>, ReadError> {
    let mut pools = root
        .names(DIRECTORY)?
        .iter()
        .filter_map(|name| Some((name, parse_name(name)?)))
        .map(|(name, page_bytes)| {
            let counter = |file| read_counter(root, &Path::new(DIRECTORY).join(name).join(file));
            let total = counter("nr_hugepages")?;
            // An empty pool has none of these, and most pools are empty.
            let of_total = |file| if total == 0 { Ok(0) } else { counter(file) };
            Ok(Pool {
                page_bytes,
                total,
                free: of_total("free_hugepages")?,
                reserved: of_total("resv_hugepages")?,
                surplus: of_total("surplus_hugepages")?,
                overcommit: counter("nr_overcommit_hugepages")?,
            })
        })
        .collect::<Result<Vec<_>, ReadError>>()?;
    if pools.is_empty() {
        return Err(ReadError::missing(root.path(DIRECTORY)));
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    Ok(pools)
}

/// The pool's directory.
pub fn directory(page_bytes: u64) -> String {
    format!("{DIRECTORY}/hugepages-{}kB", page_bytes / 1024)
}

/// The page size in bytes that the name of a pool's directory tells. `None`: it is not a pool's.
pub fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    parse_number(digits.as_bytes())?
        .checked_mul(1024)
        .filter(|&bytes| bytes > 0)
}

fn read_counter(root: &Root, path: &Path) -> Result<u64, ReadError> {
    root.parse(path, "a number was expected", |bytes| {
        parse_counter(bytes).ok_or(1)
    })
}

/// A file that holds a decimal number and nothing else.
pub fn parse_counter(bytes: &[u8]) -> Option<u64> {
    parse_number(bytes.trim_ascii())
}
