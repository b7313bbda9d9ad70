//! `hugeinfo_fit(pages, settings)`: the largest `shared_buffers` for a number of huge pages.

use advice::model::machine::Machine;
use host::{
    next_start::largest_buffers::Fit,
    units::{PageSize, Pages, huge_pages},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{functions::functions, planned::not_as_planned};
use crate::{
    error::Error,
    facts,
    numbers::bigint,
    plan::{next_start::largest_buffers, settings::Planned},
    postgres::{jsonb::Jsonb, settings::BLOCK_BYTES, text::Text},
};

functions! {
    cost = 1000000;
    columns (
        name!(shared_buffers, String),
        name!(shared_buffers_bytes, i64),
        name!(page_size_bytes, i64),
        name!(available_pages, i64),
        name!(required_pages, i64),
        name!(segment_bytes, i64),
        name!(tail_waste_bytes, i64),
    );
    /// The largest shared_buffers whose main shared memory segment fits into this many huge pages,
    /// in one row, with the configuration files on disk and these settings, as for hugeinfo_plan,
    /// without shared_buffers; one block more does not fit.
    fn hugeinfo_fit(pages: Option<i64>, settings: default!(Option<Text>, "''")) {
        row(pages, Text::settings(settings)?)
    }
}

/// Returns one row.
///
/// Errors: 22023 if `pages` is NULL or not above zero, or too small for the minimum of
/// `shared_buffers`, if the settings include `shared_buffers`, or if the kernel does not have the
/// page size that they request; else as for `hugeinfo_plan`.
fn row(pages: Option<i64>, settings: Option<Jsonb>) -> Result<[Row; 1], Error> {
    let pages = pages.and_then(|pages| u64::try_from(pages).ok());
    let no_pages = || {
        Error::invalid("pages must be greater than zero")
            .hint("Example: hugeinfo_fit(512, 'max_connections=500').")
    };
    let pages = Pages(pages.filter(|pages| *pages > 0).ok_or_else(no_pages)?);
    let planned = Planned::checked(settings)?;
    if planned.value(c"shared_buffers").is_some() {
        return Err(Error::invalid(
            "setting \"shared_buffers\" cannot be given to hugeinfo_fit, which computes it",
        )
        .hint("To compute the huge pages for a given value, use hugeinfo_plan."));
    }
    let (size, found) = largest_buffers(&planned, pages, |next| {
        let mut facts = facts::few()?;
        facts.state.next.server = Some(next);
        let machine = Machine::new(facts);
        let size = page_size(&machine)?;
        for why in not_as_planned(&machine) {
            notice!("{why}");
        }
        Ok(size)
    })?;
    let Fit {
        blocks,
        segment_bytes,
        required,
        tail_waste,
    } = found.map_err(|too_few| {
        let least = too_few.required;
        Error::invalid(format!(
            "pages must be at least {least}: the minimum of shared_buffers needs {}",
            huge_pages(least, size)
        ))
        .hint("The minimum depends on the other settings, such as max_connections.")
    })?;
    let bytes = blocks * BLOCK_BYTES;
    Ok([(
        format!("{}kB", bytes / 1024),
        bigint(bytes)?,
        bigint(size.0)?,
        bigint(pages.0)?,
        bigint(required.0)?,
        bigint(segment_bytes)?,
        bigint(tail_waste.0)?,
    )])
}

/// The size of the huge pages that the next start requests, or would with `huge_pages = try`.
fn page_size(machine: &Machine) -> Result<PageSize, Error> {
    let asked = machine.size_asked_for(&machine.next_start());
    let sizes = machine.pools().map(|pool| PageSize(pool.page_bytes));
    let known: Vec<_> = sizes.map(|size| size.to_string()).collect();
    match asked {
        Some(size) if machine.pool(size).is_some() || machine.state.pools.is_err() => Ok(size),
        _ if known.is_empty() => Err(Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "the kernel has no huge pages",
        )),
        Some(size) => Err(Error::invalid(format!(
            "the next start requests {size} huge pages, which the kernel does not support"
        ))
        .hint(format!(
            "Supported sizes: {}. Change huge_page_size.",
            known.join(", ")
        ))),
        None => Err(Error::invalid("the default huge page size is unknown")
            .hint("Add huge_page_size to the settings.")),
    }
}
