//! `hugeinfo_status`: the answer for this server, in one row.

use advice::{render, status::StatusRow};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    machine,
    numbers::bigint_or_null,
    postgres::encoding::{shown, shown_lines},
};

functions! {
    cost = 10000;
    /// Whether huge pages back this server, whether a restart would get them, what is wrong, and
    /// the lines to paste: one row, read from the kernel now.
    view hugeinfo_status;
    columns (
        /// ok, unknown, warning or critical: the worst of the checks cgroup_fault_limit,
        /// huge_pages, restart and pool_size, and any critical check.
        name!(status, &'static str),
        /// Stable reason for programs, such as fell_back.
        name!(code, &'static str),
        /// The worst finding as text or, if the status is ok, the pages of the segment and what a
        /// restart would get.
        name!(reason, String),
        /// Lines to paste, including the line for the next boot; NULL if there is nothing to do.
        name!(remedy, Option<String>),
        /// Setting huge_pages of the running server: off, on or try.
        name!(huge_pages, &'static str),
        /// Setting shared_memory_type of the running server; only mmap can use huge pages.
        name!(shared_memory_type, &'static str),
        /// Whether the kernel backs the main shared memory segment with huge pages of a pool;
        /// transparent huge pages do not count.
        name!(in_use, Option<bool>),
        /// Bytes of a page that backs the main segment, huge or not.
        name!(page_size_bytes, Option<i64>),
        /// Bytes of the main shared memory segment.
        name!(segment_bytes, Option<i64>),
        /// Pages of page_size_bytes in the main segment.
        name!(segment_pages, Option<i64>),
        /// Bytes of a huge page that the server asks for (huge_page_size, or the default size of
        /// the kernel); NULL if the kernel has none.
        name!(huge_page_size_bytes, Option<i64>),
        /// Huge pages of huge_page_size_bytes that the main segment needs at the next start,
        /// rounded up, with settings that are pending a restart.
        name!(required_huge_pages, Option<i64>),
        /// Pages in the pool of huge_page_size_bytes, including surplus pages.
        name!(pool_total_pages, Option<i64>),
        /// Pages of that pool that a new mapping could get now: free minus reserved, plus surplus
        /// pages that are still allowed.
        name!(pool_available_pages, Option<i64>),
        /// Pages to add to that pool so that a restart gets huge pages, or 0; pages that this
        /// server releases count as available.
        name!(shortfall_pages, Option<i64>),
        /// Whether a restart would get huge pages from the pool and within the cgroup limit on
        /// reservations, regardless of the setting huge_pages.
        name!(fits_after_restart, Option<bool>),
        /// Pages that the pool should have. The number can be too low while this server is healthy,
        /// because boot files and other servers on small pages are not read then; to size a pool,
        /// use hugeinfo_pools.
        name!(recommended_nr_hugepages, Option<i64>),
    );
    fn hugeinfo_status() {
        rows()
    }
}

/// Returns one row: whether huge pages back the main shared memory segment, whether a restart would
/// get them, and the problem that was found, if any.
///
/// Errors: 58030 if listing the server's processes or reading one of their files fails, 58000 if
/// such a file has an unknown format. Failures of other sources are not errors. Columns are then
/// NULL, and `status` reports the failure.
fn rows() -> Result<[Row; 1], Error> {
    let (machine, verdict, remedy) = machine::status()?;
    let row = StatusRow::of(&machine, &verdict);
    Ok([(
        row.status,
        row.code,
        shown(row.reason),
        render::remedy(&machine, &remedy).map(shown_lines),
        row.huge_pages,
        row.shared_memory_type,
        row.in_use,
        bigint_or_null(row.page_size_bytes),
        bigint_or_null(row.segment_bytes),
        bigint_or_null(row.segment_pages),
        bigint_or_null(row.huge_page_size_bytes),
        bigint_or_null(row.required_huge_pages),
        bigint_or_null(row.pool_total_pages),
        bigint_or_null(row.pool_available_pages),
        bigint_or_null(row.shortfall_pages),
        row.fits_after_restart,
        bigint_or_null(row.recommended_nr_hugepages),
    )])
}
