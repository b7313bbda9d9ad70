//! Elements that several sections use.

use hugeinfo::{advice::check::Status, units::Bytes};
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, swatch},
    context::Context,
    table::{name, number, table},
};

/// A section with its heading.
pub(crate) fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby=(format!("{id}-heading")) {
            h2 id=(format!("{id}-heading")) { (heading) }
            (content)
        }
    }
}

/// A note that replaces missing data.
pub(crate) fn missing(why: &str) -> Markup {
    html! { p class="note" { (why) } }
}

/// The note for a machine whose environment was not read.
pub(crate) fn not_read() -> Markup {
    missing("Not read.")
}

/// Lines to paste, or a reference to `view` if they are too long.
pub(crate) fn command(context: &Context<'_>, command: &str, view: &str) -> Markup {
    match context.whole(command) {
        Some(command) => html! { pre { code { (command) } } },
        None => too_long(view),
    }
}

/// The text of a step that is not a command, or a reference to `view` if it is too long.
pub(crate) fn instruction(context: &Context<'_>, text: &str, view: &str) -> Markup {
    match context.whole(text) {
        Some(text) => html! { p { (text) } },
        None => too_long(view),
    }
}

fn too_long(view: &str) -> Markup {
    html! { p class="note" { "Too long for this page: see " code { (view) } "." } }
}

/// The number of entries of a list that are not shown, and the view that has them.
pub(crate) fn more(count: usize, view: &str) -> Markup {
    html! {
        @if count > 0 {
            p class="more" { "\u{2026} and " (count) " more in " code { (view) } }
        }
    }
}

/// A status as a colored word. The style is inline, because mail readers drop style sheets.
pub(crate) fn badge(status: Status) -> Markup {
    let color = match status {
        Status::Ok => "#20673f",
        Status::Unknown => "#4d5966",
        Status::Warning => "#8a5200",
        Status::Critical => "#a61b1b",
    };
    let style = format!("background:{color};color:#ffffff;padding:1px 8px;border-radius:4px");
    html! { b class="badge" style=(style) { (status.as_str()) } }
}

/// A size, or "unknown".
pub(crate) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |bytes| Bytes(bytes).to_string())
}

/// The parts of a bar with their sizes.
pub(crate) fn legend(caption: &str, parts: &[(Color, String, u64)], full: u64) -> Markup {
    let columns = [
        name("part"),
        number("size").plain(),
        number("share").plain(),
    ];
    let rows = parts.iter().map(|(color, name, bytes)| {
        vec![
            html! { (swatch(*color)) (name) },
            html! { (Bytes(*bytes)) },
            share(*bytes, full).render(),
        ]
    });
    table(Some("legend"), caption, &columns, rows)
}

pub(crate) fn share(value: u64, full: u64) -> String {
    let percent = crate::chart::percent(value, full);
    match percent {
        0.0 => "0%".to_owned(),
        p if p < 0.1 => "< 0.1%".to_owned(),
        p if p < 10.0 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}
