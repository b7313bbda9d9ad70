//! Memory outside of the pools: the rest of RAM, small pages that are not faulted in yet, and
//! limits.

use host::server::{instances::Instance, state::Backing};
use host::{
    linux::cgroup::memory::MemoryLimit,
    units::{Bytes, PageSize, Pages},
};

use crate::{
    model::{faulted_in::FaultedIn, machine::Machine},
    thresholds::{COMMITTED_PERCENT, LEFT_PERCENT},
};

/// Memory that stays available while a pool grows, for all programs that allocate meanwhile. `None`:
/// unknown.
fn reserve(machine: &Machine) -> Option<Bytes> {
    const PERCENT: u64 = 2;
    Some(host_ram(machine)?.percent(PERCENT))
}

/// Memory that segments on small pages have yet to fault in: this server's while it runs, and those
/// of other servers. The kernel counts it as available.
pub fn not_faulted_in(machine: &Machine) -> Bytes {
    let own = match (machine.segment(), machine.backing()) {
        (Some(segment), Backing::SmallPages | Backing::Unknown) => {
            Bytes(segment.bytes) - machine.faulted_in.least
        }
        _ => Bytes(0),
    };
    own + not_faulted_in_by_others(machine)
}

/// Bytes of small pages that are released when the server stops.
fn faulted_in_on_small_pages(machine: &Machine) -> Bytes {
    match machine.backing() {
        Backing::SmallPages => machine.faulted_in.least,
        Backing::HugePages(_) | Backing::Unknown => Bytes(0),
    }
}

/// The segment, if it is on small pages. It is that part of `Committed_AS`: huge pages are not
/// committed (mm/hugetlb.c: no `VM_ACCOUNT`).
pub fn segment_on_small_pages(machine: &Machine) -> Bytes {
    match (machine.segment(), machine.backing()) {
        (Some(segment), Backing::SmallPages) => Bytes(segment.bytes),
        _ => Bytes(0),
    }
}

fn not_faulted_in_by_others(machine: &Machine) -> Bytes {
    let others = others_on_small_pages(machine);
    let not_faulted_in =
        others.map(|(other, segment)| segment - Bytes(other.rss_shmem_bytes.unwrap_or(0)));
    not_faulted_in.sum()
}

/// The other servers that run on small pages, with their segments.
fn others_on_small_pages(machine: &Machine) -> impl Iterator<Item = (&Instance, Bytes)> {
    let base = machine.state.base_page_bytes;
    other_servers(machine).iter().filter_map(move |other| {
        let segment = other.segment.as_ref()?;
        let is_small = segment.page_bytes.is_none_or(|bytes| bytes <= base);
        (is_small && !other.is_stopped).then_some((other, Bytes(segment.bytes)))
    })
}

/// The other servers of this host, as far as they are visible.
pub fn other_servers(machine: &Machine) -> &[Instance] {
    let state = machine.whole_state();
    state
        .and_then(|state| state.other_servers.as_deref().ok())
        .unwrap_or_default()
}

/// Bytes in the pools of all sizes, used or not.
pub fn in_pools(machine: &Machine) -> Bytes {
    let pools = machine.pools();
    pools
        .map(|pool| Pages(pool.total) * PageSize(pool.page_bytes))
        .sum()
}

/// Pages of each pool that the next boot sets up. `None` for a pool: its number is unknown.
pub fn pools_at_boot(machine: &Machine) -> impl Iterator<Item = (PageSize, Option<Pages>)> {
    let boot = machine.next_boot();
    machine.pools().map(move |pool| {
        let known = boot.filter(|boot| !boot.is_unknown(pool.page_bytes));
        let pages = known.map(|boot| boot.pages(pool.page_bytes).map_or(0, |r| r.pages));
        (PageSize(pool.page_bytes), pages.map(Pages))
    })
}

/// Bytes in all pools that the next boot sets up, if `changed` has this many pages. An unknown pool
/// counts as large as it is now.
pub fn in_pools_at_boot(machine: &Machine, changed: Option<(PageSize, Pages)>) -> Bytes {
    let bytes = pools_at_boot(machine).map(|(size, pages)| {
        let now = || Pages(machine.pool(size).map_or(0, |pool| pool.persistent()));
        let changed = changed.filter(|changed| changed.0 == size);
        let changed = changed.map(|changed| changed.1);
        changed.or(pages).unwrap_or_else(now) * size
    });
    bytes.sum()
}

/// `MemTotal` of the host. `None`: unknown.
pub fn host_ram(machine: &Machine) -> Option<Bytes> {
    machine.ram().filter(|_| machine.shows_host_memory)
}

/// RAM outside of the pools. `None`: unknown.
pub fn left(machine: &Machine) -> Option<Bytes> {
    machine.state.pools.as_ref().ok()?;
    Some(host_ram(machine)? - in_pools(machine))
}

/// RAM that other servers on small pages need once all of their segments are in use.
pub fn segments_of_others(machine: &Machine) -> Bytes {
    let others = others_on_small_pages(machine);
    others.map(|(_, segment)| segment).sum()
}

/// Bytes of segments on small pages, including those of other servers. `is_meant` chooses the
/// servers that count. `None` is this server.
pub fn segments_on_small_pages(
    machine: &Machine,
    is_meant: impl Fn(Option<&Instance>) -> bool,
) -> Bytes {
    let own = segment_on_small_pages(machine);
    let own = if is_meant(None) { own } else { Bytes(0) };
    let others = others_on_small_pages(machine).filter(|(other, _)| is_meant(Some(other)));
    own + others.map(|(_, segment)| segment).sum()
}

/// Bytes that the pools can have if they leave [`LEFT_PERCENT`]. `None`: unknown.
pub fn most_in_pools(machine: &Machine) -> Option<Bytes> {
    host_ram(machine).map(|ram| ram - ram.percent(LEFT_PERCENT))
}

/// Bytes that are missing if the pools have this many, all of them allocated in addition to the
/// memory that other programs use now. `moves`: whether a server on small pages gets pages in these
/// pools. `None`: unknown.
pub fn missing_at_boot(
    machine: &Machine,
    in_pools_then: Bytes,
    moves: impl Fn(Option<&Instance>) -> bool,
) -> Option<Bytes> {
    let beyond = in_pools_then - most_in_pools(machine)?;
    if in_pools_then <= in_pools(machine) {
        // The next boot leaves as much as this one.
        return Some(beyond);
    }
    let Some(available) = machine.usage().and_then(|usage| usage.available) else {
        return Some(beyond);
    };
    let mut missing = reserve(machine)?;
    // Huge pages take the place of small ones.
    let mut moved = Bytes(0);
    let faulted_in = faulted_in_on_small_pages(machine);
    if moves(None) {
        moved = faulted_in;
    } else {
        missing = missing + (segment_on_small_pages(machine) - faulted_in);
    }
    for (other, segment) in others_on_small_pages(machine) {
        let rss = Bytes(other.rss_shmem_bytes.unwrap_or(0));
        if moves(Some(other)) {
            moved = moved + rss;
        } else {
            missing = missing + (segment - rss);
        }
    }
    let available = Bytes(available) + in_pools(machine) + moved;
    Some(beyond.max(in_pools_then + missing - available))
}

/// Bytes of RAM that are missing if the pools grow by this much and have to leave [`LEFT_PERCENT`].
pub fn missing_in_ram(machine: &Machine, growth: Bytes) -> Option<Bytes> {
    Some(growth + host_ram(machine)?.percent(LEFT_PERCENT) - left(machine)?)
}

/// Bytes of RAM that are missing outside of the pools: for segments on small pages once all of them
/// are in use, or for [`LEFT_PERCENT`]. `None`: unknown.
pub fn missing_outside_pools(machine: &Machine) -> Option<Bytes> {
    let small = segment_on_small_pages(machine) + segments_of_others(machine);
    Some(missing_in_ram(machine, Bytes(0))?.max(small - left(machine)?))
}

/// Available bytes that are missing if the pools grow by this much now, including the reserve and the
/// memory that has yet to be faulted in on small pages. `None`: unknown.
pub fn missing_for_pools(machine: &Machine, growth: Bytes) -> Option<Bytes> {
    let available = Bytes(machine.usage()?.available?);
    Some(growth + not_faulted_in(machine) + reserve(machine)? - available)
}

/// Bytes by which the pools can grow while the server is stopped, less `small_bytes` that its next
/// start takes on small pages. Does not change while the server moves to huge pages.
pub fn available_once_stopped(machine: &Machine, small_bytes: Bytes) -> Option<Bytes> {
    let available = Bytes(machine.usage()?.available?) + faulted_in_on_small_pages(machine);
    Some(available - not_faulted_in_by_others(machine) - small_bytes - reserve(machine)?)
}

/// Whether it matters how much of this server's segment on small pages has been faulted in, because
/// memory might not hold the rest of it and all pools that servers could want, or a cgroup might not
/// hold a whole segment in addition to its other memory.
pub fn depends_on_faulted_in(machine: &Machine) -> bool {
    let segment = segment_on_small_pages(machine);
    if machine.faulted_in.least >= segment {
        return false;
    }
    let limits = machine
        .whole_state()
        .and_then(|state| state.memory_limits.as_deref().ok())
        .unwrap_or_default();
    let needed = segment.max(Bytes(machine.state.needed_bytes()));
    let is_short =
        |limit: &MemoryLimit| Bytes(limit.kept_bytes()) + needed > Bytes(limit.limit_bytes);
    // A segment takes at most one page more than its bytes.
    let largest = machine.pools().map(|pool| pool.page_bytes).max();
    let with_page = |bytes: Bytes| bytes + Bytes(largest.unwrap_or(0));
    let wanted = with_page(needed)
        + other_servers(machine)
            .iter()
            .filter_map(|other| other.segment.as_ref())
            .map(|segment| with_page(Bytes(segment.bytes)))
            .sum()
        + (in_pools_at_boot(machine, None) - in_pools(machine));
    limits.iter().any(is_short)
        || missing_for_pools(machine, wanted).is_some_and(|missing| missing > Bytes(0))
}

/// The strict commit limit (`vm.overcommit_memory = 2`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitLimit {
    /// `CommitLimit`.
    pub limit: Bytes,
    /// `Committed_AS`.
    pub committed: Bytes,
    /// Memory that only root is allowed to use (`vm.admin_reserve_kbytes`).
    pub reserve: Bytes,
    /// `vm.overcommit_ratio`; `None`: `vm.overcommit_kbytes` is set, and pools do not matter.
    pub ratio: Option<u64>,
    /// RAM outside of the pools. The limit includes `ratio` percent of it. 0: unknown.
    pub outside: Bytes,
}

impl CommitLimit {
    /// `None`: there is no strict overcommit, or its figures are unknown.
    pub fn of(machine: &Machine) -> Option<Self> {
        let vm = &machine.whole_state()?.vm;
        let usage = machine.usage()?;
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        if vm.overcommit_memory != Some(2) {
            return None;
        }
        let by_kilobytes = number(vm.overcommit_bytes).is_some_and(|bytes| bytes > 0);
        Some(Self {
            limit: Bytes(usage.commit_limit?),
            committed: Bytes(usage.committed?),
            reserve: Bytes(number(vm.admin_reserve_bytes).unwrap_or(0)),
            ratio: number(vm.overcommit_ratio).filter(|_| !by_kilobytes),
            outside: left(machine).unwrap_or_default(),
        })
    }

    /// The limit if the pools had this many bytes (mm/util.c `vm_commit_limit`). `None`: there is no
    /// limit, pools do not lower it, or it is unknown.
    pub fn with_pools(machine: &Machine, in_pools: Bytes) -> Option<Self> {
        let now = Self::of(machine)?;
        let outside = host_ram(machine)? - in_pools;
        let swap = Bytes(machine.usage()?.swap_total.unwrap_or(0));
        Some(Self {
            limit: outside.percent(now.ratio?) + swap,
            outside,
            ..now
        })
    }

    /// Why it is unknown whether a larger pool leaves enough for the committed memory. `None`: it
    /// is known.
    pub fn unknown(machine: &Machine) -> Option<&'static str> {
        match machine.whole_state()?.vm.overcommit_memory {
            None => Some("vm.overcommit_memory cannot be read"),
            Some(2) if Self::of(machine).is_none() => Some("/proc/meminfo has no CommitLimit"),
            Some(_) => None,
        }
    }

    /// The lowest limit under which ordinary users can keep what is committed.
    pub fn needed(&self) -> Bytes {
        self.committed + self.reserve
    }

    /// Whether committed memory exceeds the limit for ordinary users.
    pub fn is_exceeded(&self) -> bool {
        self.needed() > self.limit
    }

    /// Bytes that the limit is too low. Programs could soon fail to allocate memory.
    pub fn missing(&self) -> Bytes {
        let with_spare = Bytes(self.committed.0 / COMMITTED_PERCENT * 100 + 100);
        with_spare.max(self.needed()) - self.limit
    }

    /// Bytes that a process of an ordinary user can still commit.
    pub fn room(&self) -> Bytes {
        self.limit - self.reserve - self.committed
    }
}

/// A memory limit of a cgroup that the segment exceeds once all of it is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess<'a> {
    pub limit: &'a MemoryLimit,
    /// Memory needed in the cgroup, at least.
    pub needed: Bytes,
    /// By how much limits have to be raised to be sure, that of this cgroup and of all others.
    pub to_raise: Bytes,
    /// Whether the excess can be swapped out. Huge pages cannot.
    pub can_swap: bool,
}

/// Whether the memory limits of the server's cgroups can hold a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMemory<'a> {
    /// They can.
    Fits,
    /// It depends on how much has been faulted in.
    Unknown(&'a MemoryLimit),
    /// One cannot.
    Exceeds(Excess<'a>),
}

/// Judges a segment of this size in place of the present one, all of it faulted in. Returns the
/// worst of all levels.
pub fn in_cgroups(machine: &Machine, segment: Bytes, is_on_huge_pages: bool) -> CgroupMemory<'_> {
    let limits = machine
        .whole_state()
        .map(|state| state.memory_limits.as_deref());
    let limits = limits.and_then(Result::ok).unwrap_or_default();
    let mut worst = CgroupMemory::Fits;
    let mut to_raise = Bytes(0);
    for limit in limits {
        if is_on_huge_pages && !limit.counts_hugetlb {
            continue;
        }
        let counted_now = match machine.backing() {
            Backing::HugePages(_) if !limit.counts_hugetlb => FaultedIn::default(),
            _ => machine.faulted_in,
        };
        let kept = Bytes(limit.kept_bytes());
        let (least, most) = (
            kept - counted_now.most + segment,
            kept - counted_now.least + segment,
        );
        let allowed = Bytes(limit.limit_bytes);
        if least <= allowed {
            if most > allowed && worst == CgroupMemory::Fits {
                worst = CgroupMemory::Unknown(limit);
            }
            continue;
        }
        let excess = Excess {
            limit,
            needed: least,
            to_raise: most - allowed,
            can_swap: !(is_on_huge_pages && segment > allowed)
                && least - allowed <= swap_room(machine, limit),
        };
        to_raise = to_raise.max(excess.to_raise);
        let is_worse = match worst {
            CgroupMemory::Exceeds(other) => {
                (!excess.can_swap, excess.to_raise) > (!other.can_swap, other.to_raise)
            }
            CgroupMemory::Fits | CgroupMemory::Unknown(_) => true,
        };
        if is_worse {
            worst = CgroupMemory::Exceeds(excess);
        }
    }
    match worst {
        CgroupMemory::Exceeds(excess) => CgroupMemory::Exceeds(Excess { to_raise, ..excess }),
        fits => fits,
    }
}

/// By how much limits have to be raised before this much on huge pages is safe. `None`: it is, as
/// far as known.
pub fn missing_for_huge_pages(machine: &Machine, segment: Bytes) -> Option<Bytes> {
    match in_cgroups(machine, segment, true) {
        CgroupMemory::Exceeds(excess) if !excess.can_swap => Some(excess.to_raise),
        _ => None,
    }
}

/// Bytes that the cgroup can swap out, limited by the free swap of the host.
fn swap_room(machine: &Machine, limit: &MemoryLimit) -> Bytes {
    let of_host = machine.usage().and_then(|usage| usage.swap_free);
    Bytes(
        of_host
            .unwrap_or(0)
            .min(limit.swap_room_bytes.unwrap_or(u64::MAX)),
    )
}
