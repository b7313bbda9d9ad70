//! Memory of each NUMA node, and its part of the pools and of the segment.

use hugeinfo::{linux::numa::node::Node, units::Bytes};
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, swatch},
    context::Context,
    parts::{missing, more, not_read, section as part, size},
    table::{Column, drawn, name, number, table},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let env = context.subject.machine.env.as_ref();
    let content = match env.map(|env| &env.nodes) {
        Some(Ok(nodes)) if nodes.len() > 1 => chart(context, nodes),
        Some(Ok(_)) => missing("This machine has one NUMA node."),
        Some(Err(absent)) => missing(&format!("{}.", context.shown(&absent.to_string()))),
        None => not_read(),
    };
    part("numa", "NUMA nodes", &content)
}

const COLUMNS: [Column; 6] = [
    name("node"),
    drawn("share of the largest"),
    number("memory"),
    number("free"),
    number("huge pages"),
    number("segment"),
];

fn chart(context: &Context<'_>, nodes: &[Node]) -> Markup {
    let rows: Vec<_> = nodes.iter().map(|node| Part::of(context, node)).collect();
    let (first, rest) = context.first(&rows);
    let largest = rows.iter().filter_map(|row| row.total).max().unwrap_or(0);
    html! {
        ul class="key" {
            li { (swatch(Color::Own)) "segment of this server" }
            li { (swatch(Color::Others)) "other huge pages in use" }
            li { (swatch(Color::Idle)) "free huge pages" }
            li { (swatch(Color::Rest)) "other use" }
            li { (swatch(Color::Free)) "free" }
        }
        (table(
            Some("chart"),
            "Memory of each NUMA node",
            &COLUMNS,
            first.iter().map(|row| row.shown(largest)),
        ))
        (more(rest, "hugeinfo_numa_nodes"))
        p class="note" {
            "The segment column counts the pages of the process that has touched the most."
        }
    }
}

/// Memory of a node, in bytes.
pub(crate) struct Part {
    pub(crate) number: u32,
    is_allowed: Option<bool>,
    pub(crate) total: Option<u64>,
    pub(crate) free: Option<u64>,
    pub(crate) pools: u64,
    free_in_pools: u64,
    pub(crate) segment: Option<u64>,
    is_on_huge_pages: bool,
}

impl Part {
    pub(crate) fn of(context: &Context<'_>, node: &Node) -> Self {
        let machine = &context.subject.machine;
        let counters = node.pools.iter();
        let counters = counters.filter_map(|pool| Some((pool.page_bytes, pool.counters?)));
        let (mut pools, mut free_in_pools) = (0_u64, 0_u64);
        for (page_bytes, counts) in counters {
            pools = pools.saturating_add(counts.total.saturating_mul(page_bytes));
            free_in_pools = free_in_pools.saturating_add(counts.free.saturating_mul(page_bytes));
        }
        let env = machine.env.as_ref();
        let by_node = env.and_then(|env| env.segment_nodes.as_ref());
        let segment = by_node
            .zip(machine.facts.page_bytes())
            .map(|(pages, bytes)| {
                let pages = pages.get(&node.number).copied().unwrap_or(0);
                pages.saturating_mul(bytes)
            });
        Self {
            number: node.number,
            is_allowed: machine.facts.allowed_nodes.allows(node.number),
            total: node.memory.total,
            free: node.memory.free,
            pools,
            free_in_pools,
            segment,
            is_on_huge_pages: machine.is_on_huge_pages() == Some(true),
        }
    }

    fn shown(&self, largest: u64) -> Vec<Markup> {
        let segment = self.segment.unwrap_or(0);
        let in_use = self.pools.saturating_sub(self.free_in_pools);
        let others = match self.is_on_huge_pages {
            true => in_use.saturating_sub(segment),
            false => in_use,
        };
        let free = self.free.unwrap_or(0);
        let known = [segment, others, self.free_in_pools, free];
        let known = known.into_iter().fold(0, u64::saturating_add);
        let total = self.total.unwrap_or(0).max(known);
        let parts = [
            (Color::Own, segment),
            (Color::Others, others),
            (Color::Idle, self.free_in_pools),
            (Color::Rest, total - known),
            (Color::Free, free),
        ];
        let label = format!("Node {}: {}", self.number, size(self.total));
        vec![
            html! { "node " (self.number) @if self.is_allowed == Some(false) { " (not allowed)" } },
            bar(&label, &parts, largest.max(total), None),
            size(self.total).render(),
            size(self.free).render(),
            html! { (Bytes(self.pools)) },
            size(self.segment).render(),
        ]
    }
}
