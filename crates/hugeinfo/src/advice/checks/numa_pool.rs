//! Whether each NUMA node has its share of the pool.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::NODE_OF_FAIR_SHARE_PERCENT,
};
use crate::{
    advice::words::human,
    linux::numa::node::Node,
    server::{facts::Facts, surroundings::Surroundings},
};

const NAME: &str = "numa_pool";

/// A node's part of the pool.
struct Part {
    node: u32,
    total: u64,
}

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let nodes = match &around.nodes {
        Ok(nodes) => nodes,
        Err(absent) => {
            let finding = format!("how the pool lies on the nodes cannot be told: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let in_use = facts.huge_page_in_use().flatten();
    let Some(page_bytes) = in_use.or_else(|| facts.huge_page_asked_for()) else {
        return Check::new(
            NAME,
            Status::Unknown,
            "the pool of the server cannot be told",
        );
    };
    if in_use.is_none() && !facts.asks_for_huge_pages() {
        return Check::new(NAME, Status::Ok, "the server asks for no huge pages");
    }
    let parts: Vec<Part> = nodes
        .iter()
        .filter_map(|node| part(node, page_bytes))
        .collect();
    let evidence: Vec<_> = parts
        .iter()
        .map(|part| json!({ "node": part.node, "total_pages": part.total }))
        .collect();
    judge(&parts, &human(page_bytes), page_bytes >> 10)
        .with_evidence(json!({ "page_size_bytes": page_bytes, "nodes": evidence }))
}

/// `None`: a node without memory, which has no part in any pool.
fn part(node: &Node, page_bytes: u64) -> Option<Part> {
    let pool = node
        .pools
        .iter()
        .find(|pool| pool.page_bytes == page_bytes)?;
    Some(Part {
        node: node.number,
        total: pool.counters?.total,
    })
}

fn judge(parts: &[Part], size: &str, kilobytes: u64) -> Check {
    let count = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    let total = parts
        .iter()
        .map(|part| part.total)
        .fold(0, u64::saturating_add);
    let Some(least) = parts
        .iter()
        .min_by_key(|part| part.total)
        .filter(|_| count > 1)
    else {
        return Check::new(NAME, Status::Ok, "there is one node with memory");
    };
    let fair = total / count;
    if total == 0 {
        return Check::new(NAME, Status::Ok, "the pool is empty on all nodes");
    }
    if least.total.saturating_mul(100) >= fair.saturating_mul(NODE_OF_FAIR_SHARE_PERCENT) {
        let finding = format!("{total} huge pages of {size} lie evenly on {count} nodes");
        return Check::new(NAME, Status::Ok, finding);
    }
    let finding = format!(
        "node {} has {} huge pages of {size}, and {fair} would be its share of {total}: the segment lies mostly on other nodes",
        least.node, least.total
    );
    // Rounded up: one page less in all, and a server that needs all of them gets none.
    let each = total.div_ceil(count);
    Check::new(NAME, Status::Warning, finding).with_remedy(format!(
        "echo {each} > /sys/devices/system/node/nodeN/hugepages/hugepages-{kilobytes}kB/nr_hugepages for each node N"
    ))
}
