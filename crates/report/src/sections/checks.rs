//! What each check says.

use hugeinfo::advice::check::{Check, Status};
use maud::{Markup, html};

use super::{badge, section as part};
use crate::{
    page::Context,
    text::{count, shown},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let mut checks: Vec<&Check> = context.findings.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.status));
    let of = |status| checks.iter().filter(|check| check.status == status).count();
    let counts = [
        Status::Critical,
        Status::Warning,
        Status::Unknown,
        Status::Ok,
    ];
    let counts = counts.map(|status| format!("{} {}", of(status), status.as_str()));
    let total = count(checks.len() as u64, "check", "checks");
    let content = html! {
        p { (total) ": " (counts.join(", ")) "." }
        table class="checks stacked" {
            caption { "Checks, the worst first" }
            thead { tr {
                th scope="col" { "status" }
                th scope="col" { "check" }
                th scope="col" { "finding" }
            } }
            tbody { @for check in checks { (row(check)) } }
        }
    };
    part("checks", "Checks", &content)
}

fn row(check: &Check) -> Markup {
    html! {
        tr id=(format!("check-{}", check.name)) {
            td { (badge(check.status)) @if check.is_muted { " muted" } }
            th scope="row" { code { (check.name) } }
            td {
                (shown(&check.finding))
                @if let Some(remedy) = &check.remedy {
                    br;
                    "To do: " code { (shown(remedy)) }
                }
            }
        }
    }
}
