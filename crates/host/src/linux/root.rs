//! The root directory of all files that this crate reads.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, PROC_SUPER_MAGIC},
    io::{Errno, retry_on_intr},
};

use crate::linux::{
    error::{Absence, Absent, ReadError},
    growth::{TryPush, try_collect},
    lookup::Guard,
    steady::Steady,
};

/// Size of the first read. Most kernel files are shorter.
pub(crate) const FIRST_READ: usize = 4096;

/// Maximum size of a kernel file. The largest is `maps` of a process with hundreds of thousands of
/// mappings.
pub(crate) const LARGEST: u64 = 128 << 20;

/// Maximum size of a small file of a user, such as `postmaster.pid` or `postgresql.conf`.
pub(crate) const LARGEST_SMALL: u64 = 256 << 10;

/// The root: `/` on a real system, a captured directory in a test.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    steady: Option<Arc<Steady>>,
    guard: Option<Arc<Guard>>,
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
        read.and_then(|found| read_written(found, limit)).map_err(
            |error| match Errno::from_io_error(&error) {
                Some(Errno::FBIG) => ReadError::TooLarge { path, limit },
                _ => ReadError::from_io(path, error),
            },
        )
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

/// Flags for opening a file of a user. Opening a device can have an effect, such as starting a
/// watchdog, and opening a pipe can block: this only looks it up.
pub const WRITTEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// True if the kernel makes the files of the file system (include/uapi/linux/magic.h). They look
/// regular, but reading one can block or have an effect: `/proc/kmsg` does both.
fn is_of_kernel(file: &File) -> io::Result<bool> {
    Ok(matches!(
        rustix::fs::fstatfs(file)?.f_type,
        PROC_SUPER_MAGIC
            | 0x6265_6572 // sysfs
            | 0x6462_6720 // debugfs
            | 0x7472_6163 // tracefs
            | 0x7363_6673 // securityfs
            | 0x5a3c_69f0 // apparmorfs
            | 0xf97c_ff8c // selinuxfs
            | 0x4341_5d53 // smackfs
            | 0x0027_e0eb // cgroup, version 1
            | 0x6367_7270 // cgroup, version 2
            | 0x0765_5821 // resctrl
            | 0x6265_6570 // configfs
            | 0x6165_676c // pstore
            | 0xde5e_81e4 // efivarfs
            | 0xcafe_4a11 // bpf
            | 0x6e73_6673 // nsfs
    ))
}

/// Opens the file that was looked up with [`WRITTEN`], if it is a regular file of a user, which
/// does not block. `None`: another file, such as a symbolic link with `O_NOFOLLOW`, or one of the
/// kernel.
pub fn if_regular(found: OwnedFd) -> io::Result<Option<File>> {
    let found = File::from(found);
    if !found.metadata()?.is_file() || is_of_kernel(&found)? {
        return Ok(None);
    }
    // Does not wait for the owner of a lease.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let opened = rustix::fs::open(link, flags, Mode::empty())?;
    Ok(Some(File::from(opened)))
}

/// Reads a file of a user that was looked up with [`WRITTEN`]. A file that is not regular counts as
/// missing, because reading a pipe might never end.
///
/// Errors: `EFBIG` if it has more than `limit` bytes.
pub(crate) fn read_written(found: OwnedFd, limit: u64) -> io::Result<Vec<u8>> {
    let file = if_regular(found)?.ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = Vec::with_capacity(FIRST_READ);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(Errno::FBIG.into()),
        false => Ok(bytes),
    }
}

/// Appends the contents of a file. Errors: it has more than `limit` bytes, out of memory, or it
/// cannot be read.
pub(crate) fn read_all(
    file: &File,
    limit: u64,
    path: impl Fn() -> PathBuf,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    // Without `take`, `File` would query the size, which kernel files do not have.
    let read = file.take(limit + 1).read_to_end(bytes);
    match read.map(u64::try_from) {
        Ok(Ok(count)) if count <= limit => Ok(()),
        Ok(_) => Err(ReadError::TooLarge {
            path: path(),
            limit,
        }),
        Err(error) => Err(ReadError::from_io(path(), error)),
    }
}

/// Appends the contents of a file that the kernel generates as one record (fs/seq_file.c
/// `single_open`, and fs/kernfs/file.c `kernfs_seq_show` for `/sys` and cgroups), such as
/// `/proc/meminfo` and `/proc/PID/status`. Not for `maps`, which has many records.
///
/// If the record is longer than the buffer, the kernel fills the buffer. A read that leaves room
/// and ends with a line feed is therefore complete, which saves a second read.
///
/// Errors: it has more than [`LARGEST`] bytes, out of memory, or it cannot be read.
pub(crate) fn read_record(
    file: &File,
    path: impl Fn() -> PathBuf,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    loop {
        bytes.try_reserve(FIRST_READ)?;
        let room = bytes.capacity() - bytes.len();
        let read = retry_on_intr(|| rustix::io::read(file, spare_capacity(bytes)))
            .map_err(|errno| ReadError::from_io(path(), errno.into()))?;
        if read == 0 || (read < room && bytes.ends_with(b"\n")) {
            return Ok(());
        }
        if bytes.len() as u64 > LARGEST {
            return Err(ReadError::TooLarge {
                path: path(),
                limit: LARGEST,
            });
        }
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
