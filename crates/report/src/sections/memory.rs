//! What the server costs, and its processes by type.

use std::collections::BTreeMap;

use hugeinfo::advice::words::human;
use maud::{Markup, html};

use super::{more, section as part, size};
use crate::{
    chart::{Colour, bar, swatch},
    page::Context,
    subject::Process,
    text::{count, shown},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let footprint = &context.subject.footprint;
    let types = by_type(&context.subject.processes);
    let (first, rest) = context.first(&types);
    let largest = types.iter().map(Group::total).max().unwrap_or(0);
    let content = html! {
        p {
            (count(footprint.processes, "process has", "processes have")) " "
            (size(footprint.private)) " of private memory and " (size(footprint.page_tables))
            " of page tables. The main segment takes " (size(footprint.segment_backed)) " of "
            (size(footprint.segment)) ", other shared memory " (size(footprint.other_shared))
            ". Swapped out: " (size(footprint.swap)) ". All together: " (size(footprint.total())) "."
        }
        ul class="key" {
            li { (swatch(Colour::Private)) "private" }
            li { (swatch(Colour::PageTables)) "page tables" }
            li { (swatch(Colour::Swap)) "swapped out" }
        }
        table class="chart" {
            caption { "Memory that each type of process has for itself" }
            thead { tr {
                th scope="col" { "type" }
                th scope="col" class="drawn" { "share of the largest" }
                th scope="col" class="n" { "processes" }
                th scope="col" class="n" { "private" }
                th scope="col" class="n" { "page tables" }
                th scope="col" class="n" { "swapped out" }
            } }
            tbody { @for group in first { (row(group, largest)) } }
        }
        (more(rest, "hugeinfo_backends"))
    };
    part("memory", "Memory by backend type", &content)
}

fn row(group: &Group, largest: u64) -> Markup {
    let parts = [
        (Colour::Private, group.private),
        (Colour::PageTables, group.page_tables),
        (Colour::Swap, group.swap),
    ];
    let label = format!("{}: {}", group.name, human(group.total()));
    html! {
        tr {
            th scope="row" { bdi { (shown(&group.name)) } }
            td class="drawn" { (bar(&label, &parts, largest, None)) }
            td class="n" data-label="processes" { (group.processes) }
            td class="n" data-label="private" { (human(group.private)) }
            td class="n" data-label="page tables" { (human(group.page_tables)) }
            td class="n" data-label="swapped out" { (human(group.swap)) }
        }
    }
}

/// The processes of one type.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) processes: u64,
    pub(crate) private: u64,
    pub(crate) page_tables: u64,
    pub(crate) swap: u64,
}

impl Group {
    fn total(&self) -> u64 {
        let parts = [self.private, self.page_tables, self.swap];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The largest first.
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
    }
    let named = groups.into_iter().map(|(name, group)| Group {
        name: name.to_owned(),
        ..group
    });
    let mut groups: Vec<_> = named.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total()));
    groups
}
