//! `hugeinfo_plan(settings)`: the needs of the next start with changed settings, or with the files
//! on disk.

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, is_requested, not_as_planned, percent_of_ram},
    pool::{pool_functions, pool_row},
};
use crate::{
    error::Error,
    machine,
    numbers::bigint,
    plan::{next_start::on_command_line, settings::Planned},
    postgres::{jsonb::Jsonb, text::Text},
};

pool_functions! {
    cost = 1000000;
    /// Huge pages that the next start needs with the configuration files on disk: a row for each
    /// huge page size of the kernel.
    view hugeinfo_plan;
    [
        /// Bytes of the main shared memory segment of the next start, exact up to 8 TiB and in
        /// whole MB above.
        name!(segment_bytes, i64),
        /// The segment as a percentage of RAM (MemTotal in /proc/meminfo).
        name!(segment_percent_of_ram, Option<f64>),
    ],
    [
        /// Whether the next start asks for pages of this size, or would ask with huge_pages = try
        /// and shared_memory_type = mmap.
        name!(is_requested, Option<bool>),
    ];
    /// Huge pages that the next start needs with the configuration files on disk, the command line,
    /// and these settings: name=value pairs, as in shared_buffers=64GB max_connections=500, or a
    /// JSON object; NULL raises an error.
    fn hugeinfo_plan(settings: default!(Option<Text>, "''")) {
        rows(Text::settings(settings)?)
    }
}

/// Returns one row for each huge page size, smallest first, or one row without a size if the kernel
/// has no huge pages or `/sys` cannot be read.
///
/// Errors: 22004 for NULL, 54000 for settings that are too long, 22P02 for invalid JSON, 22023 for
/// other text and for settings that cannot be planned, PostgreSQL's own error if it would not
/// start, 38000 if its program takes too long, 53100 and others if there is no room for a scratch
/// directory; else as for `hugeinfo_status`.
fn rows(settings: Option<Jsonb>) -> Result<Vec<Row>, Error> {
    let planned = Planned::checked(settings)?;
    let (machine, next) = machine::planning(&planned)?;
    if let Some(difference) = on_command_line(&planned, &next) {
        notice!("{difference}");
    }
    for why in not_as_planned(&machine) {
        notice!("{why}");
    }
    let machine = machine.with_next_start(machine.next_start_on_huge_pages());
    let segment = bigint(machine.state.needed_bytes())?;
    let percent = percent_of_ram(&machine);
    let forecasts = forecasts(&machine);
    let rows = forecasts.iter().map(Option::as_ref).map(|forecast| {
        let is_requested = is_requested(&machine, forecast);
        Ok(pool_row!(
            &machine,
            forecast,
            [segment, percent],
            [is_requested]
        ))
    });
    rows.collect()
}
