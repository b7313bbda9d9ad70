//! RAM of the host as one bar.

use hugeinfo::{
    linux::meminfo::Usage,
    model::{forecast::Forecast, memory},
    server::facts::Backing,
    units::{Bytes, PageSize, Pages},
};
use maud::{Markup, html};

use crate::{
    chart::{Color, bar},
    context::Context,
    parts::{legend, missing, not_read, section as part, size},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let env = context.subject.machine.env.as_ref();
    let usage = env.map(|env| &env.host.usage);
    let content = match (usage, Ram::of(context)) {
        (Some(Ok(usage)), Some(ram)) => ram.shown(usage),
        (Some(Ok(usage)), None) => missing(&format!(
            "/proc/meminfo shows the memory of a container ({}), but the pools are those of the host.",
            size(usage.total)
        )),
        (Some(Err(absent)), _) => missing(&format!("{}.", context.shown(&absent.to_string()))),
        (None, _) => not_read(),
    };
    part("ram", "Memory of the host", &content)
}

/// Disjoint parts of RAM.
pub(crate) struct Ram {
    pub(crate) total: u64,
    pub(crate) parts: Vec<(Color, String, u64)>,
}

impl Ram {
    /// Returns `None` if the memory of the host is unknown.
    pub(crate) fn of(context: &Context<'_>) -> Option<Self> {
        let machine = &context.subject.machine;
        let usage = machine.usage()?;
        memory::host_ram(machine)?;
        let total = usage.total?;
        let pools = Pools::of(context);
        let own = match machine.backing() {
            Backing::HugePages(_) => ("segment of this server, on huge pages", pools.own),
            Backing::SmallPages | Backing::Unknown => (
                "segment of this server, as far as one process has touched it",
                context.subject.footprint.segment_backed.unwrap_or(0),
            ),
        };
        let tables = usage.page_tables.unwrap_or(0);
        let free = usage.free.unwrap_or(0);
        let cached = usage.available.unwrap_or(0).saturating_sub(free);
        let known = [own.1, pools.others, pools.idle, tables, cached, free];
        let known = known.into_iter().fold(0, u64::saturating_add);
        let parts = [
            (Color::Own, own.0, own.1),
            (Color::Others, "huge pages of other processes", pools.others),
            (Color::Idle, "idle huge pages", pools.idle),
            (Color::PageTables, "page tables of all processes", tables),
            (
                Color::Rest,
                "programs, the kernel and other use",
                total.saturating_sub(known),
            ),
            (
                Color::Cached,
                "cached files and other reclaimable memory",
                cached,
            ),
            (Color::Free, "free", free),
        ];
        let parts = parts.map(|(color, name, bytes)| (color, name.to_owned(), bytes));
        Some(Self {
            // The sum can exceed RAM, because the counters are not read at the same time.
            total: total.max(known),
            parts: parts.into(),
        })
    }

    fn shown(&self, usage: &Usage) -> Markup {
        let parts: Vec<_> = self.parts.iter().map(|part| (part.0, part.2)).collect();
        html! {
            p {
                "RAM: " (size(usage.total)) ". Available to new programs without swapping: "
                (size(usage.available)) "."
            }
            (bar("Memory of the host by use, as in the table below", &parts, self.total, None))
            (legend("Memory of the host", &self.parts, self.total))
        }
    }
}

/// Bytes in all pools together.
struct Pools {
    own: u64,
    others: u64,
    idle: u64,
}

impl Pools {
    fn of(context: &Context<'_>) -> Self {
        let pools = context.findings.pools.as_deref().unwrap_or_default();
        let sum = |pages: fn(&Forecast) -> Pages| -> Bytes {
            let bytes = pools
                .iter()
                .map(|forecast| pages(forecast) * PageSize(forecast.pool.page_bytes));
            bytes.sum()
        };
        let own = sum(|forecast| forecast.held.unwrap_or_default());
        let committed = sum(|forecast| Pages(forecast.pool.committed()));
        let total = memory::in_pools(&context.subject.machine);
        Self {
            own: own.0,
            others: (committed - own).0,
            idle: (total - committed).0,
        }
    }
}
