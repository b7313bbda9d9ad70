//! What the next start will use.

use hugeinfo::{
    advice::words::{human, too_low},
    model::forecast::Forecast,
    server::{facts::Server, surroundings::Files},
};
use maud::{Markup, Render, html};

use super::{
    missing, section as part, size,
    table::{name, table, text},
};
use crate::page::Context;

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let machine = &context.subject.machine;
    let content = html! {
        (files(context))
        (settings(&machine.facts.server, machine.facts.next_start()))
        @if let Some(target) = Forecast::of_target(machine) {
            p {
                @if machine.facts.asks_for_huge_pages() { "The next start needs " } @else { "On huge pages it would need " }
                (target.required) " pages of " (human(target.pool.page_bytes)) " for "
                (human(machine.facts.needed_bytes())) " of shared memory."
            }
        }
    };
    part("next-start", "The next start", &content)
}

fn files(context: &Context<'_>) -> Markup {
    let Some(around) = &context.subject.machine.around else {
        return missing("Nobody has looked.");
    };
    match &around.files {
        Files::NothingWaits if context.subject.may_plan => {
            html! { p { "The next start takes what the server runs with: nothing else waits in the configuration files." } }
        }
        Files::NothingWaits => missing(
            "The server knows of no setting that waits for a restart. The configuration files themselves were not \
             read: that takes the right to execute hugeinfo_plan(jsonb).",
        ),
        Files::Planned(_) => html! {
            p {
                "Settings wait for a restart"
                @if !around.waiting_settings.is_empty() { ": " (around.waiting_settings.join(", ")) }
                "."
            }
        },
        Files::Refused(words) => {
            html! { p { strong { "The next start would fail: " } (context.shown(words)) } }
        }
        Files::TooLow(settings) => {
            html! { p { strong { "The next start would fail: " } (context.shown(&too_low(settings))) } }
        }
        Files::Unseen(why) => missing(&format!(
            "What waits in the configuration files cannot be seen: {}",
            context.shown(why)
        )),
    }
}

fn settings(now: &Server, next: &Server) -> Markup {
    let page = |server: &Server| match server.huge_page_size_bytes {
        Some(bytes) => human(bytes),
        None => "the kernel\u{2019}s default".to_owned(),
    };
    let rows = [
        (
            "huge_pages",
            now.huge_pages.as_str().to_owned(),
            next.huge_pages.as_str().to_owned(),
        ),
        (
            "shared_memory_type",
            now.shared_memory_type.as_str().to_owned(),
            next.shared_memory_type.as_str().to_owned(),
        ),
        ("huge_page_size", page(now), page(next)),
        (
            "shared memory",
            size(Some(now.shared_memory_bytes)),
            size(Some(next.shared_memory_bytes)),
        ),
    ];
    let rows = rows.map(|(name, now, next)| {
        let next = if now == next {
            next.render()
        } else {
            html! { strong { (next) } }
        };
        vec![name.render(), now.render(), next]
    });
    table(
        None,
        "What the server runs with, and what it will start with",
        &[
            name("setting"),
            text("now").plain(),
            text("next start").plain(),
        ],
        rows,
    )
}
