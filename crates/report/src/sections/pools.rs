//! Each pool of huge pages as a bar, with a mark at the number of pages needed.

use hugeinfo::{
    model::{demand::PoolTarget, forecast::Forecast},
    units::{PageSize, Pages, capitalized, huge_pages},
};
use maud::{Markup, html};

use crate::{
    chart::{Color, Mark, bar, swatch},
    context::Context,
    parts::{missing, section as part},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let content = match &context.findings.pools {
        Ok(pools) if pools.is_empty() => missing("This kernel has no huge pages."),
        Ok(pools) => html! {
            ul class="key" {
                li { (swatch(Color::Own)) "this server" }
                li { (swatch(Color::Others)) "other processes" }
                li { (swatch(Color::Idle)) "idle" }
                li { "| pages needed" }
            }
            @for pool in pools { (shown_pool(context, pool)) }
        },
        Err(why) => missing(&format!("{}.", context.shown(why))),
    };
    part("pools", "Pools of huge pages", &content)
}

fn shown_pool(context: &Context<'_>, forecast: &Forecast) -> Markup {
    let machine = &context.subject.machine;
    let pool = &forecast.pool;
    let size = PageSize(pool.page_bytes);
    let total = Pages(pool.total);
    let is_target = machine.size_asked_for(&machine.next_start_on_huge_pages()) == Some(size);
    let target = forecast.target.as_ref().filter(|_| is_target);
    let needed = target.map(|target| target.after.total());
    let title = format!("{size} pages");
    if total == Pages(0) && needed.unwrap_or_default() == Pages(0) {
        return html! {
            h3 { (title) }
            p class="note" { "This pool is empty. " (would_need(forecast)) }
        };
    }
    let held = forecast.held.unwrap_or_default();
    let others = Pages(pool.committed()) - held;
    let idle = total - Pages(pool.committed());
    let full = total.max(needed.unwrap_or_default()).0;
    // Leaves space for the label of the mark.
    let full = full.saturating_add(full / 30);
    let mark = needed.map(|needed| Mark {
        at: needed.0,
        label: format!("needed: {needed} ({})", needed * size),
    });
    let parts = [
        (Color::Own, held.0),
        (Color::Others, others.0),
        (Color::Idle, idle.0),
    ];
    let uses = format!("{held} of this server, {others} of other processes, {idle} idle");
    let usage = if machine.facts.asks_for_huge_pages() {
        "requested by this server"
    } else {
        "would be used by this server"
    };
    html! {
        h3 { (title) @if is_target { ": " (usage) } }
        (bar(&format!("{title}: {uses}"), &parts, full, mark.as_ref()))
        p class="figures" {
            @if total == Pages(0) {
                "The pool is empty. "
            } @else {
                (huge_pages(total, size)) " (" (total * size) "): " (uses) ". "
            }
            @if is_target { (need(forecast, target)) } @else { (would_need(forecast)) }
        }
    }
}

fn need(forecast: &Forecast, target: Option<&PoolTarget>) -> Markup {
    let fits = match forecast.fits_after_restart {
        Some(true) => "A restart would get huge pages.",
        Some(false) => "A restart would not get huge pages.",
        None => "Only a start shows whether the server gets huge pages.",
    };
    html! {
        @match target {
            Some(target) => { (capitalized(&target.after.to_string())) ". " },
            None => {
                "Pages needed by this server: " (forecast.required) "; by others: unknown. "
            },
        }
        @if let Some(missing) = forecast.shortfall.filter(|&pages| pages > Pages(0)) {
            strong { (missing) " too few" } ". "
        }
        (fits)
    }
}

fn would_need(forecast: &Forecast) -> String {
    format!(
        "With this page size, the server would need {}.",
        forecast.required
    )
}
