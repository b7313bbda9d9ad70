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
        next_boot,
        step::{Decision, Step},
    },
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
    let boot = next_boot::set(machine, pool.page_bytes, pages);
    if let Some(decision) = decisions::too_large_for(machine, pool, pages, need.others) {
        return Some(vec![Step::Decide(decision)]);
    }
    if let Some(idle) = pool
        .persistent()
        .checked_sub(pages)
        .filter(|&idle| idle > 0)
        && unseen(machine).is_some()
    {
        return Some(vec![Step::Decide(Decision::LookForHiddenServers {
            pages: idle,
            page_bytes: pool.page_bytes,
        })]);
    }
    let with = |steps: Vec<Step>| -> Vec<Step> { steps.into_iter().chain(boot.clone()).collect() };
    if machine.around.is_none() {
        return Some(with(vec![set]));
    }
    // A running server keeps what it has until its restart.
    let has_to_wait = need.now() > pages && pool.persistent() > pages;
    let mut ways = Vec::new();
    if has_to_wait {
        ways.push(vec![Step::Restart, set.clone()]);
    } else {
        ways.push(vec![set.clone()]);
        ways.push(vec![Step::Compact, set.clone()]);
    }
    ways.push(vec![Step::Stop, Step::Compact, set, Step::Start]);
    let ways = ways.into_iter().map(with).collect();
    let safe = plans::first_safe(machine, ways);
    Some(safe.unwrap_or_else(|troubles| {
        let ways: Vec<_> = troubles.into_iter().map(InTheWay::Trouble).collect();
        decisions::of(machine, About::Pool, &ways)
    }))
}
