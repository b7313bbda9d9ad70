//! Whether the main segment lies on one NUMA node, whose processors then have it near and all
//! others far.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::{SEGMENT_ON_ONE_NODE_PERCENT, SEGMENT_TOUCHED_BYTES},
};
use crate::{
    advice::words::human,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "numa_segment";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let unknown = |why: &dyn std::fmt::Display| {
        let finding = format!("on which nodes the main segment lies cannot be told: {why}");
        Check::new(NAME, Status::Unknown, finding)
    };
    match &around.nodes {
        Ok(nodes) if nodes.len() < 2 => {
            return Check::new(NAME, Status::Ok, "there is one node");
        }
        Ok(_) => {}
        Err(absent) => return unknown(absent),
    }
    let Some((nodes, page_bytes)) = around.segment_nodes.as_ref().zip(facts.page_bytes()) else {
        return unknown(&"numa_maps of no process can be seen");
    };
    let touched = nodes.values().copied().fold(0, u64::saturating_add);
    let bytes = |pages: u64| human(pages.saturating_mul(page_bytes));
    let is_enough = touched.saturating_mul(page_bytes) >= SEGMENT_TOUCHED_BYTES;
    let is_most = |pages: u64| {
        pages.saturating_mul(100) > touched.saturating_mul(SEGMENT_ON_ONE_NODE_PERCENT)
    };
    let check = match nodes.iter().max_by_key(|&(_, pages)| pages) {
        Some((node, &pages)) if is_enough && is_most(pages) => Check::new(
            NAME,
            Status::Warning,
            format!(
                "{} of the main segment lie on node {node}, of {} that were touched: its memory bus carries the load of all nodes",
                bytes(pages),
                bytes(touched)
            ),
        )
        .with_remedy("start PostgreSQL by numactl --interleave=all".to_owned()),
        _ if is_enough => Check::new(NAME, Status::Ok, "the main segment lies on several nodes"),
        _ => Check::new(
            NAME,
            Status::Ok,
            format!("too little of the main segment was touched to tell: {}", bytes(touched)),
        ),
    };
    let evidence: Vec<_> = nodes
        .iter()
        .map(|(node, pages)| json!({ "node": node, "segment_pages": pages }))
        .collect();
    check.with_evidence(json!({ "page_size_bytes": page_bytes, "nodes": evidence }))
}
