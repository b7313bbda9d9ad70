//! A process, read through its opened directory in `/proc`.

use std::{
    collections::TryReserveError,
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use rustix::{
    fs::{AtFlags, MemfdFlags, Mode, OFlags, memfd_create},
    io::Errno,
};

use serde::{Deserialize, Serialize};

use crate::linux::{
    error::{Absence, ParseError, ReadError},
    file::{FIRST_READ, LARGEST, LARGEST_SMALL, WRITTEN, read_all, read_record, read_written},
    growth::try_collect,
    hugepages,
    lookup::{Guard, Lookup, open_cached},
    root::Root,
    text::parse_number,
};

/// Maximum size of a file of the kernel with [`Root::guarded`]: twice that of `maps` with as many
/// mappings as a process can have by default (`vm.max_map_count`). Any user can have them all with
/// names of 16 kB, in many processes, and they are read at the same time.
const LARGEST_GUARDED: u64 = 16 << 20;

/// Maximum length of a command line in bytes, longer than that of any server.
const LONGEST_COMMAND_LINE: u64 = 64 << 10;

/// Maximum length of an environment in bytes, longer than that of any server.
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

/// The devices of the kernel's own file systems for shared memory (mm/shmem.c `shm_mnt`,
/// fs/hugetlbfs/inode.c `hugetlbfs_vfsmount`).
static SHARED_MEMORY: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let sizes = hugepages::page_sizes(&Root::system()).unwrap_or_default();
    let huge = sizes.iter().map(|size| {
        MemfdFlags::HUGETLB | MemfdFlags::from_bits_retain(size.trailing_zeros() << 26)
    });
    let device = |flags| {
        let file = memfd_create("hugeinfo", flags | MemfdFlags::CLOEXEC).ok()?;
        Some(rustix::fs::fstat(file).ok()?.st_dev)
    };
    let flags = std::iter::once(MemfdFlags::empty()).chain(huge);
    flags.filter_map(device).collect()
});

/// An opened `/proc/PID`. All reads are from the same process, or fail after it has ended, even if
/// its PID is reused.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    directory: OwnedFd,
    path: PathBuf,
    guard: Option<Arc<Guard>>,
}

/// Identifies a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl Process {
    /// Opens the directory of `pid`. Errors: absent if there is no such process.
    pub fn open(root: &Root, pid: u32) -> Result<Self, ReadError> {
        Self::open_as(root, pid, &pid.to_string())
    }

    /// The PIDs of all processes, unsorted.
    pub fn numbers(root: &Root) -> Result<Vec<u32>, ReadError> {
        let names = root.names("proc")?;
        let number = |name: &String| u32::try_from(parse_number(name.as_bytes())?).ok();
        try_collect(names.iter().filter_map(number).map(Ok))
    }

    /// Opens the directory of this process, with any PID in this `/proc`.
    pub fn this(root: &Root) -> Result<Self, ReadError> {
        Self::open_as(root, std::process::id(), "self")
    }

    fn open_as(root: &Root, pid: u32, name: &str) -> Result<Self, ReadError> {
        let path = root.path(format!("proc/{name}"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self {
                pid,
                directory,
                path,
                guard: root.guard().cloned(),
            }),
            Err(errno) => Err(ReadError::from_io(path, errno.into())),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads a whole file into `buffer`, which is cleared first and can be reused.
    pub(crate) fn read<'b>(
        &self,
        name: &str,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], ReadError> {
        let limit = self.guard.as_ref().map_or(LARGEST, |_| LARGEST_GUARDED);
        self.read_up_to(limit, name, buffer)
    }

    /// Reads and parses a file like [`Self::read_record`]. An empty file counts as missing, because
    /// the process has ended.
    pub(crate) fn parse<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        expected: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, usize>,
    ) -> Result<T, ReadError> {
        self.parse_leniently(name, buffer, parse)?
            .map_err(|line| self.malformed(name, line, expected))
    }

    /// Like [`Self::parse`], for parsers that skip what they cannot parse.
    pub(crate) fn parse_leniently<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        parse: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, ReadError> {
        match self.read_record(name, buffer)? {
            [] => Err(self.missing(name)),
            bytes => Ok(parse(bytes)),
        }
    }

    /// Like [`Self::parse`], for files that can be empty or consist of several records.
    pub fn parse_whole<T>(
        &self,
        name: &str,
        buffer: &mut Vec<u8>,
        expected: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, usize>,
    ) -> Result<T, ReadError> {
        let bytes = self.read(name, buffer)?;
        parse(bytes).map_err(|line| self.malformed(name, line, expected))
    }

    fn read_up_to<'b>(
        &self,
        limit: u64,
        name: &str,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], ReadError> {
        buffer.clear();
        buffer.try_reserve(FIRST_READ)?;
        read_all(&self.file(name)?, limit, || self.path.join(name), buffer)?;
        Ok(buffer)
    }

    /// Reads a file that is a single record (see [`read_record`]) into `buffer`, which is cleared
    /// first and can be reused.
    pub(crate) fn read_record<'b>(
        &self,
        name: &str,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], ReadError> {
        buffer.clear();
        read_record(&self.file(name)?, || self.path.join(name), buffer)?;
        Ok(buffer)
    }

    /// Opens a file of this process.
    pub fn file(&self, name: &str) -> Result<File, ReadError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => Ok(File::from(file)),
            Err(errno) => Err(self.unreadable(name, errno.into())),
        }
    }

    /// Reads a small file of a user, such as one in the working directory (see [`read_written`]). A
    /// symbolic link counts as missing, because it could lead to a file of another user.
    ///
    /// Errors: as for [`Self::open_directory`]; it has more than [`LARGEST_SMALL`] bytes.
    pub fn read_regular(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        let failed = |error| self.unreadable(name, error);
        let flags = WRITTEN | OFlags::NOFOLLOW;
        let opened = match (&self.guard, name.split_once('/')) {
            (Some(_), Some((directory, file))) => {
                open_cached(self.open_directory(directory)?, file)
            }
            _ => rustix::fs::openat(&self.directory, name, flags, Mode::empty())
                .map_err(io::Error::from),
        };
        let opened = opened.map_err(failed)?;
        self.check(&opened).map_err(failed)?;
        let patience = self.guard.as_ref().map(|guard| &guard.patience);
        read_written(opened, LARGEST_SMALL, patience).map_err(failed)
    }

    /// The title of the process: the command line without padding, truncated if it is very long.
    /// Empty if the process has ended.
    pub fn command_line<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], ReadError> {
        Ok(parse_command_line(self.raw_command_line(buffer)?))
    }

    /// The first [`LONGEST_COMMAND_LINE`] bytes of the command line, with padding, which can have
    /// any length.
    pub fn raw_command_line<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], ReadError> {
        buffer.clear();
        self.file("cmdline")?
            .take(LONGEST_COMMAND_LINE)
            .read_to_end(buffer)
            .map_err(|error| self.unreadable("cmdline", error))?;
        Ok(buffer)
    }

    /// The arguments of a process without a title of its own, including the program name. Empty if
    /// the process has ended.
    ///
    /// Errors: they are longer than [`LONGEST_COMMAND_LINE`].
    pub fn arguments(&self, buffer: &mut Vec<u8>) -> Result<Vec<Vec<u8>>, ReadError> {
        let bytes = self.read_up_to(LONGEST_COMMAND_LINE, "cmdline", buffer)?;
        Ok(parse_arguments(bytes)?)
    }

    /// The variables with which the program of the process started, as `name=value`.
    ///
    /// Errors: absent if access is denied; they are longer than [`LONGEST_ENVIRONMENT`].
    pub fn environment(&self, buffer: &mut Vec<u8>) -> Result<Vec<Vec<u8>>, ReadError> {
        let bytes = self.read_up_to(LONGEST_ENVIRONMENT, "environ", buffer)?;
        Ok(parse_arguments(bytes)?)
    }

    /// The path of the executable file. Errors: absent if access is denied.
    pub fn executable(&self) -> Result<Vec<u8>, ReadError> {
        self.link("exe")
    }

    /// Reads the target of a link.
    pub fn link(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        match rustix::fs::readlinkat(&self.directory, name, Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            Err(errno) => Err(self.unreadable(name, errno.into())),
        }
    }

    /// True if a file is not empty: opens it and reads one byte.
    pub fn has_first_byte(&self, name: &str) -> Result<bool, ReadError> {
        match self.file(name)?.read(&mut [0]) {
            Ok(bytes) => Ok(bytes > 0),
            Err(error) => Err(self.unreadable(name, error)),
        }
    }

    /// Identifies the executable file, even if it was renamed. Errors: absent if access is denied.
    pub fn program(&self) -> Result<FileId, ReadError> {
        self.target("exe")
    }

    /// Identifies the working directory. Errors: absent if access is denied.
    pub fn working_directory(&self) -> Result<FileId, ReadError> {
        self.target("cwd")
    }

    /// True if an open directory is the working directory. Errors: as for
    /// [`Self::working_directory`].
    pub fn is_working_directory(&self, directory: &OwnedFd) -> Result<bool, ReadError> {
        let own = self.working_directory()?;
        let other = rustix::fs::fstat(directory);
        Ok(other.is_ok_and(|other| own.device == other.st_dev && own.inode == other.st_ino))
    }

    /// True if a path means the same to this process as here: both have the same root directory,
    /// or the path is that of the working directory. In a container, another directory can have the
    /// path of one of ours.
    pub fn agrees_on(&self, root: &Root, path: &Path) -> Result<bool, ReadError> {
        if self.target("root")? == Self::this(root)?.target("root")? {
            return Ok(true);
        }
        match root.look_up_of(self.pid, path) {
            Ok(found) => self.is_working_directory(&found.file),
            Err(_) => Ok(false),
        }
    }

    /// Opens the directory behind a link of the kernel, to open files in it.
    ///
    /// Errors: with [`Root::guarded`], a program of a user answers for its file system.
    pub fn open_directory(&self, name: &str) -> Result<OwnedFd, ReadError> {
        let failed = |error| self.unreadable(name, error);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directory, name, flags, Mode::empty());
        let opened = opened.map_err(|errno| failed(errno.into()))?;
        self.check(&opened).map_err(failed)?;
        Ok(opened)
    }

    /// The root directory of this process. Errors: as for [`Self::open_directory`].
    pub fn lookup(&self) -> Result<Lookup, ReadError> {
        Ok(Lookup {
            root: self.open_directory("root")?,
            guard: self.guard.clone(),
            process: self.path.clone(),
        })
    }

    fn check(&self, file: &OwnedFd) -> io::Result<()> {
        match &self.guard {
            Some(guard) => guard.check(file, &self.path),
            None => Ok(()),
        }
    }

    /// The object behind a mapping, and its allocated bytes, from `map_files`, which only root can
    /// read. The first is `None` for an object that is not one of the kernel's own file systems for
    /// shared memory, such as a file of a user.
    ///
    /// Errors: absent if nothing is mapped exactly there, or if access is denied.
    pub fn allocated(&self, start: u64, end: u64) -> Result<Option<(FileId, u64)>, ReadError> {
        let name = format!("map_files/{start:x}-{end:x}");
        let flags = AtFlags::STATX_DONT_SYNC;
        let found = rustix::fs::statat(&self.directory, &name, flags);
        let found = found.map_err(|errno| self.unreadable(&name, errno.into()))?;
        let is_of_kernel = SHARED_MEMORY.contains(&found.st_dev);
        let bytes = u64::try_from(found.st_blocks).unwrap_or_default();
        let object = FileId {
            device: found.st_dev,
            inode: found.st_ino,
        };
        Ok(is_of_kernel.then(|| (object, bytes.saturating_mul(512))))
    }

    /// Identifies the target of a link of the kernel. Such links refer to the file itself, without
    /// a lookup of names.
    fn target(&self, name: &str) -> Result<FileId, ReadError> {
        let stat = |flags| rustix::fs::statat(&self.directory, name, flags);
        // What the kernel knows: any user can work on a file system that never answers.
        let found = match stat(AtFlags::STATX_DONT_SYNC) {
            // gVisor knows fewer flags.
            Err(Errno::INVAL) => stat(AtFlags::empty()),
            found => found,
        };
        match found {
            Ok(file) => Ok(FileId {
                device: file.st_dev,
                inode: file.st_ino,
            }),
            Err(errno) => Err(self.unreadable(name, errno.into())),
        }
    }

    /// The path of a file, for errors.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The error for a missing file.
    pub(crate) fn missing(&self, name: &str) -> ReadError {
        ReadError::missing(self.path.join(name))
    }

    /// The error for a file without such an entry.
    pub(crate) fn no_entry(&self, name: &str, entry: &'static str) -> ReadError {
        ReadError::absent(self.path.join(name), Absence::NoEntry(entry))
    }

    /// The error for a file that cannot be opened or read.
    pub(crate) fn unreadable(&self, name: &str, error: io::Error) -> ReadError {
        ReadError::from_io(self.path.join(name), error)
    }

    /// The error for a file that cannot be read to its end or has an unknown format.
    pub(crate) fn unparsed(&self, name: &str, error: ParseError) -> ReadError {
        error.in_file(self.path.join(name))
    }

    /// The error for a file with an unknown format.
    pub(crate) fn malformed(&self, name: &str, line: usize, problem: &'static str) -> ReadError {
        ReadError::Malformed {
            path: self.path.join(name),
            line,
            problem,
        }
    }
}

/// Removes the padding of a process title, which consists of NULs and blanks.
pub fn parse_command_line(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .rposition(|&b| b != 0 && b != b' ')
        .map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Parses the arguments of a process without a title of its own. Each one ends with a NUL and can
/// be empty.
///
/// Errors: out of memory.
pub fn parse_arguments(bytes: &[u8]) -> Result<Vec<Vec<u8>>, TryReserveError> {
    let arguments = bytes
        .split(|&b| b == 0)
        .map(|argument| Ok(argument.to_vec()));
    let mut arguments = try_collect::<_, TryReserveError>(arguments)?;
    // Nothing follows the last NUL.
    arguments.pop_if(|last| last.is_empty());
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_can_contain_any_byte_except_nul() {
        let parse_arguments = |bytes| parse_arguments(bytes).expect("memory");
        let arguments = parse_arguments(b"postgres\0-c\0cluster_name=a \"b\" \"c\"\n'\0\0-D\0/x\0");
        let expected: [&[u8]; 6] = [
            b"postgres",
            b"-c",
            b"cluster_name=a \"b\" \"c\"\n'",
            b"",
            b"-D",
            b"/x",
        ];
        assert_eq!(arguments, expected);
        assert_eq!(parse_arguments(b"postgres\0\0"), [&b"postgres"[..], b""]);
        assert_eq!(parse_arguments(b""), [] as [&[u8]; 0]);
    }
}
