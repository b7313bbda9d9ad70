//! `hugeinfo_status`: the answer for this server, in one row.

use hugeinfo::advice::{diagnosis, render, status::StatusRow};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    numbers::bigint_or_null,
    postgres::encoding::{shown, shown_lines},
    views::answer,
};

/// Returns one row: whether huge pages back the main shared memory segment, whether a restart would
/// get them, and the problem that was found, if any.
///
/// Errors: 58030 if listing the server's processes or reading one of their files fails, 58000 if
/// such a file has an unknown format. Failures of other sources are not errors. Columns are then
/// NULL, and `status` reports the failure.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_status() -> Result<
    TableIterator<
        'static,
        (
            name!(status, &'static str),
            name!(code, &'static str),
            name!(reason, String),
            name!(huge_pages, &'static str),
            name!(shared_memory_type, &'static str),
            name!(in_use, Option<bool>),
            name!(page_size_bytes, Option<i64>),
            name!(segment_bytes, Option<i64>),
            name!(segment_pages, Option<i64>),
            name!(huge_page_size_bytes, Option<i64>),
            name!(required_huge_pages, Option<i64>),
            name!(pool_total_pages, Option<i64>),
            name!(pool_available_pages, Option<i64>),
            name!(shortfall_pages, Option<i64>),
            name!(fits_after_restart, Option<bool>),
            name!(recommended_nr_hugepages, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let row = || {
        let machine = machine::for_status()?;
        let row = StatusRow::of(&machine);
        let needs_remedy = matches!(row.status, "warning" | "critical");
        let row = (
            row.status,
            row.code,
            shown(row.reason),
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
        );
        machine::keep_for_remedy(needs_remedy.then_some(machine));
        Ok::<_, Error>(row)
    };
    Ok(TableIterator::once(answer(row)?))
}

/// Returns the remedy if `hugeinfo_status()` finds a problem, else NULL, from the facts that
/// `hugeinfo_status()` read in the same statement. A separate function, so that `SELECT status`
/// does not read the files of the next boot. Stable, because the planner never leaves out a
/// volatile function.
///
/// Errors: as for `hugeinfo_status()`.
#[pg_extern(stable, parallel_restricted, cost = 10000)]
fn hugeinfo_remedy() -> Result<Option<String>, ErrorReport> {
    let remedy = || {
        let mut machine = machine::for_remedy()?;
        let mut remedy = diagnosis::remedy(&machine);
        if diagnosis::depends_on_all_processes(&machine, &remedy) {
            machine = machine::with_all_processes(machine)?;
            remedy = diagnosis::remedy(&machine);
        }
        Ok::<_, Error>(render::remedy(&machine, &remedy).map(shown_lines))
    };
    answer(remedy)
}

extension_sql_file!(
    "hugeinfo_status.sql",
    requires = [hugeinfo_status, hugeinfo_remedy]
);
