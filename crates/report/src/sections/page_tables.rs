//! Page tables now, and forecasts on 4 kB pages and on huge pages.

use advice::model::page_tables::{Cost, small_and_huge};
use host::units::{Bytes, PageSize};
use maud::{Markup, html};

use crate::{
    chart::{Color, percent, swatch, ticks},
    context::Context,
    parts::{count, note, section as part},
};

/// Page tables on small pages, and on the huge pages that the server uses or would use.
pub(crate) struct Pair<'a> {
    pub(crate) small: &'a Cost,
    pub(crate) huge: &'a Cost,
    pub(crate) max_connections: u64,
}

impl<'a> Pair<'a> {
    /// `None`: the kernel has no huge pages, or something is unknown.
    pub(crate) fn of(context: &Context<'a>) -> Option<Self> {
        let machine = &context.subject.machine;
        let max_connections = machine.facts.known_max_connections()?;
        let (small, huge) = small_and_huge(machine, &context.advice.page_tables)?;
        Some(Self {
            small,
            huge,
            max_connections,
        })
    }

    /// The load of the forecasts.
    pub(crate) fn load(&self) -> String {
        format!(
            "shared memory, once {} connections use all of it",
            self.max_connections
        )
    }

    /// Current page tables of a server on small pages, and an estimate on huge pages.
    pub(crate) fn saving(&self) -> Option<(u64, u64)> {
        let (now, then) = self.small.now.zip(self.huge.then)?;
        (self.small.is_used == Some(true) && then < now).then_some((now, then))
    }
}

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let pair = Pair::of(context);
    let now = context.advice.page_tables.first().and_then(|cost| cost.now);
    let processes = context.subject.processes.len();
    let content = html! {
        @match now {
            Some(now) => p {
                (count(processes, "process has ", "processes have ")) (Bytes(now))
                " of page tables, for shared and private memory."
                @if let Some(pair) = &pair && let Some((_, then)) = pair.saving() {
                    " On " (PageSize(pair.huge.page_bytes)) " pages, they would have about "
                    (Bytes(then)) "."
                }
            },
            None => (note("The page tables of the processes could not be read.")),
        }
        @if let Some(pair) = &pair { (chart(pair)) }
    };
    part("page-tables", "Page tables", &content)
}

/// Two lines from zero to the page tables of all connections.
fn chart(pair: &Pair<'_>) -> Markup {
    let Pair { small, huge, .. } = *pair;
    let wastes = small.is_used == Some(true);
    let highest = small.max_connections;
    let y = |bytes| 100.0 - percent(bytes, highest);
    let low = y(huge.max_connections);
    let heading = "Forecast of page tables for shared memory, once each connection uses all of it";
    html! {
        h3 { (heading) }
        svg class="lines" role="img" aria-label=(heading) width="100%" height="150" {
            @if wastes {
                svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%" {
                    polygon class="wasted" points=(format!("0,100 100,0 100,{low:.2}")) {}
                }
            }
            @for tick in ticks(highest) {
                @let y = format!("{:.2}%", y(tick));
                line class="grid" y1=(y) x2="100%" y2=(y) {}
                text x="4" y=(y) dy="-3" { (Bytes(tick)) }
            }
            line class=(class(small)) y1="100%" x2="100%" {}
            line class=(class(huge)) y1="100%" x2="100%" y2=(format!("{low:.2}%")) {}
        }
        p class="ends-of-axis" { span { "0" } " " span { (pair.max_connections) " connections" } }
        ul class="key" {
            @for cost in [small, huge] {
                li {
                    svg class="swatch" width="20" height="12" aria-hidden="true" {
                        line class=(class(cost)) y1="6" x2="20" y2="6" {}
                    }
                    " " (PageSize(cost.page_bytes)) " pages"
                    @if cost.is_used == Some(true) { ", in use" }
                    ": up to " (Bytes(cost.max_connections))
                }
            }
            @if wastes { li { (swatch(Color::Wasted)) "wasted" } }
        }
    }
}

/// A solid line for the pages that the server uses, a dashed line for others.
fn class(cost: &Cost) -> &'static str {
    match cost.is_used {
        Some(true) => "real",
        Some(false) | None => "forecast",
    }
}
