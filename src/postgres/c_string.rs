//! C strings of PostgreSQL.

use std::{
    ffi::{CStr, OsStr, c_char},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

pub(super) fn path(name: &CStr) -> PathBuf {
    OsStr::from_bytes(name.to_bytes()).into()
}

/// Copies a C string to a Rust string.
///
/// # Safety
///
/// `string` points to a C string.
pub(super) unsafe fn text(string: *const c_char) -> String {
    // SAFETY: the caller passes a C string.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}
