//! `hugeinfo_vmstat`: counters of the kernel's memory management, line by line.

use hugeinfo::linux::{error::absent_or, root::Root, vmstat};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{error::Error, numbers::bigint_or_null, postgres::encoding::shown, views::answer};

/// Returns the lines of `/proc/vmstat`, in kernel order. No rows if the file is missing or access
/// is denied.
///
/// Errors: as for `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_vmstat() -> Result<
    TableIterator<
        'static,
        (
            name!(name, String),
            name!(value, Option<i64>),
            name!(topic, &'static str),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let vmstat = absent_or(vmstat::read(&Root::system()))?.unwrap_or_default();
        let rows = vmstat.counters().iter().map(|(name, value)| {
            Ok::<_, Error>((shown(name), bigint_or_null(*value), vmstat::topic(name)))
        });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_vmstat.sql", requires = [hugeinfo_vmstat]);
