//! Paths of this server.

use std::{ffi::CStr, path::PathBuf};

use pgrx::pg_sys;

use super::c_string::path;

pub(crate) fn program() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr((&raw const pg_sys::my_exec_path).cast()) })
}

pub(crate) fn data_directory() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr(pg_sys::DataDir) })
}

/// The file that `ALTER SYSTEM` writes.
pub(crate) fn auto_conf() -> PathBuf {
    data_directory().join("postgresql.auto.conf")
}

/// The configuration file.
pub(crate) fn config_file() -> PathBuf {
    // SAFETY: set before the server starts its first process.
    path(unsafe { CStr::from_ptr(pg_sys::ConfigFileName) })
}
