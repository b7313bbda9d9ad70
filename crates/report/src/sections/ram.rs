//! RAM of the host as one bar.

use hugeinfo::{linux::meminfo::Usage, model::machine::Machine, server::facts::LiesOn};
use maud::{Markup, html};

use super::{legend, missing, section as part, size};
use crate::{
    chart::{Colour, bar},
    page::Context,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let around = context.subject.machine.around.as_ref();
    let usage = around.map(|around| &around.host.usage);
    let content = match (usage, Ram::of(context)) {
        (Some(Ok(usage)), Some(ram)) => ram.shown(usage),
        (Some(Ok(usage)), None) => missing(&format!(
            "The memory that is seen here ({}) is a container's own, the pools are the host's: no picture has both.",
            size(usage.total)
        )),
        (Some(Err(absent)), _) => missing(&format!("{}.", context.shown(&absent.to_string()))),
        (None, _) => missing("Nobody has looked."),
    };
    part("ram", "Memory of the host", &content)
}

/// Parts of RAM. Nothing is in two of them.
pub(crate) struct Ram {
    pub(crate) total: u64,
    pub(crate) parts: Vec<(Colour, String, u64)>,
}

impl Ram {
    /// `None`: the kernel doesn't tell, or of something else than the host.
    pub(crate) fn of(context: &Context<'_>) -> Option<Self> {
        let machine = &context.subject.machine;
        let around = machine.around.as_ref()?;
        let usage = around.host.usage.as_ref().ok()?;
        let total = usage.total.filter(|_| machine.sees_memory_of_host)?;
        let pools = Pools::of(context);
        let own = match machine.facts.lies_on() {
            LiesOn::HugePages(_) => ("our main segment, on huge pages", pools.own),
            LiesOn::SmallPages | LiesOn::Unseen => (
                "our main segment, as far as one process has touched it",
                context.subject.footprint.segment_backed.unwrap_or(0),
            ),
        };
        let tables = usage.page_tables.unwrap_or(0);
        let free = usage.free.unwrap_or(0);
        let cached = usage.available.unwrap_or(0).saturating_sub(free);
        let known = [own.1, pools.others, pools.idle, tables, cached, free];
        let known = known.into_iter().fold(0, u64::saturating_add);
        let parts = [
            (Colour::Own, own.0, own.1),
            (Colour::Others, "huge pages of others", pools.others),
            (
                Colour::Idle,
                "idle in the pools: reserved for huge pages, used by nobody",
                pools.idle,
            ),
            (Colour::PageTables, "page tables of all processes", tables),
            (
                Colour::Rest,
                "programs, the kernel, and all the rest",
                total.saturating_sub(known),
            ),
            (
                Colour::Cached,
                "cached files and the like: given away on demand",
                cached,
            ),
            (Colour::Free, "free", free),
        ];
        let parts = parts.map(|(colour, name, bytes)| (colour, name.to_owned(), bytes));
        Some(Self {
            // Counters of one moment and of the next can add up to more.
            total: total.max(known),
            parts: parts.into(),
        })
    }

    fn shown(&self, usage: &Usage) -> Markup {
        let parts: Vec<_> = self.parts.iter().map(|part| (part.0, part.2)).collect();
        html! {
            p {
                (size(usage.total)) " of RAM. New programs could have " (size(usage.available))
                " without swapping."
            }
            (bar("Memory of the host by what it is used for, as in the table below", &parts, self.total, None))
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
        let machine: &Machine = &context.subject.machine;
        let pools = context.findings.pools.as_deref().unwrap_or_default();
        let sum = |pages: fn(&hugeinfo::model::forecast::Forecast) -> Option<u64>| {
            let bytes = pools.iter().map(|one| {
                let pages = pages(one).unwrap_or(0);
                pages.saturating_mul(one.pool.page_bytes)
            });
            bytes.fold(0, u64::saturating_add)
        };
        let own = sum(|one| one.own);
        let committed = sum(|one| Some(one.pool.committed()));
        Self {
            own,
            others: committed.saturating_sub(own),
            idle: machine.pools_bytes().saturating_sub(committed),
        }
    }
}
