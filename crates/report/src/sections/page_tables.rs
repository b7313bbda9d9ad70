//! What page tables cost now, and on pages of each size.

use hugeinfo::{advice::words::human, model::page_tables::Cost};
use maud::{Markup, html};

use super::{missing, section as part, size};
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
        table class="chart" {
            caption { "Page tables on pages of each size, for max_connections = " (max_connections) }
            thead { tr {
                th scope="col" { "pages" }
                th scope="col" class="drawn" { "share of the largest" }
                th scope="col" class="n" { "in total" }
                th scope="col" class="n" { "each process" }
                th scope="col" class="n" { "as used now" }
            } }
            tbody {
                tr {
                    th scope="row" { "now" }
                    td class="drawn" { (drawn("Page tables now", now.unwrap_or(0), largest, Colour::PageTables)) }
                    td class="n" data-label="in total" { (size(now)) }
                    td class="n" data-label="each process" {}
                    td class="n" data-label="as used now" {}
                }
                @for cost in costs { (row(cost, largest)) }
            }
        }
        p class="note" {
            "What is measured has tables for private memory and libraries, too; the forecast is for shared "
            "memory alone. \u{201c}As used now\u{201d} is an estimate: the present processes, with what they "
            "have touched so far, on pages of that size."
        }
    };
    part("page-tables", "Page tables", &content)
}

fn row(cost: &Cost, largest: u64) -> Markup {
    let pages = human(cost.page_bytes);
    let label = format!("Page tables on pages of {pages}");
    html! {
        tr {
            th scope="row" { (pages) @if cost.is_used == Some(true) { " (in use)" } }
            td class="drawn" { (drawn(&label, cost.max_connections, largest, Colour::Forecast)) }
            td class="n" data-label="in total" { (human(cost.max_connections)) }
            td class="n" data-label="each process" { (human(cost.one)) }
            td class="n" data-label="as used now" { @if let Some(then) = cost.then { (human(then)) } @else { "\u{2013}" } }
        }
    }
}

fn drawn(label: &str, bytes: u64, largest: u64, colour: Colour) -> Markup {
    bar(
        &format!("{label}: {}", human(bytes)),
        &[(colour, bytes)],
        largest,
        None,
    )
}
