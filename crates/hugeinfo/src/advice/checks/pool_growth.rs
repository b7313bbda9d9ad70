//! Whether the pool can be made larger now, where it must be.

use serde_json::json;

use crate::advice::check::{Check, Status};
use crate::{
    advice::words::human,
    model::forecast::Forecast,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "pool_growth";

/// How often the kernel found no block for a huge page (since Linux 2.6.33).
const FAILURES: &str = "htlb_buddy_alloc_fail";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let unknown = |why: &dyn std::fmt::Display| {
        let finding = format!("whether the pool can grow cannot be told: {why}");
        Check::new(NAME, Status::Unknown, finding)
    };
    if !facts.asks_for_huge_pages() {
        return Check::new(NAME, Status::Ok, "the server asks for no huge pages");
    }
    let Some(target) = Forecast::of_target(facts) else {
        return unknown(&"the pool that the server asks for cannot be seen");
    };
    let Some(shortfall) = target.shortfall else {
        return unknown(&"what the server needs cannot be seen");
    };
    let free_blocks = match &around.free_blocks {
        Ok(free_blocks) => free_blocks,
        Err(absent) => return unknown(absent),
    };
    let page_bytes = target.pool.page_bytes;
    let size = human(page_bytes);
    let ready = free_blocks.huge_pages(page_bytes, facts.base_page_bytes);
    let failures = around
        .vmstat
        .as_ref()
        .ok()
        .and_then(|vmstat| vmstat.get(FAILURES));
    let check = match (shortfall, ready) {
        (0, _) => Check::new(NAME, Status::Ok, "the pool need not grow"),
        (_, Some(ready)) if ready >= shortfall => Check::new(
            NAME,
            Status::Ok,
            format!("the pool has to grow by {shortfall} huge pages of {size}, and free memory holds {ready} in whole blocks"),
        ),
        (_, Some(ready)) => Check::new(
            NAME,
            Status::Warning,
            format!("the pool has to grow by {shortfall} huge pages of {size}, and free memory holds only {ready} in whole blocks: the kernel has to move other pages and may give fewer than asked"),
        )
        .with_remedy(
            "echo 1 > /proc/sys/vm/compact_memory before setting the pool, and look at the pool after it; what a running machine cannot give, a boot can: hugepages= on the kernel command line".to_owned(),
        ),
        (_, None) => Check::new(
            NAME,
            Status::Warning,
            format!("the pool has to grow by {shortfall} huge pages of {size}, larger than any block that the kernel keeps: a running machine may not find them"),
        )
        .with_remedy({
            let pages = target.recommended.unwrap_or(target.required);
            target.too_many(facts, pages).map_or_else(
                || format!("at boot they are sure, {}", target.set_at_boot(pages)),
                |why| format!("lower shared_buffers: {why}"),
            )
        }),
    };
    check.with_evidence(json!({
        "page_size_bytes": page_bytes,
        "shortfall_pages": shortfall,
        "free_in_blocks_pages": ready,
        FAILURES: failures,
    }))
}
