//! `hugeinfo_meminfo`: memory of the host by use, line by line.

use hugeinfo::linux::{error::absent_or, meminfo, root::Root};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{error::Error, numbers::bigint_or_null, postgres::encoding::shown, views::answer};

/// Returns the lines of `/proc/meminfo`, in kernel order. No rows if the file is missing or access
/// is denied.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_meminfo() -> Result<
    TableIterator<
        'static,
        (
            name!(name, String),
            name!(bytes, Option<i64>),
            name!(huge_pages, Option<i64>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let lines = absent_or(meminfo::read_lines(&Root::system()))?.unwrap_or_default();
        let rows = lines.into_iter().map(|line| {
            Ok::<_, Error>((
                shown(line.name),
                bigint_or_null(line.bytes),
                bigint_or_null(line.huge_pages),
            ))
        });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_meminfo.sql", requires = [hugeinfo_meminfo]);
