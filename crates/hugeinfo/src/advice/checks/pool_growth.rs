//! Whether the pool can be made larger now, where it must be.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        words::huge_pages,
    },
    model::{forecast::Forecast, machine::Machine},
};

/// How often the kernel found no block for a huge page (since Linux 2.6.33).
const FAILURES: &str = "htlb_buddy_alloc_fail";

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let around = machine.around()?;
    if !facts.asks_for_huge_pages() {
        return Ok(Finding::ok("the server asks for no huge pages"));
    }
    let target =
        Forecast::of_target(machine).ok_or("the pool that the server asks for cannot be seen")?;
    let shortfall = target
        .shortfall
        .ok_or("what the server needs cannot be seen")?;
    let free_blocks = around.free_blocks.as_ref()?;
    let page_bytes = target.pool.page_bytes;
    let ready = free_blocks.huge_pages(None, page_bytes, facts.base_page_bytes);
    let failures = around
        .vmstat
        .as_ref()
        .ok()
        .and_then(|vmstat| vmstat.get(FAILURES));
    let has_to_grow = format!(
        "the pool has to grow by {}",
        huge_pages(shortfall, page_bytes)
    );
    let finding = match (shortfall, ready) {
        (0, _) => Finding::ok("the pool need not grow"),
        (_, Some(ready)) if ready >= shortfall => Finding::ok(format!(
            "{has_to_grow}, and free memory has {ready} in blocks of that size"
        )),
        (_, Some(ready)) => Finding::warning(format!(
            "{has_to_grow}, and free memory has only {ready} in blocks of that size: the kernel has to move other pages and may give fewer than asked"
        )),
        (_, None) => Finding::warning(format!(
            "{has_to_grow}, larger than any free block that the kernel keeps: a running machine may not find them"
        )),
    };
    Ok(finding.with(json!({
        "page_size_bytes": page_bytes,
        "shortfall_pages": shortfall,
        "free_in_blocks_pages": ready,
        FAILURES: failures,
    })))
}
