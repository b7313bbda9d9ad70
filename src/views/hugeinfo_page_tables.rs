//! `hugeinfo_page_tables`: the size of page tables, now and on pages of each size.

use advice::model::page_tables::on_each_size;
use host::{
    linux::{error::absent_or, process::status},
    server::state::ProcessFigures,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    facts,
    numbers::{bigint, bigint_or_null},
    postgres::{
        processes::{backend_types, is_client_backend},
        settings::max_connections,
    },
    processes,
};

functions! {
    cost = 1000000;
    /// Page tables of this server now, and page tables for the main segment on pages of each size.
    view hugeinfo_page_tables;
    columns (
        /// Bytes of a page: small pages, then each huge page size of the kernel.
        name!(page_size_bytes, i64),
        /// Whether the main shared memory segment is on pages of this size now.
        name!(is_used_by_server, Option<bool>),
        /// Bytes of page tables of one process that has touched the whole main segment on pages of
        /// this size.
        name!(one_backend_bytes, i64),
        /// one_backend_bytes times the number of current processes.
        name!(present_backends_bytes, i64),
        /// one_backend_bytes times max_connections.
        name!(max_connections_bytes, i64),
        /// Bytes of page tables that all processes of this server have now (VmPTE), the same in
        /// each row.
        name!(now_bytes, Option<i64>),
        /// Estimate of the bytes of page tables that these processes would save on pages of this
        /// size; NULL if unknown.
        name!(saving_bytes, Option<i64>),
    );
    fn hugeinfo_page_tables() {
        rows()
    }
}

/// Returns a row for small pages and for each huge page size, smallest first.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<Vec<Row>, Error> {
    let facts = facts::few()?;
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
    let costs = on_each_size(&facts.state, &present, max_connections());
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
}
