//! `/proc/PID/cgroup`: the control groups of a process, one in each hierarchy (cgroups(7)).

use std::path::PathBuf;

use procfs::{FromBufRead, ProcessCGroups};

use super::Version;
use crate::linux::{error::ReadError, root::Root, text::lines};

/// The group that counts for huge pages, and through which interface.
pub(super) fn read(root: &Root, pid: &str) -> Result<(Version, PathBuf), ReadError> {
    let path: PathBuf = ["proc", pid, "cgroup"].iter().collect();
    match parse(&root.read(&path)?) {
        Ok(Some(group)) => Ok(group),
        Ok(None) => Err(ReadError::missing(root.path(path))),
        Err(line) => Err(ReadError::Malformed {
            path: root.path(path),
            line,
            problem: "a control group was expected: ID:CONTROLLERS:PATH",
        }),
    }
}

/// The line that counts for huge pages: that of the v1 hierarchy with the hugetlb controller if
/// there is one, else of the unified one.
///
/// Errors: the number of a line that is no control group.
pub fn parse(bytes: &[u8]) -> Result<Option<(Version, PathBuf)>, usize> {
    let mut unified = None;
    for (number, line) in lines(bytes) {
        let group = ProcessCGroups::from_buf_read(line)
            .ok()
            .and_then(|groups| groups.into_iter().next())
            .ok_or(number)?;
        if group.controllers.iter().any(|name| name == "hugetlb") {
            return Ok(Some((Version::V1, group.pathname.into())));
        }
        if group.hierarchy == 0 && group.controllers.is_empty() {
            unified = Some((Version::V2, group.pathname.into()));
        }
    }
    Ok(unified)
}
