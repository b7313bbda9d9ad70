//! What the pools leave of RAM: enough huge pages, and not too many.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        words::human,
    },
    model::{
        headroom::Headroom,
        landing::{self, Fit, Landing},
        machine::Machine,
        need::Need,
    },
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let around = machine.around()?;
    let now = Headroom::now(facts)
        .ok_or("/proc/meminfo or the pools cannot be seen, or are not of one host")?;
    // Setting the number that is needed would take more only where the pool has less.
    let then = facts
        .target_pool()
        .filter(|_| facts.asks_for_huge_pages())
        .and_then(|pool| {
            let pages = Need::of(machine, pool)?.now();
            let is_more = pages > pool.total;
            is_more.then(|| Headroom::with(facts, pool.page_bytes, pages))?
        });
    let describe = |headroom: &Headroom, verb: &str| {
        format!(
            "huge pages of {} {verb} {} of {} RAM for processes and the file cache",
            human(headroom.pools_bytes),
            human(headroom.left_bytes()),
            human(headroom.ram_bytes),
        )
    };
    let finding = match then {
        _ if !now.is_enough() => Finding::warning(describe(&now, "leave")),
        Some(then) if !then.is_enough() => Finding::warning(format!(
            "{}: the segment is too large for this host",
            describe(&then, "would leave")
        )),
        Some(then) => Finding::ok(describe(&then, "would leave")),
        None => Finding::ok(describe(&now, "leave")),
    };
    // Beside a full pool, a segment that falls back has to fit into the rest.
    let finding = match landing::of_next_start(machine) {
        Landing::SmallPages(_, fit @ Fit::BeyondMemory { .. })
        | Landing::Fails(_, Some(fit @ Fit::BeyondCommitLimit { .. })) => {
            Finding::critical(format!("after a restart {fit}"))
        }
        _ => finding,
    };
    let private: Option<u64> = around
        .processes
        .iter()
        .filter_map(|process| process.rss_anon)
        .reduce(u64::saturating_add);
    Ok(finding.with(json!({
        "memory_total_bytes": now.ram_bytes,
        "memory_available_bytes": machine.available_bytes(),
        "pools_bytes": now.pools_bytes,
        "left_bytes": now.left_bytes(),
        "left_with_recommended_bytes": then.map(|then| then.left_bytes()),
        "private_bytes_of_server": private,
    })))
}
