//! Memory of the server, and of its processes by type.

use std::collections::BTreeMap;

use hugeinfo::units::Bytes;
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, swatch},
    context::Context,
    parts::{more, section as part, size},
    subject::Process,
    table::{Column, drawn, name, number, table},
    text::count,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let footprint = &context.subject.footprint;
    let types = by_type(&context.subject.processes);
    let (first, rest) = context.first(&types);
    let largest = types.iter().map(|group| group.total).max().unwrap_or(0);
    let content = html! {
        p {
            (count(footprint.processes, "process", "processes"))
            ". Private memory: " (size(footprint.private))
            ". Page tables: " (size(footprint.page_tables))
            ". Swapped out: " (size(footprint.swap))
            ". Main shared memory segment: " (size(footprint.segment_backed)) " in use of "
            (size(footprint.segment)) ". Other shared memory: " (size(footprint.other_shared))
            ". In total: " (size(footprint.total())) "."
        }
        ul class="key" {
            li { (swatch(Color::Private)) "private" }
            li { (swatch(Color::PageTables)) "page tables" }
            li { (swatch(Color::Swap)) "swapped out" }
        }
        (table(
            Some("chart"),
            "Private memory, page tables and swap of each type",
            &COLUMNS,
            first.iter().map(|group| row(context, group, largest)),
        ))
        (more(rest, "hugeinfo_backends"))
    };
    part("memory", "Memory by backend type", &content)
}

const COLUMNS: [Column; 6] = [
    name("type"),
    drawn("share of the largest"),
    number("processes"),
    number("private"),
    number("page tables"),
    number("swapped out"),
];

fn row(context: &Context<'_>, group: &Group, largest: u64) -> Vec<Markup> {
    let name = context.shown(&group.name);
    let parts = [
        (Color::Private, group.private),
        (Color::PageTables, group.page_tables),
        (Color::Swap, group.swap),
    ];
    let label = format!("{name}: {}", Bytes(group.total));
    vec![
        html! { bdi { (name) } },
        bar(&label, &parts, largest, None),
        group.processes.render(),
        html! { (Bytes(group.private)) },
        html! { (Bytes(group.page_tables)) },
        html! { (Bytes(group.swap)) },
    ]
}

/// The processes of one type.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) processes: u64,
    pub(crate) private: u64,
    pub(crate) page_tables: u64,
    pub(crate) swap: u64,
    total: u64,
}

/// Groups the processes by type, the largest group first.
pub(crate) fn by_type(processes: &[Process]) -> Vec<Group> {
    let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
    for process in processes {
        let name = process
            .backend_type
            .as_deref()
            .unwrap_or("starting or ending");
        let group = groups.entry(name).or_default();
        let add = |sum: &mut u64, part: Option<u64>| *sum = sum.saturating_add(part.unwrap_or(0));
        group.processes += 1;
        add(&mut group.private, process.memory.rss_anon);
        add(&mut group.page_tables, process.memory.page_tables);
        add(&mut group.swap, process.memory.swap);
        add(&mut group.total, Some(process.own_bytes()));
    }
    let named = groups.into_iter().map(|(name, group)| Group {
        name: name.to_owned(),
        ..group
    });
    let mut groups: Vec<_> = named.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total));
    groups
}
