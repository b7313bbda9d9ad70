//! File descriptors that this backend keeps open outside PostgreSQL's own files.

use pgrx::pg_sys;

/// Descriptors that PostgreSQL counts as external (storage/file/fd.c `AcquireExternalFD`).
pub(crate) struct Descriptors(usize);

impl Descriptors {
    /// Reserves descriptors. `None`: the limit of this backend for external descriptors is reached.
    pub(crate) fn acquire(count: usize) -> Option<Self> {
        let mut acquired = Self(0);
        for _ in 0..count {
            // SAFETY: changes a counter, and closes files that PostgreSQL can open again.
            if !unsafe { pg_sys::AcquireExternalFD() } {
                return None;
            }
            acquired.0 += 1;
        }
        Some(acquired)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            // SAFETY: changes a counter.
            unsafe { pg_sys::ReleaseExternalFD() };
        }
    }
}
