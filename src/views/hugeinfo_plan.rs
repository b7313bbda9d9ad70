//! `hugeinfo_plan(settings)`: the needs of the next start with changed settings, or with the files
//! on disk.

use hugeinfo::{
    model::{machine::Machine, other_host},
    server::facts::Server,
    units::Bytes,
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::{
    planned::{forecasts, is_requested, percent_of_ram},
    pool::{pool_overloads, pool_row},
};
use crate::{
    error::Error,
    machine,
    numbers::bigint,
    plan::{host::Host, next_start::next_start, settings::Planned},
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
    /// Plans with the files on disk.
    fn hugeinfo_plan() {
        rows(Some(Jsonb::Object(Vec::new())))
    }
    fn hugeinfo_plan_jsonb(settings: Option<Jsonb>) {
        rows(settings)
    }
    /// Takes JSON or `name=value` pairs. Errors: 22P02 for invalid JSON, 22023 for other text.
    fn hugeinfo_plan_text(settings: Option<Text>) {
        rows(settings.map(|text| text.settings()).transpose()?)
    }
}

/// Returns one row for each huge page size, smallest first, or one row without a size if the kernel
/// has no huge pages or `/sys` cannot be read.
///
/// Errors: 22004 for NULL, 54000 for settings that are too long, 22023 for settings that cannot be
/// planned, PostgreSQL's own error if it would not start, 38000 if its program takes too long,
/// 53100 and others if there is no room for a scratch directory; else as for `hugeinfo_status`.
fn rows(settings: Option<Jsonb>) -> Result<Vec<Row>, Error> {
    let (planned, host) = Planned::checked_for_host(settings)?;
    let next = next_start(&planned)?.server;
    let is_here = host.is_none();
    let machine = match host {
        None => machine::planning(next)?,
        Some(host) => on_another_host(next, &host)?,
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

/// Uses the page sizes and the default size of this kernel unless the host specifies its own.
fn on_another_host(next: Server, host: &Host) -> Result<Machine, Error> {
    let here = machine::facts()?;
    let (default, sizes) = match &host.page_sizes_bytes {
        Some(sizes) => (sizes.first().copied(), sizes.clone()),
        None => {
            let meminfo = here.meminfo.as_ref().ok();
            let default = meminfo.and_then(|meminfo| meminfo.default_huge_page_bytes);
            let all = here.pools.iter().flatten().map(|pool| pool.page_bytes);
            (default, default.into_iter().chain(all).collect())
        }
    };
    Ok(other_host::machine(
        next,
        here.base_page_bytes,
        host.ram_bytes,
        default,
        &sizes,
    ))
}

/// The reasons why a start with exactly these settings would differ from the row.
fn not_as_planned(machine: &Machine) -> Vec<String> {
    let next = machine.facts.next_start();
    let aim = machine.next_start_on_huge_pages();
    if machine.facts.pools.as_ref().is_ok_and(Vec::is_empty) {
        return vec!["the kernel has no huge pages".to_owned()];
    }
    let mut reasons = Vec::new();
    if next.shared_memory_type != aim.shared_memory_type {
        reasons
            .push("shared_memory_type = sysv uses no huge pages: figures are for mmap".to_owned());
    }
    if next.huge_pages != aim.huge_pages {
        reasons.push("huge_pages = off: figures are for huge_pages = try".to_owned());
    }
    let marked = machine.size_asked_for(&aim);
    if let Some(asked_for) = next.huge_page_size_bytes.map(Bytes)
        && aim.huge_page_size_bytes.is_none()
    {
        let instead = marked.as_ref().map_or_else(String::new, |default| {
            format!(": is_requested marks its default size, {default}")
        });
        reasons.push(format!(
            "huge_page_size requests huge pages of {asked_for}, which the kernel does not support{instead}"
        ));
    }
    if marked.is_none() {
        reasons.push("the default huge page size is unknown: is_requested is NULL".to_owned());
    }
    reasons
}

extension_sql_file!(
    "hugeinfo_plan.sql",
    requires = [hugeinfo_plan, hugeinfo_plan_jsonb, hugeinfo_plan_text]
);
