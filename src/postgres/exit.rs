//! The end of this backend.

use std::sync::OnceLock;

use pgrx::{pg_sys, prelude::*};

static LAST: OnceLock<fn()> = OnceLock::new();

/// Registers a function to call if this backend ends with an error that does not unwind: the end of
/// the session or of the server. Only the first registration counts.
pub(crate) fn call_at_exit(last: fn()) {
    #[pg_guard]
    extern "C-unwind" fn call(_code: i32, _argument: pg_sys::Datum) {
        if let Some(last) = LAST.get() {
            last();
        }
    }
    if LAST.set(last).is_ok() {
        // SAFETY: registers a function that stays where it is.
        unsafe { pg_sys::on_proc_exit(Some(call), 0.into()) };
    }
}
