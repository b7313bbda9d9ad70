//! The scratch directory: a data directory with only the files that PostgreSQL reads before it
//! allocates shared memory.
//!
//! It belongs to one call, which holds a lock on it. Each call first removes directories of the
//! same user without a lock: a backend that was killed could not remove its own.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
};

use host::server::scratch_data::{auto_conf, settled};
use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::{
    error::Error,
    postgres::{interrupts, places},
};

/// Maximum number of attempts at operations that another process can disturb.
const ATTEMPTS: usize = 100;

/// A directory that is removed with its contents when dropped.
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Scratch {
    /// Creates the directory in the server's `TMPDIR`, or in `/tmp` if that is not an absolute
    /// path. Errors: disk full (53100) and others, with the path. Nothing is left behind then.
    pub(crate) fn create() -> Result<Self, Error> {
        let parent = parent();
        let parent = fs::canonicalize(&parent).map_err(|e| Error::scratch("open", &parent, e))?;
        if parent.as_os_str().len() > LONGEST_PARENT {
            let error = rustix::io::Errno::NAMETOOLONG.into();
            return Err(Error::scratch("create a directory in", &parent, error));
        }
        remove_orphans(&parent);
        let scratch = Self::make(&parent)?;
        scratch.fill()?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn make(parent: &Path) -> Result<Self, Error> {
        for _ in 0..ATTEMPTS {
            let random = RandomState::new().build_hasher().finish();
            let path = parent.join(format!("{PREFIX}{random:016x}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::scratch("create", &path, error)),
            }
            // Before the lock is held, another call can remove the directory as an orphan. With the
            // lock, check that it still exists.
            if let Some(lock) = lock(&path)
                && path.exists()
            {
                return Ok(Self { path, _lock: lock });
            }
        }
        let error = io::Error::from(io::ErrorKind::WouldBlock);
        Err(Error::scratch("lock a directory in", parent, error))
    }

    fn fill(&self) -> Result<(), Error> {
        let data = places::data_directory();
        self.write("PG_VERSION", &read(&data.join("PG_VERSION"))?)?;

        let global = self.path.join("global");
        DirBuilder::new()
            .mode(0o700)
            .create(&global)
            .map_err(|e| Error::scratch("create", &global, e))?;
        self.write(
            "global/pg_control",
            &settled(|| read(&data.join("global/pg_control")))?,
        )?;

        self.write("postgresql.auto.conf", &auto_conf(&data))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path.join(name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|e| Error::scratch("write", &path, e))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it cannot be removed now, the next call removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Never a relative path, which would be in the data directory of this process.
fn parent() -> PathBuf {
    let asked_for = std::env::var_os("TMPDIR").map(PathBuf::from);
    asked_for
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| "/tmp".into())
}

const PREFIX: &str = "pg_hugeinfo-plan.";

/// Maximum length of the path. PostgreSQL truncates names at `MAXPGPATH`, 1024 bytes. This leaves
/// room for our name and a file name.
const LONGEST_PARENT: usize = 900;

/// Removes directories of killed backends. The parent can contain thousands of other files.
fn remove_orphans(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        interrupts::check_for_interrupts();
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && let Some(lock) = lock(&entry.path())
        {
            drop(Scratch {
                path: entry.path(),
                _lock: lock,
            });
        }
    }
}

/// Locks a directory of our own. `None`: another process has the lock, or the directory belongs to
/// another user, or it is a symbolic link. The lock is not inherited by programs and ends with this
/// process.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let owner = rustix::fs::fstat(&directory).ok()?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return None;
    }
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|e| Error::scratch("read", path, e))
}
