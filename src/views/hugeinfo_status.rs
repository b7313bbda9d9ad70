//! `hugeinfo_status`: the answer for this server, in one row.

use hugeinfo::{
    advice::{diagnosis, render},
    linux::pages::pages_required,
    model::forecast::{self, Forecast},
    server::facts::Server,
};
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
        let facts = &machine.facts;
        let verdict = diagnosis::verdict(&machine);
        let segment = facts.segment.as_ref().ok();
        let segment_pages =
            segment.and_then(|segment| Some(segment.bytes.div_ceil(segment.page_bytes?)));
        // Computed as if the server requested huge pages, with the size that is set.
        let next = Server {
            huge_page_size_bytes: facts.next_start().huge_page_size_bytes,
            ..machine.next_start_on_huge_pages()
        };
        let asked_for = machine.size_asked_for(&next).map(|size| size.0);
        let target = Forecast::of_target(&machine);
        let target = target.as_ref();
        // The kernel does not have the size, or the pools are unknown: compute from the requested
        // size.
        let required = match target {
            Some(target) => Some(target.required.0),
            None => asked_for.map(|page_bytes| pages_required(facts.needed_bytes(), page_bytes)),
        };
        let needs_remedy = verdict.status.needs_attention();
        let row = (
            verdict.status.as_str(),
            verdict.code,
            shown(verdict.reason),
            facts.server.huge_pages.as_str(),
            facts.server.shared_memory_type.as_str(),
            machine.is_on_huge_pages(),
            bigint_or_null(facts.page_bytes()),
            bigint_or_null(segment.map(|segment| segment.bytes)),
            bigint_or_null(segment_pages),
            bigint_or_null(asked_for),
            bigint_or_null(required),
            bigint_or_null(target.map(|target| target.pool.total)),
            bigint_or_null(target.map(|target| target.pool.available())),
            bigint_or_null(
                target
                    .and_then(|target| target.shortfall)
                    .map(|pages| pages.0),
            ),
            forecast::fits(&machine.with_next_start(next)),
            bigint_or_null(target.and_then(Forecast::recommended).map(|pages| pages.0)),
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
        let machine = machine::for_remedy()?;
        let remedy = diagnosis::remedy(&machine);
        Ok::<_, Error>(render::remedy(&machine, &remedy).map(shown_lines))
    };
    answer(remedy)
}

extension_sql_file!(
    "hugeinfo_status.sql",
    requires = [hugeinfo_status, hugeinfo_remedy]
);
