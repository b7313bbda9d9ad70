//! The scratch directory: a data directory with only the files that PostgreSQL reads before it
//! allocates shared memory, so that `postgres -C` works while the server runs.
//!
//! It belongs to one process, which holds a lock on it. Each process first removes the directories
//! of its user without a lock: a process that was killed could not remove its own.

use std::{
    fs,
    io::{self, ErrorKind},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::PermissionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use tempfile::TempDir;

use crate::linux::root::Root;

const PREFIX: &str = "pg_hugeinfo-plan.";

/// Maximum length of the path of the parent. PostgreSQL truncates names at `MAXPGPATH`, 1024 bytes.
/// This leaves room for our name and a file name.
const LONGEST_PARENT: usize = 900;

/// Maximum number of attempts at operations that another process can disturb.
const ATTEMPTS: usize = 100;

/// An action on a file failed.
#[derive(Debug)]
pub struct FileError {
    /// The verb after "could not".
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// A directory that is removed with its contents when dropped.
pub struct Scratch {
    directory: TempDir,
    _lock: OwnedFd,
}

impl Scratch {
    /// Creates the directory in `TMPDIR`, or in `/tmp` if that is not an absolute path. Calls
    /// `check_for_interrupts` repeatedly, because the parent can contain thousands of other files.
    pub fn create(check_for_interrupts: impl Fn()) -> Result<Self, FileError> {
        let parent = parent();
        let failed = |error| FileError::new("create a directory in", &parent, error);
        if parent.as_os_str().len() > LONGEST_PARENT {
            return Err(failed(Errno::NAMETOOLONG.into()));
        }
        remove_orphans(&parent, check_for_interrupts);
        for _ in 0..ATTEMPTS {
            let directory = tempfile::Builder::new()
                .prefix(PREFIX)
                // PostgreSQL accepts no other permissions.
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(&parent)
                .map_err(failed)?;
            // Before the lock is held, another process can remove the directory as an orphan.
            if let Some(lock) = lock(directory.path())
                && directory.path().exists()
            {
                return Ok(Self {
                    directory,
                    _lock: lock,
                });
            }
        }
        let error = ErrorKind::WouldBlock.into();
        Err(FileError::new("lock a directory in", &parent, error))
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Copies the files of a data directory that PostgreSQL reads before it allocates shared
    /// memory.
    pub(super) fn copy_data(&self, data: &Path) -> Result<(), FileError> {
        self.write("PG_VERSION", &read(&data.join("PG_VERSION"))?)?;
        let global = self.path().join("global");
        fs::create_dir(&global).map_err(|error| FileError::new("create", &global, error))?;
        let control = settled(|| read(&data.join("global/pg_control")))?;
        self.write("global/pg_control", &control)?;
        self.write("postgresql.auto.conf", &auto_conf(data))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let file = self.path().join(name);
        fs::write(&file, bytes).map_err(|error| FileError::new("write", &file, error))
    }
}

/// Never a relative path, because the programs run in other directories. Without repeated slashes,
/// as PostgreSQL writes it in messages.
fn parent() -> PathBuf {
    let chosen = std::env::var_os("TMPDIR").map(PathBuf::from);
    let absolute = chosen.filter(|path| path.is_absolute());
    let parent = absolute.unwrap_or_else(|| "/tmp".into());
    parent.components().collect()
}

/// Removes directories of killed processes. One that cannot be removed is left for the next run.
fn remove_orphans(parent: &Path, check_for_interrupts: impl Fn()) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        check_for_interrupts();
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && let Some(_lock) = lock(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a directory of this user. `None`: another process has the lock, or the directory belongs
/// to another user, or it is a symbolic link or a mount: any user can mount a file system that
/// never answers (FUSE). The lock is not inherited by programs and ends with this process.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(path.parent()?, flags | OFlags::PATH, Mode::empty()).ok()?;
    let directory = rustix::fs::openat2(
        parent,
        path.file_name()?,
        flags | OFlags::RDONLY | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::NO_XDEV,
    )
    .ok()?;
    let owner = rustix::fs::fstat(&directory).ok()?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return None;
    }
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

fn read(file: &Path) -> Result<Vec<u8>, FileError> {
    let bytes: io::Result<_> = Root::system().read_small(file);
    bytes.map_err(|error| FileError::new("read", file, error))
}

/// Reads a file that might be written meanwhile, until two reads in a row are equal. PostgreSQL
/// verifies the checksum of `global/pg_control`.
fn settled<E>(read: impl Fn() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    let mut last = read()?;
    for _ in 0..ATTEMPTS {
        let next = read()?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(last)
}

/// The text of `postgresql.auto.conf`, which includes that of the real data directory. It is not
/// copied, because files that it includes are relative to its directory.
fn auto_conf(data: &Path) -> Vec<u8> {
    let real = data.join("postgresql.auto.conf");
    let quoted = quoted(real.as_os_str().as_bytes());
    [b"include_if_exists '", &*quoted, b"'\n"].concat()
}

/// Formats a string for a configuration file (guc-file.l).
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unlocked_directories_are_removed() {
        let parent = tempfile::tempdir().expect("a directory");
        let place = |name: &str| parent.path().join(format!("{PREFIX}{name}"));
        for name in ["used", "left", "left/data"] {
            fs::create_dir(place(name)).expect("created");
        }
        fs::create_dir(parent.path().join("other")).expect("created");
        std::os::unix::fs::symlink("other", place("link")).expect("a link");
        let held = lock(&place("used")).expect("a lock");
        let left = || {
            remove_orphans(parent.path(), || ());
            let names = fs::read_dir(parent.path()).expect("a directory");
            let names = names.map(|entry| entry.expect("a name").file_name());
            let mut names: Vec<_> = names
                .map(|name| name.to_string_lossy().replace(PREFIX, ""))
                .collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(left(), "link other used");
        drop(held);
        assert_eq!(left(), "link other");
    }

    #[test]
    fn mounts_are_not_opened() {
        assert!(lock(Path::new("/proc")).is_none());
    }
}
