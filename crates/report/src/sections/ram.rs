//! RAM of the host as one bar.

use hugeinfo::{linux::meminfo::Usage, model::machine::Machine, server::facts::LiesOn};
use maud::{Markup, html};

use super::{legend, missing, section as part, size};
use crate::{
    chart::{Colour, bar},
    page::Context,
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let machine = &context.subject.machine;
    let usage = machine.around.as_ref().map(|around| &around.host.usage);
    let content = match usage {
        Some(Ok(usage)) if machine.sees_memory_of_host => match Ram::of(context, usage) {
            Some(ram) => ram.shown(usage),
            None => missing("The kernel does not tell how much memory the host has."),
        },
        Some(Ok(usage)) => missing(&format!(
            "The memory that is seen here ({}) is a container's own, the pools are the host's: no picture has both.",
            size(usage.total)
        )),
        Some(Err(absent)) => missing(&format!("{absent}.")),
        None => missing("Nobody has looked."),
    };
    part("ram", "Memory of the host", &content)
}

/// Parts of RAM. Nothing is in two of them.
pub(crate) struct Ram {
    pub(crate) total: u64,
    pub(crate) parts: Vec<(Colour, String, u64)>,
}

impl Ram {
    /// `None`: the kernel doesn't tell.
    pub(crate) fn of(context: &Context<'_>, usage: &Usage) -> Option<Self> {
        let total = usage.total?;
        let machine = &context.subject.machine;
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
        let known = [own.1, pools.others, pools.idle, tables, free];
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
                "the rest: programs, cached files, the kernel",
                total.saturating_sub(known),
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
            (legend("Memory of the host", &self.parts, Some(self.total)))
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
