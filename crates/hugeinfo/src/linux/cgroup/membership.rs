//! `/proc/PID/cgroup`: the control groups of a process, one in each hierarchy (cgroups(7)).

use std::path::PathBuf;

use procfs::{FromBufRead, ProcessCGroups};

use super::Version;
use crate::linux::{
    error::{ReadError, absent_or},
    process::Process,
    text::lines,
};

/// The group that counts for a controller, and through which interface. `None`: there is none,
/// since the kernel has no control groups (`CONFIG_CGROUPS`), or nobody has mounted them so far.
pub(super) fn read(
    process: &Process,
    controller: &str,
) -> Result<Option<(Version, PathBuf)>, ReadError> {
    let expected = "a control group was expected: ID:CONTROLLERS:PATH";
    match process.parse_whole("cgroup", &mut Vec::new(), expected, |bytes| {
        parse(bytes, controller)
    }) {
        Ok(group) => Ok(group),
        // Of a process that has ended nothing is there.
        Err(error) if error.is_missing() && absent_or(process.file("stat"))?.is_ok() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The line that counts for a controller: that of the v1 hierarchy that has it if there is one,
/// else of the unified one.
///
/// Errors: the number of a line that is not a control group.
pub fn parse(bytes: &[u8], controller: &str) -> Result<Option<(Version, PathBuf)>, usize> {
    let mut unified = None;
    for (number, line) in lines(bytes) {
        let group = ProcessCGroups::from_buf_read(line)
            .ok()
            .and_then(|groups| groups.into_iter().next())
            .ok_or(number)?;
        if group.controllers.iter().any(|name| name == controller) {
            return Ok(Some((Version::V1, group.pathname.into())));
        }
        if group.hierarchy == 0 && group.controllers.is_empty() {
            unified = Some((Version::V2, group.pathname.into()));
        }
    }
    Ok(unified)
}
