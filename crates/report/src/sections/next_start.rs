//! The settings of the next start.

use hugeinfo::{
    advice::render::too_low,
    model::forecast::Forecast,
    server::{environment::Files, facts::Server},
    units::{Bytes, PageSize, huge_pages},
};
use maud::{Markup, Render, html};

use crate::{
    context::Context,
    parts::{missing, not_read, section as part, size},
    table::{name, table, text},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let machine = &context.subject.machine;
    let content = html! {
        (files(context))
        (settings(&machine.facts.server, machine.facts.next_start()))
        @if let Some(target) = Forecast::of_target(machine) {
            p {
                @if machine.facts.asks_for_huge_pages() {
                    "The next start needs "
                } @else {
                    "On huge pages, the next start would need "
                }
                (huge_pages(target.required, PageSize(target.pool.page_bytes))) " for "
                (Bytes(machine.facts.needed_bytes())) " of shared memory."
            }
        }
    };
    part("next-start", "Next start", &content)
}

fn files(context: &Context<'_>) -> Markup {
    let Some(env) = &context.subject.machine.env else {
        return not_read();
    };
    match &env.files {
        Files::NothingPending if context.subject.may_plan => html! {
            p { "The next start uses the same settings: none are pending a restart." }
        },
        Files::NothingPending => missing(
            "No loaded setting is pending a restart. The configuration files were not read, \
             because your role cannot execute hugeinfo_plan(jsonb).",
        ),
        Files::Planned(_) => html! {
            p {
                "Settings are pending a restart"
                @if !env.pending_settings.is_empty() { ": " (env.pending_settings.join(", ")) }
                "."
            }
        },
        Files::Refused(message) => html! {
            p { strong { "The next start would fail: " } (context.shown(message)) }
        },
        Files::TooLow(settings) => html! { p { strong { (too_low(settings)) } } },
        Files::Unknown(why) => missing(&format!(
            "Pending settings are unknown: {}.",
            context.shown(why)
        )),
    }
}

fn settings(now: &Server, next: &Server) -> Markup {
    let page = |server: &Server| match server.huge_page_size_bytes {
        Some(bytes) => PageSize(bytes).to_string(),
        None => "the kernel's default".to_owned(),
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
        "Settings now and at the next start",
        &[
            name("setting"),
            text("now").plain(),
            text("next start").plain(),
        ],
        rows,
    )
}
