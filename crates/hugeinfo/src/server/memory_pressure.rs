//! Where memory ran short: on the host, and in the control groups that the server is in.

use std::path::PathBuf;

use crate::linux::{
    cgroup::memory_events::{self, Shortage},
    error::{ReadError, absent_or},
    pressure,
    process::Process,
    root::Root,
    vmstat,
};

/// What happened at one level.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The control group; `None`: the host.
    pub group: Option<PathBuf>,
    /// Of the host without what only a group has: a limit, and what counts towards it.
    pub shortage: Shortage,
}

/// The host, then the groups of the process, nearest first. Groups that can't be seen are left out.
///
/// Errors: a source that is malformed or fails to be read; never one that is absent.
pub fn read(root: &Root, process: u32) -> Result<Vec<Level>, ReadError> {
    let vmstat = absent_or(vmstat::read(root))?.unwrap_or_default();
    let host = Shortage {
        oom_kills: vmstat.get("oom_kill"),
        pressure: absent_or(pressure::read(root, pressure::OF_HOST))?.ok(),
        ..Shortage::default()
    };
    let groups =
        Process::open(root, process).and_then(|process| memory_events::read(root, &process));
    let groups = absent_or(groups)?.unwrap_or_default();
    let levels = groups
        .into_iter()
        .map(|(group, shortage)| (Some(group), shortage));
    Ok([(None, host)]
        .into_iter()
        .chain(levels)
        .map(|(group, shortage)| Level { group, shortage })
        .collect())
}
