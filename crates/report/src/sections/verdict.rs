//! The summary: status, reason and remedy.

use hugeinfo::{advice::check::Status, server::facts::Backing};
use maud::{Markup, html};

use crate::{
    context::Context,
    parts::{badge, command, section as part},
    text::count,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let findings = context.findings;
    let verdict = &findings.verdict;
    let answer = match context.subject.machine.backing() {
        Backing::HugePages(size) => format!("This server runs on {size} huge pages."),
        Backing::SmallPages => "This server does not run on huge pages.".to_owned(),
        Backing::Unknown => "Whether this server runs on huge pages is unknown.".to_owned(),
    };
    let checks = findings.need_attention();
    let content = html! {
        div class=(format!("verdict {}", verdict.status.as_str())) {
            p class="answer" { (badge(verdict.status)) " " strong { (answer) } }
            p { (context.shown(&verdict.reason)) }
            (remedy(context))
            @if !checks.is_empty() {
                p {
                    (count(checks.len() as u64, "check needs", "checks need")) " attention: "
                    @for (index, check) in checks.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href=(format!("#check-{}", check.name())) { (check.name()) }
                    }
                    "."
                }
            }
        }
    };
    part("verdict", "Summary", &content)
}

fn remedy(context: &Context<'_>) -> Markup {
    let findings = context.findings;
    let steps = findings.runbook.len() as u64;
    html! {
        @if let Some(remedy) = &findings.remedy {
            h3 { "Remedy" }
            (command(context, remedy, "hugeinfo_status"))
        }
        @if steps > 0 {
            p { a href="#runbook" { "Runbook with " (count(steps, "step", "steps")) } "." }
        } @else if findings.remedy.is_none() && findings.verdict.status == Status::Ok {
            p { "There is nothing to do." }
        }
    }
}
