//! Memory for page tables now, and a forecast for each page size.

use hugeinfo::{
    model::page_tables::Cost,
    units::{Bytes, PageSize},
};
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, swatch},
    context::Context,
    parts::{missing, section as part, size},
    table::{Column, drawn, name, number, table},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let costs = &context.findings.page_tables;
    let env = context.subject.machine.env.as_ref();
    let max_connections = env.map_or(0, |env| env.max_connections);
    let now = costs.first().and_then(|cost| cost.now);
    let largest = costs.iter().map(|cost| cost.max_connections);
    let largest = largest.chain(now).max().unwrap_or(0);
    let processes = context.subject.processes.len();
    let content = html! {
        p {
            "Each process has its own page tables for the shared memory that it has touched. "
            @if let Some(now) = now { (processes) " processes use " (Bytes(now)) " for them now." }
        }
        @if now.is_none() { (missing("The page tables of the processes could not be read.")) }
        ul class="key" {
            li { (swatch(Color::PageTables)) "measured now" }
            li {
                (swatch(Color::Forecast)) "forecast: once " (max_connections)
                " connections have touched all shared memory"
            }
        }
        (table(
            Some("chart"),
            &format!("Page tables for each page size, with max_connections = {max_connections}"),
            &COLUMNS,
            std::iter::once(row_now(now, largest))
                .chain(costs.iter().map(|cost| row(cost, largest))),
        ))
        p class="note" {
            "Measured page tables include those for private memory and libraries; the forecast is "
            "for shared memory alone. \u{201c}As used now\u{201d} is an estimate for the current "
            "processes and the memory that they have touched so far, with that page size."
        }
    };
    part("page-tables", "Page tables", &content)
}

const COLUMNS: [Column; 5] = [
    name("pages"),
    drawn("share of the largest"),
    number("in total"),
    number("each process"),
    number("as used now"),
];

fn row_now(now: Option<u64>, largest: u64) -> Vec<Markup> {
    vec![
        "now".render(),
        one_bar(
            "Page tables now",
            now.unwrap_or(0),
            largest,
            Color::PageTables,
        ),
        size(now).render(),
        html! {},
        html! {},
    ]
}

fn row(cost: &Cost, largest: u64) -> Vec<Markup> {
    let pages = PageSize(cost.page_bytes);
    let label = format!("Page tables on {pages} pages");
    vec![
        html! { (pages) @if cost.is_used == Some(true) { " (in use)" } },
        one_bar(&label, cost.max_connections, largest, Color::Forecast),
        html! { (Bytes(cost.max_connections)) },
        html! { (Bytes(cost.one)) },
        html! {
            @match cost.then {
                Some(bytes) => (Bytes(bytes)),
                None => "\u{2013}",
            }
        },
    ]
}

fn one_bar(label: &str, bytes: u64, largest: u64, color: Color) -> Markup {
    bar(
        &format!("{label}: {}", Bytes(bytes)),
        &[(color, bytes)],
        largest,
        None,
    )
}
