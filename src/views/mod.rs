//! The SQL objects, one file for each.

mod functions;
mod hugeinfo_backends;
mod hugeinfo_checks;
mod hugeinfo_fault_rates;
mod hugeinfo_fit;
mod hugeinfo_footprint;
mod hugeinfo_holders;
mod hugeinfo_host;
mod hugeinfo_instances;
mod hugeinfo_mappings;
mod hugeinfo_meminfo;
mod hugeinfo_memory;
mod hugeinfo_next_start;
mod hugeinfo_numa;
mod hugeinfo_page_tables;
mod hugeinfo_plan;
mod hugeinfo_pools;
mod hugeinfo_report;
mod hugeinfo_runbook;
mod hugeinfo_sources;
mod hugeinfo_status;
mod hugeinfo_text;
mod hugeinfo_vmstat;
mod planned;
mod pool;

use pgrx::pg_sys::panic::ErrorReport;

use crate::{
    error::Error,
    postgres::{memory::with_room, versions},
};

/// Wraps the body of every function.
fn answer<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, ErrorReport> {
    let checked = || {
        versions::check()?;
        body()
    };
    Ok(with_room(checked)?)
}
