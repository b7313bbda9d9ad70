//! Charts as inline SVG. Widths are percentages, so that charts fit any screen. Except for the
//! labels of axes, all their text is HTML next to them, because mail programs drop pictures.

use host::units::Bytes;
use maud::{Markup, Render, html};

/// The meaning of a color or pattern, the same in all charts. The style sheet has the colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    /// Used by this server: its main segment, private memory, swap, page tables, and other memory.
    Segment,
    Private,
    Swapped,
    Tables,
    Other,
    /// Used by others.
    Others,
    Rest,
    Cached,
    Free,
    /// Needed: allocated and not yet used, or missing.
    Ready,
    Missing,
    /// Idle huge pages that nothing could need, and page tables that huge pages would save.
    Wasted,
}

impl Color {
    /// The class in the style sheet.
    fn class(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The patterns of hatched parts, once per page.
pub(crate) fn patterns() -> Markup {
    html! {
        svg class="patterns" width="0" height="0" aria-hidden="true" {
            @for id in ["ready", "missing"] {
                pattern id=(format!("hatch-{id}")) width="7" height="7"
                    patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect class=(format!("{id}-line")) width="3" height="7" {}
                }
            }
        }
    }
}

/// Parts of `full`, one after the other. `label` is the text for screen readers.
pub(crate) fn bar(label: &str, parts: &[(Color, u64)], full: u64) -> Markup {
    let mut start = 0.0;
    let place = |&(color, value): &(Color, u64)| {
        let at = f64::min(start, 99.6);
        let width = percent(value, full);
        start += width;
        // Small parts stay visible.
        (color, at, width.max(0.4).min(100.0 - at))
    };
    let placed = parts.iter().filter(|(_, value)| *value > 0).map(place);
    html! {
        svg class="bar" role="img" aria-label=(label) width="100%" height="24" {
            rect class="free" width="100%" height="24" rx="3" {}
            @for (color, at, width) in placed {
                rect class=(color.class()) x=(format!("{at:.2}%"))
                    width=(format!("{width:.2}%")) height="24" {}
            }
        }
    }
}

/// The axis below bars that are `full` bytes long.
pub(crate) fn axis(full: u64) -> Markup {
    html! {
        svg class="axis" width="100%" height="20" aria-hidden="true" {
            @for tick in ticks(full) {
                @let x = format!("{:.2}%", percent(tick, full));
                line x1=(x) x2=(x) y2="5" {}
                text x=(x) y="18" { (Bytes(tick)) }
            }
        }
    }
}

/// Three to five round sizes up to this one: multiples of a power of two.
pub(crate) fn ticks(full: u64) -> impl Iterator<Item = u64> {
    let step = 1 << (full / 3).max(1).ilog2();
    (1..=full / step).map(move |tick| tick * step)
}

/// Explains parts of charts.
pub(crate) fn key(parts: impl IntoIterator<Item = (Color, impl Render)>) -> Markup {
    html! {
        ul class="key" {
            @for (color, text) in parts { li { (swatch(color)) (text) } }
        }
    }
}

pub(crate) fn swatch(color: Color) -> Markup {
    html! {
        svg class="swatch" width="12" height="12" aria-hidden="true" {
            rect class=(color.class()) width="12" height="12" rx="2" {}
        }
        " "
    }
}

pub(crate) fn percent(value: u64, full: u64) -> f64 {
    Bytes(value).percentage_of(Bytes(full)).min(100.0)
}
