//! Settings of this server for huge pages, and the address of its main segment.

use std::ffi::CStr;

use host::server::{
    facts::Subject,
    state::{HugePages, Server, SharedMemoryType},
};
use pgrx::pg_sys;

use super::{settings::setting, values::whole_number};
use crate::error::Error;

/// The settings that affect huge pages.
pub(crate) fn server() -> Result<Server, Error> {
    let shared_memory_mb: u64 = setting(c"shared_memory_size")
        .parse()
        .map_err(|_| Error::setting("shared_memory_size"))?;
    server_with(setting, shared_memory_mb << 20)
}

/// Like [`server`], with settings written as in a configuration file.
pub(crate) fn server_with(
    setting: impl Fn(&'static CStr) -> String,
    shared_memory_bytes: u64,
) -> Result<Server, Error> {
    let huge_pages =
        HugePages::parse(&setting(c"huge_pages")).ok_or_else(|| Error::setting("huge_pages"))?;
    let shared_memory_type = SharedMemoryType::parse(&setting(c"shared_memory_type"))
        .ok_or_else(|| Error::setting("shared_memory_type"))?;
    let huge_page_size_kb = whole_number(&setting(c"huge_page_size"), pg_sys::GUC_UNIT_KB)
        .ok_or_else(|| Error::setting("huge_page_size"))?;
    Ok(Server {
        huge_pages,
        shared_memory_type,
        huge_page_size_bytes: (huge_page_size_kb > 0).then_some(huge_page_size_kb << 10),
        shared_memory_bytes,
    })
}

/// Whether this server is in recovery now.
pub(crate) fn is_in_recovery() -> bool {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Returns the postmaster and an address inside the main segment.
///
/// The buffer blocks are in the main segment with `shared_memory_type` `mmap` and `sysv`.
/// `UsedShmemSegAddr` is not: with `mmap` it is the small System V segment that guards the data
/// directory.
pub(crate) fn subject() -> Subject {
    // SAFETY: both are set before a backend runs its first query, and never change afterwards.
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

/// The key of the server's System V segment: the main segment, or the one that guards the data
/// directory.
pub(crate) fn system_v_key() -> i32 {
    // SAFETY: set by the postmaster before it forks, and never changed afterwards. The value is a
    // widened key (port/sysv_shmem.c `PGSharedMemoryCreate`).
    let widened = unsafe { pg_sys::UsedShmemSegID };
    u32::try_from(widened & u64::from(u32::MAX))
        .unwrap_or_default()
        .cast_signed()
}

/// The handle of the control segment of this server's dynamic shared memory. `None`: there is none.
pub(crate) fn dynamic_control() -> Option<u32> {
    // SAFETY: the segment begins with this header, and is attached as long as the server runs. The
    // handle is set before the first backend starts.
    let header = unsafe {
        pg_sys::UsedShmemSegAddr
            .cast::<pg_sys::PGShmemHeader>()
            .as_ref()
    };
    header
        .map(|header| header.dsm_control)
        .filter(|&control| control != 0)
}

/// An address inside the System V segment that guards the data directory.
pub(crate) fn shim_address() -> u64 {
    // SAFETY: set by the postmaster before it forks, and never changed afterwards.
    unsafe { pg_sys::UsedShmemSegAddr.expose_provenance() as u64 }
}
