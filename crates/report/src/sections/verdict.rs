//! The answer, and what to type.

use hugeinfo::{
    advice::{check::Status, words::human},
    server::facts::LiesOn,
};
use maud::{Markup, html};

use super::{badge, command, section as part};
use crate::{page::Context, text::count};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let findings = context.findings;
    let verdict = &findings.verdict;
    let answer = match context.subject.machine.facts.lies_on() {
        LiesOn::HugePages(bytes) => format!("This server runs on huge pages of {}.", human(bytes)),
        LiesOn::SmallPages => "This server does not run on huge pages.".to_owned(),
        LiesOn::Unseen => "Whether this server runs on huge pages cannot be seen.".to_owned(),
    };
    let ill = findings.ill();
    let content = html! {
        div class=(format!("verdict {}", verdict.status.as_str())) {
            p class="answer" { (badge(verdict.status)) " " strong { (answer) } }
            p { (context.shown(&verdict.reason)) "." }
            (what_to_type(context))
            @if !ill.is_empty() {
                p {
                    (count(ill.len() as u64, "check is", "checks are")) " not well: "
                    @for (index, check) in ill.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href=(format!("#check-{}", check.name)) { (check.name) }
                    }
                    "."
                }
            }
        }
    };
    part("verdict", "The answer", &content)
}

fn what_to_type(context: &Context<'_>) -> Markup {
    let findings = context.findings;
    let steps = findings.runbook.len() as u64;
    html! {
        @if let Some(remedy) = &findings.remedy {
            h3 { "What to type" }
            (command(context, remedy, "hugeinfo_status"))
        }
        @if steps > 0 {
            p { a href="#runbook" { "All of it as " (count(steps, "step", "steps")) " to copy" } "." }
        } @else if findings.remedy.is_none() && findings.verdict.status == Status::Ok {
            p { "Nothing to type." }
        }
    }
}
