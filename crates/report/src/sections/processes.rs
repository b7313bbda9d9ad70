//! The processes of the server. Those of the same type and database share a row.

use std::{cmp::Reverse, collections::HashMap};

use host::units::Bytes;
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, key},
    context::Context,
    parts::{BARS, closed, count, more, name, size, table},
    subject::Process,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let footprint = &context.subject.footprint;
    let groups = groups(&context.subject.processes);
    let (first, rest) = context.first(&groups);
    let largest = first.first().map_or(0, |group| total(group));
    let titles = [
        "processes",
        BARS,
        "private",
        "page tables",
        "swapped out",
        "largest",
    ];
    let rows = first.iter().map(|group| row(context, group, largest));
    let colors = [
        (Color::Private, "private memory, swapped out or not"),
        (Color::Tables, "page tables"),
    ];
    let content = html! {
        p {
            "Private memory: " (size(footprint.private)) ". Page tables: "
            (size(footprint.page_tables)) ". Swapped out: " (size(footprint.swap))
            ". Main shared memory segment: " (size(footprint.segment_backed)) " in use of "
            (size(footprint.segment)) ". Other shared memory: " (size(footprint.other_shared))
            ". In total: " (size(footprint.total())) "."
        }
        (key(colors))
        (table(
            "Bars show the sum of all processes in a row. Figures are those of a typical process.",
            &titles,
            rows.collect(),
        ))
        (more(rest, "hugeinfo_backends"))
    };
    let hint = count(context.subject.processes.len(), "process", "processes");
    closed("processes", "Processes", &hint, &content)
}

fn row(context: &Context<'_>, group: &[&Process], largest_group: u64) -> Vec<Markup> {
    let (largest, typical) = (group[0], group[group.len() / 2]);
    let tables = group
        .iter()
        .filter_map(|process| process.memory.page_tables);
    let tables = tables.fold(0, u64::saturating_add);
    let total = total(group);
    let kind = name(context, typical.backend_type.as_deref());
    let label = format!(
        "{}: {}",
        count(group.len(), "process", "processes"),
        Bytes(total)
    );
    let parts = [
        (Color::Private, total.saturating_sub(tables)),
        (Color::Tables, tables),
    ];
    let memory = &typical.memory;
    let figures = [memory.rss_anon, memory.page_tables, memory.swap];
    let mut cells = vec![
        html! {
            @if group.len() > 1 { (group.len()) " \u{d7} " }
            (kind)
            @if let Some(text) = &typical.database { ", " (name(context, Some(text))) }
        },
        bar(&label, &parts, largest_group),
    ];
    cells.extend(figures.map(|bytes| size(bytes).render()));
    cells.push(html! {
        (Bytes(largest.own_bytes())) " (pid " (largest.pid)
        @if let Some(text) = &largest.application { ", " (name(context, Some(text))) }
        ")"
    });
    cells
}

fn total(group: &[&Process]) -> u64 {
    let each = group.iter().map(|process| process.own_bytes());
    each.fold(0, u64::saturating_add)
}

/// Groups of processes, the largest group first, and in each the largest process.
fn groups(processes: &[Process]) -> Vec<Vec<&Process>> {
    let mut groups: HashMap<_, Vec<&Process>> = HashMap::new();
    for process in processes {
        let kind = (&process.backend_type, &process.database);
        groups.entry(kind).or_default().push(process);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        group.sort_by_key(|process| (Reverse(process.own_bytes()), process.pid));
    }
    groups.sort_by_key(|group| (Reverse(total(group)), group[0].pid));
    groups
}
