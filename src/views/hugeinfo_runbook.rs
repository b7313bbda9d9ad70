//! `hugeinfo_runbook(settings)`: the steps to a healthy server, or to a planned configuration.

use hugeinfo::advice::{planned::Planned, render, runbook};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    machine,
    plan::{changes::changes, next_start::next_start, settings},
    postgres::{
        encoding::{shown, shown_lines},
        jsonb::Jsonb,
        recovery_settings::too_low,
        text::Text,
    },
};

functions! {
    (
        name!(step, i32),
        name!(where_to_run, Option<&'static str>),
        name!(command, Option<String>),
        name!(why, String),
        name!(expected, Option<String>),
        name!(is_disruptive, bool),
        name!(instruction, Option<String>),
    );
    /// Returns the steps to a healthy server with the files on disk.
    fn hugeinfo_runbook() {
        rows(None)
    }
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
        return rows(None);
    }
    let next = next_start(&planned)?;
    let too_low = too_low(&next.recovery_settings)?;
    if !too_low.is_empty() {
        return Ok(numbered(runbook::refused(too_low)));
    }
    rows(Some(&changes(&planned, next)?))
}

fn rows(planned: Option<&Planned>) -> Result<Vec<Row>, Error> {
    Ok(numbered(runbook::of(&machine::whole()?, planned)))
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

extension_sql_file!(
    "hugeinfo_runbook.sql",
    requires = [hugeinfo_runbook, hugeinfo_runbook_planned]
);
