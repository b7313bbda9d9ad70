//! Which SQLSTATE, detail and hint an error gets.

use hugeinfo::error::{Absence, ReadError};
use pgrx::{PgSqlErrorCode, pg_sys::panic::ErrorReport};

/// All that can go wrong in this extension.
#[derive(Debug)]
pub(crate) enum Error {
    /// A kernel file could not be read or understood.
    Read(ReadError),
    /// The kernel reported a number beyond `bigint`.
    OutOfRange(u64),
    /// The kernel reported a number beyond `integer`, where it has no use for so large ones.
    NotInteger(String),
    /// The server has a setting of a value that this version of the extension doesn't know.
    Setting(&'static str),
    /// A sample that is too short or too long.
    SampleLength,
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        use PgSqlErrorCode::{
            ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_INSUFFICIENT_PRIVILEGE,
            ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_IO_ERROR, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            ERRCODE_SYSTEM_ERROR, ERRCODE_UNDEFINED_FILE,
        };
        const REPORT: &str = "This kernel writes the file in a form that pg_hugeinfo does not know. Please report it with the file's text and the kernel's version.";
        let (code, message, hint) = match &error {
            Error::Read(read) => {
                let (code, hint) = match read {
                    ReadError::Absent(absent) if absent.why == Absence::Denied => {
                        (ERRCODE_INSUFFICIENT_PRIVILEGE, None)
                    }
                    ReadError::Absent(_) => (ERRCODE_UNDEFINED_FILE, None),
                    ReadError::Io { .. } => (ERRCODE_IO_ERROR, None),
                    ReadError::Malformed { .. } => (ERRCODE_SYSTEM_ERROR, Some(REPORT)),
                };
                (code, read.to_string(), hint)
            }
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
                Some("Update pg_hugeinfo to a version made for this PostgreSQL."),
            ),
            Error::SampleLength => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "duration must be longer than zero and at most one hour".to_owned(),
                Some("For a longer sample, take the difference of two reads of hugeinfo_backends."),
            ),
        };
        let report = Self::new(code, message, "pg_hugeinfo");
        match hint {
            Some(hint) => report.set_hint(hint),
            None => report,
        }
    }
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
