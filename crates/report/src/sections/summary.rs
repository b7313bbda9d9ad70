//! The summary: one figure, the status, and the steps to take.

use advice::{
    check::{CheckId, Status},
    model::forecast::Forecast,
    runbook::Row,
};
use host::units::{Bytes, PageSize, Pages, huge_pages};
use maud::{Markup, html};

use super::{memory::uses, page_tables::Pair};
use crate::{
    context::Context,
    parts::{badge, count, more, section as part, step as text},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let verdict = &context.advice.verdict;
    let problems = context.advice.problems();
    html! {
        section id="summary" aria-label="Summary" {
            @if let Some(Headline { figure, sentence }) = Headline::of(context) {
                p class="headline" { strong { (figure) } " " (sentence) }
            }
            div class=(format!("verdict {}", verdict.status.as_str())) {
                p { (badge(verdict.status)) (context.shown(&verdict.reason)) }
                @if !problems.is_empty() {
                    p {
                        (count(problems.len(), "problem", "problems")) ": "
                        @for (index, problem) in problems.iter().enumerate() {
                            @if index > 0 { ", " }
                            @for (index, check) in problem.iter().enumerate() {
                                @if index == 1 { " (same cause: " } @else if index > 1 { ", " }
                                a href=(format!("#check-{}", check.name())) { (check.name()) }
                            }
                            @if problem.len() > 1 { ")" }
                        }
                        "."
                    }
                }
                @if context.advice.runbook.is_empty() && verdict.status == Status::Ok {
                    p { "No action is needed." }
                }
            }
        }
        @if !context.advice.runbook.is_empty() { (runbook(context)) }
    }
}

const ARROW: &str = "\u{2192} ";

/// The most important figure, and what it means.
struct Headline {
    figure: String,
    sentence: String,
}

impl Headline {
    fn of(context: &Context<'_>) -> Option<Self> {
        if context.advice.verdict.status == Status::Critical {
            return Self::missing(context);
        }
        Self::compared(context)
            .or_else(|| Self::saving(context))
            .or_else(|| Self::missing(context))
            .or_else(|| Self::wasted(context))
            .or_else(|| Self::saved(context))
    }

    /// Measured page tables, before and now.
    fn compared(context: &Context<'_>) -> Option<Self> {
        let before = context.subject.before?;
        let now = context.subject.footprint.page_tables?;
        Some(Self {
            figure: change(before.page_tables?, now),
            sentence: "of page tables, before and now.".to_owned(),
        })
    }

    /// Page tables that huge pages would save: now, if that is at least half of them, or with all
    /// connections.
    fn saving(context: &Context<'_>) -> Option<Self> {
        let pair = Pair::of(context).filter(|pair| pair.small.is_used == Some(true))?;
        let restart = match context.advice.runbook.iter().any(|row| row.is_disruptive) {
            true => "after one restart",
            false => "if the server used huge pages",
        };
        let now = pair.saving().filter(|(now, then)| *then <= now / 2);
        Some(match now {
            Some((before, now)) => Self {
                figure: change(before, now).replace(ARROW, "\u{2192} about\u{a0}"),
                sentence: format!("of page tables, {restart}."),
            },
            None => Self {
                figure: change(pair.small.max_connections, pair.huge.max_connections),
                sentence: format!("of page tables for {}, {restart}.", pair.load()),
            },
        })
    }

    /// Missing huge pages, as in the chart of the pool, if a restart would not get any.
    fn missing(context: &Context<'_>) -> Option<Self> {
        context.advice.is_bad(CheckId::Restart).then_some(())?;
        let target = Forecast::for_target(&context.subject.machine)?;
        let [_, _, _, missing, ..] = uses(&context.subject.machine, &target.pool);
        let size = PageSize(target.pool.page_bytes);
        (missing > Pages(0)).then(|| Self {
            figure: kept((missing * size).0),
            sentence: format!("is missing in the pool: {}.", huge_pages(missing, size)),
        })
    }

    /// Idle pages that nothing could need.
    fn wasted(context: &Context<'_>) -> Option<Self> {
        context.advice.is_bad(CheckId::PoolSize).then_some(())?;
        let pools = context.advice.pools.iter().flatten();
        let idle = pools.map(|forecast| {
            let [.., wasted] = uses(&context.subject.machine, &forecast.pool);
            wasted * PageSize(forecast.pool.page_bytes)
        });
        Some(Self {
            figure: kept(idle.sum::<Bytes>().0),
            sentence: "of RAM is wasted on huge pages that nothing uses.".to_owned(),
        })
    }

    /// Page tables that huge pages save.
    fn saved(context: &Context<'_>) -> Option<Self> {
        let pair = Pair::of(context)?;
        (pair.huge.is_used == Some(true)).then(|| Self {
            figure: format!(
                "{} instead of {}",
                kept(pair.huge.max_connections),
                kept(pair.small.max_connections)
            ),
            sentence: format!("of page tables for {}, thanks to huge pages.", pair.load()),
        })
    }
}

/// A size that is not broken into two lines.
fn kept(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(' ', "\u{a0}")
}

fn change(before: u64, now: u64) -> String {
    format!("{} {ARROW}{}", kept(before), kept(now))
}

fn runbook(context: &Context<'_>) -> Markup {
    let steps = &context.advice.runbook;
    let (first, rest) = context.first(steps);
    let content = html! {
        ol class="steps" { @for row in first { (step(context, row)) } }
        (more(rest, "hugeinfo_runbook"))
    };
    part("runbook", "What to do", &content)
}

fn step(context: &Context<'_>, row: &Row) -> Markup {
    let place = row.place.map_or("decision", |place| place.as_str());
    // The badge already shows this.
    let instruction = row.instruction.as_deref();
    let instruction = instruction.map(|text| text.trim_end_matches(" (ends all sessions)"));
    html! {
        li {
            p class="where" {
                b { (place) }
                @if row.is_disruptive { " " b class="ends" { "ends all sessions" } }
            }
            @if let Some(line) = &row.command { (text(context, line, true)) }
            @if let Some(line) = instruction { (text(context, line, false)) }
            @if row.step.is_some() {
                p class="note" {
                    "Why: " (context.shown(&row.why)) "."
                    @if let Some(expected) = &row.expected {
                        " Then " code { "hugeinfo_status" } ": " (context.shown(expected))
                    }
                }
            }
        }
    }
}
