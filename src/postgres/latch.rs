//! Waits on the latch of this backend.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    time::{Duration, Instant},
};

use pgrx::pg_sys;

use super::interrupts::check_for_interrupts;

/// Waits for this duration. A cancel or the end of the server ends the wait at once.
pub(crate) fn wait(duration: Duration) {
    let end = Instant::now() + duration;
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    loop {
        check_for_interrupts();
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let milliseconds = i64::try_from(left.as_millis())
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        // SAFETY: the latch belongs to this backend.
        unsafe {
            pg_sys::WaitLatch(
                pg_sys::MyLatch,
                events.cast_signed(),
                milliseconds,
                pg_sys::PG_WAIT_EXTENSION,
            );
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
}

/// Waits until the descriptor is readable, at most for this duration. A cancel or the end of the
/// server ends the wait at once.
pub(crate) fn wait_readable(source: BorrowedFd<'_>, longest: Duration) {
    let events = pg_sys::WL_LATCH_SET
        | pg_sys::WL_SOCKET_READABLE
        | pg_sys::WL_TIMEOUT
        | pg_sys::WL_EXIT_ON_PM_DEATH;
    let milliseconds = i64::try_from(longest.as_millis())
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    check_for_interrupts();
    // SAFETY: the latch belongs to this backend, and the descriptor is open.
    unsafe {
        pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events.cast_signed(),
            source.as_raw_fd(),
            milliseconds,
            pg_sys::PG_WAIT_EXTENSION,
        );
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts();
}
