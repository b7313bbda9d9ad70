//! `hugeinfo_pools`: a row for each huge page size of the kernel.

use advice::model::forecast::Forecast;
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::pool::{pool_functions, pool_row};
use crate::{error::Error, machine};

pool_functions! {
    cost = 10000;
    /// Each huge page size of the kernel: its pool on this host, its demands, and the limits of the
    /// server's cgroups.
    view hugeinfo_pools;
    [], [];
    fn hugeinfo_pools() {
        rows()
    }
}

/// Returns the pools, smallest page first. No row: the kernel has no huge pages, or `/sys` cannot
/// be read.
///
/// Errors: as for `hugeinfo_status`.
fn rows() -> Result<Vec<Row>, Error> {
    let machine = machine::for_pools()?;
    let forecasts = Forecast::for_each_pool(&machine).unwrap_or_default();
    let rows = forecasts
        .iter()
        .map(|f| Ok(pool_row!(&machine, Some(f), [], [])));
    rows.collect()
}
