//! What each NUMA node should have of a pool: as much of it as it has of the memory. Whoever
//! spreads pages over nodes asks here.

use std::cmp::Reverse;

use crate::{
    linux::{hugepages::Pool, numa::node::NodeCounters},
    model::{
        machine::Machine,
        need::{Need, own_pages},
        node_memory,
    },
    server::facts::AllowedNodes,
};

/// One node's share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its number.
    pub node: u32,
    /// Pages that it has.
    pub has: u64,
    /// Pages that would be its share.
    pub fair: u64,
    /// Of the pages that it has besides, surplus ones.
    pub surplus: u64,
    /// Whether its memory has no room for more now.
    pub is_full: bool,
}

impl Share {
    /// What grows comes first, so that the pool is never smaller than it was; before it what makes
    /// surplus pages persistent, which before Linux 6.15 count when another node is set.
    pub(crate) fn turn(&self) -> (bool, Reverse<u64>) {
        (self.shrinks(), Reverse(self.surplus))
    }

    /// Whether the node would have less than it has.
    pub(crate) fn shrinks(&self) -> bool {
        self.fair < self.has
    }
}

/// A node that has memory, and its part of one pool.
struct Part {
    node: u32,
    counters: NodeCounters,
    memory: Option<u64>,
    /// Pages that it can give now beside those that it has.
    room: Option<u64>,
    /// Whether the server may use it.
    is_allowed: bool,
}

impl Part {
    fn persistent(&self) -> u64 {
        self.counters.persistent()
    }

    fn share(&self, fair: u64) -> Share {
        Share {
            node: self.node,
            has: self.persistent(),
            fair,
            surplus: self.counters.surplus,
            is_full: fair >= self.most_now(),
        }
    }

    fn used(&self) -> u64 {
        self.counters.total.saturating_sub(self.counters.free)
    }

    /// Pages that its memory can hold.
    fn most(&self, page_bytes: u64) -> u64 {
        self.memory.map_or(u64::MAX, |memory| {
            node_memory::most_pages(memory, page_bytes)
        })
    }

    /// Pages that it can have while all else stays in its memory.
    fn most_now(&self) -> u64 {
        self.room
            .map_or(u64::MAX, |room| self.counters.total.saturating_add(room))
    }
}

/// `None`: nodes cannot be seen. Where the kernel knows none there are none.
fn parts(machine: &Machine, page_bytes: u64) -> Option<Vec<Part>> {
    let allowed = &machine.facts.allowed_nodes;
    let nodes = machine.nodes()?.ok()?.iter();
    let parts = nodes.filter(|node| node.memory.total != Some(0));
    let parts = parts.filter_map(|node| {
        let counters = node.part(page_bytes)?.counters?;
        Some(Part {
            node: node.number,
            counters,
            memory: node.memory.total,
            room: node_memory::room(node, page_bytes, counters.total),
            is_allowed: allowed.allows(node.number) != Some(false),
        })
    });
    Some(parts.collect())
}

/// This many pages over these nodes as they have memory, or the same for each where the kernel
/// doesn't tell how much; none gets less than its floor, or more than it can have.
fn spread(pages: u64, parts: &[(&Part, u64)], most: impl Fn(&Part) -> u64) -> Vec<u64> {
    let memory: Option<Vec<u64>> = parts.iter().map(|(part, _)| part.memory).collect();
    let weights = memory.unwrap_or_else(|| vec![1; parts.len()]);
    let mut fixed: Vec<Option<u64>> = vec![None; parts.len()];
    loop {
        let open = |at: &usize| fixed[*at].is_none();
        let all: u128 = (0..parts.len())
            .filter(open)
            .map(|at| u128::from(weights[at]))
            .sum();
        let given: u64 = fixed.iter().flatten().sum();
        let rest = pages.saturating_sub(given);
        let share = |at: usize| {
            let share = u128::from(rest) * u128::from(weights[at]);
            u64::try_from(share.checked_div(all).unwrap_or(0)).unwrap_or(u64::MAX)
        };
        let floor = |at: &usize| share(*at) < parts[*at].1;
        let most = |at: usize| most(parts[at].0).max(parts[at].1);
        let mut places = (0..parts.len()).filter(open);
        if let Some(at) = places.clone().find(floor) {
            fixed[at] = Some(parts[at].1);
            continue;
        }
        if let Some(at) = places.find(|&at| share(at) > most(at)) {
            fixed[at] = Some(most(at));
            continue;
        }
        let mut shares: Vec<u64> = (0..parts.len())
            .map(|at| fixed[at].unwrap_or_else(|| share(at)))
            .collect();
        // What division leaves is less than a page for each.
        let mut left = pages.saturating_sub(shares.iter().sum());
        for at in (0..parts.len()).rev().filter(open) {
            if left > 0 && shares[at] < most(at) {
                shares[at] += 1;
                left -= 1;
            }
        }
        return shares;
    }
}

/// Of the persistent pages that there are, over the nodes that the server may use, as these have
/// room now. `None`: nodes cannot be seen.
pub(crate) fn of_existing(machine: &Machine, page_bytes: u64) -> Option<Vec<Share>> {
    let parts = parts(machine, page_bytes)?;
    let kept = kept(machine, page_bytes);
    let allowed: Vec<&Part> = parts.iter().filter(|part| part.is_allowed).collect();
    let floor = |part: &&Part| kept(part).min(part.persistent());
    let with_floors: Vec<(&Part, u64)> = allowed.iter().map(|part| (*part, floor(part))).collect();
    let all = allowed.iter().map(|part| part.persistent()).sum();
    let fair = spread(all, &with_floors, Part::most_now);
    let shares = allowed.iter().zip(fair);
    Some(shares.map(|(part, fair)| part.share(fair)).collect())
}

/// Pages that others may have on a node, and that stay there: what they use, surplus pages as well,
/// which become persistent before any page is added; and what they may have been promised, perhaps
/// as servers that may use no other node. Such a promise is a free page of that node.
fn kept(machine: &Machine, page_bytes: u64) -> impl Fn(&Part) -> u64 + use<> {
    let own = own_pages(&machine.facts, page_bytes).unwrap_or(0);
    let pool = machine.pool(page_bytes);
    let (reserved, committed) = pool.map_or((0, 0), |pool| (pool.reserved, pool.committed()));
    let promised = reserved.min(committed.saturating_sub(own));
    move |part| {
        let own = if part.is_allowed { own } else { 0 };
        let used = part.used().saturating_sub(own);
        used.saturating_add(promised.min(part.counters.free))
    }
}

/// Pages that others may have on the nodes that the server may use, with those that they were
/// promised. On which of the nodes, nobody tells.
fn of_others(parts: &[Part], machine: &Machine, page_bytes: u64) -> u64 {
    let own = own_pages(&machine.facts, page_bytes).unwrap_or(0);
    let committed = machine.pool(page_bytes).map_or(0, Pool::committed);
    let (allowed, elsewhere): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_allowed);
    let all = allowed.into_iter().map(|part| part.counters.total).sum();
    let elsewhere = elsewhere.into_iter().map(Part::used).sum();
    committed
        .saturating_sub(elsewhere)
        .min(all)
        .saturating_sub(own)
}

/// The pool that the next start needs, as [`of`].
pub(crate) fn of_need(machine: &Machine, page_bytes: u64) -> Option<Vec<Share>> {
    let pool = machine.pool(page_bytes)?;
    of(
        machine,
        pool,
        Need::of(&machine.planning(machine.aim()), pool)?,
    )
}

/// The pool that is needed, with this server's part on the nodes that it may use, and the rest on
/// all: in the order in which they are set. `None`: there is one node, or nodes cannot be seen.
pub(crate) fn of(machine: &Machine, pool: &Pool, need: Need) -> Option<Vec<Share>> {
    let page_bytes = pool.page_bytes;
    let parts = parts(machine, page_bytes)?;
    if parts.len() < 2 {
        return None;
    }
    let kept = kept(machine, page_bytes);
    let more = |pages: u64, floors: &[(&Part, u64)]| {
        let all: u64 = floors.iter().map(|(_, pages)| pages).sum();
        spread(all.saturating_add(pages), floors, |part| {
            part.most(page_bytes)
        })
    };
    let floors: Vec<(&Part, u64)> = parts.iter().map(|part| (part, kept(part))).collect();
    let (allowed, elsewhere): (Vec<_>, Vec<_>) =
        floors.into_iter().partition(|(part, _)| part.is_allowed);
    // Each node may be the one that has most of what this server has.
    let least: u64 = allowed.iter().map(|(_, pages)| pages).sum();
    let lacking = of_others(&parts, machine, page_bytes).saturating_sub(least);
    let with_own = more(need.own.saturating_add(lacking), &allowed);
    let allowed = allowed.into_iter().map(|(part, _)| part).zip(with_own);
    let given: Vec<(&Part, u64)> = allowed.chain(elsewhere).collect();
    let so_far: u64 = given.iter().map(|(_, pages)| pages).sum();
    let fair = more(need.after_restart().saturating_sub(so_far), &given);
    let mut shares: Vec<Share> = given
        .iter()
        .zip(fair)
        .map(|((part, _), fair)| part.share(fair))
        .filter(|share| share.has != share.fair)
        .collect();
    shares.sort_by_key(Share::turn);
    Some(shares)
}

/// Pages that the nodes that the server may use can give it at most, beside what others have there.
/// `None`: it may use all, or that is unknown.
pub(crate) fn most_on_allowed(machine: &Machine, page_bytes: u64) -> Option<u64> {
    let AllowedNodes::Only(_) = &machine.facts.allowed_nodes else {
        return None;
    };
    let parts = parts(machine, page_bytes)?;
    let allowed: Vec<&Part> = parts.iter().filter(|part| part.is_allowed).collect();
    if allowed.is_empty() {
        return None;
    }
    let (most, used) = allowed
        .into_iter()
        .fold((0u64, 0u64), |(most, used), part| {
            (
                most.saturating_add(part.most(page_bytes)),
                used.saturating_add(part.used()),
            )
        });
    let own = own_pages(&machine.facts, page_bytes)?;
    Some(most.saturating_sub(used.saturating_sub(own)))
}
