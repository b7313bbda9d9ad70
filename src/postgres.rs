//! What the server knows of itself.

use std::{collections::HashMap, ffi::CStr, time::Duration};

use hugeinfo::facts::{HugePages, Server, SharedMemoryType, Subject};
use pgrx::pg_sys;

use crate::error::Error;

/// The settings that decide over huge pages.
pub(crate) fn server() -> Result<Server, Error> {
    let huge_pages = match setting(c"huge_pages")?.as_str() {
        "off" => HugePages::Off,
        "on" => HugePages::On,
        "try" => HugePages::Try,
        _ => return Err(Error::Setting("huge_pages")),
    };
    let shared_memory_type = match setting(c"shared_memory_type")?.as_str() {
        "mmap" => SharedMemoryType::Mmap,
        "sysv" => SharedMemoryType::Sysv,
        _ => return Err(Error::Setting("shared_memory_type")),
    };
    let huge_page_size_kb = number(c"huge_page_size", "huge_page_size")?;
    let shared_memory_mb = number(c"shared_memory_size", "shared_memory_size")?;
    Ok(Server {
        huge_pages,
        shared_memory_type,
        huge_page_size_bytes: (huge_page_size_kb > 0).then_some(huge_page_size_kb << 10),
        shared_memory_bytes: shared_memory_mb << 20,
    })
}

/// The postmaster and an address inside the main segment.
///
/// The buffer blocks lie in it with `shared_memory_type` `mmap` and `sysv` alike. `UsedShmemSegAddr` would not do: with `mmap` it
/// is the small System V segment that guards the data directory.
pub(crate) fn subject() -> Subject {
    // SAFETY: both are set before a backend runs its first query, and never changed after.
    let (postmaster, address) = unsafe {
        (
            pg_sys::PostmasterPid,
            pg_sys::BufferBlocks.expose_provenance(),
        )
    };
    Subject {
        // 0 in single-user mode.
        postmaster: u32::try_from(postmaster).ok().filter(|&pid| pid > 0),
        address: address as u64,
    }
}

fn number(name: &CStr, shown: &'static str) -> Result<u64, Error> {
    setting(name)?.parse().map_err(|_| Error::Setting(shown))
}

/// A setting in its base unit. PostgreSQL raises an error if there is none of that name.
fn setting(name: &CStr) -> Result<String, Error> {
    // SAFETY: with `missing_ok` false the answer is a C string, valid until the next call, and copied before.
    let value = unsafe { CStr::from_ptr(pg_sys::GetConfigOption(name.as_ptr(), false, false)) };
    Ok(value.to_string_lossy().into_owned())
}

/// The process of which all others of this server are children: the postmaster, or this process alone in single-user mode.
pub(crate) fn parent_pid() -> u32 {
    subject().postmaster.unwrap_or_else(std::process::id)
}

/// An address inside the System V segment that guards the data directory.
pub(crate) fn shim_address() -> u64 {
    // SAFETY: set by the postmaster before it forks, and never changed after.
    unsafe { pg_sys::UsedShmemSegAddr.expose_provenance() as u64 }
}

/// The limit on client connections.
pub(crate) fn max_connections() -> u64 {
    // SAFETY: set before the server starts its first process.
    let connections = unsafe { pg_sys::MaxConnections };
    u64::try_from(connections).unwrap_or_default()
}

/// The processes that have a slot in shared memory: all but the postmaster, the logger and those that are just starting or ending.
pub(crate) fn pids_in_shared_memory() -> Vec<u32> {
    // SAFETY: the array is as long as its header says for as long as the server runs. A pid is read without a lock, as the server itself
    // does: it may be out of date, and whoever uses it checks the process.
    let pids: Vec<i32> = unsafe {
        let header = &*pg_sys::ProcGlobal;
        let count = usize::try_from(header.allProcCount).unwrap_or_default();
        (0..count)
            .map(|index| (&raw const (*header.allProcs.add(index)).pid).read_volatile())
            .collect()
    };
    pids.into_iter()
        .filter_map(|pid| u32::try_from(pid).ok())
        .filter(|&pid| pid > 0)
        .collect()
}

/// What PostgreSQL calls each of its processes now, by pid, as `pg_stat_activity.backend_type`.
pub(crate) fn backend_types() -> HashMap<u32, String> {
    let text = |string: *const std::ffi::c_char| {
        // SAFETY: a constant or a static buffer of PostgreSQL's, copied at once.
        unsafe { CStr::from_ptr(string) }
            .to_string_lossy()
            .into_owned()
    };
    // SAFETY: the snapshot of this backend is thrown away and taken anew; entries stay valid until the next such call, which is not made
    // before the loop ends.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        (1..=pg_sys::pgstat_fetch_stat_numbackends())
            .filter_map(|index| {
                #[cfg(feature = "pg15")]
                let entry = pg_sys::pgstat_fetch_stat_local_beentry(index).as_ref()?;
                #[cfg(not(feature = "pg15"))]
                let entry = pg_sys::pgstat_get_local_beentry_by_index(index).as_ref()?;
                let pid = entry.backendStatus.st_procpid;
                let backend_type = entry.backendStatus.st_backendType;
                let name = if backend_type == pg_sys::BackendType::B_BG_WORKER {
                    let name = pg_sys::GetBackgroundWorkerTypeByPid(pid);
                    if name.is_null() {
                        pg_sys::GetBackendTypeDesc(backend_type)
                    } else {
                        name
                    }
                } else {
                    pg_sys::GetBackendTypeDesc(backend_type)
                };
                Some((u32::try_from(pid).ok()?, text(name)))
            })
            .collect()
    }
}

/// Whether text of this database can hold every character.
pub(crate) fn is_utf8_database() -> bool {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    u32::try_from(encoding) == Ok(pg_sys::pg_enc::PG_UTF8)
}

/// Raises PostgreSQL's error if a cancel or the end of the session is pending.
pub(crate) fn check_for_interrupts() {
    pgrx::check_for_interrupts!();
}

/// Waits that long; a cancel or the end of the server ends it at once.
pub(crate) fn wait(duration: Duration) {
    let end = std::time::Instant::now() + duration;
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    loop {
        check_for_interrupts();
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        let milliseconds = i64::try_from(left.as_millis())
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        // SAFETY: the latch is this backend's own.
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
