//! `hugeinfo_plan(settings)`: the needs of the next start with changed settings, or with the files
//! on disk.

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, is_requested, not_as_planned, on_another_host, percent_of_ram},
    pool::{pool_functions, pool_row},
};
use crate::{
    error::Error,
    machine,
    numbers::bigint,
    plan::{next_start::next_start, settings::Planned},
    postgres::{jsonb::Jsonb, text::Text},
};

pool_functions! {
    [
        name!(segment_bytes, i64),
        name!(segment_percent_of_ram, Option<f64>),
    ],
    [
        name!(is_requested, Option<bool>),
    ];
    fn hugeinfo_plan(settings: default!(Option<Text>, "''")) {
        rows(Text::settings(settings)?)
    }
}

/// Returns one row for each huge page size, smallest first, or one row without a size if the kernel
/// has no huge pages or `/sys` cannot be read.
///
/// Errors: 22004 for NULL, 54000 for settings that are too long, 22P02 for invalid JSON, 22023 for
/// other text and for settings that cannot be planned, PostgreSQL's own error if it would not start, 38000 if its program takes too long,
/// 53100 and others if there is no room for a scratch directory; else as for `hugeinfo_status`.
fn rows(settings: Option<Jsonb>) -> Result<Vec<Row>, Error> {
    let (planned, host) = Planned::checked_for_host(settings)?;
    let is_here = host.is_none();
    let machine = match host {
        None => machine::planning(&planned)?.0,
        Some(host) => on_another_host(next_start(&planned)?.server, &host)?,
    };
    for why in not_as_planned(&machine) {
        notice!("{why}");
    }
    let segment = bigint(machine.facts.needed_bytes())?;
    let percent = percent_of_ram(&machine);
    let forecasts = forecasts(&machine);
    let rows = forecasts.iter().map(Option::as_ref).map(|forecast| {
        let is_requested = is_requested(&machine, forecast);
        Ok(pool_row!(
            &machine,
            forecast,
            is_here,
            [segment, percent],
            [is_requested]
        ))
    });
    rows.collect()
}

extension_sql_file!("hugeinfo_plan.sql", requires = [hugeinfo_plan]);
