//! The distribution of the segment over NUMA nodes.

use std::collections::BTreeMap;

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::{
        machine::Machine,
        step::{ServiceChange, Step},
    },
    thresholds::{
        FULL_NODE_FREE_PERCENT, OTHER_NODE_FREE_PERCENT, SEGMENT_ON_FULL_NODE_SHARES,
        SEGMENT_ON_ONE_NODE_PERCENT, SEGMENT_TOUCHED_BYTES,
    },
};
use host::{
    linux::numa::node::Node,
    server::state::AllowedNodes,
    units::{Bytes, PageSize, Pages},
};

pub(super) const CHECK: Check = Check {
    name: "numa_segment",
    judge,
    cure: Cure::Steps(steps),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at the nodes that hold the segment, in `numa_maps` of the process that has touched the most
pages.

| code | status | meaning |
|---|---|---|
| `on_several_nodes`, `one_node` | ok | the segment is on most nodes, or the server can use only one |
| `little_in_use` | ok | less than 1 GB of the segment is in use |
| `on_few_nodes` | warning | at most half of the nodes hold 90% of the segment, and all processors load the memory of these nodes |
| `on_full_node` | warning | one node has at least three times its even share of the segment and less than 1% of its memory free, while others have free memory |

**What to do.** Start the server with `numactl --interleave=all`.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let all = match machine.nodes() {
        Some(all) => all,
        None => machine.facts.nodes.as_ref()?,
    };
    let with_memory = all
        .iter()
        .filter(|node| node.memory.total != Some(0))
        .count();
    let usable = match &machine.facts.allowed_nodes {
        AllowedNodes::Only(nodes) => nodes.len(),
        AllowedNodes::All | AllowedNodes::Unknown(_) => with_memory,
    };
    if usable < 2 {
        return Ok(Finding::ok(
            "one_node",
            "The server can use only one NUMA node.",
        ));
    }
    let (nodes, page_bytes) = machine
        .state
        .segment_nodes
        .as_ref()
        .zip(machine.state.page_bytes())
        .ok_or("numa_maps cannot be read for any process")?;
    let size = PageSize(page_bytes);
    let faulted_in: Pages = nodes.values().map(|pages| Pages(*pages)).sum();
    let evidence: Vec<_> = nodes
        .iter()
        .map(|(node, pages)| json!({ "node": node, "segment_pages": pages }))
        .collect();
    let evidence = json!({ "page_size_bytes": page_bytes, "nodes": evidence });
    if faulted_in * size < Bytes(SEGMENT_TOUCHED_BYTES) {
        let text = format!(
            "Too little of the segment is in use to judge: {}.",
            faulted_in * size
        );
        return Ok(Finding::ok("little_in_use", text).with(evidence));
    }
    // The fewest nodes that hold nearly all of it, against the nodes that it could use.
    let mut largest: Vec<(u32, u64)> = nodes.iter().map(|(node, pages)| (*node, *pages)).collect();
    largest.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
    let mut so_far = 0_u64;
    let few: Vec<_> = largest
        .iter()
        .take_while(|(_, pages)| {
            let is_enough = so_far.saturating_mul(100)
                > faulted_in.0.saturating_mul(SEGMENT_ON_ONE_NODE_PERCENT);
            so_far = so_far.saturating_add(*pages);
            !is_enough
        })
        .map(|(node, _)| node.to_string())
        .collect();
    let finding = if few.len().saturating_mul(2) <= usable {
        let noun = if few.len() == 1 { "node" } else { "nodes" };
        Finding::warning(
            "on_few_nodes",
            format!(
                "More than {SEGMENT_ON_ONE_NODE_PERCENT}% of the {} of the segment that is in use is on NUMA {noun} {}, out of {usable} nodes.",
                faulted_in * size,
                few.join(", ")
            ),
        )
    } else if let Some((node, pages, free)) = full_node(all, nodes, faulted_in, usable) {
        Finding::warning(
            "on_full_node",
            format!(
                "NUMA node {node} has {} of the {} of the segment that is in use, several times its share of {usable} nodes, and only {free} of free memory.",
                pages * size,
                faulted_in * size,
            ),
        )
    } else {
        Finding::ok("on_several_nodes", "The segment is on most NUMA nodes.")
    };
    Ok(finding.with(evidence))
}

/// The node that has the most of the segment, if that is at least three times its even share, and
/// it has almost no free memory, while the others have: the pages in use and the free memory.
fn full_node(
    all: &[Node],
    nodes: &BTreeMap<u32, u64>,
    faulted_in: Pages,
    usable: usize,
) -> Option<(u32, Pages, Bytes)> {
    let (number, pages) = nodes.iter().max_by_key(|(_, pages)| **pages)?;
    let usable = u64::try_from(usable).ok()?;
    let free_percent = |node: &Node| {
        let (free, total) = node.memory.free.zip(node.memory.total)?;
        free.saturating_mul(100).checked_div(total)
    };
    let node = all.iter().find(|node| node.number == *number)?;
    let others = all.iter().filter(|other| other.number != *number);
    let has_free = |free| free >= OTHER_NODE_FREE_PERCENT;
    let is_full = free_percent(node)? < FULL_NODE_FREE_PERCENT
        && others.filter_map(free_percent).any(has_free);
    let is_uneven =
        pages.saturating_mul(usable) >= faulted_in.0.saturating_mul(SEGMENT_ON_FULL_NODE_SHARES);
    (is_full && is_uneven).then(|| {
        let free = Bytes(node.memory.free.unwrap_or(0));
        (*number, Pages(*pages), free)
    })
}

/// Starts the server with interleaved memory. Takes effect at the next restart.
fn steps(_: &Machine) -> Result<Vec<Step>, Decision> {
    Ok(vec![Step::ChangeService(ServiceChange::Interleave)])
}
