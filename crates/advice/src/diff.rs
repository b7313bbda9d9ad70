//! The steps from a machine to its desired state: the difference, in the first of three orders that
//! does no harm.

use super::{
    decision::{self, Decision},
    desired::{Desired, PoolChange},
};
use crate::model::{
    apply::{self, Blocked},
    demand,
    machine::{Machine, ServerState},
    step::Step,
};
use host::{
    linux::hugepages::Pool,
    units::{PageSize, Pages},
};

/// When changes are made, the least disruptive order first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// While the server runs.
    Running,
    /// While it runs, with a restart afterwards.
    Restart,
    /// While it is stopped.
    Stopped,
}

/// The steps to the desired state, without the boot configuration: `boot` is inserted before a
/// restart.
///
/// Errors: the decision that the last order leaves to a person.
pub(crate) fn plan(
    machine: &Machine,
    desired: &Desired,
    boot: &[Step],
) -> Result<Vec<Step>, Decision> {
    let orders: &[Order] = match (machine.server_state, desired.restart) {
        // No pool grows by a command, so a stop does not help.
        (ServerState::Running, true) if machine.is_bound_to_nodes() => &[Order::Restart],
        (ServerState::Running, true) => &[Order::Restart, Order::Stopped],
        (ServerState::Running, false) => &[Order::Running],
        (ServerState::Stopped | ServerState::NotCreated, _) => &[Order::Stopped],
    };
    let mut why = Blocked::Inapplicable;
    for &order in orders {
        let steps = steps(machine, desired, boot, order);
        // The pools need their memory before other servers leave their small pages.
        let before_others = |step: &&Step| !matches!(step, Step::RestartOther { .. });
        match machine.apply_all(steps.iter().filter(before_others)) {
            Ok(_) => return Ok(steps),
            // While the server is stopped, its pages are released, too.
            Err(Blocked::WouldNotFit(_)) if matches!(why, Blocked::WouldNotFit(_)) => {}
            Err(blocked) => why = blocked,
        }
    }
    let size = desired.size.or(machine.default_size());
    let size = size.unwrap_or(machine.base_size());
    let next = machine.with_next_start(desired.next.clone());
    let required = demand::pages_of_next_start(&next, size, &desired.next);
    Err(decision::for_blocked(&next, size, required, why))
}

fn steps(machine: &Machine, desired: &Desired, boot: &[Step], order: Order) -> Vec<Step> {
    let mut steps = Vec::new();
    let limits = desired.limits.iter().cloned().map(Step::RaiseLimit);
    // ALTER SYSTEM needs a running server.
    let settings = desired.settings.iter().cloned().map(Step::ChangeSetting);
    steps.extend(limits);
    steps.extend(settings);
    steps.extend(desired.reload.then_some(Step::Reload));
    // Released memory comes before memory that is needed, except for pages that the running server
    // still has.
    let (mut grown, shrunk): (Vec<_>, Vec<_>) = desired
        .pools
        .iter()
        .partition(|change| change.pages >= change.before);
    // The pool of this server first: it does not need small pages then.
    grown.sort_by_key(|change| desired.size != Some(change.size));
    // Nothing depends on pages of an unknown owner, which are released under a condition.
    let (unknown, shrunk): (Vec<_>, Vec<_>) = shrunk
        .into_iter()
        .partition(|change| demand::idle_of_unknown_owner(machine, change.size) > Pages(0));
    let (held, idle): (Vec<_>, Vec<_>) = shrunk
        .into_iter()
        .partition(|change| is_held(machine, change));
    for change in idle {
        set_pool(machine, change, &mut steps);
    }
    let (later, released) = match order {
        Order::Restart => (held, Vec::new()),
        Order::Running | Order::Stopped => (Vec::new(), held),
    };
    if order == Order::Stopped && machine.server_state == ServerState::Running {
        // Nothing that can be done earlier waits until the server is stopped.
        steps.extend(boot.iter().cloned());
        steps.push(Step::Stop);
    }
    let demoted = demote(machine, &grown, &released);
    let mut after = machine.clone();
    for step in &demoted {
        after = after.apply(step).unwrap_or(after);
    }
    steps.extend(demoted);
    for change in released {
        set_pool(&after, change, &mut steps);
    }
    for change in grown {
        let pool = after.pool(change.size);
        let growth = change.pages - pool.map_or(Pages(0), |pool| Pages(pool.total));
        let is_compacted = steps.contains(&Step::Compact);
        if growth > apply::ready_pages(machine, change.size) && !is_compacted {
            steps.push(Step::Compact);
        }
        set_pool(&after, change, &mut steps);
    }
    if order != Order::Stopped || machine.server_state != ServerState::Running {
        steps.extend(boot.iter().cloned());
    }
    steps.extend(starts(machine, desired, order));
    for change in later.into_iter().chain(unknown) {
        // Pages that this server gives up are released first, without a condition.
        let kept = demand::idle_of_unknown_owner(machine, change.size);
        let given_up = PoolChange {
            pages: change.pages + kept,
            ..change.clone()
        };
        if kept > Pages(0) && is_held(machine, change) && given_up.pages < change.before {
            set_pool(machine, &given_up, &mut steps);
        }
        set_pool(machine, change, &mut steps);
    }
    steps
}

/// The start of this server and of others that get pages, each after a check of its pool: the
/// kernel might allocate fewer pages than requested, and `sysctl -w` does not report it. Settings
/// that are pending wait for a later restart, before which the pool is checked, too.
fn starts(machine: &Machine, desired: &Desired, order: Order) -> Vec<Step> {
    let start = match order {
        Order::Running => None,
        Order::Restart => Some(Step::Restart),
        Order::Stopped => Some(Step::Start),
    };
    let check = |change: &PoolChange, pages: Pages| Step::CheckPool {
        size: change.size,
        pages,
    };
    let grown = desired
        .pools
        .iter()
        .filter(|change| change.pages > change.before);
    // Pages for other servers must not keep this one from its own.
    let own = grown
        .clone()
        .find(|change| desired.size == Some(change.size));
    let is_pending = machine.whole().is_some() && machine.pending().is_some();
    let is_coming = start.is_some() || is_pending;
    let own = own.filter(|_| is_coming).map(|change| {
        let of_others: Pages = change.others.iter().map(|(_, pages)| *pages).sum();
        (change, change.pages - of_others)
    });
    let own_check = own.map(|(change, pages)| check(change, pages));
    let mut steps: Vec<_> = own_check.into_iter().chain(start).collect();
    for change in grown.filter(|change| !change.others.is_empty()) {
        let is_checked = own.is_some_and(|(own, pages)| own == change && pages == change.pages);
        steps.extend((!is_checked).then(|| check(change, change.pages)));
        let restarts = change.others.iter();
        steps.extend(restarts.map(|&(server, pages)| Step::RestartOther {
            server,
            size: change.size,
            pages,
        }));
    }
    steps
}

fn is_held(machine: &Machine, change: &PoolChange) -> bool {
    machine.pages_held(change.size).unwrap_or_default() > Pages(0)
}

fn set_pool(machine: &Machine, change: &PoolChange, steps: &mut Vec<Step>) {
    let pool = machine.pool(change.size);
    let PoolChange { size, pages, .. } = *change;
    if pool.map(Pool::persistent) != Some(pages.0) {
        steps.push(Step::SetPool { size, pages });
    }
}

/// Idle pages that the kernel can split into pages of a pool that has to grow.
fn demote(machine: &Machine, grown: &[&PoolChange], shrunk: &[&PoolChange]) -> Vec<Step> {
    let mut steps = Vec::new();
    for from in shrunk {
        let Some(pool) = machine.pool(from.size) else {
            continue;
        };
        let into = grown
            .iter()
            .find(|into| pool.demote_bytes == Some(into.size.0));
        let Some(into) = into else {
            continue;
        };
        let missing = (into.pages - into.before) * into.size;
        let pages = missing.whole_pages(from.size).min(from.before - from.pages);
        if pages > Pages(0) {
            steps.push(Step::Demote {
                from: PageSize(pool.page_bytes),
                into: into.size,
                pages,
            });
        }
    }
    steps
}
