//! The steps to a healthy server.

use hugeinfo::advice::runbook::Row;
use maud::{Markup, html};

use super::{missing, more, section as part};
use crate::{page::Context, text::shown};

/// A command is shown as a whole, or not at all.
const LONGEST: usize = 1500;

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
            ol class="steps" { @for row in first { (step(row)) } }
            (more(rest, "hugeinfo_runbook"))
        }
    };
    part("runbook", "Steps to copy", &content)
}

fn step(row: &Row) -> Markup {
    html! {
        li {
            p class="where" {
                b { (row.place.as_str()) }
                @if row.is_disruptive { " \u{b7} " b class="ends" { "ends all sessions" } }
            }
            @if row.command.chars().count() > LONGEST {
                p class="note" { "Too long for this page: see " code { "hugeinfo_runbook" } "." }
            } @else {
                pre { code { (shown(&row.command)) } }
            }
            p { "Why: " (shown(&row.why)) }
            @if let Some(expected) = &row.expected {
                p class="note" { "Then " code { "hugeinfo_status" } " says: " (shown(expected)) }
            }
        }
    }
}
