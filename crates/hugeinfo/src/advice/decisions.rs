//! What a person has to decide where no plan is safe: by what a check is about, and by what is in
//! the way.

use crate::{
    linux::hugepages::Pool,
    model::{
        headroom::Headroom,
        landing::{self, Fit},
        limits,
        machine::Machine,
        memory_limit::{self, Holds},
        need::{Need, own_of_next_start, unseen},
        shares,
        step::{Decision, Step},
        take::{Harm, Trouble, take},
    },
    server::{
        facts::{AllowedNodes, HugePages, Server},
        surroundings::Files,
    },
};

/// The size of shared memory is a multiple of this (storage/ipc/ipci.c `CalculateShmemSize`).
const BLOCK_BYTES: u64 = 8192;

/// What a check is about, as far as it decides over that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The server, its pool, and what is left beside them.
    Pool,
    /// What the configuration files mean.
    Files,
    /// What page tables cost.
    PageTables,
    /// What the next boot sets up.
    NextBoot,
    /// What the pools leave of `CommitLimit`.
    CommitLimit,
    /// What memory is left, and what its limits hold.
    Memory,
}

/// What is in the way of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InTheWay {
    /// A step of it.
    Trouble(Trouble),
    /// Another check that would be worse.
    Worse(&'static str, About),
    /// It does not cure.
    NoCure,
}

/// Where none of these plans is safe. Empty: the finding says all.
pub(crate) fn of(machine: &Machine, about: About, ways: &[InTheWay]) -> Vec<Step> {
    let files = machine.around.as_ref().map(|around| &around.files);
    let refused = match files {
        Some(Files::Refused(_)) => Some(Decision::CorrectTheFiles),
        Some(Files::TooLow(settings)) => Some(Decision::RaiseSettings(settings.clone())),
        _ => None,
    };
    let aimed = machine.planning(machine.aim());
    if aimed.facts.target_pool().is_none() && refused.is_none() {
        // There are no huge pages, or they cannot be seen.
        return Vec::new();
    }
    let on_huge_pages = machine.is_on_huge_pages() == Some(true);
    let decision = match (about, refused) {
        (About::Files, Some(refused)) => refused,
        (About::PageTables, _) if on_huge_pages => Decision::FewerConnections,
        (_, refused) => (about == About::Memory)
            .then(|| beyond_limit(machine))
            .flatten()
            .or_else(|| beyond_this_host(&aimed))
            .or_else(|| (about == About::NextBoot).then(|| at_boot(&aimed)))
            // Whatever needs a start has to wait for that.
            .or(refused)
            .unwrap_or_else(|| told_by(machine, ways)),
    };
    vec![Step::Decide(decision)]
}

/// These steps, unless they depend on settings that wait and that nobody may see. `is_of_today`:
/// they only spread, or quieten, what there is.
pub(crate) fn unless_files_are_unseen(
    machine: &Machine,
    is_of_today: bool,
    steps: Vec<Step>,
) -> Vec<Step> {
    let files = machine.around.as_ref().map(|around| &around.files);
    let is_unseen = matches!(files, Some(Files::Unseen(_))) && machine.may_wait();
    let depends = |step: &Step| match step {
        Step::SetPool { .. } => !is_of_today,
        Step::SetPoolAtBoot { .. } | Step::Start | Step::Stop | Step::Restart => true,
        Step::Decide(decision) => decision.has_figures(),
        _ => false,
    };
    if is_unseen && steps.iter().any(depends) {
        return vec![Step::Decide(Decision::AskAsSuperuser)];
    }
    steps
}

/// Where the main segment of a planned configuration is too large for the host. `None`: it is not.
pub(crate) fn of_large_plan(machine: &Machine, next: &Server) -> Option<Decision> {
    let mut fits = next.clone();
    // What keeps one bound may be beyond another.
    while let Some(bytes) = bound(&machine.planning(fits.clone()))
        && bytes < fits.shared_memory_bytes
    {
        fits.shared_memory_bytes = bytes / BLOCK_BYTES * BLOCK_BYTES;
    }
    (fits != *next).then(|| Decision::PlanLess {
        bytes: next.shared_memory_bytes,
        to_bytes: Some(fits.shared_memory_bytes).filter(|&bytes| bytes > 0),
    })
}

/// Where a configuration is planned that is not too large.
pub(crate) fn of_plan(machine: &Machine, next: &Server, troubles: &[Trouble]) -> Decision {
    let planned = machine.planning(next.clone());
    if next.huge_pages == HugePages::On
        && (planned.facts.target_pool().is_none() || troubles.contains(&Trouble::Harm(Harm::Down)))
    {
        return Decision::PlanWithoutOn;
    }
    beyond_this_host(&planned).unwrap_or_else(|| {
        let ways: Vec<_> = troubles.iter().copied().map(InTheWay::Trouble).collect();
        told_by(machine, &ways)
    })
}

/// Bytes that the segment of that plan can have at most. `None`: it is not too large.
fn bound(planned: &Machine) -> Option<u64> {
    let target = planned.facts.target_pool();
    let Some(pool) = target.filter(|_| planned.facts.asks_for_huge_pages()) else {
        let bytes = planned.facts.needed_bytes();
        let fit = match landing::on_small_pages(planned) {
            Fit::BeyondCommitLimit { room_bytes, .. } => Some(room_bytes),
            Fit::BeyondMemoryLimit { to_raise_bytes, .. } => {
                Some(bytes.saturating_sub(to_raise_bytes))
            }
            Fit::BeyondMemory { .. } | Fit::Fits => None,
        };
        let room = room_beside_pools(planned).filter(|&room_bytes| room_bytes < bytes);
        return fit.into_iter().chain(room).min();
    };
    let need = Need::of(planned, pool)?;
    let bytes = planned.facts.needed_bytes();
    match too_large_for(planned, pool, need.after_restart(), need.others) {
        Some(Decision::LowerSharedBuffers { missing_bytes, .. }) => {
            Some(bytes.saturating_sub(missing_bytes))
        }
        Some(_) => None,
        None => {
            let most = shares::most_on_allowed(planned, pool.page_bytes)?;
            (need.own > most).then(|| most.saturating_mul(pool.page_bytes))
        }
    }
}

/// Bytes that small pages can hold so that enough is left, with what the pool need not keep for a
/// server that leaves it.
fn room_beside_pools(planned: &Machine) -> Option<u64> {
    let now = Headroom::now(planned)?;
    let given_back = || {
        let page_bytes = planned.facts.lies_on().huge_page_bytes()?;
        let need = Need::with(planned, planned.pool(page_bytes)?, 0)?;
        Headroom::with(planned, page_bytes, need.after_restart())
    };
    let after = unseen(planned).is_none().then(given_back).flatten();
    let rooms = [Some(now), after].into_iter().flatten();
    rooms.map(|headroom| headroom.room_bytes()).max()
}

/// Of the last of the plans, which takes the least memory, but for what says less of the reason.
fn told_by(machine: &Machine, ways: &[InTheWay]) -> Decision {
    let told = ways.iter().rev().filter_map(|way| {
        let decision = match way {
            InTheWay::Trouble(trouble) => of_trouble(machine, *trouble)?,
            InTheWay::Worse(_, About::NextBoot) => Decision::LookAtBootFiles,
            InTheWay::Worse(_, About::CommitLimit) => Decision::RaiseCommitLimit,
            InTheWay::Worse(check, _) => Decision::WouldBeWorse { check },
            InTheWay::NoCure => return None,
        };
        Some(decision)
    });
    let said_last = |decision: &Decision| {
        matches!(
            decision,
            Decision::NoRoom { .. } | Decision::WouldBeWorse { .. } | Decision::LookAtSources
        )
    };
    let (last, first): (Vec<Decision>, Vec<Decision>) = told.partition(said_last);
    first
        .into_iter()
        .chain(last)
        .next()
        .or_else(|| idle(machine))
        .unwrap_or(Decision::NoSafeWay)
}

/// Where no file says what the next boot has to set up.
fn at_boot(aimed: &Machine) -> Decision {
    let pool = aimed.facts.target_pool();
    match (&aimed.facts.allowed_nodes, pool) {
        (AllowedNodes::Only(nodes), Some(pool)) => Decision::NameNodesAtBoot {
            nodes: nodes.iter().map(|node| node.number).collect(),
            pages: own_of_next_start(aimed, pool.page_bytes),
            page_bytes: pool.page_bytes,
        },
        _ => Decision::LookAtBootFiles,
    }
}

/// The most memory in pages that nobody needs who can be seen, where somebody cannot.
fn idle(machine: &Machine) -> Option<Decision> {
    unseen(machine)?;
    let pools = machine.facts.pools.iter().flatten();
    let idle = pools.filter_map(|pool| {
        let pages = pool
            .persistent()
            .checked_sub(Need::of(machine, pool)?.now())?;
        Some((pages, pool.page_bytes)).filter(|&(pages, _)| pages > 0)
    });
    let (pages, page_bytes) = idle.max_by_key(|(pages, size)| pages.saturating_mul(*size))?;
    Some(Decision::LookForHiddenServers { pages, page_bytes })
}

/// What the memory limit of a control group lacks for the main segment as it is.
fn beyond_limit(machine: &Machine) -> Option<Decision> {
    let segment = machine.facts.segment.as_ref().ok()?;
    let holds = memory_limit::hold(machine, segment.bytes, machine.is_on_huge_pages()?);
    match holds {
        Holds::Beyond(excess) => Some(Decision::RaiseMemoryLimit {
            bytes: excess.raise_bytes(),
        }),
        Holds::All | Holds::Untold(_) => None,
    }
}

/// `None`: that alone says nothing.
fn of_trouble(machine: &Machine, trouble: Trouble) -> Option<Decision> {
    Some(match trouble {
        Trouble::Harm(Harm::OutOfMemory { bytes }) => free_memory(machine, bytes),
        Trouble::Harm(Harm::MemoryLimit { bytes }) => Decision::RaiseMemoryLimit { bytes },
        Trouble::Harm(Harm::CommitLimit) => Decision::RaiseCommitLimit,
        Trouble::Less { missing: 0, .. } => return None,
        Trouble::Less {
            missing,
            page_bytes,
        } => Decision::NoRoom {
            pages: missing,
            page_bytes,
        },
        Trouble::Untold => Decision::LookAtSources,
        Trouble::Harm(Harm::Armed) => Decision::WouldBeWorse {
            check: "cgroup_fault_limit",
        },
        Trouble::Harm(Harm::Down | Harm::LostHugePages) => {
            Decision::WouldBeWorse { check: "restart" }
        }
        Trouble::Harm(Harm::TakesPromised) => Decision::LetOthersTouch,
        Trouble::Refused => return None,
    })
}

fn free_memory(machine: &Machine, bytes: u64) -> Decision {
    Decision::FreeMemory {
        bytes,
        to_bytes: lowered(machine, bytes),
    }
}

/// `shared_buffers` less this many bytes, in whole MB. `None`: nothing would be left, larger ones
/// wait or are planned, or this is a container that does not show the host's memory.
fn lowered(machine: &Machine, by_bytes: u64) -> Option<u64> {
    Headroom::now(machine)?;
    if machine.facts.needed_bytes() > machine.facts.server.shared_memory_bytes {
        return None;
    }
    let shared_buffers = machine.around.as_ref()?.shared_buffers_bytes;
    let to_bytes = shared_buffers.checked_sub(by_bytes)?;
    Some(to_bytes >> 20 << 20).filter(|&bytes| bytes > 0)
}

/// Why the pool that the next start needs cannot be had here. `None`: that is not the reason.
fn beyond_this_host(aimed: &Machine) -> Option<Decision> {
    let pool = aimed.facts.target_pool()?;
    let page_bytes = pool.page_bytes;
    if limits::is_set_outside(&aimed.facts, page_bytes) {
        return Some(Decision::RaiseLimitOutside);
    }
    let all = Need::of_all(aimed, pool)?;
    let need = Need::of(aimed, pool)?;
    if !aimed.sees_memory_of_host && need.others > 0 && pool.total < need.now() {
        // A container's own memory says nothing of what the host could give beside them.
        return Some(Decision::OthersHoldThePools);
    }
    let pages = need.after_restart();
    if let Some(decision) = too_large_for(aimed, pool, pages, need.others) {
        return Some(decision);
    }
    if let Some(decision) = beyond_nodes(aimed, page_bytes, need.own) {
        return Some(decision);
    }
    if all.neighbours > need.neighbours {
        return Some(Decision::FewerServers {
            pages: all.after_restart(),
            page_bytes,
        });
    }
    missing_memory(aimed, page_bytes, pages)
}

/// Why the nodes that the server may use cannot give it that many pages. `None`: they can, as far
/// as is known.
pub(crate) fn beyond_nodes(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Decision> {
    let most_pages = shares::most_on_allowed(machine, page_bytes)?;
    let too_many = pages.checked_sub(most_pages).filter(|&pages| pages > 0)?;
    Some(Decision::BeyondNodes {
        to_bytes: lowered(machine, too_many.saturating_mul(page_bytes)),
        pages,
        most_pages,
        page_bytes,
    })
}

/// What the pool lacks to grow to this many pages, with what the server gives back while it is
/// stopped, as the plan that takes the least memory does.
fn missing_memory(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Decision> {
    let (stopped, _) = take(machine, &Step::Stop);
    let grown = pages.checked_sub(stopped.pool(page_bytes)?.total)?;
    let spare = stopped.ram_bytes()? / 50;
    let wanted = grown.saturating_mul(page_bytes).saturating_add(spare);
    let missing = wanted.saturating_sub(stopped.available_bytes()?);
    (missing > 0 && grown > 0).then(|| free_memory(machine, missing))
}

/// Why the host cannot spare that many pages in a pool of which others hold some. `None`: it can,
/// as far as is known.
pub(crate) fn too_large_for(
    machine: &Machine,
    pool: &Pool,
    pages: u64,
    others: u64,
) -> Option<Decision> {
    let page_bytes = pool.page_bytes;
    let with = Headroom::with(machine, page_bytes, pages)?;
    if with.is_enough() {
        return None;
    }
    let own = pages.saturating_sub(others);
    let alone = Headroom {
        pools_bytes: own.saturating_mul(page_bytes),
        ..with
    };
    if alone.is_enough() {
        return Some(Decision::OthersHoldThePools);
    }
    let room_bytes = Headroom::with(machine, page_bytes, others)?.room_bytes();
    let fits = room_bytes / page_bytes * page_bytes;
    let missing_bytes = machine.facts.needed_bytes().saturating_sub(fits);
    Some(Decision::LowerSharedBuffers {
        to_bytes: lowered(machine, missing_bytes),
        missing_bytes,
        pages,
        page_bytes,
    })
}
