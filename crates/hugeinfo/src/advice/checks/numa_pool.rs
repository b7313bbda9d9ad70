//! Whether each NUMA node has its share of the pool.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        thresholds::NODE_OF_FAIR_SHARE_PERCENT,
        words::huge_pages,
    },
    model::{machine::Machine, shares},
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    machine.around()?;
    let nodes = machine.nodes().transpose()?.unwrap_or_default();
    let in_use = facts.lies_on().huge_page_bytes();
    let page_bytes = in_use
        .or_else(|| facts.huge_page_asked_for())
        .ok_or("the pool of the server cannot be seen")?;
    if in_use.is_none() && !facts.asks_for_huge_pages() {
        return Ok(Finding::ok("the server asks for no huge pages"));
    }
    if nodes.len() < 2 {
        return Ok(Finding::ok("there is one node"));
    }
    let shares = shares::of_existing(machine, page_bytes).unwrap_or_default();
    let total: u64 = shares.iter().map(|share| share.has).sum();
    let evidence: Vec<_> = shares
        .iter()
        .map(|share| json!({ "node": share.node, "total_pages": share.has }))
        .collect();
    let is_short = |share: &&shares::Share| {
        let least = share.fair.saturating_mul(NODE_OF_FAIR_SHARE_PERCENT);
        share.has.saturating_mul(100) < least
    };
    let count = shares.len();
    let lies = if in_use.is_some() {
        "the segment lies"
    } else {
        "on huge pages the segment would lie"
    };
    let finding = if count < 2 {
        Finding::ok("the server can use huge pages of one node only")
    } else if total == 0 {
        Finding::ok("the pool is empty on all nodes")
    } else if let Some(least) = shares
        .iter()
        .filter(is_short)
        .max_by_key(|share| share.fair - share.has)
    {
        Finding::warning(format!(
            "node {} has {}, and its share of {total} would be {}: {lies} mostly on other nodes",
            least.node,
            huge_pages(least.has, page_bytes),
            least.fair
        ))
    } else {
        let room = if shares.iter().any(|share| share.is_full) {
            ", as far as it has room"
        } else {
            ""
        };
        Finding::ok(format!(
            "{count} nodes hold {} in proportion to their memory{room}",
            huge_pages(total, page_bytes)
        ))
    };
    Ok(finding.with(json!({ "page_size_bytes": page_bytes, "nodes": evidence })))
}
