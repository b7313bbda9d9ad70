//! `hugeinfo_pools`: a row for each huge page size of the kernel.

use hugeinfo::model::forecast::Forecast;
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    facts,
    numbers::{bigint, bigint_or_null},
    postgres::memory::with_room,
};

/// The pools, smallest page first; no row where the kernel has no huge pages or `/sys` can't be
/// read.
///
/// Errors: as `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 10000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_pools() -> Result<
    TableIterator<
        'static,
        (
            name!(page_size_bytes, i64),
            name!(is_default, Option<bool>),
            name!(is_used_by_server, Option<bool>),
            name!(required_pages, i64),
            name!(tail_waste_bytes, i64),
            name!(total_pages, i64),
            name!(free_pages, i64),
            name!(reserved_pages, i64),
            name!(surplus_pages, i64),
            name!(overcommit_pages, i64),
            name!(available_pages, i64),
            name!(committed_pages, i64),
            name!(own_pages, Option<i64>),
            name!(others_pages, Option<i64>),
            name!(shortfall_pages, Option<i64>),
            name!(recommended_nr_hugepages, Option<i64>),
            name!(fits_after_restart, Option<bool>),
            name!(cgroup_limit_bytes, Option<i64>),
            name!(cgroup_used_bytes, Option<i64>),
            name!(cgroup_reserved_limit_bytes, Option<i64>),
            name!(cgroup_reserved_bytes, Option<i64>),
            name!(how_to_set, Option<String>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let facts = facts::read()?;
        let forecasts = Forecast::of_each_pool(&facts).unwrap_or_default();
        let rows = forecasts.into_iter().map(|forecast| {
            let cgroup = forecast.cgroup.clone().unwrap_or_default();
            let pool = &forecast.pool;
            Ok::<_, Error>((
                bigint(pool.page_bytes)?,
                forecast.is_default,
                forecast.is_used_by_server,
                bigint(forecast.required)?,
                bigint(forecast.tail_waste_bytes)?,
                bigint(pool.total)?,
                bigint(pool.free)?,
                bigint(pool.reserved)?,
                bigint(pool.surplus)?,
                bigint(pool.overcommit)?,
                bigint(pool.available())?,
                bigint(pool.committed())?,
                bigint_or_null(forecast.own)?,
                bigint_or_null(forecast.others)?,
                bigint_or_null(forecast.shortfall)?,
                bigint_or_null(forecast.recommended)?,
                forecast.fits_after_restart,
                bigint_or_null(cgroup.fault_limit)?,
                bigint_or_null(cgroup.fault_use)?,
                bigint_or_null(cgroup.reservation_limit)?,
                bigint_or_null(cgroup.reservation_use)?,
                forecast.how_to_set(&facts),
            ))
        });
        rows.collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(with_room(rows)?))
}

extension_sql_file!("hugeinfo_pools.sql", requires = [hugeinfo_pools]);
