//! Privileges of the caller on server files and settings.

use pgrx::pg_sys;

/// True if the caller can read files of this server anyway with `COPY`, including `/proc/PID/maps`.
pub(crate) fn may_read_server_files() -> bool {
    has(pg_sys::ROLE_PG_READ_SERVER_FILES)
}

/// True if the caller can see the source files of settings, as in `pg_settings`.
pub(crate) fn may_read_all_settings() -> bool {
    has(pg_sys::ROLE_PG_READ_ALL_SETTINGS)
}

fn has(role: u32) -> bool {
    // SAFETY: reads the caches of this backend.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(role)) }
}
