//! What could not be read.

use hugeinfo::{
    advice::check::Status,
    escape,
    server::sources::{Availability, Source},
};
use maud::{Markup, Render, html};

use super::{
    missing, more, section as part,
    table::{name, table, text},
};
use crate::{page::Context, text::count};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let sources = &context.subject.sources;
    let unread = |source: &&Source| source.status != Availability::Ok;
    let unread: Vec<&Source> = sources.iter().filter(unread).collect();
    let (first, rest) = context.first(&unread);
    let unknown = context.findings.checks.iter();
    let unknown: Vec<_> = unknown
        .filter(|check| check.status == Status::Unknown)
        .collect();
    let content = html! {
        @if unread.is_empty() {
            p { "Each of the " (sources.len()) " sources could be read." }
        } @else {
            p { (count(unread.len() as u64, "source", "sources")) " of " (sources.len()) " gave nothing." }
            (table(
                Some("stacked"),
                "Sources of the kernel that gave nothing",
                &[name("source"), text("status").plain(), text("where").plain()],
                first.iter().map(|source| row(context, source)),
            ))
            (more(rest, "hugeinfo_sources"))
        }
        @if !unknown.is_empty() {
            p { "Checks that cannot tell, and why:" }
            ul { @for check in unknown { li { code { (check.name) } ": " (context.shown(&check.finding)) } } }
        }
        @if !context.subject.may_plan {
            (missing(
                "Your role may not plan: settings that nobody has reloaded yet are not in this report. A superuser \
                 can grant EXECUTE on hugeinfo_plan(jsonb)."
            ))
        }
    };
    part("unread", "What could not be read", &content)
}

fn row(context: &Context<'_>, source: &Source) -> Vec<Markup> {
    vec![
        source.name.render(),
        source.status.as_str().render(),
        html! { code { (context.shown(&escape::name(&source.path))) } },
    ]
}
