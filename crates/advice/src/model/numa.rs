//! NUMA nodes: whether those that a bound server is allowed to use have the pages that it needs.

use host::{
    server::state::AllowedNodes,
    units::{PageSize, Pages},
};

use crate::model::machine::Machine;

/// Pages that a bound server can have from its nodes after a stop, as bounds: `(certain, most)`.
/// `None`: unknown.
///
/// The kernel compares a new mapping with the free pages of the allowed nodes
/// (mm/hugetlb.c `allowed_mems_nr`) and does not know on which node pages are reserved.
pub fn supply_on_allowed(machine: &Machine, size: PageSize) -> Option<(Pages, Pages)> {
    let part = machine.allowed_part(size)?;
    let held = machine.pages_held(size)?;
    let reserved = Pages(machine.pool(size)?.reserved);
    Some((part.free + held - reserved - part.surplus, part.free + held))
}

/// Pages that the allowed nodes have to get so that a start finds this many there, and the running
/// server those that it has mapped. Surplus pages count: they can be made persistent.
pub fn lacking_on_allowed(machine: &Machine, size: PageSize, required: Pages) -> Option<Pages> {
    let reserved = Pages(machine.pool(size)?.reserved);
    let (_, most) = supply_on_allowed(machine, size)?;
    let for_start = match required {
        Pages(0) => Pages(0),
        _ => required + reserved - most,
    };
    let for_mapped = match most_for_mapped(machine, size) {
        Some(most) => machine.pages_held(size)? - most,
        None => Pages(0),
    };
    Some(for_start.max(for_mapped))
}

/// If the allowed nodes have fewer pages than the server has mapped, how many they have. Touching
/// the rest raises SIGBUS. `None`: they have enough, or unknown.
pub fn most_for_mapped(machine: &Machine, size: PageSize) -> Option<Pages> {
    let pool = machine.pool(size)?;
    let held = machine.pages_held(size)?;
    let surplus = Pages(pool.overcommit) - Pages(pool.surplus);
    // The pages that it has faulted in can be on other nodes, from before it was bound.
    let in_use = Pages(pool.total) - Pages(pool.free);
    let most = surplus + in_use + machine.allowed_part(size)?.free;
    (held > most).then_some(most)
}

/// The numbers of the nodes that a bound server is allowed to use.
pub fn allowed_numbers(machine: &Machine) -> Vec<u32> {
    match &machine.facts.allowed_nodes {
        AllowedNodes::Only(nodes) => nodes.iter().map(|node| node.number).collect(),
        AllowedNodes::All | AllowedNodes::Unknown(_) => Vec::new(),
    }
}

/// Reserved pages of other processes. They could be needed on any node, because the other processes
/// might be bound to it. `None`: unknown.
pub fn reserved_by_others(machine: &Machine, size: PageSize) -> Option<Pages> {
    let pool = machine.pool(size)?;
    let of_others = Pages(pool.committed()?) - machine.pages_held(size)?;
    Some(of_others.min(Pages(pool.reserved)))
}

/// Nodes as text: `node 0` or `nodes 0, 1`.
pub fn named_nodes(nodes: &[u32]) -> String {
    let noun = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{noun} {}", numbers(nodes))
}

/// Node numbers as text, such as `0, 1`.
pub fn numbers(nodes: &[u32]) -> String {
    let all: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    all.join(", ")
}
