//! Whether a process is confined more than another one: its root directory, its namespaces
//! (`/proc/PID/ns`), and the restrictions in `/proc/PID/status`.

use crate::{
    error::{ReadError, absent_or},
    process::{Process, status},
};

/// True if a process sees the same files, processes, users and network as `other`, and lacks no
/// right that `other` has, as far as the kernel shows it.
///
/// Errors: the status of one of them cannot be read.
pub fn is_as_free(process: &Process, other: &Process) -> Result<bool, ReadError> {
    if !shares(process, other, &["ns/pid", "ns/user"])? || !reaches(process, other)? {
        return Ok(false);
    }
    let mut buffer = Vec::new();
    let restrictions = status::read_restrictions(process, &mut buffer)?;
    let of_other = status::read_restrictions(other, &mut buffer)?;
    Ok(restrictions
        .iter()
        .zip(of_other)
        .all(|(own, other)| *own <= other))
}

/// True if a process sees the same files and network as `other`, so that a path or an address
/// means the same to both, as far as the kernel shows it.
///
/// Errors: only out of memory.
pub fn reaches(process: &Process, other: &Process) -> Result<bool, ReadError> {
    shares(process, other, &["root", "ns/mnt", "ns/net"])
}

fn shares(process: &Process, other: &Process, names: &[&str]) -> Result<bool, ReadError> {
    for name in names {
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
    use crate::root::Root;

    #[test]
    fn sandboxes_are_less_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path());
        let process = |pid: u32, changed: &str, status: &str| {
            let place = root.path(format!("proc/{pid}"));
            fs::create_dir_all(place.join("ns")).expect("created");
            for name in ["root", "ns/mnt", "ns/pid", "ns/user", "ns/net"] {
                let number = u32::from(name == changed);
                symlink(format!("x:[{number}]"), place.join(name)).expect("a link");
            }
            fs::write(place.join("status"), status).expect("written");
            Process::open(&root, pid).expect("a process")
        };
        let free = "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n";
        let bound = "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let is_as_free = |one: &Process, other: &Process| is_as_free(one, other).expect("read");
        let this = process(1, "", free);
        let in_container = process(2, "", bound);
        for (pid, changed, status, expected) in [
            (10, "", free, true),
            (11, "", "Name:\tx\n", true),
            (12, "root", free, false),
            (13, "ns/mnt", free, false),
            (14, "ns/pid", free, false),
            (15, "ns/user", free, false),
            (16, "ns/net", free, false),
            (17, "", "NoNewPrivs:\t1\nSeccomp:\t0\n", false),
            (18, "", "NoNewPrivs:\t0\nSeccomp:\t2\n", false),
        ] {
            let other = process(pid, changed, status);
            assert_eq!(is_as_free(&other, &this), expected, "{changed} {status}");
        }
        // Only the first three decide whether an address means the same.
        for (pid, expected) in [
            (10, true),
            (12, false),
            (13, false),
            (16, false),
            (14, true),
        ] {
            let other = Process::open(&root, pid).expect("a process");
            assert_eq!(reaches(&other, &this).expect("read"), expected);
        }
        // Within one container.
        assert!(is_as_free(&process(20, "", bound), &in_container));
        assert!(is_as_free(&this, &in_container));
    }
}
