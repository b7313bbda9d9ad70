//! Where the main segment of the next start will be, or why there is no next start.

use std::path::PathBuf;

use crate::{
    linux::sysctl::Vm,
    model::{
        headroom::Headroom,
        machine::Machine,
        memory_limit::{self, Holds},
        obstacle::{self, Obstacle},
    },
    server::facts::HugePages,
};

/// How a start ends (port/sysv_shmem.c `CreateAnonymousSegment`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing<'a> {
    /// On the huge pages that it asks for.
    HugePages,
    /// On small pages.
    SmallPages(Obstacle<'a>, Fit),
    /// Nowhere: the server does not start.
    Fails(Obstacle<'a>, Option<Fit>),
    /// Unknown.
    Untold(Obstacle<'a>),
}

/// Whether small pages can hold the segment: huge pages lie ready in a pool, and these are taken
/// from what the pools leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// As far as known.
    Fits,
    /// With strict overcommit the kernel refuses.
    BeyondCommitLimit {
        /// What the segment takes.
        bytes: u64,
        /// What the limit leaves.
        room_bytes: u64,
    },
    /// RAM cannot hold it once it is used.
    BeyondMemory {
        /// What the segment takes.
        bytes: u64,
        /// What the pools leave of RAM.
        left_bytes: u64,
    },
    /// A control group of the server cannot hold it once it is used, and swap neither.
    BeyondMemoryLimit {
        /// The group.
        group: PathBuf,
        /// Its limit.
        limit_bytes: u64,
        /// What would be wanted in it, at least.
        wanted_bytes: u64,
        /// By how much the limit has to be raised, to be sure.
        to_raise_bytes: u64,
    },
}

/// The start that the settings ask for, once the server is stopped.
pub(crate) fn of_next_start(machine: &Machine) -> Landing<'_> {
    let Some(obstacle) = obstacle::find(machine) else {
        return Landing::HugePages;
    };
    if obstacle.is_untold() {
        return Landing::Untold(obstacle);
    }
    if machine.facts.next_start().huge_pages == HugePages::On {
        return Landing::Fails(obstacle, None);
    }
    match on_small_pages(machine) {
        fit @ Fit::BeyondCommitLimit { .. } => Landing::Fails(obstacle, Some(fit)),
        fit => Landing::SmallPages(obstacle, fit),
    }
}

/// Whether small pages can hold the segment of the next start, once the present one is gone.
pub fn on_small_pages(machine: &Machine) -> Fit {
    let bytes = machine.facts.needed_bytes();
    if let Some(room_bytes) = commit_room_bytes(machine)
        && room_bytes < bytes
    {
        return Fit::BeyondCommitLimit { bytes, room_bytes };
    }
    // Pages that a restart gives back stay in the pool, but for surplus.
    match Headroom::now(machine) {
        Some(headroom) if headroom.left_bytes() < bytes => Fit::BeyondMemory {
            bytes,
            left_bytes: headroom.left_bytes(),
        },
        _ => match memory_limit::hold(machine, bytes, false) {
            Holds::Beyond(excess) if !excess.can_swap => Fit::BeyondMemoryLimit {
                group: excess.limit.directory.clone(),
                limit_bytes: excess.limit.limit_bytes,
                wanted_bytes: excess.wanted_bytes,
                to_raise_bytes: excess.raise_bytes(),
            },
            Holds::All | Holds::Untold(_) | Holds::Beyond(_) => Fit::Fits,
        },
    }
}

/// What `CommitLimit` leaves once the server is stopped. `None`: there is no strict overcommit, or
/// nobody can tell.
fn commit_room_bytes(machine: &Machine) -> Option<u64> {
    let host = &machine.around.as_ref()?.host;
    if host.vm.overcommit_memory != Some(2) {
        return None;
    }
    let usage = host.usage.as_ref().ok()?;
    let committed = usage
        .committed?
        .saturating_sub(own_committed_bytes(machine));
    let limit = usage
        .commit_limit?
        .saturating_sub(admin_reserve_bytes(&host.vm));
    Some(limit.saturating_sub(committed))
}

/// What of `CommitLimit` is kept for root (mm/util.c `__vm_enough_memory`): a server is never
/// root's.
pub(crate) fn admin_reserve_bytes(vm: &Vm) -> u64 {
    let reserve = vm.admin_reserve_bytes;
    reserve
        .and_then(|bytes| u64::try_from(bytes).ok())
        .unwrap_or(0)
}

/// What the main segment adds to `Committed_AS`: huge pages nothing (mm/hugetlb.c: no
/// `VM_ACCOUNT`).
pub(crate) fn own_committed_bytes(machine: &Machine) -> u64 {
    match (&machine.facts.segment, machine.is_on_huge_pages()) {
        (Ok(segment), Some(false)) => segment.bytes,
        _ => 0,
    }
}
