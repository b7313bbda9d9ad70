//! The parts of a page, in their order, and what they share.

pub(crate) mod checks;
pub(crate) mod figures;
pub(crate) mod memory;
pub(crate) mod neighbours;
pub(crate) mod next_start;
pub(crate) mod numa;
pub(crate) mod page_tables;
pub(crate) mod pools;
pub(crate) mod processes;
pub(crate) mod ram;
pub(crate) mod runbook;
mod table;
pub(crate) mod unread;
pub(crate) mod verdict;

use hugeinfo::advice::{check::Status, words::human};
use maud::{Markup, Render, html};

use crate::{
    chart::{Colour, swatch},
    page::Context,
};
use table::{name, number, table};

/// A part of the page with its heading.
fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby=(format!("{id}-heading")) {
            h2 id=(format!("{id}-heading")) { (heading) }
            (content)
        }
    }
}

/// What could not be read is said in its place.
fn missing(why: &str) -> Markup {
    html! { p class="note" { (why) } }
}

/// What to type, if there is room for it.
fn command(context: &Context<'_>, command: &str, whose: &str) -> Markup {
    html! {
        @match context.whole(command) {
            Some(command) => pre { code { (command) } },
            None => p class="note" { "Too long for this page: see " code { (whose) } "." },
        }
    }
}

/// How many entries of a list are not shown.
fn more(count: usize, whose: &str) -> Markup {
    html! {
        @if count > 0 {
            p class="more" { "\u{2026} and " (count) " more" @if !whose.is_empty() { " in " code { (whose) } } }
        }
    }
}

/// A status, as a word in its colour: the style is written in place for programs that show mail.
fn badge(status: Status) -> Markup {
    let colour = match status {
        Status::Ok => "#20673f",
        Status::Unknown => "#4d5966",
        Status::Warning => "#8a5200",
        Status::Critical => "#a61b1b",
    };
    let style = format!("background:{colour};color:#ffffff;padding:1px 8px;border-radius:4px");
    html! { b class="badge" style=(style) { (status.as_str()) } }
}

/// A size, or that it is not known.
fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not known".to_owned(), human)
}

/// The parts of a bar with their sizes.
fn legend(caption: &str, parts: &[(Colour, String, u64)], full: u64) -> Markup {
    let columns = [
        name("part"),
        number("size").plain(),
        number("share").plain(),
    ];
    let rows = parts.iter().map(|(colour, name, bytes)| {
        vec![
            html! { (swatch(*colour)) (name) },
            human(*bytes).render(),
            share(*bytes, full).render(),
        ]
    });
    table(Some("legend"), caption, &columns, rows)
}

fn share(value: u64, full: u64) -> String {
    let percent = crate::chart::percent(value, full);
    match percent {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 10.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}
