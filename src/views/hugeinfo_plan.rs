//! `hugeinfo_plan(settings)`: what the next start would need, with settings changed or with the files as they are now.

use hugeinfo::forecast::{CgroupLimits, Forecast};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::{Error, bigint, bigint_or_null},
    plan,
    postgres::Jsonb,
};

/// One row for each huge page size, smallest first; one row without a size where the kernel has no huge pages or `/sys` can't be read.
///
/// Errors: 22023 for settings that can't be planned, PostgreSQL's own for what it would not start with, 38000 after
/// [`plan::TIME_LIMIT`], 53100 and others where there is no room for a scratch directory; else as `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_plan(
    settings: default!(Jsonb, "'{}'"),
) -> Result<
    TableIterator<
        'static,
        (
            name!(segment_bytes, i64),
            name!(segment_percent_of_ram, Option<f64>),
            name!(page_size_bytes, Option<i64>),
            name!(is_default, Option<bool>),
            name!(is_used_by_server, Option<bool>),
            name!(is_asked_for, Option<bool>),
            name!(required_pages, Option<i64>),
            name!(tail_waste_bytes, Option<i64>),
            name!(total_pages, Option<i64>),
            name!(free_pages, Option<i64>),
            name!(reserved_pages, Option<i64>),
            name!(surplus_pages, Option<i64>),
            name!(overcommit_pages, Option<i64>),
            name!(available_pages, Option<i64>),
            name!(committed_pages, Option<i64>),
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
        let planned = plan::next_start(settings)?;
        let mut facts = super::facts()?;
        let segment_bytes = planned.shared_memory_bytes;
        facts.planned = Some(planned);
        let ram = facts.meminfo.as_ref().ok().and_then(|m| m.total_bytes);
        let percent = ram.map(|ram| segment_bytes as f64 * 100.0 / ram as f64);

        let forecasts = Forecast::of_each_pool(&facts).unwrap_or_default();
        if forecasts.is_empty() {
            let nothing = None;
            return Ok(vec![(
                bigint(segment_bytes)?,
                percent,
                nothing,
                None,
                None,
                None,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                None,
                nothing,
                nothing,
                nothing,
                nothing,
                None,
            )]);
        }
        let rows = forecasts.into_iter().map(|forecast| {
            let cgroup = forecast
                .cgroup
                .as_ref()
                .map_or_else(|_| CgroupLimits::default(), Clone::clone);
            let pool = &forecast.pool;
            Ok::<_, Error>((
                bigint(segment_bytes)?,
                percent,
                Some(bigint(pool.page_bytes)?),
                forecast.is_default,
                forecast.is_used_by_server,
                facts.asks_for(pool.page_bytes),
                Some(bigint(forecast.required)?),
                Some(bigint(forecast.tail_waste_bytes)?),
                Some(bigint(pool.total)?),
                Some(bigint(pool.free)?),
                Some(bigint(pool.reserved)?),
                Some(bigint(pool.surplus)?),
                Some(bigint(pool.overcommit)?),
                Some(bigint(pool.available())?),
                Some(bigint(pool.committed())?),
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
    Ok(TableIterator::new(rows()?))
}

extension_sql_file!("hugeinfo_plan.sql", requires = [hugeinfo_plan]);
