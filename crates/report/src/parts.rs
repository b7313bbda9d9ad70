//! Elements that several sections use.

use advice::check::Status;
use host::units::Bytes;
use maud::{Markup, html};

use crate::context::Context;

pub(crate) fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby=(format!("{id}-heading")) {
            h2 id=(format!("{id}-heading")) { (heading) }
            (content)
        }
    }
}

/// A section that is closed at first, and not printed unless it is open. `hint` summarizes it.
pub(crate) fn closed(id: &str, heading: &str, hint: &str, content: &Markup) -> Markup {
    html! {
        details id=(id) {
            summary { h2 { (heading) } " " span class="note" { (hint) } }
            (content)
        }
    }
}

/// A remark, or what replaces missing data.
pub(crate) fn note(text: &str) -> Markup {
    html! { p class="note" { (text) } }
}

/// The number of entries of a list that are not shown, and the view that has them.
pub(crate) fn more(count: usize, view: &str) -> Markup {
    html! {
        @if count > 0 {
            p class="note" { "\u{2026} and " (count) " more in " code { (view) } }
        }
    }
}

/// A command, an instruction, or a reference to the view if it is too long.
pub(crate) fn step(context: &Context<'_>, text: &str, is_command: bool) -> Markup {
    html! {
        @match context.whole(text) {
            Some(text) if is_command => pre { code { (text) } },
            Some(text) => p { (text) },
            None => p class="note" {
                "Too long for this page: see " code { "hugeinfo_runbook" } "."
            },
        }
    }
}

/// A status as a colored word.
pub(crate) fn badge(status: Status) -> Markup {
    html! { b class=(format!("badge {}", status.as_str())) { (status.as_str()) } " " }
}

/// An untrusted text that can be written from right to left, or a dash.
pub(crate) fn name(context: &Context<'_>, name: Option<&str>) -> Markup {
    html! {
        @match name.filter(|name| !name.is_empty()) {
            Some(name) => bdi { (context.shown(name)) },
            None => "\u{2013}",
        }
    }
}

/// A size, or "unknown".
pub(crate) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |bytes| Bytes(bytes).to_string())
}

/// A number with its noun.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{number} {noun}")
}

/// The title of a column with bars.
pub(crate) const BARS: &str = "share of the largest";

/// A table. The first column has the name of the row.
pub(crate) fn table(caption: &str, titles: &[&str], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        table {
            caption { (caption) }
            thead { tr { @for title in titles { th scope="col" { (title) } } } }
            tbody {
                @for cells in rows {
                    tr {
                        @for (index, (title, cell)) in titles.iter().zip(cells).enumerate() {
                            @if index == 0 { th scope="row" { (cell) } }
                            @else if *title == BARS { td class="drawn" { (cell) } }
                            @else { td data-label=(title) { (cell) } }
                        }
                    }
                }
            }
        }
    }
}
