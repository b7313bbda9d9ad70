//! `/sys/kernel/mm/hugepages`: the kernel's pools of huge pages (Documentation/admin-guide/mm/hugetlbpage.rst; mm/hugetlb.c).

use std::path::Path;

use crate::{error::ReadError, root::Root, text::parse_number};

/// The directory that holds one directory for each pool.
pub const DIRECTORY: &str = "/sys/kernel/mm/hugepages";

/// One pool, by its global counters. All counts are pages of `page_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Size of one page, from the directory's name.
    pub page_bytes: u64,
    /// `nr_hugepages`: persistent and surplus pages that exist.
    pub total: u64,
    /// `free_hugepages`: not touched yet, whether promised to somebody or not.
    pub free: u64,
    /// `resv_hugepages`: promised to a mapping, but not touched yet.
    pub reserved: u64,
    /// `surplus_hugepages`: existing beyond the persistent ones.
    pub surplus: u64,
    /// `nr_overcommit_hugepages`: how many surplus pages the kernel may make on demand.
    pub overcommit: u64,
}

impl Pool {
    /// Pages that stay when nobody uses them: what `vm.nr_hugepages` shows and sets.
    pub fn persistent(&self) -> u64 {
        self.total.saturating_sub(self.surplus)
    }

    /// Pages in use or promised.
    pub fn committed(&self) -> u64 {
        self.total.saturating_sub(self.free) + self.reserved
    }

    /// Pages that a new mapping can have: free and not promised, and what overcommit still allows.
    pub fn available(&self) -> u64 {
        self.free.saturating_sub(self.reserved) + self.overcommit.saturating_sub(self.surplus)
    }
}

/// All pools, smallest page first.
///
/// Errors: absent where the kernel has no huge pages, or `/sys` is not mounted or hidden.
pub fn read(root: &Root) -> Result<Vec<Pool>, ReadError> {
    let mut pools = root
        .names(DIRECTORY)?
        .iter()
        .filter_map(|name| Some((name, page_bytes(name)?)))
        .map(|(name, page_bytes)| {
            let counter = |file| root.read_number(Path::new(DIRECTORY).join(name).join(file));
            Ok(Pool {
                page_bytes,
                total: counter("nr_hugepages")?,
                free: counter("free_hugepages")?,
                reserved: counter("resv_hugepages")?,
                surplus: counter("surplus_hugepages")?,
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

fn page_bytes(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    parse_number(digits.as_bytes())?
        .checked_mul(1024)
        .filter(|&bytes| bytes > 0)
}
