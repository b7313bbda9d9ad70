//! The start of the current statement.

use pgrx::pg_sys;

/// Start of the current client message, in microseconds since 2000. Statements that are sent
/// together, and those within a function, share it.
pub(crate) fn statement_start() -> i64 {
    // SAFETY: reads a variable.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}
