//! `hugeinfo_plan(settings)`: what the next start would need, with settings changed or with the
//! files as they are now.

use hugeinfo::{
    linux::hugepages::Pool,
    model::forecast::{CgroupLimits, Forecast},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::overloads::overloads;
use crate::{
    error::Error,
    facts,
    numbers::{bigint, bigint_or_null},
    plan::next_start::next_start,
    postgres::{jsonb::Jsonb, text::Text},
};

overloads! {
    "hugeinfo_plan", (
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
    );
    /// With the files as they are.
    fn hugeinfo_plan() {
        rows(Jsonb::Object(Vec::new()))
    }
    fn hugeinfo_plan_jsonb(settings: Jsonb) {
        rows(settings)
    }
    /// Errors: 22P02 for a text that is no JSON.
    fn hugeinfo_plan_text(settings: Text) {
        rows(settings.jsonb())
    }
}

/// One row for each huge page size, smallest first; one row without a size where the kernel has no
/// huge pages or `/sys` can't be read.
///
/// Errors: 54000 for settings that are too long, 22023 for those that can't be planned,
/// PostgreSQL's own for what it would not start with, 38000 where its program takes too long, 53100
/// and others where there is no room for a scratch directory; else as `hugeinfo_status`.
fn rows(settings: Jsonb) -> Result<Vec<Row>, Error> {
    let planned = next_start(settings)?;
    let mut facts = facts::read()?;
    let segment_bytes = planned.shared_memory_bytes;
    facts.planned = Some(planned);
    let ram = facts.meminfo.as_ref().ok().and_then(|m| m.total_bytes);
    let percent = ram.map(|ram| segment_bytes as f64 * 100.0 / ram as f64);

    let mut forecasts: Vec<_> = Forecast::of_each_pool(&facts)
        .unwrap_or_default()
        .into_iter()
        .map(Some)
        .collect();
    if forecasts.is_empty() {
        forecasts.push(None);
    }
    let rows = forecasts.iter().map(|forecast| {
        let forecast = forecast.as_ref();
        let of_forecast =
            |figure: fn(&Forecast) -> Option<u64>| bigint_or_null(forecast.and_then(figure));
        let of_pool = |figure: fn(&Pool) -> u64| {
            bigint_or_null(forecast.map(|forecast| figure(&forecast.pool)))
        };
        let of_cgroup = |figure: fn(&CgroupLimits) -> Option<u64>| {
            bigint_or_null(
                forecast
                    .and_then(|f| f.cgroup.as_ref().ok())
                    .and_then(figure),
            )
        };
        Ok((
            bigint(segment_bytes)?,
            percent,
            of_pool(|pool| pool.page_bytes)?,
            forecast.and_then(|forecast| forecast.is_default),
            forecast.and_then(|forecast| forecast.is_used_by_server),
            forecast.and_then(|forecast| facts.asks_for(forecast.pool.page_bytes)),
            of_forecast(|forecast| Some(forecast.required))?,
            of_forecast(|forecast| Some(forecast.tail_waste_bytes))?,
            of_pool(|pool| pool.total)?,
            of_pool(|pool| pool.free)?,
            of_pool(|pool| pool.reserved)?,
            of_pool(|pool| pool.surplus)?,
            of_pool(|pool| pool.overcommit)?,
            of_pool(Pool::available)?,
            of_pool(Pool::committed)?,
            of_forecast(|forecast| forecast.own)?,
            of_forecast(|forecast| forecast.others)?,
            of_forecast(|forecast| forecast.shortfall)?,
            of_forecast(|forecast| forecast.recommended)?,
            forecast.and_then(|forecast| forecast.fits_after_restart),
            of_cgroup(|limits| limits.fault_limit)?,
            of_cgroup(|limits| limits.fault_use)?,
            of_cgroup(|limits| limits.reservation_limit)?,
            of_cgroup(|limits| limits.reservation_use)?,
            forecast.and_then(|forecast| forecast.how_to_set(&facts)),
        ))
    });
    rows.collect::<Result<Vec<_>, Error>>()
}

extension_sql_file!(
    "hugeinfo_plan.sql",
    requires = [hugeinfo_plan, hugeinfo_plan_jsonb, hugeinfo_plan_text]
);
