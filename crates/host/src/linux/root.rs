//! The root directory of all files that this crate reads.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{Dir, Mode, OFlags},
    io::Errno,
};

use crate::linux::{
    error::{Absence, Absent, ReadError},
    file::{FIRST_READ, LARGEST, WRITTEN, read_all, read_record, read_written},
    growth::{TryPush, try_collect},
    lookup::{Found, Guard, Links, Lookup, SELF},
};

/// Maximum number of names in a directory of a user, who can create millions of files.
pub const MOST_NAMES: usize = 10_000;

/// The root: `/` on a real system, a captured directory in a test.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    steady: Option<Arc<Steady>>,
    guard: Option<Arc<Guard>>,
}

/// Facts that a session reads once, and again only after a mount has changed (see
/// [`Watch`](crate::linux::mounts::Watch)). A change of file system options in another mount
/// namespace goes undetected.
#[derive(Debug)]
pub struct Steady {
    /// The lines of `/proc/self/mountinfo` for the file system types that this crate uses.
    pub(crate) mounts: Vec<u8>,
    /// The sizes of huge pages, which the kernel determines at boot. `None`: unknown.
    pub(crate) page_sizes: Option<Vec<u64>>,
}

impl Root {
    /// The running system.
    pub fn system() -> Self {
        Self::at("/")
    }

    /// A directory with captured files.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            steady: None,
            guard: None,
        }
    }

    /// This root with cached facts, which are not read again.
    #[must_use]
    pub fn with_steady(self, steady: Arc<Steady>) -> Self {
        Self {
            steady: Some(steady),
            ..self
        }
    }

    /// This root, without waiting for programs of users when it looks up files in directories of
    /// processes, and with [`Root::look_up`].
    #[must_use]
    pub fn guarded(self, guard: Arc<Guard>) -> Self {
        Self {
            guard: Some(guard),
            ..self
        }
    }

    pub(crate) fn guard(&self) -> Option<&Arc<Guard>> {
        self.guard.as_ref()
    }

    pub(crate) fn steady(&self) -> Option<&Steady> {
        self.steady.as_deref()
    }

    /// `path`, absolute or relative, below this root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.path.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Opens a file below this root.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<File, ReadError> {
        let path = self.path(path);
        File::open(&path).map_err(|e| ReadError::from_io(path, e))
    }

    /// Reads a whole file below this root.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
        let path = path.as_ref();
        let mut bytes = Vec::with_capacity(FIRST_READ);
        read_all(&self.open(path)?, LARGEST, || self.path(path), &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a file that the kernel never leaves empty. An empty file counts as missing, because
    /// containers and sandboxes mask files with `/dev/null`.
    pub(crate) fn read_filled(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
        let path = path.as_ref();
        match self.read(path)? {
            bytes if bytes.is_empty() => Err(ReadError::missing(self.path(path))),
            bytes => Ok(bytes),
        }
    }

    /// Allocated bytes of a file on its file system. For a file in memory, this includes
    /// swapped-out pages.
    pub fn allocated(&self, path: impl AsRef<Path>) -> Result<u64, ReadError> {
        let path = self.path(path);
        match fs::metadata(&path) {
            Ok(file) => Ok(file.blocks().saturating_mul(512)),
            Err(error) => Err(ReadError::from_io(path, error)),
        }
    }

    /// Like [`Self::read_filled`], for a file that is a single record (see [`read_record`]).
    pub(crate) fn read_record(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        read_record(&self.open(path)?, || self.path(path), &mut bytes)?;
        match bytes.is_empty() {
            true => Err(ReadError::missing(self.path(path))),
            false => Ok(bytes),
        }
    }

    /// Reads and parses a file like [`Self::read_record`]. The parser returns the number of an
    /// invalid line.
    pub(crate) fn parse<T>(
        &self,
        path: impl AsRef<Path>,
        expected: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, usize>,
    ) -> Result<T, ReadError> {
        let path = path.as_ref();
        parse(&self.read_record(path)?).map_err(|line| ReadError::Malformed {
            path: self.path(path),
            line,
            problem: expected,
        })
    }

    /// Reads a file of a user (see [`read_written`]).
    pub(crate) fn read_written(
        &self,
        limit: u64,
        path: impl AsRef<Path>,
    ) -> Result<Vec<u8>, ReadError> {
        let path = self.path(path);
        let found = rustix::fs::open(&path, WRITTEN, Mode::empty());
        let read = found.map_err(io::Error::from);
        read.and_then(|found| read_written(found, limit, None))
            .map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::FBIG) => ReadError::TooLarge { path, limit },
                _ => ReadError::from_io(path, error),
            })
    }

    /// Returns the names in a directory.
    pub(crate) fn entries(&self, path: impl AsRef<Path>) -> Result<Vec<OsString>, ReadError> {
        let path = self.path(path);
        let failed = |error| ReadError::from_io(path.clone(), error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            names.try_push(entry.map_err(failed)?.file_name())?;
        }
        Ok(names)
    }

    /// Returns the names in a kernel directory. Names that are not UTF-8 are skipped, because the
    /// kernel does not create such names itself.
    pub fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
        let names = self.entries(path)?.into_iter();
        try_collect(names.filter_map(|name| name.into_string().ok()).map(Ok))
    }

    /// Like [`Self::names`], for a directory of `/sys` that some kernels do not have. Distinguishes
    /// this from `/sys` not being mounted.
    pub(crate) fn names_in_sys(&self, path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
        self.names(path).map_err(|error| match error {
            ReadError::Absent(Absent {
                path,
                why: Absence::Missing,
            }) if !self.path("sys/kernel").is_dir() => ReadError::Absent(Absent {
                path,
                why: Absence::NotMounted,
            }),
            other => other,
        })
    }
}

/// Lookups of absolute paths below this root. With [`Root::guarded`], they fail as
/// [`Guard::look_up`] does.
impl Root {
    /// The root itself.
    pub fn lookup(&self) -> io::Result<Lookup> {
        Ok(Lookup {
            root: rustix::fs::open(self.path(""), WRITTEN | OFlags::DIRECTORY, Mode::empty())?,
            guard: self.guard().cloned(),
            process: SELF.into(),
        })
    }

    /// Looks up a file or directory.
    pub fn look_up(&self, path: &Path) -> io::Result<Found> {
        self.look_up_with(path, Links::Followed)
    }

    /// Like [`Self::lookup`], for names that the process with this PID chose: with
    /// [`Root::guarded`], only those that the kernel has in memory (see [`Guard::look_up`]).
    pub fn lookup_of(&self, pid: u32) -> io::Result<Lookup> {
        Ok(Lookup {
            process: self.path(format!("proc/{pid}")),
            ..self.lookup()?
        })
    }

    /// Looks up a file or directory that the process with this PID names, as with
    /// [`Self::lookup_of`].
    pub fn look_up_of(&self, pid: u32, path: &Path) -> io::Result<Found> {
        let Some(guard) = self.guard() else {
            return self.look_up(path);
        };
        let Lookup { root, process, .. } = self.lookup_of(pid)?;
        guard.look_up(root, path, Links::Followed, &process)
    }

    fn look_up_with(&self, path: &Path, links: Links) -> io::Result<Found> {
        let Some(guard) = self.guard() else {
            let path = match links {
                Links::Followed => std::fs::canonicalize(self.path(path))?,
                Links::OnlyToDirectories | Links::Refused => self.path(path),
            };
            let file = rustix::fs::open(&path, WRITTEN | OFlags::NOFOLLOW, Mode::empty())?;
            return Ok(Found { file, path });
        };
        let Lookup { root, process, .. } = self.lookup()?;
        guard.look_up(root, path, links, &process)
    }

    /// Like [`Found::read`], not through a symbolic link in the directory of the file.
    pub fn read_small(&self, path: &Path) -> io::Result<Vec<u8>> {
        let directory = path.parent().unwrap_or(path);
        let directory = match self.guard() {
            Some(_) => self.look_up(directory)?.path,
            None => directory.to_owned(),
        };
        let name = path.file_name().unwrap_or_default();
        self.look_up_with(&directory.join(name), Links::Refused)?
            .read()
    }

    /// The paths of the files in a directory of a user, unsorted. Errors: `EFBIG` if it has more
    /// than [`MOST_NAMES`].
    pub fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let found = self.look_up(directory)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&found.file, ".", flags, Mode::empty())?;
        let mut paths = Vec::new();
        for entry in Dir::new(opened)? {
            match entry?.file_name().to_bytes() {
                b"." | b".." => {}
                _ if paths.len() == MOST_NAMES => return Err(Errno::FBIG.into()),
                name => paths.push(found.path.join(OsStr::from_bytes(name))),
            }
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn files_that_are_not_regular_are_not_opened() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path());
        fs::write(root.path("file"), "text").expect("written");
        assert_eq!(root.read_written(4, "file").expect("read"), b"text");
        let error = root.read_written(3, "file").expect_err("too large");
        assert!(matches!(error, ReadError::TooLarge { .. }));
        // Opening a socket is an error.
        let _socket = UnixListener::bind(root.path("socket")).expect("a socket");
        let error = root.read_written(4, "socket").expect_err("not a file");
        assert_eq!(
            error.to_string(),
            ReadError::missing(root.path("socket")).to_string()
        );
    }

    #[test]
    fn files_of_the_kernel_are_not_read_as_files_of_users() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path());
        for (name, file) in [
            ("proc", "/proc/self/status"),
            ("sys", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ] {
            std::os::unix::fs::symlink(file, root.path(name)).expect("a link");
            if !root.path(name).is_file() {
                continue;
            }
            let error = root
                .read_written(4096, name)
                .expect_err("a file of the kernel");
            let missing = ReadError::missing(root.path(name));
            assert_eq!(error.to_string(), missing.to_string());
        }
    }
}
