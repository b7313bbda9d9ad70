//! The kernel's numbers as SQL types, never truncated.

use crate::error::Error;

/// A kernel number as `bigint`, never truncated.
pub(crate) fn bigint(value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::OutOfRange(value))
}

/// The same for a number that may be unknown, which SQL shows as NULL.
pub(crate) fn bigint_or_null(value: Option<u64>) -> Result<Option<i64>, Error> {
    value.map(bigint).transpose()
}

/// A small kernel number as `integer`, never truncated; NULL if unknown.
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

/// A process ID as `integer`.
pub(crate) fn pid_or_error(pid: u32) -> Result<i32, Error> {
    i32::try_from(pid).map_err(|_| Error::OutOfRange(u64::from(pid)))
}
