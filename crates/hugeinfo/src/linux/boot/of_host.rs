//! Whether the files that are seen here are those that the next boot reads. In a container, in a
//! chroot, and in a unit with a root of its own they are not.

use std::path::{Path, PathBuf};

use crate::linux::{
    error::{Absence, Absent, ReadError, fact},
    mounts::{self, Mount},
    namespace::{self, Kind},
    root::Root,
};

const OWN_MOUNTS: &str = "proc/self/mountinfo";
const FIRST_MOUNTS: &str = "proc/1/mountinfo";
/// What is looked at. Of other files below them it is taken to be the same.
const LOOKED_AT: [&str; 8] = [
    "/etc",
    "/etc/sysctl.d",
    "/etc/tmpfiles.d",
    "/run/systemd/system",
    "/usr/lib",
    "/usr/lib/sysctl.d",
    "/usr/lib/tmpfiles.d",
    "/usr/local/lib",
];

/// `/etc` of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Etc {
    /// Whether what is written there will be there after a boot.
    pub(super) is_kept: bool,
}

/// Errors: absent if the files are not those of the host, or if that is unknown.
pub(super) fn look(root: &Root) -> Result<Result<Etc, Absent>, ReadError> {
    // In the first one process 1 started the machine.
    match fact(namespace::look(root, Kind::Pid))? {
        Ok(true) => {}
        Ok(false) => return Ok(Err(elsewhere(LOOKED_AT[0]))),
        Err(absent) => return Ok(Err(absent)),
    }
    let own = match fact(origins(root, OWN_MOUNTS))? {
        Ok(origins) => origins,
        Err(absent) => return Ok(Err(absent)),
    };
    // Its mounts as its own root shows them.
    let first = match fact(origins(root, FIRST_MOUNTS))? {
        Ok(origins) => origins,
        Err(absent) => return Ok(Err(absent)),
    };
    for ((path, own), first) in LOOKED_AT.iter().zip(own).zip(&first) {
        if own.is_none() || own.map(Origin::place) != first.clone().map(Origin::place) {
            return Ok(Err(elsewhere(path)));
        }
    }
    let is_kept = first[0].as_ref().is_some_and(|etc| etc.mount.is_kept());
    Ok(Ok(Etc { is_kept }))
}

fn elsewhere(path: &str) -> Absent {
    Absent {
        path: path.into(),
        why: Absence::OfAnotherRoot,
    }
}

/// What lies at a path.
#[derive(Debug, Clone)]
struct Origin {
    mount: Mount,
    /// Below the mount.
    rest: PathBuf,
}

impl Origin {
    /// Which file of which file system.
    fn place(self) -> (Vec<u8>, PathBuf) {
        (self.mount.device, self.mount.root.join(self.rest))
    }
}

/// Of each path that is looked at. `None`: no mount shows it.
fn origins(root: &Root, file: &str) -> Result<[Option<Origin>; 8], ReadError> {
    let mut origins = [const { None }; 8];
    mounts::all(root, file, |mount| {
        for (path, origin) in LOOKED_AT.iter().zip(&mut origins) {
            let Ok(rest) = Path::new(path).strip_prefix(&mount.point) else {
                continue;
            };
            // Of two at one place the later one lies over the other.
            let is_nearer = origin
                .as_ref()
                .is_none_or(|found: &Origin| mount.point.starts_with(&found.mount.point));
            if is_nearer {
                *origin = Some(Origin {
                    rest: rest.to_owned(),
                    mount: mount.clone(),
                });
            }
        }
    })?;
    Ok(origins)
}
