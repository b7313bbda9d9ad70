//! Whether the pool can grow now, where it has to.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    finding::{Finding, Judgment, whole},
    model::{forecast::Forecast, machine::Machine},
};
use host::units::{PageSize, Pages, huge_pages};

pub(super) const CHECK: Check = Check {
    name: "pool_growth",
    judge,
    cure: Cure::Core(|_| None),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at whether free memory has enough blocks (`/proc/buddyinfo`) if the pool has to grow.

| code | status | meaning |
|---|---|---|
| `need_not_grow`, `can_grow`, `does_not_ask` | ok | the pool need not grow, or can |
| `fragmented` | warning | free memory has too few blocks; the kernel has to compact memory and might allocate fewer pages |
| `too_large_for_blocks` | warning | the pages, such as 1 GB pages, are larger than any free block; the kernel might not find memory for them before a reboot |

**What to do.** Follow the remedy, then compare `HugePages_Total`. If pages are missing, set the
pool at boot.
",
};

/// The counter of failed allocations of huge pages, since Linux 2.6.33.
const FAILURES: &str = "htlb_buddy_alloc_fail";

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    if !machine.state.asks_for_huge_pages() {
        return Ok(Finding::does_not_ask());
    }
    let target = Forecast::for_target(machine).ok_or("the pool cannot be read")?;
    let shortfall = target
        .shortfall
        .ok_or_else(|| machine.why_use_is_unknown(PageSize(target.pool.page_bytes)))?;
    let free_blocks = facts.free_blocks.as_ref()?;
    let size = PageSize(target.pool.page_bytes);
    let ready = free_blocks.huge_pages(size.0, machine.state.base_page_bytes);
    let failures = facts
        .vmstat
        .as_ref()
        .ok()
        .and_then(|vmstat| vmstat.get(FAILURES));
    let grow = format!("The pool has to grow by {}", huge_pages(shortfall, size));
    let finding = match (shortfall, ready) {
        (Pages(0), _) => Finding::ok("need_not_grow", "The pool does not have to grow."),
        (_, Some(ready)) if Pages(ready) >= shortfall => Finding::ok(
            "can_grow",
            format!("{grow}; free memory has blocks for {ready}."),
        ),
        (_, Some(ready)) => Finding::warning(
            "fragmented",
            format!(
                "{grow}; free memory has blocks for {ready}. The kernel has to compact memory and might allocate fewer pages."
            ),
        ),
        (_, None) => Finding::warning(
            "too_large_for_blocks",
            format!(
                "{grow}, which {} larger than any free block. The kernel might not find memory for them before a reboot.",
                shortfall.verb("is", "are")
            ),
        ),
    };
    Ok(finding.with(json!({
        "page_size_bytes": size.0,
        "shortfall_pages": shortfall.0,
        "free_in_blocks_pages": ready,
        FAILURES: failures,
    })))
}
