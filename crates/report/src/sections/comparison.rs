//! The memory of the server before, from a saved row, and now.

use host::units::Bytes;
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, axis, bar, swatch},
    context::Context,
    parts::{note, section as part, size, table},
    subject::Figures,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let subject = context.subject;
    let Some(before) = &subject.before else {
        return html! {};
    };
    let compared = Comparison::new(before, &Figures::from(&subject.footprint));
    let is_used = |part: &&Part| part.before != Some(0) || part.now != Some(0);
    let rows = compared.parts.iter().filter(is_used);
    let rows = rows.map(|part| row(Some(part.color), part.name, part.before, part.now));
    let (total_before, total_now) = compared.total;
    let full = row(
        None,
        &compared.title_of_total(),
        Some(total_before),
        Some(total_now),
    );
    let known = compared.parts.iter().filter_map(|part| {
        let (before, now) = part.both()?;
        Some(((part.color, before), (part.color, now)))
    });
    let (drawn_before, drawn_now): (Vec<_>, Vec<_>) = known.unzip();
    let sides = [
        ("Before", total_before, drawn_before),
        ("Now", total_now, drawn_now),
    ];
    let content = html! {
        @for (when, total, drawn) in sides {
            @let label = format!("{when}: {}", Bytes(total));
            h3 { (label) }
            (bar(&label, &drawn, total_before.max(total_now)))
        }
        (axis(total_before.max(total_now)))
        (table("Memory of this server", &TITLES, rows.chain([full]).collect()))
        (note(
            "The whole main segment counts, even if part of it has not been touched yet. Compare \
             under the same load: page tables grow while processes touch memory."
        ))
    };
    part("comparison", "Before and now", &content)
}

const TITLES: [&str; 4] = ["part", "before", "now", "difference"];

/// The memory of the server at two times.
struct Comparison {
    parts: [Part; 5],
    /// The parts that are known at both times, with the whole main segment.
    total: (u64, u64),
}

struct Part {
    color: Color,
    name: &'static str,
    before: Option<u64>,
    now: Option<u64>,
}

impl Part {
    /// Both figures. `None`: one of them is unknown.
    fn both(&self) -> Option<(u64, u64)> {
        self.before.zip(self.now)
    }
}

impl Comparison {
    fn new(before: &Figures, now: &Figures) -> Self {
        let part = |color, name, figure: fn(&Figures) -> Option<u64>| Part {
            color,
            name,
            before: figure(before),
            now: figure(now),
        };
        let parts = [
            part(Color::Segment, "main segment", |one| one.segment),
            part(Color::Private, "private memory", |one| one.private),
            part(Color::Swapped, "swapped out", |one| one.swap),
            part(Color::Other, "other shared memory", |one| one.other_shared),
            part(Color::Tables, "page tables", |one| one.page_tables),
        ];
        let known = parts.iter().filter_map(Part::both);
        let sums = known.fold((0, 0), |sums: (u64, u64), (before, now)| {
            (sums.0.saturating_add(before), sums.1.saturating_add(now))
        });
        // If it has a swapped-out part, the main segment still counts once in these totals.
        let total = before.full_total.zip(now.full_total);
        Self {
            total: total.unwrap_or(sums),
            parts,
        }
    }

    /// The title of the total, with the parts that it leaves out.
    fn title_of_total(&self) -> String {
        let unknown = self.parts.iter().filter(|part| part.both().is_none());
        let unknown: Vec<_> = unknown.map(|part| part.name).collect();
        match unknown.as_slice() {
            [] => "in total".to_owned(),
            names => format!("in total, without {}", names.join(", ")),
        }
    }
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
