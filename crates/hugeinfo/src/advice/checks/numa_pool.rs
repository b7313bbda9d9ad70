//! The distribution of the pool over NUMA nodes. Never a warning: an uneven pool breaks nothing,
//! and `numa_segment` warns if the segment is on few nodes.

use serde_json::json;

use crate::{
    advice::{
        check::{Finding, Judgment, env},
        thresholds::NODE_OF_FAIR_SHARE_PERCENT,
    },
    model::{
        machine::{Backing, Machine},
        numa::{self, Part},
        units::{PageSize, Pages, huge_pages},
    },
};

/// A node with much less than its share, although it has room for more.
fn poorest(machine: &Machine, size: PageSize) -> Option<(Part, Pages)> {
    let shares = numa::fair_parts(machine, size)?;
    if shares.len() < 2 {
        return None;
    }
    let short = shares.into_iter().filter(|(part, share)| {
        let has = Pages(part.counters.total);
        has.0.saturating_mul(100) < share.0.saturating_mul(NODE_OF_FAIR_SHARE_PERCENT)
    });
    short.max_by_key(|(part, share)| *share - Pages(part.counters.total))
}

fn size(machine: &Machine) -> Option<PageSize> {
    match machine.backing() {
        Backing::HugePages(size) => Some(size),
        Backing::SmallPages | Backing::Unknown => {
            machine.size_asked_for(machine.facts.next_start())
        }
    }
}

pub(super) fn judge(machine: &Machine) -> Judgment {
    env(machine)?;
    let nodes = machine.nodes().ok_or("the NUMA nodes cannot be read")?;
    if nodes.len() < 2 {
        return Ok(Finding::ok("one_node", "There is one NUMA node."));
    }
    let is_on = machine.is_on_huge_pages() == Some(true);
    if !is_on && !machine.facts.asks_for_huge_pages() {
        return Ok(Finding::does_not_ask());
    }
    let size = size(machine).ok_or("the huge page size is unknown")?;
    let shares = numa::fair_parts(machine, size).ok_or("the pages of the nodes are unknown")?;
    let total: Pages = shares
        .iter()
        .map(|(part, _)| Pages(part.counters.total))
        .sum();
    let evidence: Vec<_> = shares
        .iter()
        .map(|(part, _)| json!({ "node": part.node, "total_pages": part.counters.total }))
        .collect();
    let finding = match poorest(machine, size) {
        Some((part, share)) => Finding::ok(
            "uneven",
            format!(
                "NUMA node {} has {}; its share of {total} is {share}.",
                part.node,
                huge_pages(Pages(part.counters.total), size)
            ),
        ),
        None if shares.len() < 2 => Finding::ok(
            "one_node",
            "The server is allowed to use huge pages of one NUMA node.",
        ),
        None if total == Pages(0) => {
            Finding::ok("even", format!("The pool of {size} pages is empty."))
        }
        None => Finding::ok(
            "even",
            format!(
                "{} NUMA nodes hold their shares of {}, as far as they have room.",
                shares.len(),
                huge_pages(total, size)
            ),
        ),
    };
    Ok(finding.with(json!({ "page_size_bytes": size.0, "nodes": evidence })))
}
