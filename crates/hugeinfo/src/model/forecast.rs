//! What each pool holds, what the server needs of it, and whether a restart would get it.

use crate::{
    linux::{
        cgroup::{Group, Limits, Version},
        error::Absent,
        hugepages::Pool,
        pages,
    },
    server::facts::Facts,
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
    /// Bytes of the last of them that stay unused.
    pub tail_waste_bytes: u64,
    /// Pages of our own segment in this pool, touched or promised.
    pub own: Option<u64>,
    /// Pages in use by or promised to others.
    pub others: Option<u64>,
    /// Persistent pages to add so that a restart gets huge pages.
    pub shortfall: Option<u64>,
    /// `nr_hugepages` that is enough and not too much.
    pub recommended: Option<u64>,
    /// Whether a restart would get huge pages of this size: from the pool, and under the control
    /// group's limit on reservations.
    pub fits_after_restart: Option<bool>,
    /// The tightest limits of the control group and its ancestors.
    pub cgroup: Result<CgroupLimits, Absent>,
}

impl Forecast {
    /// One forecast for each pool of the kernel, smallest page first.
    pub fn of_each_pool(facts: &Facts) -> Result<Vec<Self>, Absent> {
        let pools = facts.pools.as_ref().map_err(Clone::clone)?;
        Ok(pools.iter().map(|pool| Self::of(facts, pool)).collect())
    }

    /// The forecast for the pool that the server asks for.
    pub fn of_target(facts: &Facts) -> Option<Self> {
        facts.target_pool().map(|pool| Self::of(facts, pool))
    }

    /// Whether a restart would get huge pages of the size that the server asks for. `None`: can't
    /// be told.
    pub fn target_fits_after_restart(facts: &Facts) -> Option<bool> {
        match Self::of_target(facts) {
            Some(target) => target.fits_after_restart,
            // A size that the kernel doesn't have.
            None if facts.pools.is_ok() && facts.huge_page_asked_for().is_some() => Some(false),
            None => None,
        }
    }

    /// The forecast for one pool.
    pub fn of(facts: &Facts, pool: &Pool) -> Self {
        let page_bytes = pool.page_bytes;
        let needed_bytes = facts.needed_bytes();
        let required = pages::pages_required(needed_bytes, page_bytes);
        let own = own_pages(facts, page_bytes);
        let others = own.map(|own| pool.committed().saturating_sub(own));
        let shortfall = own.map(|own| required.saturating_sub(obtainable_after_restart(pool, own)));
        let cgroup = CgroupLimits::of(facts, page_bytes);
        let under_limit =
            reservation_refusals(facts, page_bytes).map(|refusals| refusals.is_empty());
        Self {
            is_default: default_page_bytes(facts).map(|default| default == page_bytes),
            is_used_by_server: facts.page_bytes().map(|lies_on| lies_on == page_bytes),
            required,
            tail_waste_bytes: pages::tail_waste(needed_bytes, page_bytes),
            own,
            others,
            shortfall,
            recommended: others.map(|others| others.saturating_add(required)),
            fits_after_restart: and(shortfall.map(|pages| pages == 0), under_limit),
            cgroup,
            pool: pool.clone(),
        }
    }
}

/// The tightest limits over a path of control groups, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// On pages touched. `None`: unlimited.
    pub fault_limit: Option<u64>,
    /// Pages touched, in the group that has this limit, else in the server's own.
    pub fault_use: Option<u64>,
    /// On pages promised. `None`: unlimited.
    pub reservation_limit: Option<u64>,
    /// Pages promised, in the group that has this limit, else in the server's own.
    pub reservation_use: Option<u64>,
}

impl CgroupLimits {
    fn of(facts: &Facts, page_bytes: u64) -> Result<Self, Absent> {
        let levels: Vec<_> = levels(facts, page_bytes)?
            .map(|(_, limits)| limits)
            .collect();
        let tightest = |limit: fn(&Limits) -> Option<u64>| {
            let limited = levels.iter().filter(|level| limit(level).is_some());
            limited
                .min_by_key(|level| limit(level))
                .or(levels.first())
                .copied()
        };
        let fault = tightest(|level| level.fault_limit);
        let reservation = tightest(|level| level.reservation_limit);
        Ok(Self {
            fault_limit: fault.and_then(|level| level.fault_limit),
            fault_use: fault.and_then(|level| level.fault_use),
            reservation_limit: reservation.and_then(|level| level.reservation_limit),
            reservation_use: reservation.and_then(|level| level.reservation_use),
        })
    }
}

/// A control group that would refuse the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The group.
    pub group: &'a Group,
    /// The name of the file that holds its limit.
    pub file: String,
    /// Its limit.
    pub limit: u64,
    /// What is wanted of it, the use by others included.
    pub wanted: u64,
}

/// The groups, nearest first, whose limit on reservations a restart would run into. `None`: can't
/// be told.
pub fn reservation_refusals(facts: &Facts, page_bytes: u64) -> Option<Vec<Refusal<'_>>> {
    refusals(
        facts,
        page_bytes,
        |limits| limits.reservation_limit,
        Version::reservation_limit_file,
    )
}

/// The groups, nearest first, whose limit on faults is lower than what is or would be promised in
/// them: memory that is mapped without complaint and breaks when it is touched. `None`: can't be
/// told.
pub fn fault_refusals(facts: &Facts, page_bytes: u64) -> Option<Vec<Refusal<'_>>> {
    refusals(
        facts,
        page_bytes,
        |limits| limits.fault_limit,
        Version::fault_limit_file,
    )
}

fn refusals(
    facts: &Facts,
    page_bytes: u64,
    limit: impl Fn(&Limits) -> Option<u64>,
    file: impl Fn(Version, u64) -> String,
) -> Option<Vec<Refusal<'_>>> {
    let version = facts.hugetlb.as_ref().ok()?.version;
    let levels = levels(facts, page_bytes).ok()?;
    let mut limited = levels
        .filter_map(|(group, limits)| Some((group, limits, limit(limits)?)))
        .peekable();
    if limited.peek().is_none() {
        return Some(Vec::new());
    }
    let own = own_pages(facts, page_bytes)?.saturating_mul(page_bytes);
    let required =
        pages::pages_required(facts.needed_bytes(), page_bytes).saturating_mul(page_bytes);
    let refusing = limited.filter_map(|(group, limits, limit)| {
        // What others have touched was promised to them first. Kernels before 5.7 don't count
        // promises, only what was touched.
        let held = limits.reservation_use.max(limits.fault_use).unwrap_or(0);
        let wanted = held.saturating_sub(own).saturating_add(required);
        let file = file(version, page_bytes);
        (wanted > limit).then_some(Refusal {
            group,
            file,
            limit,
            wanted,
        })
    });
    Some(refusing.collect())
}

fn levels(
    facts: &Facts,
    page_bytes: u64,
) -> Result<impl Iterator<Item = (&Group, &Limits)>, Absent> {
    let hugetlb = facts.hugetlb.as_ref().map_err(Clone::clone)?;
    Ok(hugetlb.groups.iter().filter_map(move |group| {
        let limits = group
            .limits
            .iter()
            .find(|limits| limits.page_bytes == page_bytes)?;
        Some((group, limits))
    }))
}

/// Pages of our segment in the pool of this size. A mapped segment holds all of them: those that
/// nobody has touched are reserved.
fn own_pages(facts: &Facts, page_bytes: u64) -> Option<u64> {
    let segment = facts.segment.as_ref().ok()?;
    let lies_on = segment.page_bytes?;
    Some(if lies_on == page_bytes {
        segment.bytes / page_bytes
    } else {
        0
    })
}

/// Pages that the server can have once its own came back.
///
/// Surplus pages that it gives back cease to exist (mm/hugetlb.c `return_unused_surplus_pages`);
/// the kernel makes them anew only as far as overcommit allows. Those that others hold stay.
fn obtainable_after_restart(pool: &Pool, own: u64) -> u64 {
    let others = pool.committed().saturating_sub(own);
    let surplus_left = pool.surplus.saturating_sub(own);
    let existing = pool
        .persistent()
        .saturating_add(surplus_left.max(pool.overcommit));
    existing.saturating_sub(others)
}

fn default_page_bytes(facts: &Facts) -> Option<u64> {
    facts.meminfo.as_ref().ok()?.default_huge_page_bytes
}

/// As SQL's AND: false if either is, unknown if that can't be said.
fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
