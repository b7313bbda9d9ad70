//! `hugeinfo_next_start`: the needs of the next start with the configuration files on disk.

use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, is_requested, percent_of_ram},
    pool::{pool_functions, pool_row},
};
use crate::{
    error::Error,
    files, machine,
    numbers::bigint,
    plan::{next_start::on_command_line, settings::Planned},
};

pool_functions! {
    cost = 1000000;
    /// Huge pages that the next start needs, and settings that are pending a restart: a row for
    /// each huge page size of the kernel.
    view hugeinfo_next_start;
    [
        /// Names of settings in the configuration files that are pending a restart and affect the
        /// size of shared memory or huge pages.
        name!(waiting_settings, Vec<String>),
        /// Setting huge_pages of the next start: off, on or try.
        name!(huge_pages, &'static str),
        /// Setting shared_memory_type of the next start; only mmap can use huge pages.
        name!(shared_memory_type, &'static str),
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
    fn hugeinfo_next_start() {
        rows()
    }
}

/// Returns the same rows as `hugeinfo_plan()`.
///
/// Errors: as for `hugeinfo_plan()`. Roles that cannot plan see that PostgreSQL would not start,
/// but not why.
fn rows() -> Result<Vec<Row>, Error> {
    let planned = Planned::default();
    let (machine, next) = machine::planning(&planned).map_err(files::readable_by_caller)?;
    if let Some(difference) = on_command_line(&planned, &next) {
        notice!("{difference}");
    }
    let waiting = next.pending_settings();
    let (huge_pages, kind) = (next.server.huge_pages, next.server.shared_memory_type);
    let segment = bigint(machine.state.needed_bytes())?;
    let percent = percent_of_ram(&machine);
    let forecasts = forecasts(&machine);
    let rows = forecasts.iter().map(Option::as_ref).map(|forecast| {
        let is_requested = is_requested(&machine, forecast);
        Ok(pool_row!(
            &machine,
            forecast,
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
