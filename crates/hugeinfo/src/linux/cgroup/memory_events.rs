//! What happened to the memory of control groups: how often a limit was hit, what the OOM killer
//! ended, how long processes waited (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
//! mm/memcontrol.c, mm/memcontrol-v1.c).

use std::path::{Path, PathBuf};

use super::{Version, memory::UNLIMITED_FROM, read_counter, read_limit, shown};
use crate::linux::{
    error::{ReadError, absent_or},
    pressure::{self, Pressure},
    process::Process,
    root::Root,
    text::parse_number,
};

/// How short the memory of a group is, and was. `None`: the kernel doesn't tell, as of most in the
/// root of all groups.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shortage {
    /// v1 `memory.limit_in_bytes`, v2 `memory.max`. `None`: unlimited, too.
    pub limit_bytes: Option<u64>,
    /// What the group and those below it have: v1 `memory.usage_in_bytes`, v2 `memory.current`.
    pub used_bytes: Option<u64>,
    /// How often the limit was hit: v1 `memory.failcnt` and, of the limit on memory and swap
    /// together, `memory.memsw.failcnt`, of this very group; v2 `max` in `memory.events`, of groups
    /// below it, too.
    pub limit_hits: Option<u64>,
    /// How often processes were slowed down for being above `memory.high` (v2), of this group and
    /// those below it.
    pub high_hits: Option<u64>,
    /// Processes that the OOM killer ended, whatever was short: v1 (since Linux 4.13) of this very
    /// group, v2 of those below it, too.
    pub oom_kills: Option<u64>,
    /// How long processes of the group and those below it waited for memory (v2, Linux 4.20).
    pub pressure: Option<Pressure>,
}

/// The group of the process and those above it, nearest first. Empty: there are none.
///
/// Errors: absent if the group can't be seen.
pub fn read(root: &Root, process: &Process) -> Result<Vec<(PathBuf, Shortage)>, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(Vec::new());
    };
    let levels = shown.directories();
    levels
        .map(|group| {
            let shortage = shortage(root, version, &group)?;
            Ok((group, shortage))
        })
        .collect()
}

/// The files in which these groups count, there or not.
///
/// Errors: absent if the group can't be seen.
pub fn files(root: &Root, process: &Process) -> Result<Vec<PathBuf>, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(Vec::new());
    };
    let groups = shown.directories();
    Ok(groups.map(|group| group.join(events_of(version))).collect())
}

fn events_of(version: Version) -> &'static str {
    match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    }
}

fn shortage(root: &Root, version: Version, group: &Path) -> Result<Shortage, ReadError> {
    let events = group.join(events_of(version));
    let event = |name| told(read_counter(root, &events, name));
    let [limit, used] = match version {
        Version::V1 => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        Version::V2 => ["memory.max", "memory.current"],
    };
    let limit_hits = match version {
        // A charge beyond both limits counts for the second alone (`try_charge_memcg`). Kernels
        // with `track_failcnt`, as 6.18, don't count that any more.
        Version::V1 => {
            let hits = told(number(root, &group.join("memory.failcnt")))?;
            let with_swap = told(number(root, &group.join("memory.memsw.failcnt")))?;
            hits.map(|hits| hits.saturating_add(with_swap.unwrap_or(0)))
        }
        Version::V2 => event("max")?,
    };
    let pressure = pressure::read(root, group.join("memory.pressure"));
    Ok(Shortage {
        limit_bytes: told(read_limit(root, &group.join(limit), UNLIMITED_FROM))?,
        used_bytes: told(number(root, &group.join(used)))?,
        limit_hits,
        high_hits: event("high")?,
        oom_kills: event("oom_kill")?,
        pressure: absent_or(pressure)?.ok(),
    })
}

fn told<T>(read: Result<Option<T>, ReadError>) -> Result<Option<T>, ReadError> {
    Ok(absent_or(read)?.unwrap_or_default())
}

fn number(root: &Root, file: &Path) -> Result<Option<u64>, ReadError> {
    root.parse(file, "a number was expected", |text| {
        parse_number(text.trim_ascii()).map(Some).ok_or(1)
    })
}
