//! Whether the files seen here are the ones that the next boot reads. They are not in a container,
//! in a chroot, or in a systemd unit with its own root.

use std::path::{Path, PathBuf};

use crate::linux::{
    error::{Absence, Absent, ReadError, fact},
    mountinfo::Mount,
    mounts,
    namespace::{self, Kind},
    root::Root,
};

/// Directories that are compared with those of process 1. Files below them are assumed to be the
/// same. `/proc/1/root` would need root's rights, and `/proc/1/mountinfo` does not.
const COMPARED: [&str; 5] = [
    "/etc",
    "/etc/sysctl.d",
    "/etc/tmpfiles.d",
    "/run/systemd/system",
    "/usr/lib",
];

/// Returns true if files in `/etc` survive a reboot.
///
/// Errors: absent if `/etc` is not the host's, or if that is unknown.
pub fn is_etc_kept(root: &Root) -> Result<Result<bool, Absent>, ReadError> {
    let elsewhere = |path: &str| {
        Ok(Err(Absent {
            path: path.into(),
            why: Absence::OfAnotherRoot,
        }))
    };
    // In the first PID namespace, process 1 started the machine.
    match fact(namespace::look(root, Kind::Pid))? {
        Ok(true) => {}
        Ok(false) => return elsewhere(COMPARED[0]),
        Err(absent) => return Ok(Err(absent)),
    }
    let of_process = |process| fact(mounted(root, &format!("proc/{process}/mountinfo")));
    let (own, first) = match (of_process("self")?, of_process("1")?) {
        (Ok(own), Ok(first)) => (own, first),
        (Err(absent), _) | (_, Err(absent)) => return Ok(Err(absent)),
    };
    for ((path, own), first) in COMPARED.iter().zip(&own).zip(&first) {
        let origin = |mount: &Option<Mount>| {
            let mount = mount.as_ref()?;
            let below = Path::new(path).strip_prefix(&mount.point).ok()?;
            Some((mount.device.clone(), mount.root.join(below)))
        };
        let own: Option<(Vec<u8>, PathBuf)> = origin(own);
        if own.is_none() || own != origin(first) {
            return elsewhere(path);
        }
    }
    Ok(Ok(first[0].as_ref().is_some_and(Mount::is_kept)))
}

/// Returns the mount that shows each compared directory.
fn mounted(root: &Root, file: &str) -> Result<[Option<Mount>; COMPARED.len()], ReadError> {
    let mut nearest = [const { None::<Mount> }; COMPARED.len()];
    mounts::all(root, file, |mount| {
        for (path, nearest) in COMPARED.iter().zip(&mut nearest) {
            // A later mount hides earlier ones at the same point.
            let is_nearer = nearest
                .as_ref()
                .is_none_or(|found| mount.point.starts_with(&found.point));
            if is_nearer && Path::new(path).starts_with(&mount.point) {
                *nearest = Some(mount.clone());
            }
        }
    })?;
    Ok(nearest)
}
