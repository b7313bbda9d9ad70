//! The kernel's numbers as SQL types, never truncated.

use pgrx::warning;

use crate::error::Error;

/// Converts a kernel number to `bigint`, for columns that cannot be NULL.
pub(crate) fn bigint(value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::out_of_range(value))
}

/// Converts a kernel number to `bigint`. Returns NULL if the number is unknown or out of range, so
/// that one invalid counter does not hide all others.
pub(crate) fn bigint_or_null(value: Option<u64>) -> Option<i64> {
    in_range(value?, "bigint")
}

/// Converts a kernel number to `integer`, like [`bigint_or_null`].
pub(crate) fn integer_or_null<T: Copy + ToString + TryInto<i32>>(value: Option<T>) -> Option<i32> {
    in_range(value?, "integer")
}

fn in_range<T: Copy + ToString + TryInto<N>, N>(value: T, sql_type: &str) -> Option<N> {
    let number = value.try_into().ok();
    if number.is_none() {
        let value = value.to_string();
        warning!("{sql_type} out of range: the kernel reported {value}, which is shown as NULL");
    }
    number
}

/// A process ID as `integer`.
pub(crate) fn pid_or_error(pid: u32) -> Result<i32, Error> {
    i32::try_from(pid).map_err(|_| Error::out_of_range(u64::from(pid)))
}
