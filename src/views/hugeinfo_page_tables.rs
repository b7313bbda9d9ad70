//! `hugeinfo_page_tables`: what page tables cost now, and would cost on pages of each size.

use hugeinfo::{
    linux::{error::absent_or, process::status},
    model::page_tables::{bytes_of_one, on_other_pages},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    numbers::{bigint, bigint_or_null},
    postgres::{memory::with_room, settings::max_connections},
    processes,
};

/// A row for small pages and for each huge page size, smallest first.
///
/// Errors: as `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_page_tables() -> Result<
    TableIterator<
        'static,
        (
            name!(page_size_bytes, i64),
            name!(is_used_by_server, Option<bool>),
            name!(one_backend_bytes, i64),
            name!(present_backends_bytes, i64),
            name!(max_connections_bytes, i64),
            name!(now_bytes, Option<i64>),
            name!(saving_bytes, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let facts = machine::facts()?;
        let present = processes::all(|member, buffer| {
            Ok(absent_or(status::read_memory(&member.process, buffer))?
                .ok()
                .map(|memory| memory.page_tables))
        })?;
        let processes = u64::try_from(present.len()).unwrap_or(u64::MAX);
        let each: Vec<u64> = present.into_iter().flatten().collect();
        let now = bigint_or_null(each.iter().copied().reduce(u64::saturating_add))?;
        let lies_on = facts.page_bytes();

        let huge = facts.pools.iter().flatten().map(|pool| pool.page_bytes);
        let rows = std::iter::once(facts.base_page_bytes)
            .chain(huge)
            .map(|page_bytes| {
                let segment = facts.needed_bytes();
                let one = bytes_of_one(segment, page_bytes);
                // For smaller pages the estimate would multiply figures that are near zero.
                let then = lies_on
                    .filter(|&lies_on| lies_on <= page_bytes)
                    .map(|lies_on| on_other_pages(&each, segment, lies_on, page_bytes));
                let then = bigint_or_null(then)?;
                Ok::<_, Error>((
                    bigint(page_bytes)?,
                    lies_on.map(|lies_on| lies_on == page_bytes),
                    bigint(one)?,
                    bigint(one.saturating_mul(processes))?,
                    bigint(one.saturating_mul(max_connections()))?,
                    now,
                    now.zip(then).map(|(now, then)| now - then),
                ))
            });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(with_room(rows)?))
}

extension_sql_file!(
    "hugeinfo_page_tables.sql",
    requires = [hugeinfo_page_tables]
);
