//! `hugeinfo_checks`: a row for each check, healthy ones too.

use hugeinfo::advice::{diagnosis, words};
use pgrx::{JsonB, pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    postgres::encoding::{shown, shown_in, shown_lines},
    views::answer,
};

/// The most important checks first. Reads the host, every process of this server and the title of
/// every process of the host. Walks page tables only on hosts with several NUMA nodes, or if shared
/// memory may be on transparent huge pages.
///
/// Errors: as `hugeinfo_status`. A source that is missing or may not be read is not an error: the
/// check is `unknown`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_checks() -> Result<
    TableIterator<
        'static,
        (
            name!(name, &'static str),
            name!(status, &'static str),
            name!(severity, i32),
            name!(is_muted, bool),
            name!(finding, String),
            name!(evidence, JsonB),
            name!(remedy, Option<String>),
            name!(steps, Option<JsonB>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let machine = machine::whole()?;
        let checks = diagnosis::checks(&machine);
        let rows = checks.into_iter().map(|mut check| {
            shown_in(&mut check.evidence, shown);
            let mut steps = words::data(&machine, &check.steps);
            shown_in(&mut steps, shown_lines);
            let steps = (!check.steps.is_empty()).then_some(JsonB(steps));
            (
                check.name,
                check.status.as_str(),
                check.status.severity(),
                check.is_muted,
                shown(check.finding),
                JsonB(check.evidence),
                check.remedy.map(shown_lines),
                steps,
            )
        });
        Ok::<_, Error>(rows.collect::<Vec<_>>())
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_checks.sql", requires = [hugeinfo_checks]);
