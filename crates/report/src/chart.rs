//! Bars as inline SVG. Widths are percentages, so that bars fit any screen and text keeps its
//! size.

use maud::{Markup, html};

use crate::text::{LONGEST, shown};

/// The meaning of a part of a bar. Its color is in the style sheet and also inline, because mail
/// readers drop style sheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Own,
    Others,
    Idle,
    PageTables,
    Free,
    Rest,
    Cached,
    Forecast,
    Private,
    Swap,
}

impl Color {
    fn class(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Others => "others",
            Self::Idle => "idle",
            Self::PageTables => "tables",
            Self::Free => "free",
            Self::Rest => "rest",
            Self::Cached => "cached",
            Self::Forecast => "forecast",
            Self::Private => "private",
            Self::Swap => "swap",
        }
    }

    fn light(self) -> &'static str {
        match self {
            Self::Own => "#1f5fa8",
            Self::Others => "#8250a8",
            Self::Idle => "#c98a00",
            Self::PageTables => "#c0392b",
            Self::Free => "#3f8f5f",
            Self::Rest => "#7b8794",
            Self::Cached => "#b4bec9",
            Self::Forecast => "#c98a00",
            Self::Private => "#2a8c8c",
            Self::Swap => "#6b4f3a",
        }
    }
}

const HEIGHT: u32 = 26;
const BELOW: u32 = 20;

/// A line across a bar.
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) label: String,
}

/// Parts of `full`, one after the other. `label` is the text for screen readers.
pub(crate) fn bar(label: &str, parts: &[(Color, u64)], full: u64, mark: Option<&Mark>) -> Markup {
    let mut start = 0.0;
    let placed = parts.iter().filter(|(_, value)| *value > 0);
    let placed: Vec<_> = placed
        .map(|&(color, value)| {
            let at = start;
            let width = percent(value, full);
            start += width;
            // Small parts stay visible.
            (
                color,
                at.min(99.6),
                width.max(0.4).min(100.0 - at.min(99.6)),
            )
        })
        .collect();
    let height = HEIGHT + mark.map_or(0, |_| BELOW);
    html! {
        svg class="bar" role="img" aria-label=(shown(label, LONGEST)) width="100%" height=(height) {
            rect class="track" fill="#e3e8ee" width="100%" height=(HEIGHT) rx="3" {}
            @for (color, at, width) in placed {
                rect class=(color.class()) fill=(color.light()) x=(place(at)) width=(place(width))
                    height=(HEIGHT) stroke="#ffffff" stroke-width="1" {}
            }
            @if let Some(mark) = mark {
                @let at = percent(mark.at, full).min(99.7);
                line class="mark" stroke="#1c2330" stroke-width="3" x1=(place(at)) x2=(place(at))
                    y1="0" y2=(HEIGHT + 5) {}
                text class="label" fill="#1c2330" font-size="13" x=(place(at)) y=(HEIGHT + 17)
                    text-anchor=(anchor(at)) { (shown(&mark.label, LONGEST)) }
            }
        }
    }
}

/// The color of a part, for a legend.
pub(crate) fn swatch(color: Color) -> Markup {
    html! {
        svg class="swatch" width="12" height="12" aria-hidden="true" {
            rect class=(color.class()) fill=(color.light()) width="12" height="12" rx="2" {}
        }
        " "
    }
}

#[allow(clippy::cast_precision_loss)]
pub(crate) fn percent(value: u64, full: u64) -> f64 {
    (value as f64 * 100.0 / full.max(1) as f64).min(100.0)
}

fn place(percent: f64) -> String {
    format!("{percent:.2}%")
}

fn anchor(percent: f64) -> &'static str {
    match percent {
        p if p < 30.0 => "start",
        p if p > 70.0 => "end",
        _ => "middle",
    }
}
