//! `hugeinfo_pressure`: memory shortage of the host and of the server's cgroups.

use hugeinfo::{
    linux::{pressure::Stalls, root::Root},
    server::memory_pressure,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    numbers::bigint_or_null,
    postgres::{encoding::shown, server::subject},
    views::answer,
};

/// Returns the host, then the memory cgroups of the postmaster, nearest first.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_pressure() -> Result<
    TableIterator<
        'static,
        (
            name!(scope, &'static str),
            name!(path, Option<String>),
            name!(memory_limit_bytes, Option<i64>),
            name!(memory_used_bytes, Option<i64>),
            name!(limit_hits, Option<i64>),
            name!(high_hits, Option<i64>),
            name!(oom_kills, Option<i64>),
            name!(some_avg10_percent, Option<f64>),
            name!(some_avg60_percent, Option<f64>),
            name!(some_avg300_percent, Option<f64>),
            name!(some_stall_microseconds, Option<i64>),
            name!(full_avg10_percent, Option<f64>),
            name!(full_avg60_percent, Option<f64>),
            name!(full_avg300_percent, Option<f64>),
            name!(full_stall_microseconds, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let process = subject().postmaster.unwrap_or_else(std::process::id);
        let levels = memory_pressure::read(&Root::system(), process)?;
        let rows = levels.into_iter().map(|level| {
            let shortage = level.shortage;
            let some = shortage.pressure.and_then(|pressure| pressure.some);
            let full = shortage.pressure.and_then(|pressure| pressure.full);
            let total = |stalls: Option<Stalls>| bigint_or_null(stalls.map(|stalls| stalls.total));
            Ok::<_, Error>((
                if level.group.is_some() {
                    "cgroup"
                } else {
                    "host"
                },
                level.group.map(shown),
                bigint_or_null(shortage.limit_bytes),
                bigint_or_null(shortage.used_bytes),
                bigint_or_null(shortage.limit_hits),
                bigint_or_null(shortage.high_hits),
                bigint_or_null(shortage.oom_kills),
                some.map(|stalls| stalls.avg10),
                some.map(|stalls| stalls.avg60),
                some.map(|stalls| stalls.avg300),
                total(some),
                full.map(|stalls| stalls.avg10),
                full.map(|stalls| stalls.avg60),
                full.map(|stalls| stalls.avg300),
                total(full),
            ))
        });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_pressure.sql", requires = [hugeinfo_pressure]);
