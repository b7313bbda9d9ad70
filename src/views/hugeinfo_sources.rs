//! `hugeinfo_sources`: a row for each kernel source, and whether it can be read here.

use hugeinfo::{linux::root::Root, server::sources};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::postgres::{encoding::shown, memory::with_room, server::subject};

/// The sources of the postmaster and this backend, then those of the host, each tried.
///
/// Raises no error: a source that can't be read is what is asked for.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_sources() -> Result<
    TableIterator<
        'static,
        (
            name!(source, &'static str),
            name!(path, String),
            name!(status, &'static str),
            name!(used_for, Vec<&'static str>),
        ),
    >,
    ErrorReport,
> {
    let sources = with_room(|| sources::probe(&Root::system(), &subject()));
    let rows: Vec<_> = sources
        .into_iter()
        .map(|source| {
            (
                source.name,
                shown(source.path.to_string_lossy().into_owned()),
                source.status.as_str(),
                source.used_for.to_vec(),
            )
        })
        .collect();
    Ok(TableIterator::new(rows))
}

extension_sql_file!("hugeinfo_sources.sql", requires = [hugeinfo_sources]);
