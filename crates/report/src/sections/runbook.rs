//! The steps to a healthy server.

use hugeinfo::advice::runbook::Row;
use maud::{Markup, html};

use crate::{
    context::Context,
    parts::{command, instruction, missing, more, section as part},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let steps = &context.findings.runbook;
    let (first, rest) = context.first(steps);
    let content = html! {
        @if steps.is_empty() {
            (missing("There is nothing to do."))
        } @else {
            p { "Run the steps in this order. They were tested on a model of this machine." }
            ol class="steps" { @for row in first { (step(context, row)) } }
            (more(rest, "hugeinfo_runbook"))
        }
    };
    part("runbook", "Runbook", &content)
}

fn step(context: &Context<'_>, row: &Row) -> Markup {
    html! {
        li {
            p class="where" {
                b { (row.place.map_or("decision", |place| place.as_str())) }
                @if row.is_disruptive { " \u{b7} " b class="ends" { "ends all sessions" } }
            }
            @if let Some(line) = &row.command { (command(context, line, "hugeinfo_runbook")) }
            @if let Some(text) = &row.instruction {
                (instruction(context, text, "hugeinfo_runbook"))
            }
            @if row.step.is_some() {
                p { "Why: " (context.shown(&row.why)) }
                p class="note" {
                    code { "hugeinfo_status" } " after this step: "
                    @match &row.expected {
                        Some(expected) => (context.shown(expected)),
                        None => "no change",
                    }
                }
            }
        }
    }
}
