//! The errors of this extension.

use std::{
    collections::TryReserveError,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hugeinfo::{
    linux::error::ReadError,
    server::failed_start::FailedStart,
    units::{PageSize, Pages},
};

/// `report.rs` chooses SQLSTATE, detail and hint.
#[derive(Debug)]
pub(crate) enum Error {
    /// A kernel file could not be read or understood.
    Read(ReadError),
    /// An allocation failed.
    OutOfMemory,
    /// The kernel reported a number too large for `bigint`.
    OutOfRange(u64),
    /// A setting has a value that this version of the extension does not support.
    Setting(&'static str),
    /// The SQL objects of this database do not fit this version of the library.
    OtherVersion {
        library: &'static str,
        objects: String,
        is_library_older: bool,
    },
    /// The sample is too short or too long.
    SampleLength,
    /// Settings to plan are NULL.
    NullSettings,
    /// Settings to plan are longer than this many bytes.
    TooLong(usize),
    /// Settings to plan are not a JSON object.
    NotAnObject,
    /// A setting to plan whose value is null, an array or an object.
    NotAValue(String),
    /// Text that is neither a JSON object nor `name=value` pairs.
    NotAssignments,
    /// A setting that does not change shared memory.
    NotSizing {
        name: String,
        /// The settings that change it.
        known: String,
    },
    /// A setting that does not exist, or that loads libraries.
    NotPlanned {
        name: String,
        /// A setting with a similar name that can be planned.
        near: Option<&'static str>,
        /// All settings that can be planned.
        known: String,
    },
    /// Invalid RAM or huge page sizes of another host.
    NotASize(&'static str, String),
    /// A setting of another host, where only this one can be planned.
    AnotherHost(String),
    /// A setting to plan is given twice, in upper and lower case.
    PlannedTwice(String),
    /// `before` is not a row of `hugeinfo_footprint`.
    NotAFootprint,
    /// A number of huge pages that is NULL or not above zero.
    NoPages,
    /// Even the minimum of `shared_buffers` needs this many pages of that size.
    TooFewPages { least: Pages, size: PageSize },
    /// `shared_buffers` among the settings of `hugeinfo_fit`.
    FittedSetting,
    /// The kernel does not have the huge page size that the next start requests.
    PageSize {
        /// `None`: the default size, which is unknown.
        asked: Option<PageSize>,
        /// The sizes that the kernel has.
        known: Vec<PageSize>,
    },
    /// A setting of a library that is not loaded.
    UnknownSetting(String),
    /// A plan in single-user mode, or when the postmaster has died.
    NoPostmaster,
    /// An action on a file failed.
    File {
        /// The verb after "could not".
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// An action on a file or directory in the scratch directory failed.
    Scratch {
        /// The verb after "could not".
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The copy of this backend that reads the configuration files ended without an answer.
    NotRead {
        path: PathBuf,
        /// How the copy ended.
        end: String,
    },
    /// PostgreSQL would not start with that configuration.
    Refused {
        refusal: FailedStart,
        /// The planned settings; empty if none.
        planned: String,
    },
    /// Like `Refused` without planned settings, for roles that cannot see the contents of the
    /// files.
    RefusedForOthers {
        /// True if the cause is the configuration, so that a start would also fail.
        is_of_configuration: bool,
    },
    /// PostgreSQL's program did not exit within this time.
    TimeLimit(Duration),
}

impl Error {
    pub(crate) fn scratch(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Scratch {
            action,
            path,
            source,
        }
    }

    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File {
            action,
            path,
            source,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Self::OutOfMemory
    }
}
