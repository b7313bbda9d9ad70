//! The finding and the remedy of each check.

use hugeinfo::advice::check::Status;
use maud::{Markup, html};

use crate::{
    context::Context,
    findings::Judged,
    parts::{badge, command, section as part},
    table::{Column, name, table, text},
    text::count,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let mut checks: Vec<&Judged> = context.findings.checks.iter().collect();
    checks.sort_by_key(|judged| std::cmp::Reverse(judged.check.finding.status));
    let counts = [
        Status::Critical,
        Status::Warning,
        Status::Unknown,
        Status::Ok,
    ];
    let counts = counts.map(|status| {
        let all = checks.iter();
        let count = all.filter(|judged| judged.check.finding.status == status);
        format!("{} {}", count.count(), status.as_str())
    });
    let total = count(checks.len() as u64, "check", "checks");
    let content = html! {
        p { (total) ": " (counts.join(", ")) "." }
        (table(
            Some("checks stacked"),
            "Checks, the worst first",
            &COLUMNS,
            checks.iter().map(|judged| row(context, judged)),
        ))
    };
    part("checks", "Checks", &content)
}

const COLUMNS: [Column; 3] = [
    text("status").plain(),
    name("check"),
    text("finding").plain(),
];

fn row(context: &Context<'_>, judged: &Judged) -> Vec<Markup> {
    let check = &judged.check;
    vec![
        html! { (badge(check.finding.status)) @if check.is_muted { " muted" } },
        html! { code id=(format!("check-{}", check.name())) { (check.name()) } },
        html! {
            (context.shown(&check.finding.text))
            @if let Some(name) = judged.same_as() {
                br;
                "Remedy: same as for " a href=(format!("#check-{name}")) { (name) } "."
            } @else if let Some(remedy) = &judged.remedy {
                (command(context, remedy, "hugeinfo_checks"))
            }
        },
    ]
}
