//! `hugeinfo_runbook(settings)`: the steps to a healthy server, or to a planned configuration.

use advice::{answer::Answer, render, runbook};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    machine,
    plan::{changes::changes, next_start::next_start, settings},
    postgres::{
        encoding::{shown, shown_lines},
        jsonb::Jsonb,
        text::Text,
    },
};

functions! {
    cost = 1000000;
    /// Each step to a healthy server, in order; no row if there is nothing to do.
    view hugeinfo_runbook;
    columns (
        /// Number of the step, from 1.
        name!(step, i32),
        /// root shell, root shell of the node, SQL, service, or by hand; NULL for a decision by a
        /// person.
        name!(where_to_run, Option<&'static str>),
        /// A line to paste; NULL if the step is not a command.
        name!(command, Option<String>),
        /// Reason for the step.
        name!(why, String),
        /// Status and reason of hugeinfo_status after this step; NULL if the step does not change
        /// them.
        name!(expected, Option<String>),
        /// Whether the step ends all sessions.
        name!(is_disruptive, bool),
        /// Instruction for a person; NULL if the step is a command.
        name!(instruction, Option<String>),
    );
    fn hugeinfo_runbook() {
        rows()
    }
    /// Each step to a healthy server with these settings, as in shared_buffers=64GB
    /// max_connections=500, or a JSON object; NULL raises an error.
    fn hugeinfo_runbook_planned(settings: Option<Text>) as "hugeinfo_runbook" {
        planned(Text::settings(settings)?)
    }
}

/// Returns the steps to a server with these settings.
///
/// Errors: as for `hugeinfo_plan`.
fn planned(settings: Option<Jsonb>) -> Result<Vec<Row>, Error> {
    let planned = settings::Planned::checked(settings)?;
    if planned.is_empty() {
        return rows();
    }
    let next = next_start(&planned)?;
    let changes = changes(&planned, next)?;
    Ok(numbered(runbook::for_settings(
        &machine::whole()?,
        &changes,
    )))
}

fn rows() -> Result<Vec<Row>, Error> {
    let machine = machine::whole()?;
    Ok(numbered(runbook::for_answer(
        &machine,
        &Answer::of(&machine),
    )))
}

fn numbered(steps: Vec<runbook::Row>) -> Vec<Row> {
    let rows = (1..).zip(steps).map(|(number, row)| {
        (
            number,
            row.place.map(render::Place::as_str),
            row.command.map(shown_lines),
            shown(row.why),
            row.expected.map(shown),
            row.is_disruptive,
            row.instruction.map(shown),
        )
    });
    rows.collect()
}
