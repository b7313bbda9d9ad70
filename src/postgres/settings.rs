//! The settings of the server.

use std::{cell::Cell, ffi::CStr};

use host::next_start::SIZING;
use pgrx::pg_sys;

use super::c_string;

/// Settings that affect the main segment and its pages. Advice needs the source of each.
pub(super) const WATCHED: [&CStr; 6] = [
    c"huge_page_size",
    c"huge_pages",
    c"max_connections",
    c"min_dynamic_shared_memory",
    c"shared_buffers",
    c"shared_memory_type",
];

/// A setting in its base unit. PostgreSQL raises an error if there is no such setting.
pub(crate) fn setting(name: &CStr) -> String {
    // SAFETY: with `missing_ok` false, the result is a C string that is valid until the next call,
    // and is copied before.
    unsafe { c_string::text(pg_sys::GetConfigOption(name.as_ptr(), false, false)) }
}

/// A setting as `SHOW` prints it; `None`: there is no such setting.
pub(super) fn shown(name: &CStr) -> Option<String> {
    // SAFETY: with `missing_ok` true, the result is a null pointer if there is no such setting;
    // else a C string in the current memory context, which is copied at once.
    unsafe {
        let value = pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true);
        (!value.is_null()).then(|| c_string::text(value))
    }
}

/// The limit on client connections.
pub(crate) fn max_connections() -> u64 {
    // SAFETY: set before the server starts its first process.
    let connections = unsafe { pg_sys::MaxConnections };
    u64::try_from(connections).unwrap_or_default()
}

/// Bytes of a buffer.
pub(crate) const BLOCK_BYTES: u64 = pg_sys::BLCKSZ as u64;

/// `shared_buffers`.
pub(crate) fn shared_buffers_bytes() -> u64 {
    // SAFETY: set before the server starts its first process.
    let blocks = unsafe { pg_sys::NBuffers };
    u64::try_from(blocks).unwrap_or_default() * BLOCK_BYTES
}

/// False if `ALTER SYSTEM` is forbidden (PostgreSQL 17).
pub(crate) fn allows_alter_system() -> bool {
    shown(c"allow_alter_system").is_none_or(|value| value == "on")
}

/// Libraries can allocate shared memory.
pub(crate) const LIBRARIES: &CStr = c"shared_preload_libraries";

/// True if one of [`SIZING`] or the libraries is pending a restart, as of the last reload.
pub(super) fn wait_for_restart() -> bool {
    sizing().any(is_pending) || waits_for_restart(LIBRARIES)
}

/// True if the setting is pending a restart, as of the last reload.
pub(crate) fn waits_for_restart(name: &CStr) -> bool {
    with_setting(name, is_pending).unwrap_or(false)
}

fn is_pending(record: &pg_sys::config_generic) -> bool {
    record.status & pg_sys::GUC_PENDING_RESTART.cast_signed() != 0
}

/// The settings in [`SIZING`] that this version of PostgreSQL has. Looked up once, because each
/// `hugeinfo_status` needs all of them.
pub(super) fn sizing() -> impl Iterator<Item = &'static pg_sys::config_generic> {
    type Records = [*const pg_sys::config_generic; SIZING.len()];
    thread_local! {
        static RECORDS: Cell<Option<Records>> = const { Cell::new(None) };
    }
    let records = RECORDS.get().unwrap_or_else(|| SIZING.map(find));
    RECORDS.set(Some(records));
    // SAFETY: null, or a record that is never freed.
    records
        .into_iter()
        .filter_map(|record| unsafe { record.as_ref() })
}

/// Lets PostgreSQL check a value as in ALTER SYSTEM, and raise its own error. Changes nothing.
pub(crate) fn check_setting(name: &CStr, value: &CStr) {
    // SAFETY: with `changeVal` false, the value is only checked.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_POSTMASTER,
            pg_sys::GucSource::PGC_S_FILE,
            pg_sys::GucAction::GUC_ACTION_SET,
            false,
            pg_sys::PGERROR.cast_signed(),
            false,
        );
    }
}

/// True if the server or a loaded library has defined a setting. A setting with an unknown prefix
/// can have a value without a definition.
pub(crate) fn is_defined(name: &CStr) -> bool {
    let placeholder = pg_sys::GUC_CUSTOM_PLACEHOLDER.cast_signed();
    with_setting(name, |record| record.flags & placeholder == 0).unwrap_or(false)
}

/// True if a setting is from the command line, which takes precedence over any configuration file.
pub(crate) fn is_from_command_line(name: &CStr) -> bool {
    with_setting(name, |record| {
        record.source == pg_sys::GucSource::PGC_S_ARGV
    })
    .unwrap_or(false)
}

/// Calls `look` with the setting. `None`: there is no such setting.
pub(super) fn with_setting<T>(
    name: &CStr,
    look: impl FnOnce(&pg_sys::config_generic) -> T,
) -> Option<T> {
    // SAFETY: null, or a record that is never freed.
    unsafe { find(name).as_ref() }.map(look)
}

/// Searches an array that is sorted by name, ignoring case (utils/misc/guc.c `guc_name_compare`).
#[cfg(feature = "pg15")]
fn find(name: &CStr) -> *const pg_sys::config_generic {
    let folded = |name: &'static CStr| name.to_bytes().iter().map(u8::to_ascii_lowercase);
    let wanted = || name.to_bytes().iter().map(u8::to_ascii_lowercase);
    // SAFETY: the array has this many pointers, to records that are never freed and have names.
    unsafe {
        let count = usize::try_from(pg_sys::GetNumConfigOptions()).unwrap_or_default();
        let all = std::slice::from_raw_parts(pg_sys::get_guc_variables(), count);
        let order = |&record: &*mut pg_sys::config_generic| {
            folded(CStr::from_ptr((*record).name)).cmp(wanted())
        };
        all.binary_search_by(order)
            .map_or(std::ptr::null(), |index| all[index])
    }
}

/// PostgreSQL's own list of settings would be copied and sorted at each call.
#[cfg(not(feature = "pg15"))]
fn find(name: &CStr) -> *const pg_sys::config_generic {
    // SAFETY: creates no setting and raises no error.
    unsafe { pg_sys::find_option(name.as_ptr(), false, true, pg_sys::PGERROR.cast_signed()) }
}
