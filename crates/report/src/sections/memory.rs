//! RAM of the host as one bar, and each pool of huge pages as a bar.

use advice::model::{demand::PoolTarget, forecast::Forecast, machine::Machine, memory};
use host::{
    linux::{hugepages::Pool, meminfo::Usage},
    server::{footprint::Footprint, state::Backing},
    units::{Bytes, PageSize, Pages, capitalized, huge_pages},
};
use maud::{Markup, html};

use super::page_tables::Pair;
use crate::{
    chart::{Color, axis, bar, key, percent},
    context::Context,
    parts::{note, section as part, size},
};

pub(crate) fn ram(context: &Context<'_>) -> Markup {
    let usage = context.subject.machine.state.usage.as_ref();
    let content = match usage {
        Ok(usage) => match parts_of_ram(context, usage) {
            Some(parts) => stacked("Memory of the host by use", &parts),
            None => note(&format!(
                "/proc/meminfo shows the memory of a container ({}), but the pools are those of \
                 the host.",
                size(usage.total)
            )),
        },
        Err(_) => note("/proc/meminfo could not be read."),
    };
    let total = usage.ok().and_then(|usage| usage.total);
    let heading = match total {
        Some(total) => format!("Memory of the host: {}", Bytes(total)),
        None => "Memory of the host".to_owned(),
    };
    part("ram", &heading, &content)
}

type Part = (Color, &'static str, u64);

/// Disjoint parts. `None`: the memory of the host is unknown.
fn parts_of_ram(context: &Context<'_>, usage: &Usage) -> Option<Vec<Part>> {
    let subject = context.subject;
    let machine = &subject.machine;
    let total = memory::host_ram(machine)?.0;
    let mut in_pools = [Bytes(0); 6];
    for pool in context.advice.pools.iter().flatten() {
        for (sum, pages) in in_pools.iter_mut().zip(uses(machine, &pool.pool)) {
            *sum = *sum + pages * PageSize(pool.pool.page_bytes);
        }
    }
    let [on_huge_pages, of_others, ready, _, kept, wasted_pages] = in_pools;
    let Footprint {
        segment_backed,
        private,
        page_tables,
        ..
    } = subject.footprint;
    let segment = match machine.backing() {
        Backing::HugePages(_) => on_huge_pages.0,
        Backing::SmallPages | Backing::Unknown => segment_backed.unwrap_or(0),
    };
    let tables = page_tables.unwrap_or(0);
    let saving = Pair::of(context).and_then(|pair| pair.saving());
    let saved = saving.map_or(0, |(now, then)| now - then).min(tables);
    let free = usage.free.unwrap_or(0);
    let cached = usage.available.unwrap_or(0).saturating_sub(free);
    let private = private.unwrap_or(0);
    let used = [
        (Color::Segment, "main segment of this server", segment),
        (Color::Private, "its private memory", private),
        (Color::Tables, "its page tables", tables - saved),
        (
            Color::Wasted,
            "its page tables that huge pages would save",
            saved,
        ),
        (Color::Wasted, "wasted huge pages", wasted_pages.0),
        (
            Color::Ready,
            "free huge pages that are or could be needed",
            (ready + kept).0,
        ),
        (Color::Others, "huge pages of others", of_others.0),
    ];
    let unused = [
        (Color::Cached, "cached files", cached),
        (Color::Free, "free", free),
    ];
    // The sum can exceed RAM, because the counters are not read at the same time.
    let known = used.iter().chain(&unused).map(|part| part.2);
    let rest = total.saturating_sub(known.fold(0, u64::saturating_add));
    let rest = (Color::Rest, "programs, kernel and other use", rest);
    Some(used.into_iter().chain([rest]).chain(unused).collect())
}

/// A bar of all parts, and their sizes.
fn stacked(label: &str, parts: &[Part]) -> Markup {
    let full = parts.iter().map(|part| part.2).fold(0, u64::saturating_add);
    let drawn: Vec<_> = parts
        .iter()
        .map(|&(color, _, bytes)| (color, bytes))
        .collect();
    let texts = parts
        .iter()
        .filter(|part| part.2 > 0)
        .map(|&(color, name, bytes)| {
            let share = match percent(bytes, full) {
                p if p < 0.1 => "< 0.1".to_owned(),
                p if p < 10.0 => format!("{p:.1}"),
                p => format!("{p:.0}"),
            };
            (color, format!("{name}: {} ({share}%)", Bytes(bytes)))
        });
    html! { (bar(label, &drawn, full)) (axis(full)) (key(texts)) }
}

pub(crate) fn pools(context: &Context<'_>) -> Markup {
    let content = match &context.advice.pools {
        Ok(pools) if pools.is_empty() => note("This kernel has no huge pages."),
        Ok(pools) => html! { @for pool in pools { (shown_pool(context, pool)) } },
        Err(why) => note(&format!("{}.", context.shown(why))),
    };
    part("pools", "Pools of huge pages", &content)
}

fn shown_pool(context: &Context<'_>, forecast: &Forecast) -> Markup {
    let machine = &context.subject.machine;
    let size = PageSize(forecast.pool.page_bytes);
    let total = Pages(forecast.pool.total);
    let is_requested = machine.size_asked_for(&machine.next_start()) == Some(size);
    if let Some(absent) = forecast.pool.bad_counter() {
        return note(&format!("{}.", context.shown(&absent.to_string())));
    }
    let [held, others, ready, missing, kept, wasted] = uses(machine, &forecast.pool);
    if total == Pages(0) && missing == Pages(0) {
        return note(&format!(
            "{size} pages: the pool is empty. {}",
            would_need(forecast)
        ));
    }
    let parts = [
        (Color::Segment, "in use by this server", held),
        (Color::Others, "in use by others", others),
        (Color::Ready, "free and needed", ready),
        (Color::Ready, "free, and could be needed", kept),
        (Color::Missing, "missing", missing),
        (Color::Wasted, "wasted", wasted),
    ];
    let drawn = parts.map(|(color, _, pages)| (color, pages.0));
    let texts = parts.into_iter().filter(|part| part.2 > Pages(0));
    let texts =
        texts.map(|(color, name, pages)| (color, format!("{name}: {pages} ({})", pages * size)));
    html! {
        h3 { (huge_pages(total, size)) " (" (total * size) ")" }
        (bar(&format!("Pool of {size} pages by use"), &drawn, (total + missing).0))
        (axis(((total + missing) * size).0))
        (key(texts))
        p { @if is_requested { (need(forecast)) } @else { (would_need(forecast)) } }
    }
}

/// Pages in use by this server, in use by others, free and needed, missing, free and possibly
/// needed, and wasted.
pub(crate) fn uses(machine: &Machine, pool: &Pool) -> [Pages; 6] {
    let target = PoolTarget::of(machine, PageSize(pool.page_bytes), &machine.next_start());
    let needed = target
        .as_ref()
        .map_or(Pages(0), |target| target.after.total());
    let held = machine
        .pages_held(PageSize(pool.page_bytes))
        .unwrap_or_default();
    let total = Pages(pool.total);
    let committed = pool.committed().map_or(held, Pages);
    let ready = (total - committed).min(needed - committed);
    let free = total - committed - ready;
    let wasted = match target {
        Some(target) if target.idle_for.is_none() => target.idle().min(free),
        _ => Pages(0),
    };
    [
        held,
        committed - held,
        ready,
        needed - total.max(committed),
        free - wasted,
        wasted,
    ]
}

fn need(forecast: &Forecast) -> Markup {
    let fits = match forecast.fits_after_restart {
        Some(true) => "A restart would get huge pages.",
        Some(false) => "A restart would not get huge pages.",
        None => "Only a start shows whether the server gets huge pages.",
    };
    html! {
        @match &forecast.target {
            Some(target) => { (capitalized(&target.after.to_string())) ". " },
            None => {
                "Pages needed by this server: " (forecast.required) "; by others: unknown. "
            },
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
