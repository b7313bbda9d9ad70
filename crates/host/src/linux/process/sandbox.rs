//! Whether a process sees the same machine as another one: its root directory and its namespaces
//! (`/proc/PID/ns`).

use crate::linux::{
    error::{ReadError, absent_or},
    process::Process,
};

/// True if a process sees the same files and network as `other`, so that a path or an address
/// means the same to both, as far as the kernel shows it.
///
/// Errors: only out of memory.
pub fn reaches(process: &Process, other: &Process) -> Result<bool, ReadError> {
    for name in ["root", "ns/mnt", "ns/net"] {
        // A kernel without such namespaces has no file.
        let link = |process: &Process| {
            let link = absent_or(process.link(name))?;
            Ok::<_, ReadError>(link.map_err(|absent| absent.why))
        };
        if link(process)? != link(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::linux::root::Root;

    #[test]
    fn processes_elsewhere_are_not_reached() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path());
        let process = |pid: u32, changed: &str| {
            let place = root.path(format!("proc/{pid}"));
            fs::create_dir_all(place.join("ns")).expect("created");
            for name in ["root", "ns/mnt", "ns/pid", "ns/user", "ns/net"] {
                let number = u32::from(name == changed);
                symlink(format!("x:[{number}]"), place.join(name)).expect("a link");
            }
            Process::open(&root, pid).expect("a process")
        };
        let this = process(1, "");
        for (pid, changed, expected) in [
            (10, "", true),
            (11, "root", false),
            (12, "ns/mnt", false),
            (13, "ns/net", false),
            // An address means the same.
            (14, "ns/pid", true),
            (15, "ns/user", true),
        ] {
            let other = process(pid, changed);
            assert_eq!(reaches(&other, &this).expect("read"), expected, "{changed}");
        }
    }
}
