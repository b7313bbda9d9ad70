//! Whether the main segment lies on one NUMA node, whose processors then have it near and all others far.

use serde_json::json;

use super::{
    Check, Status,
    thresholds::{SEGMENT_ON_ONE_NODE_PERCENT, SEGMENT_TOUCHED_BYTES},
};
use crate::{facts::Facts, sizing::human, surroundings::Surroundings};

const NAME: &str = "numa_segment";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let unknown = |why: &dyn std::fmt::Display| {
        let finding = format!("on which nodes the main segment lies cannot be told: {why}");
        Check::new(NAME, Status::Unknown, finding)
    };
    let nodes = match &around.segment_nodes {
        None => return Check::new(NAME, Status::Ok, "there is one node"),
        Some(Err(absent)) => return unknown(absent),
        Some(Ok(nodes)) => nodes,
    };
    let Some(page_bytes) = facts.page_bytes() else {
        return unknown(&"its page size cannot be seen");
    };
    let touched = nodes
        .iter()
        .map(|node| node.pages)
        .fold(0, u64::saturating_add);
    let touched_bytes = touched.saturating_mul(page_bytes);
    let enough = touched_bytes >= SEGMENT_TOUCHED_BYTES;
    let check = match nodes.iter().max_by_key(|node| node.pages) {
        Some(most)
            if enough
                && most.pages.saturating_mul(100)
                    > touched.saturating_mul(SEGMENT_ON_ONE_NODE_PERCENT) =>
        {
            Check::new(
                NAME,
                Status::Warning,
                format!(
                    "{} of the main segment lie on node {}, of {} that were touched: its memory bus carries the load of all nodes",
                    human(most.pages.saturating_mul(page_bytes)),
                    most.node,
                    human(touched_bytes)
                ),
            )
            .with_remedy("start PostgreSQL by numactl --interleave=all".to_owned())
        }
        _ if !enough => Check::new(
            NAME,
            Status::Ok,
            format!("too little of the main segment was touched to tell: {}", human(touched_bytes)),
        ),
        _ => Check::new(NAME, Status::Ok, "the main segment lies on several nodes"),
    };
    let evidence: Vec<_> = nodes
        .iter()
        .map(|node| json!({ "node": node.node, "segment_pages": node.pages }))
        .collect();
    check.with_evidence(json!({ "page_size_bytes": page_bytes, "nodes": evidence }))
}
