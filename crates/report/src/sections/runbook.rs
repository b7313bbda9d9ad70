//! The steps to a healthy server.

use hugeinfo::advice::runbook::Row;
use maud::{Markup, html};

use super::{command, missing, more, section as part};
use crate::page::Context;

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let steps = &context.findings.runbook;
    let (first, rest) = context.first(steps);
    let content = html! {
        @if steps.is_empty() {
            (missing("There is nothing to do."))
        } @else {
            p {
                "In this order. Each step has been tried on a model of this machine: none does harm, "
                "and none can be left out."
            }
            ol class="steps" { @for row in first { (step(context, row)) } }
            (more(rest, "hugeinfo_runbook"))
        }
    };
    part("runbook", "Steps to copy", &content)
}

fn step(context: &Context<'_>, row: &Row) -> Markup {
    html! {
        li {
            p class="where" {
                b { (row.place.as_str()) }
                @if row.is_disruptive { " \u{b7} " b class="ends" { "ends all sessions" } }
            }
            (command(context, &row.command, "hugeinfo_runbook"))
            p { "Why: " (context.shown(&row.why)) }
            @if let Some(expected) = &row.expected {
                p class="note" { "Then " code { "hugeinfo_status" } " says: " (context.shown(expected)) }
            }
        }
    }
}
