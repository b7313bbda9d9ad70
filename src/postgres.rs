//! What the server knows of itself.

use std::ffi::CStr;

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
