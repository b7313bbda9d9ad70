//! `hugeinfo_next_start`: the needs of the next start with the configuration files on disk.

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, is_requested, percent_of_ram},
    pool::{pool_functions, pool_row},
};
use crate::{error::Error, files, machine, numbers::bigint, plan::settings::Planned};

pool_functions! {
    [
        name!(waiting_settings, Vec<String>),
        name!(huge_pages, &'static str),
        name!(shared_memory_type, &'static str),
        name!(segment_bytes, i64),
        name!(segment_percent_of_ram, Option<f64>),
    ],
    [
        name!(is_requested, Option<bool>),
    ];
    fn hugeinfo_next_start() {
        rows()
    }
}

/// Returns the same rows as `hugeinfo_plan()`.
///
/// Errors: as for `hugeinfo_plan()`. Roles that cannot plan see that PostgreSQL would not start,
/// but not why.
fn rows() -> Result<Vec<Row>, Error> {
    let planned = machine::planning(&Planned::default());
    let (machine, next) = planned.map_err(files::readable_by_caller)?;
    let waiting = next.pending_settings();
    let (huge_pages, kind) = (next.server.huge_pages, next.server.shared_memory_type);
    let segment = bigint(machine.facts.needed_bytes())?;
    let percent = percent_of_ram(&machine);
    let forecasts = forecasts(&machine);
    let rows = forecasts.iter().map(Option::as_ref).map(|forecast| {
        let is_requested = is_requested(&machine, forecast);
        Ok(pool_row!(
            &machine,
            forecast,
            true,
            [
                waiting.clone(),
                huge_pages.as_str(),
                kind.as_str(),
                segment,
                percent
            ],
            [is_requested]
        ))
    });
    rows.collect()
}

extension_sql_file!("hugeinfo_next_start.sql", requires = [hugeinfo_next_start]);
