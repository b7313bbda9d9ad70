//! All that can go wrong in this extension.

use std::{
    collections::TryReserveError,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use hugeinfo::{linux::error::ReadError, server::failed_start::FailedStart};

/// Its SQLSTATE, detail and hint are picked in `report.rs`.
#[derive(Debug)]
pub(crate) enum Error {
    /// A kernel file could not be read or understood.
    Read(ReadError),
    /// There is no memory.
    OutOfMemory,
    /// The kernel reported a number beyond `bigint`.
    OutOfRange(u64),
    /// The kernel reported a number beyond `integer`, where it has no use for so large ones.
    NotInteger(String),
    /// The server has a setting of a value that this version of the extension doesn't know.
    Setting(&'static str),
    /// A sample that is too short or too long.
    SampleLength,
    /// Settings to plan that are longer than so many bytes.
    TooLong(usize),
    /// Settings to plan that are no JSON object.
    NotAnObject,
    /// A setting to plan whose value is null, an array or an object.
    NotAValue(String),
    /// A setting that can't be planned.
    NotPlanned {
        name: String,
        /// One of a similar name that can.
        near: Option<String>,
        /// Those that can.
        known: String,
    },
    /// RAM or huge page sizes of another host that are none.
    NotASize(&'static str, String),
    /// A setting to plan that is there twice, in different cases.
    PlannedTwice(String),
    /// A setting of a library that is not loaded.
    UnknownSetting(String),
    /// A plan in single-user mode, or when the postmaster has died.
    NoPostmaster,
    /// A file that could not be dealt with.
    File {
        /// What was to be done.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A file or directory of the scratch place that could not be dealt with.
    Scratch {
        /// What was to be done.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The copy of this backend that was to read the configuration files has ended without an
    /// answer.
    NotRead {
        path: PathBuf,
        /// How it has ended.
        end: String,
    },
    /// PostgreSQL would not start with that configuration.
    Refused {
        refusal: FailedStart,
        /// The settings planned; empty if none.
        planned: String,
    },
    /// The same with the files alone, for those who may not know what they say.
    RefusedForOthers {
        /// Whether a start would be refused, too; else the program failed for another reason.
        is_of_configuration: bool,
    },
    /// PostgreSQL's program did not answer in that time.
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
