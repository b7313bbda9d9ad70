//! What to type for the number of pages that one pool should have.

use crate::{
    advice::{
        decisions::{self, About, InTheWay},
        plans, words,
    },
    linux::hugepages::Pool,
    model::{
        forecast::Forecast,
        machine::Machine,
        need::{Need, unseen},
        next_boot, shares,
        step::{Decision, Step},
    },
    server::facts::AllowedNodes,
};

/// For the recommended number in that pool, now and for the next boot. `None`: how many it should
/// have is unknown.
pub fn how_to_set(machine: &Machine, pool: &Pool) -> Option<String> {
    words::remedy(machine, &steps_to_set(machine, pool)?)
}

/// The same as data.
pub fn steps_to_set(machine: &Machine, pool: &Pool) -> Option<Vec<Step>> {
    let steps = as_far_as_seen(machine, pool)?;
    Some(decisions::unless_files_are_unseen(machine, false, steps))
}

fn as_far_as_seen(machine: &Machine, pool: &Pool) -> Option<Vec<Step>> {
    let forecast = Forecast::of(machine, pool);
    let pages = forecast.recommended?;
    let set = Step::SetPool {
        page_bytes: pool.page_bytes,
        node: None,
        pages,
    };
    let need = Need::with(machine, pool, forecast.required)?;
    // What sets up a pool at boot spreads it over all nodes.
    let is_bound = matches!(machine.facts.allowed_nodes, AllowedNodes::Only(_));
    let boot = next_boot::set(machine, pool.page_bytes, pages).filter(|_| !is_bound);
    let beyond = decisions::too_large_for(machine, pool, pages, need.others)
        .or_else(|| decisions::beyond_nodes(machine, pool.page_bytes, need.own));
    if let Some(decision) = beyond {
        return Some(vec![Step::Decide(decision)]);
    }
    let look_for_hidden = |pages| {
        vec![Step::Decide(Decision::LookForHiddenServers {
            pages,
            page_bytes: pool.page_bytes,
        })]
    };
    if let Some(idle) = pool
        .persistent()
        .checked_sub(pages)
        .filter(|&idle| idle > 0)
        && unseen(machine).is_some()
    {
        return Some(look_for_hidden(idle));
    }
    let with = |steps: Vec<Step>| -> Vec<Step> { steps.into_iter().chain(boot.clone()).collect() };
    if machine.around.is_none() {
        return Some(with(vec![set]));
    }
    let mut sets = vec![set];
    // None where each has its share: then the number for all changes nothing.
    let shares = shares::of(machine, pool, need).filter(|shares| !shares.is_empty());
    let by_node = shares
        .as_ref()
        .map(|shares| plans::set_on_nodes(machine, pool.page_bytes, shares.iter().copied()));
    if is_bound && let Some((shares, by_node)) = shares.zip(by_node.clone()) {
        if by_node.is_empty() {
            let idle = shares.iter().map(|share| share.has - share.fair);
            return Some(look_for_hidden(idle.sum()));
        }
        sets = by_node;
    }
    let sets = || sets.iter().cloned();
    // A running server keeps what it has until its restart.
    let has_to_wait = need.now() > pages && pool.persistent() > pages;
    let mut ways = Vec::new();
    if has_to_wait {
        ways.push([Step::Restart].into_iter().chain(sets()).collect());
    } else {
        ways.push(sets().collect());
        ways.push([Step::Compact].into_iter().chain(sets()).collect());
    }
    let stopped = [Step::Stop, Step::Compact].into_iter().chain(sets());
    ways.push(stopped.chain([Step::Start]).collect());
    // What others were promised on a node stays there.
    if !is_bound && !has_to_wait {
        ways.extend(by_node);
    }
    let ways = ways.into_iter().map(with).collect();
    let safe = plans::first_safe(machine, ways);
    Some(safe.unwrap_or_else(|troubles| {
        let ways: Vec<_> = troubles.into_iter().map(InTheWay::Trouble).collect();
        decisions::of(machine, About::Pool, &ways)
    }))
}
