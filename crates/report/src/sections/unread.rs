//! Kernel sources that could not be read, and checks with an unknown result.

use hugeinfo::{
    advice::check::{Check, Status},
    escape,
    server::sources::{Availability, Source},
};
use maud::{Markup, Render, html};

use crate::{
    context::Context,
    parts::{missing, more, section as part},
    table::{name, table, text},
    text::count,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let sources = &context.subject.sources;
    let unread = |source: &&Source| source.status != Availability::Ok;
    let unread: Vec<&Source> = sources.iter().filter(unread).collect();
    let (first, rest) = context.first(&unread);
    let unknown = context.findings.checks.iter();
    let unknown: Vec<_> = unknown
        .map(|judged| &judged.check)
        .filter(|check| check.finding.status == Status::Unknown)
        .collect();
    let content = html! {
        @if unread.is_empty() {
            p { "All " (sources.len()) " kernel sources could be read." }
        } @else {
            p {
                (unread.len()) " of "
                (count(sources.len() as u64, "kernel source", "kernel sources"))
                " could not be read."
            }
            (table(
                Some("stacked"),
                "Kernel sources that could not be read",
                &[name("source"), text("status").plain(), text("path").plain()],
                first.iter().map(|source| row(context, source)),
            ))
            (more(rest, "hugeinfo_sources"))
        }
        @if !unknown.is_empty() {
            p { "Checks with an unknown result:" }
            ul {
                @for check in unknown {
                    li { code { (check.name()) } ": " (context.shown(why(check))) }
                }
            }
        }
        @if !context.subject.may_plan {
            (missing(
                "Settings that have not been reloaded are not in this report, because your role \
                 cannot execute hugeinfo_plan(jsonb). A superuser can grant EXECUTE."
            ))
        }
    };
    part("unread", "Could not be read", &content)
}

/// The reason without the name of the check, which the list shows in front of it.
fn why(check: &Check) -> &str {
    let text = &check.finding.text;
    let prefix = format!("Cannot judge {}: ", check.name());
    text.strip_prefix(&prefix).unwrap_or(text)
}

fn row(context: &Context<'_>, source: &Source) -> Vec<Markup> {
    vec![
        source.name.render(),
        source.status.as_str().render(),
        html! { code { (context.shown(&escape::name(&source.path))) } },
    ]
}
