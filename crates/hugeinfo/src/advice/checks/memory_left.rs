//! What the pools leave of RAM: enough huge pages, and not too many.

use serde_json::json;

use crate::advice::check::{Check, Status};
use crate::{
    advice::words::human,
    model::{forecast::Forecast, headroom::Headroom},
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "memory_left";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let Some(now) = Headroom::now(facts) else {
        let finding =
            "what the pools leave of RAM cannot be told: /proc/meminfo or the pools cannot be seen";
        return Check::new(NAME, Status::Unknown, finding);
    };
    // Setting the recommended number would take more only where the pool is short.
    let target = Forecast::of_target(facts)
        .filter(|target| facts.asks_for_huge_pages() && target.shortfall != Some(0));
    let then = target.as_ref().and_then(|target| {
        let pages = target.recommended?;
        Headroom::with(facts, target, pages)
    });
    let describe = |headroom: &Headroom, verb: &str| {
        format!(
            "huge pages of {} {verb} {} of {} RAM for processes and the file cache",
            human(headroom.pools_bytes),
            human(headroom.left_bytes()),
            human(headroom.ram_bytes),
        )
    };
    let check = match then {
        _ if !now.is_enough() => {
            Check::new(NAME, Status::Warning, describe(&now, "leave")).with_remedy(
                "lower shared_buffers and set the pool again (hugeinfo_plan tells how large), or add memory".to_owned(),
            )
        }
        Some(then) if !then.is_enough() => Check::new(
            NAME,
            Status::Warning,
            format!("{}: the segment is too large for this host", describe(&then, "would leave")),
        )
        .with_remedy("lower shared_buffers, or add memory".to_owned()),
        Some(then) => Check::new(NAME, Status::Ok, describe(&then, "would leave")),
        None => Check::new(NAME, Status::Ok, describe(&now, "leave")),
    };
    let private: Option<u64> = around
        .processes
        .iter()
        .filter_map(|process| process.rss_anon)
        .reduce(u64::saturating_add);
    check.with_evidence(json!({
        "memory_total_bytes": now.ram_bytes,
        "memory_available_bytes": around.host.usage.as_ref().ok().and_then(|usage| usage.available),
        "pools_bytes": now.pools_bytes,
        "left_bytes": now.left_bytes(),
        "left_with_recommended_bytes": then.map(|then| then.left_bytes()),
        "private_bytes_of_server": private,
    }))
}
