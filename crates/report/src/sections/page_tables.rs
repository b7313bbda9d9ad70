//! What page tables cost now, and on pages of each size.

use hugeinfo::{advice::words::human, model::page_tables::Cost};
use maud::{Markup, Render, html};

use super::{
    missing, section as part, size,
    table::{Column, drawn, name, number, table},
};
use crate::{
    chart::{Colour, bar, swatch},
    page::Context,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let costs = &context.findings.page_tables;
    let around = context.subject.machine.around.as_ref();
    let max_connections = around.map_or(0, |around| around.max_connections);
    let now = costs.first().and_then(|cost| cost.now);
    let largest = costs.iter().map(|cost| cost.max_connections);
    let largest = largest.chain(now).max().unwrap_or(0);
    let processes = context.subject.processes.len();
    let content = html! {
        p {
            "Each process keeps page tables of its own for the shared memory that it has touched. "
            (processes) " processes have " (size(now)) " now."
        }
        @if now.is_none() { (missing("The page tables of the processes cannot be seen.")) }
        ul class="key" {
            li { (swatch(Colour::PageTables)) "measured now" }
            li { (swatch(Colour::Forecast)) "forecast: once " (max_connections) " connections have touched all shared memory" }
        }
        (table(
            Some("chart"),
            &format!("Page tables on pages of each size, for max_connections = {max_connections}"),
            &COLUMNS,
            std::iter::once(row_now(now, largest)).chain(costs.iter().map(|cost| row(cost, largest))),
        ))
        p class="note" {
            "What is measured has tables for private memory and libraries, too; the forecast is for shared "
            "memory alone. \u{201c}As used now\u{201d} is an estimate: the present processes, with what they "
            "have touched so far, on pages of that size."
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
            Colour::PageTables,
        ),
        size(now).render(),
        html! {},
        html! {},
    ]
}

fn row(cost: &Cost, largest: u64) -> Vec<Markup> {
    let pages = human(cost.page_bytes);
    let label = format!("Page tables on pages of {pages}");
    vec![
        html! { (pages) @if cost.is_used == Some(true) { " (in use)" } },
        one_bar(&label, cost.max_connections, largest, Colour::Forecast),
        human(cost.max_connections).render(),
        human(cost.one).render(),
        cost.then
            .map_or_else(|| "\u{2013}".to_owned(), human)
            .render(),
    ]
}

fn one_bar(label: &str, bytes: u64, largest: u64, colour: Colour) -> Markup {
    bar(
        &format!("{label}: {}", human(bytes)),
        &[(colour, bytes)],
        largest,
        None,
    )
}
