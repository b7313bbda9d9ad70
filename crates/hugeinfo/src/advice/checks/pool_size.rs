//! Huge pages that nobody needs: memory that the kernel can give to nothing else.

use std::fmt;

use serde_json::{Value, json};

use crate::advice::{
    check::{Check, Status},
    thresholds::{IDLE_OF_NEED_PERCENT, IDLE_OF_RAM_PERCENT},
};
use crate::{
    advice::words::human,
    model::forecast::Forecast,
    server::{facts::Facts, surroundings::Files},
};

/// Persistent pages of one pool beyond what is needed.
struct Excess {
    forecast: Forecast,
    needed: u64,
    pages: u64,
}

impl Excess {
    /// A server that asks for huge pages needs them in the pool that it asks for, and keeps what it
    /// has in the pool that it uses.
    fn of(facts: &Facts, forecast: Forecast) -> Option<Self> {
        let is_target = facts.asks_for(forecast.pool.page_bytes) == Some(true);
        let needed = if is_target || forecast.is_used_by_server == Some(true) {
            forecast.recommended?
        } else {
            forecast.others?
        };
        let pages = forecast.pool.persistent().saturating_sub(needed);
        Some(Self {
            forecast,
            needed,
            pages,
        })
    }

    fn bytes(&self) -> u64 {
        self.pages.saturating_mul(self.forecast.pool.page_bytes)
    }

    fn evidence(&self) -> Value {
        json!({
            "page_size_bytes": self.forecast.pool.page_bytes,
            "persistent_pages": self.forecast.pool.persistent(),
            "needed_pages": self.needed,
            "idle_bytes": self.bytes(),
        })
    }

    fn is_large(&self, ram_bytes: u64) -> bool {
        let more_than = |percent: u64, of: u64| self.bytes() / percent > of / 100;
        let needed_bytes = self.needed.saturating_mul(self.forecast.pool.page_bytes);
        more_than(IDLE_OF_NEED_PERCENT, needed_bytes) && more_than(IDLE_OF_RAM_PERCENT, ram_bytes)
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} huge pages of {} ({}) are needed by nobody",
            self.pages,
            human(self.forecast.pool.page_bytes),
            human(self.bytes())
        )
    }
}

const NAME: &str = "pool_size";

/// How many of so many pages of that pool are needed, where this check would complain of the rest.
/// `None`: it would not, or can't tell.
pub(super) fn needed_of_too_many(facts: &Facts, forecast: &Forecast, pages: u64) -> Option<u64> {
    let ram_bytes = facts.meminfo.as_ref().ok()?.total_bytes?;
    let now = Excess::of(facts, forecast.clone())?;
    let filled = Excess {
        pages: pages.saturating_sub(now.needed),
        ..now
    };
    filled.is_large(ram_bytes).then_some(filled.needed)
}

/// Beside what the server needs now, what it will need with the settings that wait for a restart: a
/// pool may have been set up for them.
pub(super) fn check(facts: &Facts, files: &Files) -> Check {
    let now = judge(facts);
    let Files::Planned(next) = files else {
        return now;
    };
    let then = judge(&Facts {
        planned: Some(next.clone()),
        ..facts.clone()
    });
    let is_larger = next.shared_memory_bytes > facts.needed_bytes();
    if then.status <= now.status && (then.status == Status::Ok || is_larger) {
        then
    } else {
        now
    }
}

fn judge(facts: &Facts) -> Check {
    let unknown = |why: &dyn fmt::Display| {
        let finding = format!("whether huge pages lie idle cannot be told: {why}");
        Check::new(NAME, Status::Unknown, finding)
    };
    let forecasts = match Forecast::of_each_pool(facts) {
        Ok(forecasts) => forecasts,
        Err(absent) => return unknown(&absent),
    };
    let page_size_is_known = facts.page_bytes().is_some();
    let excesses: Vec<_> = forecasts
        .into_iter()
        .filter_map(|forecast| Excess::of(facts, forecast))
        .collect();
    // Of several alike, the one that the server asks for.
    let largest = excesses.iter().max_by_key(|excess| {
        let page_bytes = excess.forecast.pool.page_bytes;
        (excess.bytes(), facts.asks_for(page_bytes) == Some(true))
    });
    let Some(largest) = largest.filter(|_| page_size_is_known) else {
        return match &facts.segment {
            Err(absent) => unknown(absent),
            Ok(_) => unknown(&"the page size of the main segment cannot be seen"),
        };
    };
    if largest.pages == 0 {
        return Check::new(NAME, Status::Ok, "no pool holds more than is needed")
            .with_evidence(largest.evidence());
    }
    let ram_bytes = match facts.meminfo.as_ref().map(|meminfo| meminfo.total_bytes) {
        Ok(Some(ram_bytes)) => ram_bytes,
        Ok(None) => return unknown(&"/proc/meminfo has no line MemTotal"),
        Err(absent) => return unknown(absent),
    };
    let large = excesses.iter().filter(|excess| excess.is_large(ram_bytes));
    match large.max_by_key(|excess| excess.bytes()) {
        Some(large) => Check::new(NAME, Status::Warning, large.to_string())
            .with_remedy(large.forecast.set_now(large.needed))
            .with_evidence(large.evidence()),
        None => Check::new(NAME, Status::Ok, largest.to_string()).with_evidence(largest.evidence()),
    }
}
