//! Page tables against connections, on 4 kB pages and on huge pages.

use advice::model::page_tables::{Cost, small_and_huge};
use host::units::{Bytes, PageSize};
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, percent, swatch},
    context::Context,
    parts::{count, note, section as part, size, table},
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
        let (small, huge) = small_and_huge(machine, &context.advice.page_tables)?;
        Some(Self {
            small,
            huge,
            max_connections: machine.facts.max_connections,
        })
    }

    /// Current page tables of a server on small pages, and an estimate on huge pages.
    pub(crate) fn saving(&self) -> Option<(u64, u64)> {
        let (now, then) = self.small.now.zip(self.huge.then)?;
        (self.small.is_used == Some(true) && then < now).then_some((now, then))
    }
}

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let costs = &context.advice.page_tables;
    let now = costs.first().and_then(|cost| cost.now);
    let rows = costs.iter().map(row).collect();
    let content = html! {
        @match Pair::of(context) {
            Some(pair) => (chart(context, &pair)),
            None => {},
        }
        @if now.is_none() { (note("The page tables of the processes could not be read.")) }
        (table(
            "Page tables on pages of each size",
            &["pages", "all connections", "one connection", "processes now"],
            rows,
        ))
        (note(
            "The columns for connections are forecasts: page tables for shared memory, once each \
             connection has touched all of it. Page tables of the current processes include those \
             for private memory and libraries; on other page sizes, they are an estimate."
        ))
    };
    part("page-tables", "Page tables", &content)
}

/// Two lines from zero to the page tables of all connections, and a point for those now.
fn chart(context: &Context<'_>, pair: &Pair<'_>) -> Markup {
    let Pair {
        small,
        huge,
        max_connections,
    } = *pair;
    let processes = &context.subject.processes;
    let connections = processes
        .iter()
        .filter(|process| process.backend_type.as_deref() == Some("client backend"))
        .count();
    let wastes = small.is_used == Some(true);
    let highest = small.max_connections.max(small.now.unwrap_or(0));
    let y = |bytes| format!("{:.2}", 100.0 - percent(bytes, highest));
    let [high, low] = [small, huge].map(|cost| y(cost.max_connections));
    let text = |cost: &Cost| {
        let state = if cost.is_used == Some(true) {
            ", in use"
        } else {
            ""
        };
        let pages = PageSize(cost.page_bytes);
        format!(
            "{pages} pages{state}: up to {} for shared memory",
            Bytes(cost.max_connections)
        )
    };
    let label = format!("Page tables for shared memory, of up to {max_connections} connections");
    html! {
        svg class="lines" role="img" aria-label=(label) width="100%" height="150" {
            @if wastes {
                svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%" {
                    polygon class="wasted" points=(format!("0,100 100,{high} 100,{low}")) {}
                }
            }
            @for (cost, y) in [(small, &high), (huge, &low)] {
                line class=(class(cost)) x1="0" y1="100%" x2="100%" y2=(format!("{y}%")) {}
            }
            @if let Some(now) = small.now {
                @let x = percent(connections as u64, max_connections);
                circle cx=(format!("{x:.2}%")) cy=(format!("{}%", y(now))) r="6" {}
            }
        }
        p class="axis" { span { "0" } " " span { (max_connections) " connections" } }
        ul class="key" {
            @for cost in [small, huge] {
                li {
                    svg class="swatch" width="20" height="12" aria-hidden="true" {
                        line class=(class(cost)) x1="0" y1="6" x2="20" y2="6" {}
                    }
                    " " (text(cost))
                }
            }
            @if wastes { li { (swatch(Color::Wasted)) "wasted" } }
            @if let Some(now) = small.now {
                li {
                    svg class="swatch" width="12" height="12" aria-hidden="true" {
                        circle cx="6" cy="6" r="5" {}
                    }
                    " " (count(connections, "connection", "connections")) " now, "
                    (count(processes.len(), "process", "processes")) ": " (Bytes(now))
                    " with private memory"
                }
            }
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

fn row(cost: &Cost) -> Vec<Markup> {
    let is_used = cost.is_used == Some(true);
    let then = if is_used { cost.now } else { cost.then };
    vec![
        html! { (PageSize(cost.page_bytes)) @if is_used { " (in use)" } },
        Bytes(cost.max_connections).to_string().render(),
        Bytes(cost.one).to_string().render(),
        match then {
            Some(_) if is_used => size(then).render(),
            Some(bytes) => html! { "about " (Bytes(bytes)) },
            None => "\u{2013}".render(),
        },
    ]
}
