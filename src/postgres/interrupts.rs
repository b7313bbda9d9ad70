//! Checks for interrupts.

use pgrx::{PgLogLevel, pg_sys::panic::ErrorReport};

use super::memory;
use crate::error::Error;

/// Raises PostgreSQL's error if a cancel or the end of the session is pending, or if memory has run
/// out.
pub(crate) fn check_for_interrupts() {
    if memory::has_run_out() {
        ErrorReport::from(Error::OutOfMemory).report(PgLogLevel::ERROR);
    }
    pgrx::check_for_interrupts!();
}
