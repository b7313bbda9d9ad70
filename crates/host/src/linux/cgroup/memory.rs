//! The memory controller (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
//! mm/memcontrol.c).

use std::path::{Path, PathBuf};

use super::{
    hierarchy::{parse_keyed, read_limit, shown},
    mount::Version,
};
use crate::linux::{
    error::{Absence, ReadError, absent_or, fact},
    process::Process,
    root::Root,
    sysctl,
};

/// A limit on the memory of a cgroup and those below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Directory of the cgroup that has the limit.
    pub directory: PathBuf,
    /// The limit: v1 `memory.limit_in_bytes`, v2 `memory.max`.
    pub limit_bytes: u64,
    /// Use of the cgroup and those below, cached files included. `u64::MAX`: unknown.
    pub use_bytes: u64,
    /// The part that the kernel can drop: cached files and reclaimable kernel caches
    /// (`active_file`, `inactive_file` and `slab_reclaimable`, without shared memory). `None`: not
    /// reported.
    pub file_bytes: Option<u64>,
    /// How much can still be swapped out, by the swap limits of this cgroup and its ancestors.
    /// `None`: they have none. 0 also without swappiness: at its limit, a cgroup then swaps nothing
    /// out (mm/vmscan.c `get_scan_count`).
    pub swap_room_bytes: Option<u64>,
    /// Whether huge pages count (`memory_hugetlb_accounting`, Linux 6.7).
    pub counts_hugetlb: bool,
}

impl MemoryLimit {
    /// Use that the kernel cannot drop.
    pub fn kept_bytes(&self) -> u64 {
        self.use_bytes.saturating_sub(self.file_bytes.unwrap_or(0))
    }
}

/// The mount option of v2 with which memory limits count huge pages (Linux 6.7).
pub(super) const COUNTS_HUGETLB: &str = "memory_hugetlb_accounting";

/// Values from here on mean unlimited: no counter of v1 is larger, for any page size.
pub(super) const UNLIMITED_FROM: u64 = 64 << 10;

/// Reads the limits on the memory of the process, nearest first. Empty: there is no visible limit.
///
/// Errors: absent if the cgroup is not visible or access is denied.
pub fn read(root: &Root, process: &Process) -> Result<Vec<MemoryLimit>, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(Vec::new());
    };
    let counts_hugetlb = shown.mount.has_option(COUNTS_HUGETLB);
    let mut levels = Vec::new();
    for (directory, nth) in shown.directories().zip(0..) {
        let limit = match version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let found = level(root, version, &directory, limit, counts_hugetlb);
        match absent_or(found)? {
            Ok(level) => levels.push(level),
            // The root of v2 has no such files, and neither have cgroups without the controller. If
            // another mount covers the cgroups, there are no files at all.
            Err(absent) if absent.why == Absence::Denied => return Err(ReadError::Absent(absent)),
            Err(_) if nth == 0 => drop(root.open(directory.join("cgroup.procs"))?),
            Err(_) => {}
        }
    }
    // A swap limit applies to all descendants.
    let mut swap_room_bytes: Option<u64> = None;
    for level in levels.iter_mut().rev() {
        let both = [level.swap_room_bytes, swap_room_bytes];
        swap_room_bytes = both.into_iter().flatten().min();
        level.swap_room_bytes = swap_room_bytes;
    }
    levels.retain(|level| level.limit_bytes < u64::MAX);
    if !levels.is_empty() && swappiness(root, version, shown.directories().next())? == Some(0) {
        for level in &mut levels {
            level.swap_room_bytes = Some(0);
        }
    }
    Ok(levels)
}

/// The swappiness of a cgroup, which in v1 has its own (mm/swap.h `mem_cgroup_swappiness`). `None`:
/// it cannot be read.
fn swappiness(
    root: &Root,
    version: Version,
    directory: Option<PathBuf>,
) -> Result<Option<i64>, ReadError> {
    let file = match (version, directory) {
        (Version::V1, Some(directory)) => directory.join("memory.swappiness"),
        _ => Path::new(sysctl::DIRECTORY).join("swappiness"),
    };
    let found = root.parse(file, "a number was expected", |text| {
        sysctl::parse(text).ok_or(1)
    });
    Ok(fact(found)?.ok())
}

/// Reads the cgroups of the process that have `memory.high` (v2), nearest first. Above it, the
/// kernel throttles the processes of a cgroup and reclaims its memory, so it counts as a limit
/// here.
pub fn read_high(root: &Root, process: &Process) -> Result<Vec<MemoryLimit>, ReadError> {
    let Some((version @ Version::V2, shown)) = shown(root, process, "memory")? else {
        return Ok(Vec::new());
    };
    let counts_hugetlb = shown.mount.has_option(COUNTS_HUGETLB);
    let mut levels = Vec::new();
    for directory in shown.directories() {
        let found = level(root, version, &directory, "memory.high", counts_hugetlb);
        levels.extend(fact(found)?.ok());
    }
    levels.retain(|level| level.limit_bytes < u64::MAX);
    Ok(levels)
}

/// The largest number means unlimited.
fn level(
    root: &Root,
    version: Version,
    directory: &Path,
    limit: &str,
    counts_hugetlb: bool,
) -> Result<MemoryLimit, ReadError> {
    let [usage, active_file, inactive_file] = match version {
        Version::V1 => [
            "memory.usage_in_bytes",
            "total_active_file",
            "total_inactive_file",
        ],
        Version::V2 => ["memory.current", "active_file", "inactive_file"],
    };
    let read = |name: &str| read_limit(root, &directory.join(name), UNLIMITED_FROM);
    let limit_bytes = read(limit)?;
    let (use_bytes, file_bytes) = match limit_bytes {
        Some(_) => {
            let stat = fact(root.read_record(directory.join("memory.stat")))?;
            let file_bytes = stat.ok().and_then(|text| {
                let active = parse_keyed(&text, active_file)?;
                let inactive = parse_keyed(&text, inactive_file)?;
                // v1 has no such line.
                let slab = parse_keyed(&text, "slab_reclaimable").unwrap_or(0);
                Some(active.saturating_add(inactive).saturating_add(slab))
            });
            (read(usage)?, file_bytes)
        }
        None => (None, None),
    };
    // A kernel that does not account for swap has no limit on it.
    let swap = |limit, used| -> Result<Option<u64>, ReadError> {
        let both = read(limit).and_then(|limit| Ok(limit.zip(read(used)?)));
        let both = absent_or(both)?.unwrap_or_default();
        Ok(both.map(|(limit, used)| limit.saturating_sub(used)))
    };
    let swap_room_bytes = match (version, limit_bytes) {
        (Version::V2, _) => swap("memory.swap.max", "memory.swap.current")?,
        // `memory.memsw` limits memory and swap together. Memory can use its part of the rest.
        (Version::V1, Some(limit)) => {
            let room = swap("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes")?;
            let memory = limit.saturating_sub(use_bytes.unwrap_or(limit));
            room.map(|room| room.saturating_sub(memory))
        }
        (Version::V1, None) => None,
    };
    Ok(MemoryLimit {
        directory: directory.to_path_buf(),
        limit_bytes: limit_bytes.unwrap_or(u64::MAX),
        use_bytes: use_bytes.unwrap_or(u64::MAX),
        file_bytes,
        swap_room_bytes,
        counts_hugetlb,
    })
}
