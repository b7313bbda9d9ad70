//! PostgreSQL's strings.

use std::{
    ffi::{CStr, OsStr, c_char},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

/// A name of a file.
pub(super) fn path(name: &CStr) -> PathBuf {
    OsStr::from_bytes(name.to_bytes()).into()
}

/// A copy as a Rust string.
///
/// # Safety
///
/// A C string.
pub(super) unsafe fn text(string: *const c_char) -> String {
    // SAFETY: as declared.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}
