//! `hugeinfo_memory(pid)`: the memory of one process, with shared memory divided by the number of
//! processes that share it.

use host::linux::{error::absent_or, process::smaps};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error, numbers::bigint_or_null, postgres::interrupts::check_for_interrupts, processes,
};

functions! {
    cost = 1000000;
    /// Memory of this backend from /proc/PID/smaps_rollup: RSS, PSS, USS, swap and huge pages.
    view hugeinfo_memory;
    columns (
        /// Process ID.
        name!(pid, i32),
        /// Bytes in RAM, without huge pages (Rss).
        name!(rss_bytes, Option<i64>),
        /// rss_bytes with each page divided by the number of processes that map it (Pss).
        name!(pss_bytes, Option<i64>),
        /// The private part of pss_bytes (Pss_Anon).
        name!(pss_anon_bytes, Option<i64>),
        /// The part of pss_bytes that belongs to files (Pss_File).
        name!(pss_file_bytes, Option<i64>),
        /// The part of pss_bytes that is shared memory on small pages (Pss_Shmem).
        name!(pss_shmem_bytes, Option<i64>),
        /// Bytes that no other process maps (Private_Clean plus Private_Dirty).
        name!(uss_bytes, Option<i64>),
        /// Bytes swapped out, with each page divided by the number of processes that share it
        /// (SwapPss).
        name!(swap_pss_bytes, Option<i64>),
        /// Bytes of private memory on transparent huge pages (AnonHugePages).
        name!(anon_thp_bytes, Option<i64>),
        /// Bytes of shared memory on transparent huge pages (ShmemPmdMapped).
        name!(shmem_thp_bytes, Option<i64>),
        /// Bytes of huge pages that other processes also map (Shared_Hugetlb), not included in
        /// other columns.
        name!(shared_hugetlb_bytes, Option<i64>),
        /// Bytes of huge pages that no other process maps (Private_Hugetlb), not included in other
        /// columns.
        name!(private_hugetlb_bytes, Option<i64>),
    );
    /// Memory of one process of this server from /proc/PID/smaps_rollup: RSS, PSS, USS, swap and
    /// huge pages.
    fn hugeinfo_memory(pid: default!(i32, "pg_catalog.pg_backend_pid()")) {
        row(pid)
    }
}

/// Returns one row for a process of this server. Walks its page tables, which takes time in
/// proportion to the small pages that it has faulted in.
///
/// Reads the process directly, so it waits while that process holds the lock of its memory. The
/// caller has named the process, and no time limit suits all sizes.
///
/// A PID that does not belong to this server raises a warning and returns no row. NULL returns no
/// row. Columns are NULL if access to `/proc/PID/smaps` is denied. Errors: as for
/// `hugeinfo_status`.
fn row(pid: i32) -> Result<Option<Row>, Error> {
    let Some(process) = processes::one(pid)? else {
        return Ok(None);
    };
    let total = absent_or(smaps::total(&process, check_for_interrupts))?;
    // If access is denied, all columns are NULL.
    if total.is_err() && processes::has_ended(&process)? {
        return Ok(None);
    }
    let figures = total.unwrap_or_default();
    Ok(Some((
        pid,
        bigint_or_null(figures.rss),
        bigint_or_null(figures.pss),
        bigint_or_null(figures.pss_anon),
        bigint_or_null(figures.pss_file),
        bigint_or_null(figures.pss_shmem),
        bigint_or_null(figures.uss()),
        bigint_or_null(figures.swap_pss),
        bigint_or_null(figures.anon_huge_pages),
        bigint_or_null(figures.shmem_pmd_mapped),
        bigint_or_null(figures.shared_hugetlb),
        bigint_or_null(figures.private_hugetlb),
    )))
}
