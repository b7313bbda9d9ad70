//! One row for each pool: its counters, what the server needs of it, and whether a restart would
//! get it.

use host::server::state::Server;
use host::{
    linux::{error::Absent, hugepages::Pool},
    units::{Bytes, PageSize, Pages},
};

use crate::{
    model::{
        demand::{self, PoolTarget},
        limits::CgroupLimits,
        machine::Machine,
        page_tables,
        start::{self, StartOutcome, Supply},
    },
    thresholds::{IDLE_OF_NEED_PERCENT, IDLE_OF_RAM_PERCENT},
};

/// One pool seen from this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The counters of the kernel.
    pub pool: Pool,
    /// Whether its page size is the default of the kernel; `None`: unknown.
    pub is_default: Option<bool>,
    /// Whether the segment is in it. `None`: unknown.
    pub is_used_by_server: Option<bool>,
    /// Pages that the segment needs on pages of this size.
    pub required: Pages,
    /// Unused bytes at the end of these pages.
    pub tail_waste: Bytes,
    /// Pages of the running server in this pool, faulted in or reserved.
    pub held: Option<Pages>,
    /// Pages in use or reserved by others.
    pub others: Option<Pages>,
    /// Persistent pages to add so that a restart gets huge pages.
    pub shortfall: Option<Pages>,
    /// The number of persistent pages that is enough and not too much, with its demands.
    pub target: Option<PoolTarget>,
    /// Whether a restart would get huge pages of this size. `None`: unknown.
    pub fits_after_restart: Option<bool>,
    /// The tightest limits of the server's cgroups.
    pub cgroup: Result<CgroupLimits, Absent>,
}

impl Forecast {
    /// A forecast for each pool, smallest page first.
    ///
    /// Errors: absent if the pools cannot be read.
    pub fn for_each_pool(machine: &Machine) -> Result<Vec<Self>, Absent> {
        let pools = machine.state.pools.as_ref().map_err(Clone::clone)?;
        Ok(pools
            .iter()
            .map(|pool| Self::for_pool(machine, pool))
            .collect())
    }

    /// The forecast for the pool that the server asks for, or would ask for.
    pub fn for_target(machine: &Machine) -> Option<Self> {
        let pool = machine.state.target_pool()?;
        Some(Self::for_pool(machine, pool))
    }

    /// The forecast for one pool, as if the server asked for its page size.
    pub fn for_pool(machine: &Machine, pool: &Pool) -> Self {
        let size = PageSize(pool.page_bytes);
        let next = asking_for(machine, size);
        let required = demand::pages_of_next_start(machine, size, &next);
        let target = PoolTarget::of(machine, size, &counted(machine, size));
        let supply = Supply::of(machine, pool);
        Self {
            is_default: machine.default_size().map(|default| default == size),
            is_used_by_server: machine.state.page_bytes().map(|bytes| bytes == size.0),
            required,
            tail_waste: required * size - Bytes(next.shared_memory_bytes),
            held: machine.pages_held(size),
            others: target.as_ref().map(|target| target.now.held_by_others()),
            shortfall: supply.map(|supply| required - supply.most),
            fits_after_restart: fits(&machine.with_next_start(next)),
            cgroup: CgroupLimits::of(machine, size),
            target,
            pool: pool.clone(),
        }
    }

    /// The number of persistent pages to set. `None`: unknown.
    pub fn recommended(&self) -> Option<Pages> {
        Some(self.target.as_ref()?.recommended())
    }
}

/// Settings with which the server asks for huge pages of that size.
pub fn asking_for(machine: &Machine, size: PageSize) -> Server {
    let next = machine.next_start_on_huge_pages();
    if machine.size_asked_for(&next) == Some(size) {
        return next;
    }
    Server {
        huge_page_size_bytes: Some(size.0),
        ..next
    }
}

/// Settings with which the server counts for the pool of that size. Huge pages that are turned off
/// on purpose are no demand, on this server as on others.
pub fn counted(machine: &Machine, size: PageSize) -> Server {
    match machine.is_kept_off() && !page_tables::need_huge_pages(machine) {
        true => machine.next_start(),
        false => asking_for(machine, size),
    }
}

/// Whether the next start would get huge pages, if it asks for any. `None`: unknown, or only a
/// start shows.
pub fn fits(machine: &Machine) -> Option<bool> {
    match start::outcome(machine) {
        StartOutcome::HugePages(_) => Some(true),
        StartOutcome::SmallPages(..) | StartOutcome::Fails(..) => Some(false),
        StartOutcome::Unknown(_) => None,
    }
}

/// Whether idle pages are worth releasing: more than a tenth of those that are needed, and more
/// than a hundredth of RAM, or memory is short.
pub(crate) fn is_much_idle(machine: &Machine, idle: Pages, needed: Pages, size: PageSize) -> bool {
    let idle = idle * size;
    let of_ram = machine
        .ram()
        .map_or(Bytes(0), |ram| ram.percent(IDLE_OF_RAM_PERCENT));
    // Any page counts if memory is short.
    if idle > Bytes(0) && start::is_short(machine) {
        return true;
    }
    idle > (needed * size).percent(IDLE_OF_NEED_PERCENT) && idle > of_ram
}

/// Whether the pages of a pool beyond the recommended number are worth releasing by a command. The
/// kernel chooses the nodes of pages that it releases, which could be those of a bound server.
pub(crate) fn is_worth_releasing(machine: &Machine, target: &PoolTarget) -> bool {
    !machine.is_bound_to_nodes() && is_left_over(machine, target)
}

/// Whether the pages of a pool beyond the recommended number are worth releasing. If `pool_size` is
/// muted, the pages are wanted.
pub(crate) fn is_left_over(machine: &Machine, target: &PoolTarget) -> bool {
    let idle = target.persistent - target.recommended();
    matches!(target.idle_for, None | Some(demand::IdleFor::Files(_)))
        && !machine.is_muted("pool_size")
        && is_much_idle(machine, idle, target.after.total(), target.now.size)
}

/// The lower number for the line of the boot configuration, if a demand shrinks by so many pages
/// that they are worth releasing, now or after the restart.
pub(crate) fn lower_line(machine: &Machine, target: &PoolTarget) -> Option<Pages> {
    let asked = target.asked_at_boot();
    let pages = target.without_shrunk(asked).max(target.with_files());
    (pages < asked && is_worth_releasing(machine, target)).then_some(pages)
}
