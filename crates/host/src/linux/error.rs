//! Reasons why a kernel source has no facts.

use std::{collections::TryReserveError, fmt, io, path::PathBuf};

use crate::escape;

/// A source that the kernel does not have or that cannot be read. This is a result, not a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The file or directory.
    pub path: PathBuf,
    /// Whether it is missing or denied.
    pub why: Absence,
}

/// A fact, or why it is unknown.
pub type Fact<T> = Result<T, Absent>;

impl Absent {
    /// A source that was not read on purpose.
    pub fn not_looked_at() -> Self {
        Self {
            path: "a source that was not needed".into(),
            why: Absence::Missing,
        }
    }
}

/// The ways in which a source can be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The kernel has no such file (`ENOENT`) or does not fill it (`EOPNOTSUPP`, as with `psi=0`),
    /// or the process has ended (`ESRCH`).
    Missing,
    /// The file exists, but has no such entry.
    NoEntry(&'static str),
    /// Access is denied (`EACCES`, `EPERM`).
    Denied,
    /// `/proc` is mounted with `subset=pid`, which hides every file that is not about a process.
    SubsetPid,
    /// `/sys` is not mounted, so it is unknown whether the kernel has the file.
    NotMounted,
    /// It exists, but is not the file that the machine boots with.
    OfAnotherRoot,
    /// Reading the file failed with this error number.
    Failed(i32),
    /// No process or thread could be started to read it (`EAGAIN` of clone).
    NoProcess,
    /// The file is larger than any valid file of its kind.
    TooLarge,
    /// The kernel decremented an unsigned counter below zero, so that it is close to 2^64: a bug of
    /// the kernel or of lxcfs.
    BelowZero,
    /// The file does not have the format that the kernel documents.
    Malformed {
        /// Line number, starting at 1.
        line: usize,
        /// The expected contents.
        problem: &'static str,
    },
}

/// The cause if clone(2) fails with `EAGAIN`.
const LIMIT_ON_PROCESSES: &str =
    "a limit on processes (ulimit -u, TasksMax of the unit, pids.max of the cgroup)";

/// The text of an error of an action that can start a process or a thread.
pub fn of_start(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => format!("{error}: {LIMIT_ON_PROCESSES}"),
        _ => error.to_string(),
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = escape::name(&self.path);
        match self.why {
            Absence::Missing => write!(f, "{path} is missing"),
            Absence::NoEntry(entry) => write!(f, "{path} has no {entry}"),
            Absence::SubsetPid => write!(
                f,
                "{path} is hidden: /proc is mounted with subset=pid (in a systemd unit, set \
                 ProcSubset=all)"
            ),
            Absence::Denied => write!(f, "{path} cannot be read (permission denied)"),
            Absence::NotMounted => write!(f, "{path} cannot be read: /sys is not mounted"),
            Absence::OfAnotherRoot => write!(f, "{path} is not the host's (as in a container)"),
            Absence::Failed(code) => {
                let error = io::Error::from_raw_os_error(code);
                write!(f, "{path} could not be read: {error}")
            }
            Absence::NoProcess => write!(
                f,
                "{path} was not read, because no process could be started: {LIMIT_ON_PROCESSES}"
            ),
            Absence::TooLarge => write!(f, "{path} is too large to be read"),
            Absence::BelowZero => write!(f, "{path}: a kernel counter went below zero"),
            Absence::Malformed { line, problem } => {
                write!(f, "{path} has an unknown format: line {line}: {problem}")
            }
        }
    }
}

/// Errors of reading and parsing a kernel file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source is missing or denied. Callers use another source, or report the fact as unknown.
    #[error("{0}")]
    Absent(Absent),
    /// The kernel returned an error.
    #[error("could not read \"{}\": {source}", escape::name(path))]
    Io {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// The file is larger than any valid file of its kind.
    #[error("\"{}\" has more than {limit} bytes", escape::name(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        limit: u64,
    },
    /// Out of memory.
    #[error("out of memory")]
    NoMemory(#[from] TryReserveError),
    /// The file does not have the format that the kernel documents.
    #[error("\"{}\", line {line}: {problem}", escape::name(path))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// The expected contents.
        problem: &'static str,
    },
}

/// Like [`ReadError`], for a stream whose file name is added later.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Reading the stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Out of memory.
    #[error("out of memory")]
    NoMemory(#[from] TryReserveError),
    /// A line does not have the format that the kernel documents.
    #[error("line {line}: {problem}")]
    Malformed {
        /// Line number, starting at 1.
        line: usize,
        /// The expected contents.
        problem: &'static str,
    },
}

impl ParseError {
    pub(crate) fn in_file(self, path: PathBuf) -> ReadError {
        match self {
            Self::Io(source) => ReadError::from_io(path, source),
            Self::NoMemory(error) => ReadError::NoMemory(error),
            Self::Malformed { line, problem } => ReadError::Malformed {
                path,
                line,
                problem,
            },
        }
    }
}

impl ReadError {
    /// The error for a file that could not be read.
    pub fn from_io(path: PathBuf, source: io::Error) -> Self {
        // These codes have no `ErrorKind`: a process or cgroup that has ended meanwhile, and a file
        // of a feature that is turned off.
        let is_missing = |code| {
            use rustix::io::Errno;
            [Errno::SRCH, Errno::NODEV, Errno::OPNOTSUPP]
                .iter()
                .any(|errno| code == errno.raw_os_error())
        };
        let why = match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Absence::Missing,
            io::ErrorKind::PermissionDenied => Absence::Denied,
            _ if source.raw_os_error().is_some_and(is_missing) => Absence::Missing,
            _ => return Self::Io { path, source },
        };
        Self::Absent(Absent { path, why })
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Absent(absent) if absent.why == Absence::Missing)
    }

    /// The error for a file that does not exist.
    pub fn missing(path: impl Into<PathBuf>) -> Self {
        Self::absent(path, Absence::Missing)
    }

    pub(crate) fn absent(path: impl Into<PathBuf>, why: Absence) -> Self {
        let path = path.into();
        Self::Absent(Absent { path, why })
    }
}

/// Turns failures to read or parse a source into an absent fact that records the reason. A single
/// malformed file then does not fail the whole query.
///
/// Errors: only out of memory.
pub fn fact<T>(result: Result<T, ReadError>) -> Result<Result<T, Absent>, ReadError> {
    let (path, why) = match result {
        Err(ReadError::Io { path, source }) => {
            let code = source.raw_os_error();
            let unknown = rustix::io::Errno::IO.raw_os_error();
            (path, Absence::Failed(code.unwrap_or(unknown)))
        }
        Err(ReadError::TooLarge { path, .. }) => (path, Absence::TooLarge),
        Err(ReadError::Malformed {
            path,
            line,
            problem,
        }) => (path, Absence::Malformed { line, problem }),
        other => return absent_or(other),
    };
    Ok(Err(Absent { path, why }))
}

/// Separates an absent source from a failure, for views that show only this source.
pub fn absent_or<T>(result: Result<T, ReadError>) -> Result<Result<T, Absent>, ReadError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(ReadError::Absent(absent)) => Ok(Err(absent)),
        Err(error) => Err(error),
    }
}
