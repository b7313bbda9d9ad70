//! What each pool holds, what the server needs of it, and whether a restart would get it.

use crate::{
    linux::{error::Absent, hugepages::Pool, pages},
    model::{
        limits::{CgroupLimits, reservation_refusals},
        machine::Machine,
        need::{Need, pages_of_aim},
        nodes,
    },
};

/// One pool seen from this server. Counts are pages of the pool's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The kernel's counters.
    pub pool: Pool,
    /// Whether its page size is the kernel's default; `None` where the kernel doesn't say.
    pub is_default: Option<bool>,
    /// Whether the main segment lies in it now.
    pub is_used_by_server: Option<bool>,
    /// Pages that the main segment takes on pages of this size.
    pub required: u64,
    /// Unused bytes at their end: less than a page, but for a `huge_page_size` that is no power of
    /// two. PostgreSQL first rounds up to that.
    pub tail_waste_bytes: u64,
    /// Pages of our own segment in this pool, touched or reserved.
    pub own: Option<u64>,
    /// Pages in use or reserved by others.
    pub others: Option<u64>,
    /// Persistent pages to add so that a restart gets huge pages.
    pub shortfall: Option<u64>,
    /// `nr_hugepages` that is enough and not too much, as far as servers are seen.
    pub recommended: Option<u64>,
    /// The same, and idle pages that servers may want that cannot be seen.
    pub recommended_for_all: Option<u64>,
    /// Whether a restart would get huge pages of this size: from the pool, and under the control
    /// group's limit on reservations.
    pub fits_after_restart: Option<bool>,
    /// The tightest limits of the control group and its ancestors.
    pub cgroup: Result<CgroupLimits, Absent>,
}

impl Forecast {
    /// One forecast for each pool of the kernel, smallest page first.
    ///
    /// Errors: absent if the pools cannot be seen.
    pub fn of_each_pool(machine: &Machine) -> Result<Vec<Self>, Absent> {
        let pools = machine.facts.pools.as_ref().map_err(Clone::clone)?;
        Ok(pools.iter().map(|pool| Self::of(machine, pool)).collect())
    }

    /// The forecast for the pool that the server asks for.
    pub fn of_target(machine: &Machine) -> Option<Self> {
        let pool = machine.facts.target_pool()?;
        Some(Self::of(machine, pool))
    }

    /// Whether a restart would get huge pages of the size that the server asks for. `None`: can't
    /// be told.
    pub fn target_fits_after_restart(machine: &Machine) -> Option<bool> {
        let facts = &machine.facts;
        match Self::of_target(machine) {
            Some(target) => target.fits_after_restart,
            // A size that the kernel doesn't have.
            None if facts.pools.is_ok() && facts.huge_page_asked_for().is_some() => Some(false),
            None => None,
        }
    }

    /// The forecast for one pool.
    pub fn of(machine: &Machine, pool: &Pool) -> Self {
        let facts = &machine.facts;
        let page_bytes = pool.page_bytes;
        let aim = machine.aim();
        let is_target = facts.huge_page_of(&aim) == Some(page_bytes);
        let required = if is_target {
            pages_of_aim(machine, page_bytes)
        } else {
            pages::pages_required(facts.needed_bytes(), page_bytes)
        };
        let need = Need::with(machine, pool, required);
        let own = need.map(|need| need.own_now);
        let supply = own.map(|own| Supply::after_restart(pool, own));
        let shortfall = supply.map(|supply| required.saturating_sub(supply.most()));
        let cgroup = CgroupLimits::of(facts, page_bytes);
        let is_under_limit =
            reservation_refusals(facts, page_bytes).map(|refusals| refusals.is_empty());
        let is_on_nodes = nodes::shortfall(machine, pool, required);
        let is_given = supply.and_then(|supply| supply.gives(required));
        Self {
            is_default: machine
                .default_page_bytes()
                .map(|default| default == page_bytes),
            is_used_by_server: facts.page_bytes().map(|lies_on| lies_on == page_bytes),
            required,
            tail_waste_bytes: required
                .saturating_mul(page_bytes)
                .saturating_sub(facts.needed_bytes()),
            own,
            others: need.map(|need| need.others),
            shortfall,
            recommended: need.map(|need| need.after_restart()),
            recommended_for_all: need.map(|need| need.with_unseen(machine, pool)),
            fits_after_restart: and(
                is_given,
                and(is_under_limit, is_on_nodes.map(|missing| missing == 0)),
            ),
            cgroup,
            pool: pool.clone(),
        }
    }
}

/// Pages that the server can have once its own came back.
///
/// Surplus pages that it gives back cease to exist (mm/hugetlb.c `return_unused_surplus_pages`);
/// the kernel makes them anew only as far as overcommit allows, and where it finds memory. Those
/// that others hold stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supply {
    /// In the pool.
    pub sure: u64,
    /// Which the kernel would try to make.
    pub perhaps: u64,
}

impl Supply {
    /// Of that pool, for a server that has this many pages of it.
    pub(crate) fn after_restart(pool: &Pool, own: u64) -> Self {
        let others = pool.committed().saturating_sub(own);
        let surplus_left = pool.surplus.saturating_sub(own);
        let existing = pool.persistent().saturating_add(surplus_left);
        let most = pool
            .persistent()
            .saturating_add(surplus_left.max(pool.overcommit));
        let sure = existing.saturating_sub(others);
        Self {
            sure,
            perhaps: most.saturating_sub(others).saturating_sub(sure),
        }
    }

    /// With all that the kernel would try to make.
    pub fn most(self) -> u64 {
        self.sure.saturating_add(self.perhaps)
    }

    /// Whether it gives this many. `None`: only a try can tell.
    pub fn gives(self, pages: u64) -> Option<bool> {
        match pages {
            pages if pages <= self.sure => Some(true),
            pages if pages <= self.most() => None,
            _ => Some(false),
        }
    }
}

/// As SQL's AND: false if either is, unknown if that can't be said.
fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
