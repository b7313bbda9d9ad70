//! Each pool of huge pages, with the line of need.

use hugeinfo::{
    advice::words::{huge_pages, human},
    model::forecast::Forecast,
};
use maud::{Markup, html};

use super::{missing, section as part};
use crate::{
    chart::{Colour, Mark, bar, swatch},
    page::Context,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let content = match &context.findings.pools {
        Ok(pools) if pools.is_empty() => missing("This kernel has no huge pages."),
        Ok(pools) => html! {
            ul class="key" {
                li { (swatch(Colour::Own)) "ours" }
                li { (swatch(Colour::Others)) "others" }
                li { (swatch(Colour::Idle)) "idle" }
                li { "| the line of need" }
            }
            @for pool in pools { (shown_pool(context, pool)) }
        },
        Err(why) => missing(&format!("{}.", context.shown(why))),
    };
    part("pools", "Pools of huge pages", &content)
}

fn shown_pool(context: &Context<'_>, forecast: &Forecast) -> Markup {
    let facts = &context.subject.machine.facts;
    let pool = &forecast.pool;
    let page_bytes = pool.page_bytes;
    let is_asked_for = context.subject.machine.aimed_page_bytes() == Some(page_bytes);
    let title = format!("Pages of {}", human(page_bytes));
    let need = forecast.recommended.filter(|_| is_asked_for);
    if pool.total == 0 && need.is_none_or(|need| need == 0) {
        return html! {
            h3 { (title) }
            p class="note" { "This pool is empty. " (would_need(forecast)) }
        };
    }
    let own = forecast.own.unwrap_or(0);
    let others = pool.committed().saturating_sub(own);
    let idle = pool.total.saturating_sub(pool.committed());
    let full = pool.total.max(need.unwrap_or(0));
    // Room for the line.
    let full = full.saturating_add(full / 30);
    let mark = need.map(|need| Mark {
        at: need,
        label: format!("need: {need} ({})", human(need.saturating_mul(page_bytes))),
    });
    let parts = [
        (Colour::Own, own),
        (Colour::Others, others),
        (Colour::Idle, idle),
    ];
    let label = format!("{title}: {own} ours, {others} of others, {idle} idle");
    let asks = if facts.asks_for_huge_pages() {
        "asks for these"
    } else {
        "would use these"
    };
    html! {
        h3 { (title) @if is_asked_for { ": this server " (asks) } }
        (bar(&label, &parts, full, mark.as_ref()))
        p class="figures" {
            @if pool.total == 0 {
                "The pool is empty. "
            } @else {
                (huge_pages(pool.total, page_bytes)) " (" (human(pool.total.saturating_mul(page_bytes))) "): "
                (own) " ours, " (others) " of others, " (idle) " idle. "
            }
            @if is_asked_for {
                (needed(forecast))
            } @else {
                (would_need(forecast))
            }
        }
    }
}

fn needed(forecast: &Forecast) -> Markup {
    let fits = match forecast.fits_after_restart {
        Some(true) => "A restart gets them.",
        Some(false) => "A restart would not get them.",
        None => "Whether a restart gets them, only a start tells.",
    };
    html! {
        "This server needs " (forecast.required) "; "
        @if let Some(recommended) = forecast.recommended {
            "with all others the pool needs " (recommended) ". "
        } @else {
            "what others need cannot be seen. "
        }
        @if let Some(missing) = forecast.shortfall.filter(|&pages| pages > 0) {
            strong { (missing) " too few" } ". "
        }
        (fits)
    }
}

fn would_need(forecast: &Forecast) -> String {
    format!(
        "On pages of this size the server would need {}.",
        huge_pages(forecast.required, forecast.pool.page_bytes)
    )
}
