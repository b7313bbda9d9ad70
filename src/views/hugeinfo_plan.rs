//! `hugeinfo_plan(settings)`: what the next start would need, with settings changed or with the
//! files as they are now.

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, percent_of_ram},
    pool::{pool_overloads, pool_row},
};
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
    let machine = machine::planning(planned)?;
    let segment = bigint(machine.facts.needed_bytes())?;
    let percent = percent_of_ram(&machine);
    let forecasts = forecasts(&machine);
    let rows = forecasts.iter().map(Option::as_ref).map(|forecast| {
        let is_requested = forecast.and_then(|f| machine.facts.asks_for(f.pool.page_bytes));
        Ok(pool_row!(
            &machine,
            forecast,
            [segment, percent],
            [is_requested]
        ))
    });
    rows.collect()
}

extension_sql_file!(
    "hugeinfo_plan.sql",
    requires = [hugeinfo_plan, hugeinfo_plan_jsonb, hugeinfo_plan_text]
);
