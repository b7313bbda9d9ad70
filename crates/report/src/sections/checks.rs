//! The checks that need attention, then all others.

use advice::check::{CheckResult, Status};
use maud::{Markup, html};

use crate::{
    context::Context,
    parts::{badge, closed, section as part},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let problems = context.advice.problems();
    let attention: Vec<_> = problems.iter().map(|problem| problem[0]).collect();
    // The other checks of a problem are shown below, because they have the same cause.
    let checks = context.advice.checks.iter();
    let is_first = |check: &&CheckResult| attention.iter().any(|first| first.id == check.id);
    let mut others: Vec<_> = checks.filter(|check| !is_first(check)).collect();
    others.sort_by_key(|check| std::cmp::Reverse(check.finding.status));
    let counts = [
        Status::Critical,
        Status::Warning,
        Status::Unknown,
        Status::Ok,
    ]
    .map(|status| {
        let same = others.iter().filter(|check| check.finding.status == status);
        (same.count(), status.as_str())
    });
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let hint: Vec<_> = counts
        .map(|(count, status)| format!("{count} {status}"))
        .collect();
    html! {
        @if !attention.is_empty() {
            (part("checks", "Checks that need attention", &list(context, &attention)))
        }
        (closed("other-checks", "Other checks", &hint.join(", "), &list(context, &others)))
    }
}

fn list(context: &Context<'_>, checks: &[&CheckResult]) -> Markup {
    html! {
        ul class="list" {
            @for check in checks {
                li id=(format!("check-{}", check.name())) {
                    (badge(check.finding.status))
                    code { (check.name()) } @if check.is_muted { " (muted)" } ": "
                    (context.shown(&check.finding.text))
                }
            }
        }
    }
}
