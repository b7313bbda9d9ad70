//! `hugeinfo runbook`: the steps to a healthy server.

use advice::{
    answer::Answer,
    runbook::{self, Row},
};
use clap::Args;
use host::escape;
use serde_json::{Value, json};

use crate::{
    Done,
    check::indented,
    error::Error,
    machine, sentence,
    status::{Format, with_state},
    target::Target,
};

/// The options of `runbook`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let target = Target::find(&options.server)?;
    let machine = machine::read(&target, &options.server)?;
    let rows = runbook::for_answer(&machine, &Answer::of(&machine));
    Ok(match options.format {
        Format::Text => to_text(&rows),
        Format::Json => {
            let rows: Vec<_> = (1..)
                .zip(&rows)
                .map(|(step, row)| to_json(step, row))
                .collect();
            format!("{:#}\n", with_state(&machine, json!({ "runbook": rows })))
        }
    }
    .into())
}

/// A row of `hugeinfo_runbook`.
fn to_json(step: u64, row: &Row) -> Value {
    json!({
        "step": step,
        "where_to_run": row.place.map(|place| place.as_str()),
        "command": row.command,
        "why": row.why,
        "expected": row.expected,
        "is_disruptive": row.is_disruptive,
        "instruction": row.instruction,
    })
}

fn to_text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "There is nothing to do.\n".to_owned();
    }
    let mut text = String::new();
    for (number, row) in (1..).zip(rows) {
        let place = row.place.map_or("a person", |place| place.as_str());
        let disruptive = if row.is_disruptive {
            ", ends all sessions"
        } else {
            ""
        };
        text += &sentence(&format!("{number}. {place}{disruptive}: "), &row.why);
        match (&row.instruction, &row.step) {
            (Some(decision), None) => {
                text.extend(decision.lines().map(|line| sentence("    ", line)));
            }
            // The instruction of a step can contain its command.
            (instruction, _) => text += &indented(row.command.clone().or(instruction.clone())),
        }
        if let Some(expected) = &row.expected {
            text += &sentence("   then: ", expected);
        }
    }
    escape::lines(text)
}
