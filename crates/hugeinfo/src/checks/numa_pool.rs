//! Whether each NUMA node has its share of the pool.

use serde_json::json;

use super::{Check, Status, thresholds::NODE_OF_FAIR_SHARE_PERCENT};
use crate::{
    facts::Facts,
    sizing::human,
    surroundings::{NodePool, Surroundings},
};

const NAME: &str = "numa_pool";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    let node_pools = match &around.node_pools {
        Ok(node_pools) => node_pools,
        Err(absent) => {
            let finding = format!("how the pool lies on the nodes cannot be told: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let page_bytes = facts
        .huge_page_in_use()
        .flatten()
        .or_else(|| facts.huge_page_asked_for());
    let pools: Vec<&NodePool> = node_pools
        .iter()
        .filter(|pool| Some(pool.page_bytes) == page_bytes)
        .collect();
    let evidence: Vec<_> = pools
        .iter()
        .map(|pool| json!({ "node": pool.node, "total_pages": pool.total }))
        .collect();
    let count = u64::try_from(pools.len()).unwrap_or(u64::MAX);
    let total = pools
        .iter()
        .map(|pool| pool.total)
        .fold(0, u64::saturating_add);
    let check = match pools.iter().min_by_key(|pool| pool.total) {
        Some(least) if count > 1 && total > 0 => judge(least, total, count),
        Some(_) if count > 1 => Check::new(NAME, Status::Ok, "the pool is empty on all nodes"),
        _ => Check::new(NAME, Status::Ok, "there is one node"),
    };
    check.with_evidence(json!({ "page_size_bytes": page_bytes, "nodes": evidence }))
}

fn judge(least: &NodePool, total: u64, nodes: u64) -> Check {
    let fair = total / nodes;
    let size = human(least.page_bytes);
    if least.total.saturating_mul(100) >= fair.saturating_mul(NODE_OF_FAIR_SHARE_PERCENT) {
        let finding = format!("{total} huge pages of {size} lie evenly on {nodes} nodes");
        return Check::new(NAME, Status::Ok, finding);
    }
    let finding = format!(
        "node {} has {} huge pages of {size}, and {fair} would be its share of {total}: the segment lies mostly on other nodes",
        least.node, least.total
    );
    Check::new(NAME, Status::Warning, finding).with_remedy(format!(
        "echo {fair} > /sys/devices/system/node/nodeN/hugepages/hugepages-{}kB/nr_hugepages for each node N",
        least.page_bytes >> 10
    ))
}
