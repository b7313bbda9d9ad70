//! The processes that have most.

use maud::{Markup, Render, html};

use super::{
    more, section as part, size,
    table::{number, table, text},
};
use crate::{page::Context, subject::Process};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let largest = largest(&context.subject.processes);
    let (first, rest) = context.first(&largest);
    let mut columns = vec![number("pid").naming(), text("type")];
    if !context.is_redacted {
        columns.extend([text("role"), text("database"), text("application")]);
    }
    columns.extend([
        number("private"),
        number("page tables"),
        number("swapped out"),
        number("major faults"),
    ]);
    let content = html! {
        @if context.is_redacted {
            p { "Roles, databases and application names are left out." }
        }
        (table(
            Some("stacked processes"),
            "Processes with most private memory, page tables and swap",
            &columns,
            first.iter().map(|process| row(context, process)),
        ))
        (more(rest, "hugeinfo_backends"))
    };
    part("processes", "Top processes", &content)
}

fn row(context: &Context<'_>, process: &Process) -> Vec<Markup> {
    let memory = &process.memory;
    let mut cells = vec![
        process.pid.render(),
        or_dash(context, process.backend_type.as_deref()),
    ];
    if !context.is_redacted {
        let names = [&process.role, &process.database, &process.application];
        cells.extend(names.map(|name| or_dash(context, name.as_deref())));
    }
    cells.extend(
        [memory.rss_anon, memory.page_tables, memory.swap].map(|bytes| size(bytes).render()),
    );
    cells.push(process.major_faults.render());
    cells
}

fn or_dash(context: &Context<'_>, name: Option<&str>) -> Markup {
    html! {
        @match name.filter(|name| !name.is_empty()) {
            Some(name) => bdi { (context.shown(name)) },
            None => "\u{2013}",
        }
    }
}

/// The largest first.
pub(crate) fn largest(processes: &[Process]) -> Vec<&Process> {
    let mut largest: Vec<_> = processes.iter().collect();
    largest.sort_by_key(|process| std::cmp::Reverse(process.own_bytes()));
    largest
}
