//! The SQL objects, one file for each.

mod functions;
mod hugeinfo_backends;
mod hugeinfo_checks;
mod hugeinfo_explain;
mod hugeinfo_fault_rates;
mod hugeinfo_fit;
mod hugeinfo_footprint;
mod hugeinfo_holders;
mod hugeinfo_host;
mod hugeinfo_instances;
mod hugeinfo_mappings;
mod hugeinfo_meminfo;
mod hugeinfo_memory;
mod hugeinfo_next_start;
mod hugeinfo_numa;
mod hugeinfo_page_tables;
mod hugeinfo_plan;
mod hugeinfo_pools;
mod hugeinfo_report;
mod hugeinfo_runbook;
mod hugeinfo_sources;
mod hugeinfo_status;
mod hugeinfo_text;
mod hugeinfo_vmstat;
mod planned;
mod pool;

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use self::functions::Comments;
use crate::{
    error::Error,
    postgres::{memory::with_room, versions},
};

/// Wraps the body of every function.
fn answer<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, ErrorReport> {
    let checked = || {
        versions::check()?;
        body()
    };
    Ok(with_room(checked)?)
}

const COMMENTS: &[&Comments] = &[
    &hugeinfo_backends::COMMENTS,
    &hugeinfo_checks::COMMENTS,
    &hugeinfo_fault_rates::COMMENTS,
    &hugeinfo_fit::COMMENTS,
    &hugeinfo_footprint::COMMENTS,
    &hugeinfo_holders::COMMENTS,
    &hugeinfo_host::COMMENTS,
    &hugeinfo_instances::COMMENTS,
    &hugeinfo_mappings::COMMENTS,
    &hugeinfo_meminfo::COMMENTS,
    &hugeinfo_memory::COMMENTS,
    &hugeinfo_next_start::COMMENTS,
    &hugeinfo_numa::COMMENTS,
    &hugeinfo_page_tables::COMMENTS,
    &hugeinfo_plan::COMMENTS,
    &hugeinfo_pools::COMMENTS,
    &hugeinfo_runbook::COMMENTS,
    &hugeinfo_sources::COMMENTS,
    &hugeinfo_status::COMMENTS,
    &hugeinfo_vmstat::COMMENTS,
];

/// Returns the comments of all objects that [`functions!`](functions) declares: of a view (`name`
/// is empty), of one of its columns, or of the function with this symbol. `objects.sql` writes them
/// to the catalog, and drops this function.
#[pg_extern]
#[allow(clippy::type_complexity)]
fn hugeinfo_comments() -> TableIterator<
    'static,
    (
        name!(object, &'static str),
        name!(name, &'static str),
        name!(comment, &'static str),
    ),
> {
    let rows = COMMENTS.iter().flat_map(|of| {
        let views = of.views.iter().flat_map(|(view, about)| {
            let columns = of.columns.iter().filter(|(_, comment)| !comment.is_empty());
            let columns = columns.map(|(column, comment)| (*view, *column, *comment));
            std::iter::once((*view, "", *about)).chain(columns)
        });
        let functions = of.functions.iter().map(|(symbol, purpose)| {
            let behind = "The function behind the view of the same name.";
            let purpose = if purpose.is_empty() { behind } else { purpose };
            (*symbol, "", purpose)
        });
        views.chain(functions)
    });
    TableIterator::new(rows.map(|(object, name, comment)| (object, name, comment.trim_start())))
}

extension_sql_file!("objects.sql", finalize);
