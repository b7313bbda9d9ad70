//! Whether the main segment is on one NUMA node, whose processors then have it near and all
//! others far.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        thresholds::{SEGMENT_ON_ONE_NODE_PERCENT, SEGMENT_TOUCHED_BYTES},
        words::human,
    },
    model::machine::Machine,
    server::facts::AllowedNodes,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    let nodes = machine.nodes().transpose()?.unwrap_or_default();
    if nodes.len() < 2 {
        return Ok(Finding::ok("there is one node"));
    }
    if let AllowedNodes::Only(nodes) = &machine.facts.allowed_nodes
        && nodes.len() == 1
    {
        return Ok(Finding::ok("the server may use one node only"));
    }
    let (nodes, page_bytes) = around
        .segment_nodes
        .as_ref()
        .zip(machine.facts.page_bytes())
        .ok_or("numa_maps cannot be read for any process")?;
    let touched = nodes.values().copied().fold(0, u64::saturating_add);
    let bytes = |pages: u64| human(pages.saturating_mul(page_bytes));
    let is_enough = touched.saturating_mul(page_bytes) >= SEGMENT_TOUCHED_BYTES;
    let is_most = |pages: u64| {
        pages.saturating_mul(100) > touched.saturating_mul(SEGMENT_ON_ONE_NODE_PERCENT)
    };
    let finding = match nodes.iter().max_by_key(|&(_, pages)| pages) {
        Some((node, &pages)) if is_enough && is_most(pages) => Finding::warning(format!(
            "node {node} holds {} of the main segment, of {} in use: its memory bus carries the load of all nodes",
            bytes(pages),
            bytes(touched)
        )),
        _ if is_enough => Finding::ok("the main segment is on several nodes"),
        _ => Finding::ok(format!(
            "too little of the main segment is in use to judge: {}",
            bytes(touched)
        )),
    };
    let evidence: Vec<_> = nodes
        .iter()
        .map(|(node, pages)| json!({ "node": node, "segment_pages": pages }))
        .collect();
    Ok(finding.with(json!({ "page_size_bytes": page_bytes, "nodes": evidence })))
}
