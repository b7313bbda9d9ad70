//! Which SQLSTATE, detail and hint an error gets.

use std::{
    collections::TryReserveError,
    io,
    path::{Path, PathBuf},
};

use hugeinfo::{
    linux::error::{Absence, ReadError},
    server::refusal::Refusal,
};
use pgrx::{PgSqlErrorCode, pg_sys::panic::ErrorReport};

use crate::{
    plan,
    postgres::{self, child::End},
    views::shown,
};

/// All that can go wrong in this extension.
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
    /// Settings to plan that are longer than [`postgres::LONGEST_SETTINGS`].
    TooLong,
    /// Settings to plan that are no JSON object.
    NotAnObject,
    /// A setting to plan whose value is null, an array or an object.
    NotAValue(String),
    /// A setting that can't be planned.
    NotPlanned(String),
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
    NotRead(PathBuf, End),
    /// PostgreSQL would not start with that configuration.
    Refused {
        refusal: Refusal,
        /// The settings planned; empty if none.
        planned: String,
    },
    /// PostgreSQL's program did not answer in time.
    TimeLimit,
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

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        use PgSqlErrorCode::{
            ERRCODE_CONFIG_FILE_ERROR, ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
            ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_INSUFFICIENT_PRIVILEGE,
            ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            ERRCODE_OUT_OF_MEMORY, ERRCODE_PROGRAM_LIMIT_EXCEEDED, ERRCODE_SYSTEM_ERROR,
            ERRCODE_UNDEFINED_FILE, ERRCODE_UNDEFINED_OBJECT,
        };
        const REPORT: &str = "This kernel writes the file in a form that pg_hugeinfo does not know. Please report it with the file's text and the kernel's version.";
        const VALUES: &str = "Write it as in {\"shared_buffers\": \"64GB\", \"max_connections\": 500, \"hot_standby\": false}.";
        let mut detail = None;
        let (code, message, hint) = match error {
            Error::Read(read) => {
                let (code, hint) = match &read {
                    ReadError::Absent(absent) if absent.why == Absence::Denied => {
                        (ERRCODE_INSUFFICIENT_PRIVILEGE, None)
                    }
                    ReadError::Absent(_) => (ERRCODE_UNDEFINED_FILE, None),
                    ReadError::Io { source, .. } => (code_of(source), None),
                    ReadError::NoMemory(_) => (ERRCODE_OUT_OF_MEMORY, None),
                    ReadError::TooLarge { .. } => (ERRCODE_PROGRAM_LIMIT_EXCEEDED, None),
                    ReadError::Malformed { .. } => (ERRCODE_SYSTEM_ERROR, Some(REPORT.to_owned())),
                };
                (code, read.to_string(), hint)
            }
            Error::OutOfMemory => (ERRCODE_OUT_OF_MEMORY, "out of memory".to_owned(), None),
            Error::OutOfRange(value) => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("bigint out of range: the kernel reported {value}"),
                None,
            ),
            Error::NotInteger(value) => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("integer out of range: the kernel reported {value}"),
                None,
            ),
            Error::Setting(name) => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("setting \"{name}\" has a value that pg_hugeinfo does not know"),
                Some("Update pg_hugeinfo to a version made for this PostgreSQL.".to_owned()),
            ),
            Error::SampleLength => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "duration must be longer than zero and at most one hour".to_owned(),
                Some(
                    "For a longer sample, take the difference of two reads of hugeinfo_backends."
                        .to_owned(),
                ),
            ),
            Error::TooLong => (
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("settings must not be longer than {} bytes", postgres::LONGEST_SETTINGS),
                Some(VALUES.to_owned()),
            ),
            Error::NotAnObject => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "settings must be a JSON object".to_owned(),
                Some(VALUES.to_owned()),
            ),
            Error::NotAValue(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" must be a string, a number or a boolean"),
                Some(VALUES.to_owned()),
            ),
            Error::NotPlanned(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" cannot be planned"),
                Some(format!(
                    "Settings that change the size of shared memory, or decide over huge pages, can: {}.",
                    plan::names()
                )),
            ),
            Error::PlannedTwice(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" is given more than once"),
                Some("Upper and lower case are the same in the name of a setting.".to_owned()),
            ),
            Error::UnknownSetting(name) => (
                ERRCODE_UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
                Some("It exists once its library is in shared_preload_libraries and the server has been restarted.".to_owned()),
            ),
            Error::NoPostmaster => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "a plan needs a postmaster, whose command line it keeps".to_owned(),
                Some("Start the server; in single-user mode there is none.".to_owned()),
            ),
            Error::File {
                action,
                path,
                source,
            } => {
                let message = format!("could not {action} \"{}\": {source}", path.display());
                (code_of(&source), message, None)
            }
            Error::Scratch {
                action,
                path,
                source,
            } => (
                code_of(&source),
                format!("could not {action} \"{}\": {source}", path.display()),
                Some("A plan needs some 12 kB for a moment, in the directory that TMPDIR names in the server's environment, else in /tmp.".to_owned()),
            ),
            Error::NotRead(path, end) => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!("could not read \"{}\" and what it includes: {end}", path.display()),
                None,
            ),
            Error::Refused { refusal, planned } => {
                let mut details = refusal.detail;
                let own = if !refusal.is_of_configuration {
                    ERRCODE_EXTERNAL_ROUTINE_EXCEPTION
                } else if planned.is_empty() {
                    ERRCODE_CONFIG_FILE_ERROR
                } else {
                    details.push(format!("Planned: {planned}"));
                    ERRCODE_INVALID_PARAMETER_VALUE
                };
                detail = Some(details.join("\n")).filter(|detail| !detail.is_empty());
                let code = refusal.state.and_then(code_of_state).unwrap_or(own);
                (code, refusal.message, refusal.hint)
            }
            Error::TimeLimit => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!(
                    "PostgreSQL's program did not compute the size of shared memory within {} seconds",
                    plan::TIME_LIMIT.as_secs()
                ),
                Some("It may wait for a configuration file that is a pipe, for a file system that does not answer, or in a library of shared_preload_libraries.".to_owned()),
            ),
        };
        let mut report = Self::new(code, shown(message), "pg_hugeinfo");
        if let Some(detail) = detail {
            report = report.set_detail(shown(detail));
        }
        match hint {
            Some(hint) => report.set_hint(shown(hint)),
            None => report,
        }
    }
}

/// As PostgreSQL's `errcode_for_file_access`.
fn code_of(error: &io::Error) -> PgSqlErrorCode {
    use PgSqlErrorCode::{
        ERRCODE_DISK_FULL, ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_INSUFFICIENT_RESOURCES,
        ERRCODE_IO_ERROR, ERRCODE_OUT_OF_MEMORY, ERRCODE_UNDEFINED_FILE,
    };
    use io::ErrorKind;
    const TOO_MANY: [rustix::io::Errno; 3] = [
        rustix::io::Errno::AGAIN,
        rustix::io::Errno::MFILE,
        rustix::io::Errno::NFILE,
    ];
    let is_too_many = |code| TOO_MANY.iter().any(|errno| errno.raw_os_error() == code);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ERRCODE_DISK_FULL,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ERRCODE_INSUFFICIENT_PRIVILEGE
        }
        ErrorKind::NotFound => ERRCODE_UNDEFINED_FILE,
        ErrorKind::OutOfMemory => ERRCODE_OUT_OF_MEMORY,
        _ if error.raw_os_error().is_some_and(is_too_many) => ERRCODE_INSUFFICIENT_RESOURCES,
        _ => ERRCODE_IO_ERROR,
    }
}

/// What PostgreSQL's program has called its error; none where that is only "internal error".
fn code_of_state(state: [u8; 5]) -> Option<PgSqlErrorCode> {
    // MAKE_SQLSTATE of utils/elog.h: six bits for each character.
    let packed = state.iter().rev().fold(0, |packed, &character| {
        (packed << 6) | (i32::from(character) - i32::from(b'0')) & 0x3F
    });
    let code = PgSqlErrorCode::from(packed);
    (code != PgSqlErrorCode::ERRCODE_INTERNAL_ERROR).then_some(code)
}

/// A number of the kernel's as `bigint`, never cut.
pub(crate) fn bigint(value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::OutOfRange(value))
}

/// The same for a number that may be unknown, which SQL shows as NULL.
pub(crate) fn bigint_or_null(value: Option<u64>) -> Result<Option<i64>, Error> {
    value.map(bigint).transpose()
}

/// A small number of the kernel's as `integer`, never cut; NULL if unknown.
pub(crate) fn integer_or_null<T>(value: Option<T>) -> Result<Option<i32>, Error>
where
    T: Copy + ToString + TryInto<i32>,
{
    let integer = |value: T| {
        let cut = |_| Error::NotInteger(value.to_string());
        value.try_into().map_err(cut)
    };
    value.map(integer).transpose()
}

/// A process number as `integer`.
pub(crate) fn pid_or_error(pid: u32) -> Result<i32, Error> {
    i32::try_from(pid).map_err(|_| Error::OutOfRange(u64::from(pid)))
}
