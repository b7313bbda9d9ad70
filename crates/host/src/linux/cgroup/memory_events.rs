//! Use and OOM kills of cgroups (Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst;
//! mm/memcontrol.c, mm/memcontrol-v1.c).

use std::path::{Path, PathBuf};

use super::{
    hierarchy::{read_keyed, shown},
    mount::Version,
};
use crate::linux::{
    error::{ReadError, fact},
    process::Process,
    root::Root,
    text::parse_counter,
};

/// Memory of the nearest cgroup of a process, own or ancestor, that reports its use. `None`: not
/// reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupMemory {
    /// Use of the cgroup and those below, cached files included: v1 `memory.usage_in_bytes`, v2
    /// `memory.current`.
    pub used_bytes: Option<u64>,
    /// Processes that the OOM killer killed, for any reason: v1 (Linux 4.13) of this cgroup only,
    /// v2 also of those below.
    pub oom_kills: Option<u64>,
}

/// Reads [`GroupMemory`] for a process. The root cgroup of v2 reports nothing.
///
/// Errors: absent if the cgroup is not visible.
pub fn read(root: &Root, process: &Process) -> Result<GroupMemory, ReadError> {
    let Some((version, shown)) = shown(root, process, "memory")? else {
        return Ok(GroupMemory::default());
    };
    let file = match version {
        Version::V1 => "memory.usage_in_bytes",
        Version::V2 => "memory.current",
    };
    for group in shown.directories() {
        let used_bytes = value_of(number(root, &group.join(file)))?;
        if used_bytes.is_some() {
            let kills = read_keyed(root, &group.join(events_of(version)), "oom_kill");
            return Ok(GroupMemory {
                used_bytes,
                oom_kills: value_of(kills)?,
            });
        }
    }
    Ok(GroupMemory::default())
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

fn value_of<T>(read: Result<Option<T>, ReadError>) -> Result<Option<T>, ReadError> {
    Ok(fact(read)?.unwrap_or_default())
}

fn number(root: &Root, file: &Path) -> Result<Option<u64>, ReadError> {
    Ok(parse_counter(root.read_record(file)?.trim_ascii()))
}
