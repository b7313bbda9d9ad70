//! `hugeinfo_checks`: a row for each check, including healthy ones.

use hugeinfo::advice::{check::Remedy, diagnosis, render};
use pgrx::{JsonB, pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    machine,
    postgres::encoding::{shown, shown_in, shown_lines},
    views::answer,
};

/// Returns the checks, the most important first. Reads the host, every process of this server and
/// the title of every process of the host. Walks page tables only on hosts with several NUMA nodes,
/// or if shared memory might be on transparent huge pages.
///
/// Errors: as for `hugeinfo_status`. A source that is missing or denied is not an error: the check
/// is `unknown`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_checks() -> Result<
    TableIterator<
        'static,
        (
            name!(name, &'static str),
            name!(status, &'static str),
            name!(code, &'static str),
            name!(finding, String),
            name!(remedy, Option<String>),
            name!(evidence, JsonB),
            name!(steps, Option<JsonB>),
            name!(severity, i32),
            name!(is_muted, bool),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let machine = machine::whole()?;
        let checks = diagnosis::checks(&machine);
        let rows = checks.into_iter().map(|mut check| {
            let finding = &mut check.finding;
            shown_in(&mut finding.evidence, shown);
            let remedy = render::remedy(&machine, &check.remedy);
            let steps = match &check.remedy {
                Remedy::Steps(plan) => {
                    let mut steps = render::data(&machine, &plan.steps);
                    shown_in(&mut steps, shown_lines);
                    Some(JsonB(steps))
                }
                Remedy::Nothing | Remedy::As(_) | Remedy::NeedsDecision(_) => None,
            };
            (
                check.name(),
                check.finding.status.as_str(),
                check.finding.code,
                shown(check.finding.text),
                remedy.map(shown_lines),
                JsonB(check.finding.evidence),
                steps,
                check.finding.status.severity(),
                check.is_muted,
            )
        });
        Ok::<_, Error>(rows.collect::<Vec<_>>())
    };
    Ok(TableIterator::new(answer(rows)?))
}

extension_sql_file!("hugeinfo_checks.sql", requires = [hugeinfo_checks]);
