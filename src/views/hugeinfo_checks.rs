//! `hugeinfo_checks`: a row for each check, including healthy ones.

use advice::{answer::Answer, check::Remedy, render};
use pgrx::{JsonB, pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    machine,
    postgres::encoding::{shown, shown_in, shown_lines},
};

functions! {
    cost = 1000000;
    /// Every check of this server and its host, including healthy ones, in order of importance.
    view hugeinfo_checks;
    columns (
        /// Name of the check; docs/checks.md has a section for each.
        name!(name, &'static str),
        /// ok, unknown (a source is missing or cannot be read), warning or critical.
        name!(status, &'static str),
        /// Stable reason for programs, such as fell_back.
        name!(code, &'static str),
        /// The result as text: one statement, one number, one cause.
        name!(finding, String),
        /// Lines to paste, with other text as comments; NULL if there is nothing to do.
        name!(remedy, Option<String>),
        /// The numbers by name, for programs; null if the kernel does not report a number.
        name!(evidence, JsonB),
        /// The remedy for programs: an array of objects with action, where, is_disruptive, and
        /// command or instruction.
        name!(steps, Option<JsonB>),
        /// The status as a number: 0 ok, 1 unknown, 2 warning, 3 critical.
        name!(severity, i32),
        /// Whether the setting pg_hugeinfo.muted_checks names this check, so that hugeinfo_status
        /// and hugeinfo_runbook leave it out.
        name!(is_muted, bool),
    );
    fn hugeinfo_checks() {
        rows()
    }
}

/// Returns the checks, the most important first. Reads the host, every process of this server and
/// the title of every process of the host. Walks page tables only on hosts with several NUMA nodes,
/// or if shared memory might be on transparent huge pages.
///
/// Errors: as for `hugeinfo_status`. A source that is missing or denied is not an error: the check
/// is `unknown`.
fn rows() -> Result<Vec<Row>, Error> {
    let machine = machine::whole()?;
    let checks = Answer::of(&machine).checks();
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
}
