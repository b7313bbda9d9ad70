//! Whether the next boot of the machine sets up the pool that the servers of this host need.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status, Untold},
        words::{huge_pages, human},
    },
    linux::boot::{Doubt, Doubtful, Why},
    model::{boot::PoolAtBoot, headroom::Headroom, machine::Machine, need::Need, next_boot},
    server::facts::AllowedNodes,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    machine.around()?;
    let at_boot = next_boot::pools(machine);
    let too_much = at_boot
        .as_ref()
        .ok()
        .and_then(|pools| too_much(machine, pools));
    if !facts.asks_for_huge_pages() {
        return Ok(too_much.unwrap_or_else(|| Finding::ok("the server asks for no huge pages")));
    }
    let pool = facts
        .target_pool()
        .ok_or("the pool that the server needs cannot be seen")?;
    let at_boot = at_boot?;
    let at_boot = at_boot.get(&pool.page_bytes);
    if let Some(doubt) = at_boot.and_then(PoolAtBoot::doubt_of_pages) {
        return Err(Untold(said(doubt)));
    }
    let asked = at_boot.map_or(0, |at_boot| at_boot.pages);
    let request = at_boot.filter(|at_boot| !at_boot.by.is_empty());
    let need = Need::of(machine, pool)
        .ok_or("the main segment cannot be seen")?
        .without_neighbours();
    let required = need.after_restart();
    let size = human(pool.page_bytes);
    let of_others = match need.others {
        0 => String::new(),
        pages => format!(", {pages} of them by others"),
    };
    let needed = format!("needed: {required}{of_others}");
    let on_allowed = on_allowed(machine, at_boot).filter(|&pages| pages < need.own);
    let status = if asked >= required && on_allowed.is_none() {
        Status::Ok
    } else {
        Status::Warning
    };
    let is_dropped = |asked: &PoolAtBoot| asked.dropped.iter().any(|word| word.why == Why::Cma);
    let finding = match request {
        None if at_boot.is_some_and(is_dropped) => format!(
            "with hugetlb_cma= the kernel ignores hugepages= for pages of {size} at the next boot; {needed}"
        ),
        Some(request) => {
            let source = request.source();
            let there = on_allowed.map_or_else(String::new, |pages| {
                format!(
                    "; the NUMA nodes that the server may use get {pages} of them, and it needs {}",
                    need.own
                )
            });
            format!(
                "{source} sets up {} at the next boot; {needed}{there}",
                huge_pages(asked, pool.page_bytes)
            )
        }
        None => format!(
            "neither the kernel command line nor sysctl's files set up huge pages of {size} at the next boot; {needed}"
        ),
    };
    let finding = too_much.unwrap_or_else(|| Finding::new(status, finding));
    Ok(finding.with(json!({
        "page_size_bytes": pool.page_bytes,
        "asked_pages": asked,
        "required_pages": required,
        "source": request.map(PoolAtBoot::source),
    })))
}

/// Pages that the next boot sets up on the nodes that the server may use. `None`: it may use all,
/// or nobody can tell.
fn on_allowed(machine: &Machine, at_boot: Option<&PoolAtBoot>) -> Option<u64> {
    let AllowedNodes::Only(nodes) = &machine.facts.allowed_nodes else {
        return None;
    };
    let by_node = &at_boot?.by_node;
    let numbers = nodes.iter().map(|node| node.number);
    let pages = numbers.filter_map(|number| by_node.get(&number));
    (!by_node.is_empty()).then(|| pages.sum())
}

/// What the pools of the next boot leave of RAM, where that is not enough to work with.
fn too_much(machine: &Machine, pools: &BTreeMap<u64, PoolAtBoot>) -> Option<Finding> {
    let bytes = |pool: &PoolAtBoot| pool.pages.saturating_mul(pool.page_bytes);
    let largest = pools.values().max_by_key(|pool| bytes(pool))?;
    let all = pools.values().map(bytes).fold(0, u64::saturating_add);
    let headroom = Headroom::beside(machine, all)?;
    let is_sure = pools.values().all(|pool| pool.doubt_of_pages().is_none());
    (is_sure && !headroom.is_enough()).then(|| {
        Finding::warning(format!(
            "{} sets up {} at the next boot, and the pools then leave {} of {} RAM for processes and the file cache",
            largest.source(),
            huge_pages(largest.pages, largest.page_bytes),
            human(headroom.left_bytes()),
            human(headroom.ram_bytes),
        ))
    })
}

fn said(doubt: &Doubt) -> String {
    let file = &doubt.file;
    match doubt.what {
        Doubtful::Unread => format!("{file} might set another number, and cannot be read"),
        Doubtful::TooLarge => format!(
            "{file} might set another number, and is too large to read: the limits are 256 kB, 256 lines about pools, and 1 MB in all such files"
        ),
        Doubtful::Line(line) => format!("{file}:{line} might set another number"),
        Doubtful::Unordered => format!(
            "{file} sets another number than sysctl's files, and which is applied last is not defined"
        ),
    }
}
