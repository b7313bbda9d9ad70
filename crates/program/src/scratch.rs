//! A private directory for the programs of PostgreSQL, which is removed at the end, or by a later
//! run after SIGKILL.

use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{FlockOperation, Mode, OFlags};
use tempfile::TempDir;

use host::{
    escape,
    server::scratch_data::{auto_conf, settled},
};

use crate::{error::Error, root};

const PREFIX: &str = "hugeinfo-scratch.";

/// A younger directory is never removed.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory that is removed with its contents when dropped.
pub(crate) struct Scratch {
    directory: TempDir,
    _lock: OwnedFd,
}

impl Scratch {
    /// Creates the directory in `TMPDIR`. Removes the directories of killed runs first; they are
    /// not locked.
    pub(crate) fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        remove_orphans(&parent);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            // PostgreSQL accepts no other permissions.
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|error| Error::file("create a directory in", &parent, error))?;
        let lock = lock(directory.path()).ok_or_else(|| {
            let path = escape::name(directory.path());
            Error::new(format!("could not lock {path}"))
        })?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Copies the files of a data directory that PostgreSQL reads before it allocates shared memory.
    pub(crate) fn copy_data(&self, data: &Path) -> Result<(), Error> {
        self.copy(data, Path::new("PG_VERSION"))?;
        let global = self.path().join("global");
        fs::create_dir(&global).map_err(|error| Error::file("create", &global, error))?;
        self.copy(data, Path::new("global/pg_control"))?;
        self.write(Path::new("postgresql.auto.conf"), &auto_conf(data))
    }

    fn copy(&self, data: &Path, name: &Path) -> Result<(), Error> {
        let file = data.join(name);
        let read = || {
            root()
                .read_small(&file)
                .map_err(|error| Error::file("read", &file, error))
        };
        self.write(name, &settled(read)?)
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), Error> {
        let file = self.path().join(name);
        fs::write(&file, bytes).map_err(|error| Error::file("write", &file, error))
    }
}

/// `None`: another run holds the lock, or the directory cannot be opened.
fn lock(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(opened)
}

/// Never fails: a directory that cannot be removed is left for the next run.
fn remove_orphans(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let is_own = |path: &PathBuf| -> io::Result<bool> {
        let found = fs::symlink_metadata(path)?;
        // A run that has just created its directory does not hold the lock yet.
        let age = found.modified()?.elapsed().unwrap_or_default();
        Ok(found.is_dir() && found.uid() == own && age > YOUNG)
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for path in entries
        .filter(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(PREFIX.as_bytes())
        })
        .map(|entry| entry.path())
        .filter(|path| is_own(path).unwrap_or(false))
    {
        if lock(&path).is_some() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}
