//! What the caller may see.

use pgrx::pg_sys;

/// Whether the caller may read files of this server anyway, `/proc/PID/maps` among them, by `COPY`.
pub(crate) fn may_read_server_files() -> bool {
    has(pg_sys::ROLE_PG_READ_SERVER_FILES)
}

/// Whether the caller may see which files settings come from, as in `pg_settings`.
pub(crate) fn may_read_all_settings() -> bool {
    has(pg_sys::ROLE_PG_READ_ALL_SETTINGS)
}

fn has(role: u32) -> bool {
    // SAFETY: looks up what the caches of this backend have.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(role)) }
}
