//! File descriptors that this backend keeps.

use pgrx::pg_sys;

/// PostgreSQL's account of descriptors that others keep open (storage/file/fd.c).
pub(crate) struct Descriptors(usize);

impl Descriptors {
    /// Accounts for this many. `None`: this backend has too many already.
    pub(crate) fn acquire(count: usize) -> Option<Self> {
        let mut acquired = Self(0);
        for _ in 0..count {
            // SAFETY: counts, and closes files that PostgreSQL can open again.
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
            // SAFETY: counts.
            unsafe { pg_sys::ReleaseExternalFD() };
        }
    }
}
