//! The current time, and the start of the current statement.

use std::time::{SystemTime, UNIX_EPOCH};

use pgrx::pg_sys;

/// Start of the current client message, in microseconds since 2000. Statements that are sent
/// together, and those within a function, share it.
pub(crate) fn statement_start() -> i64 {
    // SAFETY: reads a variable.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

/// The time in UTC as text. `to_char` does not support every encoding.
pub(crate) fn utc_now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    let Ok(seconds) = libc::time_t::try_from(seconds) else {
        return String::new();
    };
    // SAFETY: plain numbers, and a null pointer that is not followed.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: reads a number, writes the parts.
    if unsafe { libc::gmtime_r(&raw const seconds, &raw mut parts) }.is_null() {
        return String::new();
    }
    format!(
        "{}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}
