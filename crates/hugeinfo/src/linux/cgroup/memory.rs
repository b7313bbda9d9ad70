//! The memory controller (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
//! mm/memcontrol.c).

use std::path::{Path, PathBuf};

use super::{Version, read_counter, read_limit, shown};
use crate::linux::{
    error::{Absence, ReadError, absent_or},
    process::Process,
    root::Root,
};

/// The limit on a process's memory that leaves the least room, of its group and those above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The group that has it.
    pub directory: PathBuf,
    /// The limit.
    pub limit_bytes: u64,
    /// What the group and those below it have, of files as well.
    pub use_bytes: u64,
    /// What of that is files that nobody has used for long: the kernel drops these before anything
    /// else (`inactive_file`). `None`: it doesn't tell.
    pub inactive_file_bytes: Option<u64>,
    /// Whether huge pages count (`memory_hugetlb_accounting`, since Linux 6.6).
    pub counts_hugetlb: bool,
}

impl MemoryLimit {
    /// What may still be had, files that the kernel can drop included.
    pub fn room_bytes(&self) -> u64 {
        let kept = self.use_bytes - self.inactive_file_bytes.unwrap_or(0).min(self.use_bytes);
        self.limit_bytes.saturating_sub(kept)
    }
}

/// No counter of v1 is larger, whatever the page size.
const UNLIMITED_FROM: u64 = 64 << 10;

/// `None`: nothing limits the memory of the process, as far as can be seen.
///
/// Errors: absent where the group can't be seen, or may not be.
pub fn read(root: &Root, process: &Process) -> Result<Option<MemoryLimit>, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(None);
    };
    let counts_hugetlb = shown.mount.has_option("memory_hugetlb_accounting");
    let mut tightest: Option<MemoryLimit> = None;
    for (directory, nth) in shown.directories().zip(0..) {
        let found = limit(root, version, &directory, counts_hugetlb);
        match absent_or(found)? {
            Ok(Some(limit)) => {
                if tightest
                    .as_ref()
                    .is_none_or(|t| limit.room_bytes() < t.room_bytes())
                {
                    tightest = Some(limit);
                }
            }
            Ok(None) => {}
            // As in the root of v2, or where the controller isn't enabled. But nothing at all is
            // there where something else is mounted over the groups.
            Err(absent) if absent.why == Absence::Denied => return Err(ReadError::Absent(absent)),
            Err(_) if nth == 0 => drop(root.open(directory.join("cgroup.procs"))?),
            Err(_) => {}
        }
    }
    Ok(tightest)
}

fn limit(
    root: &Root,
    version: Version,
    directory: &Path,
    counts_hugetlb: bool,
) -> Result<Option<MemoryLimit>, ReadError> {
    let [limit, usage, inactive_file] = match version {
        Version::V1 => [
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ],
        Version::V2 => ["memory.max", "memory.current", "inactive_file"],
    };
    let Some(limit_bytes) = read_limit(root, &directory.join(limit), UNLIMITED_FROM)? else {
        return Ok(None);
    };
    let usage = read_limit(root, &directory.join(usage), UNLIMITED_FROM)?;
    let inactive_file = read_counter(root, &directory.join("memory.stat"), inactive_file);
    Ok(Some(MemoryLimit {
        directory: directory.to_path_buf(),
        limit_bytes,
        use_bytes: usage.unwrap_or(u64::MAX),
        inactive_file_bytes: absent_or(inactive_file)?.unwrap_or_default(),
        counts_hugetlb,
    }))
}
