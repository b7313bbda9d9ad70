//! Whether this process runs in a container, and whether systemd manages services here.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::linux::{
    error::{Absence, Absent, ReadError, fact},
    mounts,
    namespace::{self, Kind},
    root::Root,
};

/// Whether the PID or cgroup namespace is not the initial one, or the root directory is not that
/// of process 1. `None`: nothing indicates a container, but not all of these can be read.
///
/// Errors: only out of memory.
pub fn is_container(root: &Root) -> Result<Option<bool>, ReadError> {
    let mut is_known = true;
    for kind in [Kind::Pid, Kind::Cgroup] {
        match fact(namespace::look(root, kind))? {
            Ok(false) => return Ok(Some(true)),
            Ok(true) => {}
            // A kernel without cgroups has no such namespaces.
            Err(absent) if kind == Kind::Cgroup && absent.why == Absence::Missing => {}
            Err(_) => is_known = false,
        }
    }
    let own = fact(root_directory(root, mounts::PATH))?;
    let first = fact(root_directory(root, mounts::PATH_OF_FIRST))?;
    Ok(match (own, first) {
        (Ok(own), Ok(first)) if own != first => Some(true),
        (Ok(_), Ok(_)) if is_known => Some(false),
        _ => None,
    })
}

/// The device and directory of a process's root. `None`: it is not a mount, as after `chroot`.
fn root_directory(root: &Root, file: &str) -> Result<Option<(Vec<u8>, PathBuf)>, ReadError> {
    let mut found = None;
    mounts::all(root, file, |mount| {
        // A later mount covers an earlier one.
        if mount.point == Path::new("/") {
            found = Some((mount.device, mount.root));
        }
    })?;
    Ok(found)
}

/// Whether systemd manages the services (sd_booted(3)). `None`: unknown.
///
/// Errors: only out of memory.
pub fn has_systemd(root: &Root) -> Result<Option<bool>, ReadError> {
    let path = root.path("run/systemd/system");
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ReadError::from_io(path, error)),
    };
    let found: Result<bool, Absent> = fact(found)?;
    Ok(found.ok())
}
