//! `hugeinfo_plan(settings)`: what the next start would need, with settings changed or with the
//! files as they are now.

use hugeinfo::model::forecast::Forecast;
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::pool::{pool_overloads, pool_row};
use crate::{
    error::Error,
    machine,
    numbers::bigint,
    plan::{next_start::next_start, settings::Planned},
    postgres::{jsonb::Jsonb, text::Text},
};

pool_overloads! {
    "hugeinfo_plan",
    [
        name!(segment_bytes, i64),
        name!(segment_percent_of_ram, Option<f64>),
    ],
    [
        name!(is_requested, Option<bool>),
    ];
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
    let planned = next_start(&Planned::checked(settings)?)?.server;
    let segment_bytes = planned.shared_memory_bytes;
    let machine = machine::planning(planned)?;
    let facts = &machine.facts;
    let ram = facts.meminfo.as_ref().ok().and_then(|m| m.total_bytes);
    let percent = ram.map(|ram| segment_bytes as f64 * 100.0 / ram as f64);

    let forecasts = Forecast::of_each_pool(&machine).unwrap_or_default();
    let row = |forecast: Option<&Forecast>| {
        let is_requested = forecast.and_then(|f| facts.asks_for(f.pool.page_bytes));
        let segment = bigint(segment_bytes)?;
        Ok(pool_row!(
            &machine,
            forecast,
            [segment, percent],
            [is_requested]
        ))
    };
    if forecasts.is_empty() {
        return Ok(vec![row(None)?]);
    }
    forecasts.iter().map(Some).map(row).collect()
}

extension_sql_file!(
    "hugeinfo_plan.sql",
    requires = [hugeinfo_plan, hugeinfo_plan_jsonb, hugeinfo_plan_text]
);
