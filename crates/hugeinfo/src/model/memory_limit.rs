//! What the main segment comes to under the memory limits of the server's control groups, once all
//! of it has been touched.

use crate::{linux::cgroup::memory::MemoryLimit, model::machine::Machine};

/// Whether the limits hold a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds<'a> {
    /// They do.
    All,
    /// That depends on how much has been touched by now, which can only be narrowed down.
    Untold(&'a MemoryLimit),
    /// One of them does not.
    Beyond(Excess<'a>),
}

/// More than a group may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess<'a> {
    /// The limit.
    pub limit: &'a MemoryLimit,
    /// What is wanted in the group, at least.
    pub wanted_bytes: u64,
    /// The same, at most.
    pub most_bytes: u64,
    /// Whether as much as is too much can be swapped out. Huge pages cannot.
    pub can_swap: bool,
}

impl Excess<'_> {
    /// By how much, at least.
    pub fn bytes(&self) -> u64 {
        self.wanted_bytes.saturating_sub(self.limit.limit_bytes)
    }

    /// By how much the limit has to be raised, to be sure.
    pub(crate) fn raise_bytes(&self) -> u64 {
        self.most_bytes.saturating_sub(self.limit.limit_bytes)
    }
}

/// A segment of this many bytes in place of the present one, all of it touched. The worst of all
/// levels.
pub fn hold(machine: &Machine, bytes: u64, is_on_huge_pages: bool) -> Holds<'_> {
    let mut worst = Holds::All;
    for limit in limits(machine) {
        if is_on_huge_pages && !limit.counts_hugetlb {
            continue;
        }
        let kept = limit.kept_bytes();
        let with = |gone: u64| kept.saturating_sub(gone).saturating_add(bytes);
        let (at_best, at_worst) = (with(machine.touched.most), with(machine.touched.least));
        if at_best <= limit.limit_bytes {
            if at_worst > limit.limit_bytes && worst == Holds::All {
                worst = Holds::Untold(limit);
            }
            continue;
        }
        let is_locked = is_on_huge_pages && bytes > limit.limit_bytes;
        let too_much = at_best - limit.limit_bytes;
        let excess = Excess {
            limit,
            wanted_bytes: at_best,
            most_bytes: at_worst,
            can_swap: !is_locked && too_much <= swap_room_bytes(machine, limit),
        };
        let is_worse = match worst {
            Holds::Beyond(other) => {
                (!excess.can_swap, excess.bytes()) > (!other.can_swap, other.bytes())
            }
            Holds::All | Holds::Untold(_) => true,
        };
        if is_worse {
            worst = Holds::Beyond(excess);
        }
    }
    worst
}

/// What the group can have swapped out: no more than the host has room for.
fn swap_room_bytes(machine: &Machine, limit: &MemoryLimit) -> u64 {
    let around = machine.around.as_ref();
    let usage = around.and_then(|around| around.host.usage.as_ref().ok());
    let of_host = usage.and_then(|usage| usage.swap_free).unwrap_or(0);
    of_host.min(limit.swap_room_bytes.unwrap_or(u64::MAX))
}

/// Those of the server, as far as they can be seen.
pub fn limits(machine: &Machine) -> &[MemoryLimit] {
    let around = machine.around.as_ref();
    around
        .and_then(|around| around.memory_limits.as_deref().ok())
        .unwrap_or_default()
}
