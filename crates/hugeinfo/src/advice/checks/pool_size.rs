//! Unused huge pages: memory that the kernel can give to nothing else.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    advice::{
        check::{Answer, Finding, Untold},
        thresholds::{IDLE_OF_NEED_PERCENT, IDLE_OF_RAM_PERCENT},
        words::{huge_pages, human, too_low},
    },
    linux::hugepages::Pool,
    model::{
        machine::Machine,
        need::{Need, unseen},
    },
    server::surroundings::Files,
};

/// Persistent pages of one pool beyond what is needed.
pub(super) struct Excess {
    pub(super) page_bytes: u64,
    persistent: u64,
    needed: u64,
    pages: u64,
    /// Those that the running server gives back at its next start.
    later: u64,
}

impl Excess {
    pub(super) fn of(machine: &Machine, pool: &Pool) -> Option<Self> {
        let need = Need::of(machine, pool)?;
        let needed = need.now();
        Some(Self {
            later: needed.saturating_sub(need.after_restart()),
            page_bytes: pool.page_bytes,
            persistent: pool.persistent(),
            needed,
            pages: pool.persistent().saturating_sub(needed),
        })
    }

    fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.page_bytes)
    }

    fn evidence(&self) -> Value {
        json!({
            "page_size_bytes": self.page_bytes,
            "persistent_pages": self.persistent,
            "needed_pages": self.needed,
            "idle_bytes": self.bytes(),
        })
    }

    pub(super) fn is_large(&self, ram_bytes: u64) -> bool {
        let more_than = |percent: u64, of: u64| self.bytes() / percent > of / 100;
        let needed_bytes = self.needed.saturating_mul(self.page_bytes);
        more_than(IDLE_OF_NEED_PERCENT, needed_bytes) && more_than(IDLE_OF_RAM_PERCENT, ram_bytes)
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the pool holds {} ({}) that nobody uses",
            huge_pages(self.pages, self.page_bytes),
            human(self.bytes())
        )
    }
}

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let pools = facts.pools.as_ref()?;
    facts.segment.as_ref()?;
    let page_size_untold = || Untold::from("the page size of the main segment cannot be seen");
    let excesses: Vec<_> = pools
        .iter()
        .map(|pool| Excess::of(machine, pool))
        .collect::<Option<_>>()
        .ok_or_else(page_size_untold)?;
    // Of several alike, the one that the server asks for.
    let largest = excesses
        .iter()
        .max_by_key(|excess| {
            let is_requested = facts.asks_for(excess.page_bytes) == Some(true);
            (excess.bytes(), is_requested)
        })
        .ok_or("the kernel has no pools")?;
    if largest.pages == 0 {
        return Ok(Finding::ok("no pool holds unused pages").with(largest.evidence()));
    }
    let ram_bytes = facts.meminfo.as_ref()?.total_bytes;
    let ram_bytes = ram_bytes.ok_or("/proc/meminfo has no line MemTotal")?;
    let large = excesses.iter().filter(|excess| excess.is_large(ram_bytes));
    let Some(large) = large.max_by_key(|excess| excess.bytes()) else {
        return Ok(Finding::ok(largest.to_string()).with(largest.evidence()));
    };
    // A pool may have been set up for servers, or for settings, that nobody may see here.
    if let Some(unseen) = unseen(machine) {
        return Err(Untold(format!("{large} as far as can be seen; {unseen}")));
    }
    let why = match machine.around.as_ref().map(|around| &around.files) {
        Some(Files::Unseen(why)) if machine.may_wait() => Some(why.clone()),
        Some(Files::TooLow(settings)) if machine.may_wait() => Some(too_low(settings)),
        Some(Files::Refused(why)) => Some(why.clone()),
        _ => None,
    };
    if let Some(why) = why {
        return Err(Untold(format!(
            "{large} now; settings wait for a restart: {why}"
        )));
    }
    // No restart for idle pages alone: one number, once the server takes fewer.
    if large.later > 0 {
        let after = format!("{large}, and {} more after the next restart", large.later);
        return Ok(Finding::ok(after).with(large.evidence()));
    }
    Ok(Finding::warning(large.to_string()).with(large.evidence()))
}
