//! The largest processes. Similar ones share a row.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, Render, html};

use crate::{
    context::Context,
    parts::{more, section as part, size},
    subject::Process,
    table::{number, table, text},
};

/// Processes of the same type, role and database are similar if none of their figures differs from
/// the largest process by more than this share of its memory.
const SIMILAR_PERCENT: u64 = 10;

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let groups = groups(&context.subject.processes);
    let (first, rest) = context.first(&groups);
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
        @if groups.iter().any(|group| group.processes > 1) {
            p { "Similar processes share a row with the figures of the largest." }
        }
        (table(
            Some("stacked processes"),
            "Processes with the most private memory, page tables and swap",
            &columns,
            first.iter().map(|group| row(context, group)),
        ))
        (more(rest, "hugeinfo_backends"))
    };
    part("processes", "Top processes", &content)
}

fn row(context: &Context<'_>, group: &Similar<'_>) -> Vec<Markup> {
    let process = group.largest;
    let memory = &process.memory;
    let name = |name: &Option<String>| or_dash(context, name.as_deref());
    let mut cells = vec![
        process.pid.render(),
        html! {
            @if group.processes > 1 { (group.processes) " \u{d7} " }
            (name(&process.backend_type))
        },
    ];
    if !context.is_redacted {
        cells.extend([name(&process.role), name(&process.database)]);
        cells.push(match group.applications.len() {
            0 | 1 => name(&process.application),
            count => html! { (count) " different" },
        });
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

/// Similar processes.
pub(crate) struct Similar<'p> {
    pub(crate) largest: &'p Process,
    pub(crate) processes: u64,
    applications: BTreeSet<Option<&'p str>>,
}

impl Similar<'_> {
    fn contains(&self, process: &Process) -> bool {
        let most = u128::from(self.largest.own_bytes()) * u128::from(SIMILAR_PERCENT);
        let figures = |process: &Process| {
            let memory = &process.memory;
            [memory.rss_anon, memory.page_tables, memory.swap]
        };
        figures(self.largest)
            .iter()
            .zip(figures(process))
            .all(|pair| match pair {
                (Some(one), Some(other)) => u128::from(one.abs_diff(other)) * 100 <= most,
                (one, other) => *one == other,
            })
    }
}

/// Groups similar processes, the largest process first.
pub(crate) fn groups(processes: &[Process]) -> Vec<Similar<'_>> {
    let mut largest_first: Vec<_> = processes.iter().collect();
    largest_first.sort_by_key(|process| std::cmp::Reverse(process.own_bytes()));
    let mut groups: Vec<Similar<'_>> = Vec::new();
    // The last group of each kind. Only this group is compared, because there can be thousands.
    let mut last = HashMap::new();
    for process in largest_first {
        let kind = (&process.backend_type, &process.role, &process.database);
        let application = process.application.as_deref();
        if let Some(&index) = last.get(&kind)
            && let Some(group) = groups
                .get_mut(index)
                .filter(|group: &&mut Similar<'_>| group.contains(process))
        {
            group.processes += 1;
            group.applications.insert(application);
            continue;
        }
        last.insert(kind, groups.len());
        groups.push(Similar {
            largest: process,
            processes: 1,
            applications: BTreeSet::from([application]),
        });
    }
    groups
}
