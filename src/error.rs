//! The errors of this extension.

use std::{
    collections::TryReserveError,
    io,
    path::{Path, PathBuf},
};

use host::{
    escape,
    linux::error::{Absence, ReadError, of_start},
    next_start::{Failure, failed_start::FailedStart},
};
use pgrx::{
    PgSqlErrorCode::{self, *},
    pg_sys::panic::ErrorReport,
};

use crate::postgres::encoding::shown_lines;

/// Variants are errors that a caller handles, or that several places raise.
#[derive(Debug)]
pub(crate) enum Error {
    /// A kernel file could not be read or understood.
    Read(ReadError),
    /// An allocation failed.
    OutOfMemory,
    /// An action on a file failed.
    File {
        /// The verb after "could not".
        action: &'static str,
        path: PathBuf,
        source: io::Error,
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
    /// Any other error, as the user sees it.
    Other(Box<Other>),
}

/// SQLSTATE, text and hint.
#[derive(Debug)]
pub(crate) struct Other {
    code: PgSqlErrorCode,
    message: String,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self::Other(Box::new(Other {
            code,
            message: message.into(),
            hint: None,
        }))
    }

    /// Adds a hint to an error of [`Self::new`].
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Other(other) = &mut self {
            other.hint = Some(hint.into());
        }
        self
    }

    /// An invalid argument.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// A setting of the server whose value this version does not know.
    pub(crate) fn setting(name: &str) -> Self {
        let message = format!("setting \"{name}\" has a value that pg_hugeinfo does not support");
        Self::new(ERRCODE_FEATURE_NOT_SUPPORTED, message)
            .hint("Update pg_hugeinfo to a version that supports this PostgreSQL release.")
    }

    /// A number of the kernel that is too large for `bigint`.
    pub(crate) fn out_of_range(value: u64) -> Self {
        let message = format!("bigint out of range: the kernel reported {value}");
        Self::new(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, message)
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

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::Refused {
                refusal,
                planned: String::new(),
            },
            Failure::File(error) => {
                let path = escape::name(&error.path);
                let message = format!("could not {} \"{path}\": {}", error.action, error.source);
                Self::new(code_of(&error.source), message).hint("A plan temporarily needs about 12 kB in the directory that TMPDIR names in the server's environment, or in /tmp.")
            }
        }
    }
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Self::OutOfMemory
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        const REPORT: &str = "pg_hugeinfo does not support this file format. Report this as a bug, with the contents of the file and the kernel version.";
        let mut detail = None;
        let (code, message, hint) = match error {
            Error::Other(other) => (other.code, other.message, other.hint),
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
            Error::File {
                action,
                path,
                source,
            } => {
                let why = of_start(&source);
                let message = format!("could not {action} \"{}\": {why}", escape::name(path));
                (code_of(&source), message, None)
            }
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
            Error::RefusedForOthers {
                is_of_configuration: true,
            } => (
                ERRCODE_CONFIG_FILE_ERROR,
                "the configuration files contain an error that prevents the next start".to_owned(),
                Some("A superuser can see the error in hugeinfo_checks or pg_file_settings.".to_owned()),
            ),
            Error::RefusedForOthers {
                is_of_configuration: false,
            } => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                "PostgreSQL's program did not compute the size of shared memory; a superuser can see the reason".to_owned(),
                Some("Run SELECT * FROM hugeinfo_plan() as a superuser.".to_owned()),
            ),
        };
        let mut report = Self::new(code, shown_lines(message), "pg_hugeinfo");
        if let Some(detail) = detail {
            report = report.set_detail(shown_lines(detail));
        }
        match hint {
            Some(hint) => report.set_hint(shown_lines(hint)),
            None => report,
        }
    }
}

/// Like PostgreSQL's `errcode_for_file_access`.
fn code_of(error: &io::Error) -> PgSqlErrorCode {
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

/// The SQLSTATE of an error of PostgreSQL's program. `None`: "internal error", which is unspecific.
fn code_of_state(state: [u8; 5]) -> Option<PgSqlErrorCode> {
    // MAKE_SQLSTATE of utils/elog.h: six bits for each character.
    let packed = state.iter().rev().fold(0, |packed, &character| {
        (packed << 6) | (i32::from(character) - i32::from(b'0')) & 0x3F
    });
    let code = PgSqlErrorCode::from(packed);
    (code != PgSqlErrorCode::ERRCODE_INTERNAL_ERROR).then_some(code)
}
