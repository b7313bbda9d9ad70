//! `hugeinfo_page_tables`: the size of page tables, now and on pages of each size.

use hugeinfo::{
    linux::{error::absent_or, process::status},
    model::page_tables::on_each_size,
    server::environment::ProcessFigures,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    numbers::{bigint, bigint_or_null},
    postgres::{
        processes::{backend_types, is_client_backend},
        settings::max_connections,
    },
    processes,
    views::answer,
};

/// Returns a row for small pages and for each huge page size, smallest first.
///
/// Errors: as for `hugeinfo_status`.
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
        let types = backend_types()?;
        let present = processes::all(|member, buffer| {
            let memory = absent_or(status::read_memory(&member.process, buffer))?.ok();
            Ok(memory.map(|memory| ProcessFigures {
                page_tables: memory.page_tables,
                rss_shmem: memory.rss_shmem,
                is_client_backend: is_client_backend(&types, member.process.pid()),
                ..ProcessFigures::default()
            }))
        })?;
        let costs = on_each_size(&facts, &present, max_connections());
        let rows = costs.into_iter().map(|cost| {
            let now = bigint_or_null(cost.now);
            let then = bigint_or_null(cost.then);
            Ok::<_, Error>((
                bigint(cost.page_bytes)?,
                cost.is_used,
                bigint(cost.one)?,
                bigint(cost.present)?,
                bigint(cost.max_connections)?,
                now,
                now.zip(then).map(|(now, then)| now - then),
            ))
        });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!(
    "hugeinfo_page_tables.sql",
    requires = [hugeinfo_page_tables]
);
