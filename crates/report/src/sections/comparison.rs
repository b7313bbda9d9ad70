//! The memory of the server before, from a saved row, and now.

use hugeinfo::units::Bytes;
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, swatch},
    page::Context,
    parts::{note, section as part, size, table},
    subject::Figures,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let subject = context.subject;
    let Some(before) = &subject.before else {
        return html! {};
    };
    let now = Figures::from(&subject.footprint);
    let rows = parts(before).into_iter().zip(parts(&now));
    let is_used = |bytes: Option<u64>| bytes != Some(0);
    let rows = rows.filter(|(before, now)| is_used(before.2) || is_used(now.2));
    let rows = rows.map(|((color, name, before), (.., now))| row(Some(color), name, before, now));
    let full = row(None, "in total", before.full_total, now.full_total);
    let sum = |figures| {
        let known = parts(figures).into_iter().filter_map(|part| part.2);
        known.fold(0, u64::saturating_add)
    };
    let largest = sum(before).max(sum(&now));
    let content = html! {
        @for (when, figures) in [("Before", before), ("Now", &now)] {
            @let label = format!("{when}: {}", size(figures.full_total));
            h3 { (label) }
            @let parts = parts(figures).map(|(color, _, bytes)| (color, bytes.unwrap_or(0)));
            (bar(&label, &parts, largest))
        }
        (table("Memory of this server", &TITLES, rows.chain([full]).collect()))
        (note(
            "The whole main segment counts, even if part of it has not been touched yet. Compare \
             under the same load: page tables grow while processes touch memory."
        ))
    };
    part("comparison", "Before and now", &content)
}

const TITLES: [&str; 4] = ["part", "before", "now", "difference"];

fn parts(figures: &Figures) -> [(Color, &'static str, Option<u64>); 5] {
    [
        (Color::Segment, "main segment", figures.segment),
        (Color::Private, "private memory", figures.private),
        (Color::Private, "swapped out", figures.swap),
        (Color::Other, "other shared memory", figures.other_shared),
        (Color::Tables, "page tables", figures.page_tables),
    ]
}

fn row(color: Option<Color>, name: &str, before: Option<u64>, now: Option<u64>) -> Vec<Markup> {
    let difference = before.zip(now).map(|(before, now)| {
        let sign = match before.cmp(&now) {
            std::cmp::Ordering::Less => "+",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "\u{2212}",
        };
        format!("{sign}{}", Bytes(before.abs_diff(now)))
    });
    vec![
        html! { @if let Some(color) = color { (swatch(color)) } (name) },
        size(before).render(),
        size(now).render(),
        difference.unwrap_or_else(|| "unknown".to_owned()).render(),
    ]
}
