//! The processes of this server, from shared memory.

use std::{
    collections::{HashMap, HashSet, TryReserveError},
    ffi::{CStr, OsStr},
    os::unix::ffi::OsStrExt,
};

use pgrx::pg_sys;

use super::{c_string, encoding::shown, server::subject};

/// The PID of the parent of all other processes of this server: the postmaster or, in single-user
/// mode, this process.
pub(crate) fn parent_pid() -> u32 {
    subject().postmaster.unwrap_or_else(std::process::id)
}

/// True if the process of [`parent_pid`] is alive.
pub(crate) fn has_parent() -> bool {
    let parent = parent_pid();
    parent == std::os::unix::process::parent_id() || parent == std::process::id()
}

/// The PIDs of processes with a slot in shared memory: all but the postmaster, the logger and
/// processes that are just starting or ending.
pub(crate) fn pids_in_shared_memory() -> Result<HashSet<u32>, TryReserveError> {
    let mut pids = HashSet::new();
    for pid in slots() {
        pids.try_reserve(1)?;
        pids.insert(pid);
    }
    Ok(pids)
}

/// The PIDs in the slots that are in use.
///
/// Uses the owner of each slot's latch, because PostgreSQL 15 leaves the PID in a slot that is no
/// longer used.
fn slots() -> impl Iterator<Item = u32> {
    // SAFETY: set before the server starts its first process, and there for as long as it runs.
    let header = unsafe { &*pg_sys::ProcGlobal };
    let count = usize::try_from(header.allProcCount).unwrap_or_default();
    (0..count).filter_map(|slot| {
        // SAFETY: the array is as long as its header states. A PID is read without a lock, as the
        // server itself does. It can be outdated, and callers verify the process.
        let pid = unsafe {
            (&raw const (*header.allProcs.add(slot)).procLatch.owner_pid).read_volatile()
        };
        u32::try_from(pid).ok().filter(|&pid| pid > 0)
    })
}

/// True if a process serves a client, by its type.
pub(crate) fn is_client_backend(types: &HashMap<u32, String>, pid: u32) -> bool {
    types.get(&pid).is_some_and(|name| name == "client backend")
}

/// The type of each process now, by PID, as in `pg_stat_activity.backend_type`.
pub(crate) fn backend_types() -> Result<HashMap<u32, String>, TryReserveError> {
    let mut types = HashMap::new();
    // SAFETY: the snapshot of this backend is discarded and replaced. Entries stay valid until the
    // next such call, which is after the loop. Each type has a name.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        for index in 1..=pg_sys::pgstat_fetch_stat_numbackends() {
            #[cfg(feature = "pg15")]
            let entry = pg_sys::pgstat_fetch_stat_local_beentry(index).as_ref();
            #[cfg(not(feature = "pg15"))]
            let entry = pg_sys::pgstat_get_local_beentry_by_index(index).as_ref();
            let Some(status) = entry.map(|entry| &entry.backendStatus) else {
                continue;
            };
            let Ok(pid) = u32::try_from(status.st_procpid) else {
                continue;
            };
            let own_name = (status.st_backendType == pg_sys::BackendType::B_BG_WORKER)
                .then(|| worker_type(pid))
                .flatten();
            let name = own_name.unwrap_or_else(|| {
                c_string::text(pg_sys::GetBackendTypeDesc(status.st_backendType))
            });
            types.try_reserve(1)?;
            types.insert(pid, name);
        }
    }
    Ok(types)
}

/// PostgreSQL's name of the logger, which `pg_stat_activity` does not show: `logger`, and
/// `syslogger` since PostgreSQL 19.
pub(crate) fn logger_type() -> String {
    // SAFETY: each type has a name, a static C string.
    unsafe { c_string::text(pg_sys::GetBackendTypeDesc(pg_sys::BackendType::B_LOGGER)) }
}

/// The `bgw_type` of a background worker; `None`: the process is not one.
pub(crate) fn worker_type(pid: u32) -> Option<String> {
    let pid = i32::try_from(pid).ok()?;
    // SAFETY: null, or a static buffer of PostgreSQL's, copied at once.
    unsafe {
        let name = pg_sys::GetBackgroundWorkerTypeByPid(pid);
        (!name.is_null()).then(|| shown(OsStr::from_bytes(CStr::from_ptr(name).to_bytes())))
    }
}
