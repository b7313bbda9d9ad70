//! Memory events of cgroups: how often a limit was hit, how many processes the OOM killer killed,
//! and how long processes waited (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
//! mm/memcontrol.c, mm/memcontrol-v1.c).

use std::path::{Path, PathBuf};

use super::{Version, memory::UNLIMITED_FROM, read_keyed, read_limit, shown};
use crate::{
    error::{ReadError, fact},
    pressure::{self, Pressure},
    process::Process,
    root::Root,
    text::parse_counter,
};

/// Memory shortage of a cgroup, now and so far. `None`: not reported, as most values of the root
/// cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shortage {
    /// v1 `memory.limit_in_bytes`, v2 `memory.max`. `None`: unlimited, too.
    pub limit_bytes: Option<u64>,
    /// Use of the cgroup and those below: v1 `memory.usage_in_bytes`, v2 `memory.current`.
    pub used_bytes: Option<u64>,
    /// How often the limit was hit. v1: `memory.failcnt` plus `memory.memsw.failcnt` (memory and
    /// swap) of this cgroup only. v2: `max` in `memory.events`, which includes the cgroups below.
    pub limit_hits: Option<u64>,
    /// How often processes of the cgroup and those below were throttled above `memory.high` (v2).
    pub high_hits: Option<u64>,
    /// Processes that the OOM killer killed, for any reason: v1 (Linux 4.13) of this cgroup only,
    /// v2 also of those below.
    pub oom_kills: Option<u64>,
    /// How long processes of the cgroup and those below waited for memory (v2, Linux 4.20).
    pub pressure: Option<Pressure>,
}

/// Reads the cgroup of the process and its ancestors, nearest first. Empty: there are none.
///
/// Errors: absent if the cgroup is not visible.
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

/// The files with the events of these cgroups, whether they exist or not.
///
/// Errors: absent if the cgroup is not visible.
pub fn files(root: &Root, process: &Process) -> Result<Vec<PathBuf>, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(Vec::new());
    };
    let groups = shown.directories();
    Ok(groups.map(|group| group.join(events_of(version))).collect())
}

/// How the OOM killer treats the cgroup of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OomKiller {
    /// The nearest cgroup, own or ancestor, with `memory.oom.group` = 1 (v2, Linux 4.19). If the
    /// OOM killer acts for that cgroup or one above it, it kills all processes of this cgroup.
    pub group: Option<PathBuf>,
    /// Processes of the own cgroup that the OOM killer has killed: v1 `memory.oom_control`, Linux
    /// 4.13; v2 `memory.events`, which includes the cgroups below.
    pub kills: Option<u64>,
}

/// Reads [`OomKiller`] for a process.
///
/// Errors: absent if the cgroup is not visible.
pub fn oom_killer(root: &Root, process: &Process) -> Result<OomKiller, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(OomKiller::default());
    };
    let is_group = |directory: &PathBuf| {
        let file = directory.join("memory.oom.group");
        Ok::<_, ReadError>(fact(number(root, &file))? == Ok(Some(1)))
    };
    let mut group = None;
    if version == Version::V2 {
        for directory in shown.directories() {
            if is_group(&directory)? {
                group = Some(directory);
                break;
            }
        }
    }
    let own = shown.directories().next();
    let kills = own.map(|own| read_keyed(root, &own.join(events_of(version)), "oom_kill"));
    Ok(OomKiller {
        group,
        kills: fact(kills.unwrap_or(Ok(None)))?.unwrap_or_default(),
    })
}

fn events_of(version: Version) -> &'static str {
    match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    }
}

fn shortage(root: &Root, version: Version, group: &Path) -> Result<Shortage, ReadError> {
    let events = group.join(events_of(version));
    let event = |name| value_of(read_keyed(root, &events, name));
    let [limit, used] = match version {
        Version::V1 => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        Version::V2 => ["memory.max", "memory.current"],
    };
    let limit_hits = match version {
        // A charge beyond both limits only increments the second counter (`try_charge_memcg`).
        // Kernels with `track_failcnt`, such as 6.18, do not count such a charge.
        Version::V1 => {
            let hits = value_of(number(root, &group.join("memory.failcnt")))?;
            let with_swap = value_of(number(root, &group.join("memory.memsw.failcnt")))?;
            hits.map(|hits| hits.saturating_add(with_swap.unwrap_or(0)))
        }
        Version::V2 => event("max")?,
    };
    let pressure = pressure::read(root, group.join("memory.pressure"));
    Ok(Shortage {
        limit_bytes: value_of(read_limit(root, &group.join(limit), UNLIMITED_FROM))?,
        used_bytes: value_of(number(root, &group.join(used)))?,
        limit_hits,
        high_hits: event("high")?,
        oom_kills: event("oom_kill")?,
        pressure: fact(pressure)?.ok(),
    })
}

fn value_of<T>(read: Result<Option<T>, ReadError>) -> Result<Option<T>, ReadError> {
    Ok(fact(read)?.unwrap_or_default())
}

fn number(root: &Root, file: &Path) -> Result<Option<u64>, ReadError> {
    Ok(parse_counter(root.read_record(file)?.trim_ascii()))
}
