//! Memory outside of the pools: the rest of RAM, small pages that are not faulted in yet, and
//! limits.

use std::fmt;

use host::server::{instances::Instance, state::Backing};
use host::{
    linux::{cgroup::memory::MemoryLimit, error::Absence, meminfo::Usage},
    units::{Bytes, PageSize, Pages},
};

use crate::{
    model::{faulted_in::FaultedIn, machine::Machine, page_tables},
    thresholds::{
        ASSUMED_USE_PERCENT, CONTRADICTING_OF_RAM_PERCENT, RESERVE_BYTES, RESERVE_PERCENT,
    },
};

/// The largest reserves that the kernel sets by itself (mm/mmap.c `init_admin_reserve`,
/// `init_user_reserve`). They are assumed if the reserves cannot be read.
const LARGEST_ADMIN_RESERVE: u64 = 8 << 20;
const LARGEST_USER_RESERVE: u64 = 128 << 20;

/// Memory that stays available after each step, at the next start and at the next boot, for all
/// programs that allocate meanwhile: on small hosts, enough for the system and a login. This is the
/// only reserve, and every rule about memory uses it. `None`: the RAM is unknown.
pub fn reserve(machine: &Machine) -> Option<Bytes> {
    let ram = host_ram(machine)?;
    Some(ram.percent(RESERVE_PERCENT).max(Bytes(RESERVE_BYTES)))
}

/// Memory that is available outside of the pools, and free swap, except that on zram, which is in
/// the same RAM. `None`: unknown.
fn available(machine: &Machine) -> Option<(Bytes, Bytes)> {
    let ram = host_ram(machine)?;
    let usage = machine.usage();
    let available = usage.and_then(|usage| usage.available).map(Bytes);
    let assumed = || ram - ram.percent(ASSUMED_USE_PERCENT) - in_pools(machine);
    let swap = Bytes(usage.and_then(|usage| usage.swap_free).unwrap_or(0));
    let swap = swap - Bytes(machine.facts.free_zram_bytes);
    Some((available.unwrap_or_else(assumed), swap))
}

/// Memory outside of the pools that programs use, without the segments of servers, and without what
/// this server releases when it moves to huge pages. `None`: unknown.
pub fn used(machine: &Machine) -> Option<Bytes> {
    let available = machine.usage()?.available?;
    let others = segments_of_others(machine) - not_faulted_in_by_others(machine);
    let own = released_by_move(machine);
    Some(left(machine)? - Bytes(available) - own - others)
}

/// Bytes that are missing if all pools have `pools` bytes and segments fault in `small` more bytes
/// of small pages, once `released` bytes have been released, and [`reserve`] stays available. The
/// kernel can swap out small pages, but not huge pages. `None`: unknown.
fn missing(machine: &Machine, pools: Bytes, small: Bytes, released: Bytes) -> Option<Bytes> {
    let (available, swap) = available(machine)?;
    let needed = pools + (small - swap) + reserve(machine)?;
    let all = available + in_pools(machine) + released;
    Some(needed - all.min(host_ram(machine)?))
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

/// Bytes outside of the pools that are released when the server stops and that it does not take
/// again on huge pages: its small pages, and the page tables that map them.
fn released_by_move(machine: &Machine) -> Bytes {
    faulted_in_on_small_pages(machine) + page_tables::saved_on_huge_pages(machine)
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
    yet_to_fault_in(machine).map(|(_, bytes)| bytes).sum()
}

/// The other servers that have yet to fault in a part of their segments on small pages, and how
/// much, at most.
pub fn yet_to_fault_in(machine: &Machine) -> impl Iterator<Item = (&Instance, Bytes)> {
    let others = others_on_small_pages(machine);
    let rest =
        others.map(|(other, segment)| (other, segment - Bytes(other.rss_shmem_bytes.unwrap_or(0))));
    rest.filter(|(_, bytes)| *bytes > Bytes(0))
}

/// Whether the memory that segments on small pages have yet to fault in is known only within
/// bounds.
pub fn is_not_faulted_in_a_bound(machine: &Machine) -> bool {
    is_own_a_bound(machine)
        || certainly_not_faulted_in_by_others(machine) < not_faulted_in_by_others(machine)
}

/// Whether only bounds are known of what this server has faulted in on small pages.
fn is_own_a_bound(machine: &Machine) -> bool {
    machine.backing() == Backing::SmallPages && !machine.faulted_in.is_exact()
}

/// The part of [`not_faulted_in_by_others`] that is certain. A process reports only what it has
/// faulted in itself, but `Shmem` includes all that has been faulted in, also by this server.
fn certainly_not_faulted_in_by_others(machine: &Machine) -> Bytes {
    let read = &machine.facts.state;
    let own = match read.backing() {
        Backing::SmallPages => FaultedIn::of(read).least,
        Backing::HugePages(_) | Backing::Unknown => Bytes(0),
    };
    let shared = read.usage.as_ref().ok().and_then(Usage::shared);
    let by_others = Bytes(shared.unwrap_or(0)) - own;
    not_faulted_in_by_others(machine).min(segments_of_others(machine) - by_others)
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
    let is_known = match &machine.state.pools {
        Ok(_) => true,
        // The kernel has no huge pages.
        Err(absent) => absent.why == Absence::Missing,
    };
    let ram = host_ram(machine).filter(|_| is_known);
    ram.map(|ram| ram - in_pools(machine))
}

/// The RAM to add, so that this much more can be used: a part of it is kept as a [`reserve`]. If
/// the use of other programs is unknown, a part is assumed to be used.
pub fn to_add(machine: &Machine, missing: Bytes) -> Bytes {
    let is_known = (machine.usage()).is_some_and(|usage| usage.available.is_some());
    let used = if is_known { 0 } else { ASSUMED_USE_PERCENT };
    let parts = missing.0 / (100 - RESERVE_PERCENT - used) + 1;
    Bytes(parts.saturating_mul(100))
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

/// Bytes that are missing if the next boot sets up pools of this many bytes, in addition to the
/// memory that other programs use now. `moves`: whether a server gets pages in these pools; `None`
/// is this server. `None`: unknown.
pub fn missing_at_boot(
    machine: &Machine,
    pools: Bytes,
    moves: impl Fn(Option<&Instance>) -> bool,
) -> Option<Bytes> {
    if pools <= in_pools(machine) {
        // The next boot takes no more memory than the pools have now.
        return host_ram(machine).map(|_| Bytes(0));
    }
    let (mut small, mut released) = match moves(None) {
        true => (Bytes(0), released_by_move(machine)),
        false => (
            Bytes(machine.next_start().shared_memory_bytes),
            faulted_in_on_small_pages(machine),
        ),
    };
    for (other, segment) in others_on_small_pages(machine) {
        let rss = Bytes(other.rss_shmem_bytes.unwrap_or(0));
        if moves(Some(other)) {
            released = released + rss;
        } else {
            small = small + (segment - rss);
        }
    }
    missing(machine, pools, small, released)
}

/// Bytes that are missing if the pools grow by this much now. `None`: unknown.
pub fn missing_for_pools(machine: &Machine, growth: Bytes) -> Option<Bytes> {
    let pools = in_pools(machine) + growth;
    missing(machine, pools, not_faulted_in(machine), Bytes(0))
}

/// Bytes that are missing if the pools grow by this much while the server is stopped, and its next
/// start takes `small` bytes of small pages. Does not change while the server moves to huge pages.
pub fn missing_once_stopped(machine: &Machine, growth: Bytes, small: Bytes) -> Option<Bytes> {
    let pools = in_pools(machine) + growth;
    let released = match small {
        Bytes(0) => released_by_move(machine),
        _ => faulted_in_on_small_pages(machine),
    };
    let small = small + not_faulted_in_by_others(machine);
    missing(machine, pools, small, released)
}

/// The largest segment on small pages that the kernel maps, apart from a strict commit limit
/// (mm/util.c `__vm_enough_memory`, `OVERCOMMIT_GUESS`). `None`: there is no such limit, or it is
/// unknown.
pub fn largest_mapping(machine: &Machine) -> Option<Bytes> {
    let guesses = machine.whole_state()?.vm.overcommit_memory == Some(0);
    let swap = machine.usage()?.swap_total?;
    let all = host_ram(machine)? + Bytes(swap);
    guesses.then_some(all)
}

/// The words before a figure that is a lower bound.
pub(crate) fn at_least(is_bound: bool) -> &'static str {
    match is_bound {
        true => "at least ",
        false => "",
    }
}

/// The words before a figure that is an upper bound.
pub(crate) fn up_to(is_bound: bool) -> &'static str {
    match is_bound {
        true => "up to ",
        false => "",
    }
}

/// A shortage of memory, once all segments on small pages are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Memory that this server takes.
    pub taken: Bytes,
    /// Memory that other servers have yet to fault in.
    pub others: Bytes,
    /// Memory that is available for both.
    pub available: Bytes,
    /// Swap that is free.
    pub swap: Bytes,
    /// Memory that should stay available.
    pub reserve: Bytes,
    /// Memory that is missing, including the reserve.
    pub missing: Bytes,
    /// Whether more is taken than is available. Otherwise, only the reserve is too small.
    pub is_certain: bool,
    /// Whether more could be taken, because how much of the segments has been faulted in is known
    /// only within bounds.
    pub is_least: bool,
    /// Whether less could be available, because the server releases what it has faulted in.
    pub is_most: bool,
}

impl fmt::Display for Shortage {
    /// The end of a sentence about memory that this server takes: `40 GB; 12 GB is available.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", at_least(self.is_least), self.taken)?;
        if self.others > Bytes(0) {
            write!(f, ", and other servers {}", self.others)?;
        }
        write!(f, "; {}", self.is_available())
    }
}

impl Shortage {
    /// The end of a sentence: `12 GB and 1024 MB of swap are available.`
    pub(crate) fn is_available(&self) -> String {
        let most = match self.is_most {
            true => "at most ",
            false => "",
        };
        let available = match self.swap {
            Bytes(0) => format!("{most}{} is available", self.available),
            swap => format!("{most}{} and {swap} of swap are available", self.available),
        };
        match self.is_certain {
            true => format!("{available}."),
            false => format!("{available}, and {} should stay available.", self.reserve),
        }
    }

    fn of(machine: &Machine, taken: Bytes, others: Bytes, released: Bytes) -> Option<Self> {
        let missing = missing(machine, in_pools(machine), taken + others, released)?;
        let (available, swap) = available(machine)?;
        let available = available + released;
        let reserve = reserve(machine)?;
        let is_own_bound = is_own_a_bound(machine);
        (missing > Bytes(0)).then_some(Self {
            taken,
            others,
            available,
            swap,
            reserve,
            missing,
            is_certain: taken + others > available + swap,
            is_least: is_own_bound && released == Bytes(0)
                || others < not_faulted_in_by_others(machine),
            is_most: is_own_bound && released > Bytes(0),
        })
    }

    /// Whether memory is missing only because other servers have yet to fault in their segments.
    pub fn is_by_others(&self) -> bool {
        self.taken == Bytes(0) && self.missing <= self.others
    }

    /// Whether swap can cover the shortage. The reserve has to be RAM.
    pub fn can_swap(&self) -> bool {
        self.missing + self.swap <= self.taken + self.others
    }

    /// The shortage after a start that takes a segment of this size on small pages. A start that
    /// takes no more than the running server releases is always possible.
    pub fn after_start(machine: &Machine, segment: Bytes) -> Option<Self> {
        let released = released_by_stop(machine);
        if segment <= released {
            return None;
        }
        let others = certainly_not_faulted_in_by_others(machine);
        Self::of(machine, segment, others, released)
    }

    /// The shortage that the running servers are certain to cause.
    pub fn now(machine: &Machine) -> Option<Self> {
        let own = segment_on_small_pages(machine) - machine.faulted_in.most;
        let others = certainly_not_faulted_in_by_others(machine);
        Self::of(machine, own, others, Bytes(0))
    }
}

/// Memory outside of the pools that is available once the server has stopped: its small pages, and
/// surplus pages, which cease to exist.
fn released_by_stop(machine: &Machine) -> Bytes {
    match machine.backing() {
        Backing::SmallPages => machine.faulted_in.most,
        Backing::HugePages(size) => {
            let gone = machine.pool(size).zip(machine.pages_held(size));
            gone.map_or(Bytes(0), |(pool, held)| {
                let idle = Pages(pool.free) - Pages(pool.reserved) + held;
                idle.min(Pages(pool.surplus)) * size
            })
        }
        Backing::Unknown => Bytes(0),
    }
}

/// Whether it matters how much of this server's segment on small pages has been faulted in, or how
/// large its page tables are, because memory might not hold the rest of the segment and all pools
/// that servers could want, or a cgroup might not hold a whole segment in addition to its other
/// memory.
pub fn depends_on_processes(machine: &Machine) -> bool {
    let segment = match (machine.segment(), machine.backing()) {
        // A segment whose pages are unknown counts as one on small pages.
        (Some(segment), Backing::Unknown) => Bytes(segment.bytes),
        _ => segment_on_small_pages(machine),
    };
    if machine.faulted_in.least >= segment && !page_tables::could_be_large(machine) {
        return false;
    }
    let limits = machine
        .whole_state()
        .and_then(|state| state.memory_limits.as_deref().ok())
        .unwrap_or_default();
    let from_files = machine.state.next.from_files.as_ref();
    let from_files = from_files.map_or(0, |files| files.shared_memory_bytes);
    let needed = segment.max(Bytes(machine.state.needed_bytes().max(from_files)));
    let is_short =
        |limit: &MemoryLimit| Bytes(limit.kept_bytes()) + needed > Bytes(limit.limit_bytes);
    // A segment takes at most one page more than its bytes.
    let largest = machine.pools().map(|pool| pool.page_bytes).max();
    let with_page = |bytes: Bytes| bytes + Bytes(largest.unwrap_or(0));
    // The nodes of a bound server need those pages in addition to the reserved ones.
    let is_bound = machine.is_bound_to_nodes();
    let reserved = machine.pools().filter(|_| is_bound);
    let reserved = reserved.map(|pool| Pages(pool.reserved) * PageSize(pool.page_bytes));
    let reserved: Bytes = reserved.sum();
    let wanted = with_page(needed)
        + other_servers(machine)
            .iter()
            .filter_map(|other| other.segment.as_ref())
            .map(|segment| with_page(Bytes(segment.bytes)))
            .sum()
        + reserved
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
    /// Memory that the server is not allowed to use: that of root (`vm.admin_reserve_kbytes`), and
    /// at most `vm.user_reserve_kbytes` for each process (mm/util.c `__vm_enough_memory`).
    pub reserve: Bytes,
    /// The [`reserve`] of the host, which should stay available to commit, too.
    pub spare: Bytes,
    /// `vm.overcommit_ratio`; `None`: `vm.overcommit_kbytes` is set, and pools do not matter.
    pub ratio: Option<u64>,
    /// Available memory, if it contradicts `Committed_AS`: that exceeds the limit, which the kernel
    /// would have refused, and twice all RAM and swap, while at least half of RAM is available.
    /// Since Linux 6.5, `mremap` can count memory twice.
    pub contradicted_by: Option<Bytes>,
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
        let (limit, committed) = (Bytes(usage.commit_limit?), Bytes(usage.committed?));
        let ram = host_ram(machine).unwrap_or_default();
        let all = ram + Bytes(usage.swap_total.unwrap_or(0));
        // As they were read: a step takes memory, but does not correct the counter.
        let read = machine.facts.state.usage.as_ref().unwrap_or(usage);
        let available = Bytes(read.available.unwrap_or(0));
        let is_contradicted = Bytes(read.committed?) > Bytes(read.commit_limit?).max(all + all)
            && ram > Bytes(0)
            && available >= ram.percent(CONTRADICTING_OF_RAM_PERCENT);
        Some(Self {
            limit,
            committed,
            contradicted_by: is_contradicted.then_some(available),
            reserve: Bytes(number(vm.admin_reserve_bytes).unwrap_or(LARGEST_ADMIN_RESERVE))
                + Bytes(number(vm.user_reserve_bytes).unwrap_or(LARGEST_USER_RESERVE)),
            spare: reserve(machine).unwrap_or_default(),
            ratio: number(vm.overcommit_ratio).filter(|_| !by_kilobytes),
            outside: left(machine).unwrap_or_default(),
        })
    }

    /// The limit if the pools had this many bytes (mm/util.c `vm_commit_limit`). `None`: there is
    /// no limit, pools do not lower it, or it is unknown.
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

    /// The lowest limit that leaves enough to commit.
    pub fn needed(&self) -> Bytes {
        self.committed + self.reserve + self.spare
    }

    /// Bytes that the limit is too low. Programs could soon fail to allocate memory.
    pub fn missing(&self) -> Bytes {
        self.needed() - self.limit
    }

    /// The limit once the segment of the running server is gone.
    #[must_use]
    pub fn once_stopped(self, machine: &Machine) -> Self {
        Self {
            committed: self.committed - segment_on_small_pages(machine),
            ..self
        }
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
    /// Whether more could be needed.
    pub is_least: bool,
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
            is_least: least < most,
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

/// Bytes that the cgroup can swap out, limited by the free swap of the host. Swap on zram counts,
/// because the pages in it are not charged to the cgroup.
fn swap_room(machine: &Machine, limit: &MemoryLimit) -> Bytes {
    let of_host = machine.usage().and_then(|usage| usage.swap_free);
    Bytes(
        of_host
            .unwrap_or(0)
            .min(limit.swap_room_bytes.unwrap_or(u64::MAX)),
    )
}
