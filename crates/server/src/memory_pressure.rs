//! Memory shortage on the host, and in the cgroups of the server.

use std::path::PathBuf;

use hugeinfo_linux::{
    cgroup::memory_events::{self, Shortage},
    error::{ReadError, fact},
    pressure,
    process::Process,
    root::Root,
    vmstat,
};

/// Memory shortage of the host or of one cgroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Directory of the cgroup; `None`: the host.
    pub group: Option<PathBuf>,
    /// Shortage. The host has no limit, use and hits, which only cgroups have.
    pub shortage: Shortage,
}

/// Reads the host, then the cgroups of the process, nearest first. Hidden cgroups are left out.
///
/// Errors: only out of memory.
pub fn read(root: &Root, process: u32) -> Result<Vec<Level>, ReadError> {
    let vmstat = fact(vmstat::read(root))?.unwrap_or_default();
    let host = Shortage {
        oom_kills: vmstat.get("oom_kill"),
        pressure: fact(pressure::read(root, pressure::OF_HOST))?.ok(),
        ..Shortage::default()
    };
    let groups =
        Process::open(root, process).and_then(|process| memory_events::read(root, &process));
    let groups = fact(groups)?.unwrap_or_default();
    let levels = groups
        .into_iter()
        .map(|(group, shortage)| (Some(group), shortage));
    Ok([(None, host)]
        .into_iter()
        .chain(levels)
        .map(|(group, shortage)| Level { group, shortage })
        .collect())
}
