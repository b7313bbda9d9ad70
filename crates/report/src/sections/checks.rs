//! What each check says.

use hugeinfo::advice::check::{Check, Status};
use maud::{Markup, html};

use super::{
    badge, section as part,
    table::{Column, name, table, text},
};
use crate::{page::Context, text::count};

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
        (table(
            Some("checks stacked"),
            "Checks, the worst first",
            &COLUMNS,
            checks.iter().map(|check| row(context, check)),
        ))
    };
    part("checks", "Checks", &content)
}

const COLUMNS: [Column; 3] = [
    text("status").plain(),
    name("check"),
    text("finding").plain(),
];

fn row(context: &Context<'_>, check: &Check) -> Vec<Markup> {
    vec![
        html! { (badge(check.status)) @if check.is_muted { " muted" } },
        html! { code id=(format!("check-{}", check.name)) { (check.name) } },
        html! {
            (context.shown(&check.finding))
            @if let Some(remedy) = &check.remedy {
                br;
                "To do: "
                @match context.whole(remedy) {
                    Some(remedy) => code { (remedy) },
                    None => { "too long for this page: see " code { "hugeinfo_checks" } "." },
                }
            }
        },
    ]
}
