//! The processes that have most.

use maud::{Markup, html};

use super::{more, section as part, size};
use crate::{page::Context, subject::Process, text::shown};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let largest = largest(&context.subject.processes);
    let (first, rest) = context.first(&largest);
    let content = html! {
        @if context.is_redacted {
            p { "Roles, databases and application names are left out." }
        }
        table class="stacked processes" {
            caption { "Processes with most private memory, page tables and swap" }
            thead { tr {
                th scope="col" class="n" { "pid" }
                th scope="col" { "type" }
                @if !context.is_redacted {
                    th scope="col" { "role" }
                    th scope="col" { "database" }
                    th scope="col" { "application" }
                }
                th scope="col" class="n" { "private" }
                th scope="col" class="n" { "page tables" }
                th scope="col" class="n" { "swapped out" }
                th scope="col" class="n" { "major faults" }
            } }
            tbody { @for process in first { (row(context, process)) } }
        }
        (more(rest, "hugeinfo_backends"))
    };
    part("processes", "Top processes", &content)
}

fn row(context: &Context<'_>, process: &Process) -> Markup {
    let memory = &process.memory;
    html! {
        tr {
            th scope="row" class="n" { (process.pid) }
            (name("type", process.backend_type.as_deref()))
            @if !context.is_redacted {
                (name("role", process.role.as_deref()))
                (name("database", process.database.as_deref()))
                (name("application", process.application.as_deref()))
            }
            td class="n" data-label="private" { (size(memory.rss_anon)) }
            td class="n" data-label="page tables" { (size(memory.page_tables)) }
            td class="n" data-label="swapped out" { (size(memory.swap)) }
            td class="n" data-label="major faults" { (process.major_faults) }
        }
    }
}

fn name(label: &str, name: Option<&str>) -> Markup {
    html! {
        td data-label=(label) {
            @match name.filter(|name| !name.is_empty()) {
                Some(name) => bdi { (shown(name)) },
                None => "\u{2013}",
            }
        }
    }
}

/// The largest first.
pub(crate) fn largest(processes: &[Process]) -> Vec<&Process> {
    let mut largest: Vec<_> = processes.iter().collect();
    largest.sort_by_key(|process| {
        let memory = &process.memory;
        let parts = [memory.rss_anon, memory.page_tables, memory.swap];
        std::cmp::Reverse(parts.into_iter().flatten().fold(0, u64::saturating_add))
    });
    largest
}
