//! Limits of control groups on huge pages, and whom they would refuse.

use std::path::{Path, PathBuf};

use crate::{
    linux::{
        cgroup::{Group, Limits, Version},
        error::Absent,
    },
    model::{
        need::own_pages,
        step::{Counts, Step},
        touched::Bounds,
    },
    server::facts::{Facts, Server},
};

/// The tightest limits over a path of control groups, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// On pages touched. `None`: unlimited.
    pub fault_limit: Option<u64>,
    /// What has this limit: the directory of a group, or the environment variable that told it.
    pub fault_limit_source: Option<PathBuf>,
    /// Pages touched, in the group that has this limit, else in the server's own.
    pub fault_use: Option<u64>,
    /// On pages promised. `None`: unlimited.
    pub reservation_limit: Option<u64>,
    /// Pages promised, in the group that has this limit, else in the server's own.
    pub reservation_use: Option<u64>,
}

impl CgroupLimits {
    /// Those of this server.
    ///
    /// Errors: absent if the groups cannot be seen.
    pub fn of(facts: &Facts, page_bytes: u64) -> Result<Self, Absent> {
        let levels: Vec<_> = levels(facts, page_bytes)?.collect();
        let tightest = |limit: fn(&Limits) -> Option<u64>| {
            let limited = levels.iter().filter(|(_, level)| limit(level).is_some());
            limited
                .min_by_key(|(_, level)| limit(level))
                .or(levels.first())
                .copied()
        };
        let fault = tightest(|level| level.fault_limit);
        let reservation = tightest(|level| level.reservation_limit);
        let fault_limit = fault.and_then(|(_, level)| level.fault_limit);
        let source = fault.map(|(group, _)| group.directory.clone());
        Ok(Self {
            fault_limit,
            fault_limit_source: source.filter(|_| fault_limit.is_some()),
            fault_use: fault.and_then(|(_, level)| level.fault_use),
            reservation_limit: reservation.and_then(|(_, level)| level.reservation_limit),
            reservation_use: reservation.and_then(|(_, level)| level.reservation_use),
        })
    }
}

/// A control group that would refuse the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowLimit<'a> {
    /// The group.
    pub group: &'a Group,
    /// The name of the file that holds its limit.
    pub file: String,
    /// Its limit.
    pub limit: u64,
    /// What is wanted of it, the use by others included, which can be known between bounds only.
    pub wanted: Bounds,
}

/// The groups, nearest first, whose limit on reservations a restart would run into. `None`: can't
/// be told.
pub(crate) fn reservation_refusals(facts: &Facts, page_bytes: u64) -> Option<Vec<LowLimit<'_>>> {
    refusals(
        facts,
        page_bytes,
        0,
        |limits| limits.reservation_limit,
        Version::reservation_limit_file,
    )
}

/// The groups, nearest first, whose limit on faults is lower, or may be, than what is or would be
/// promised in them: memory that is mapped without complaint and breaks when it is touched. `None`:
/// can't be told.
pub(crate) fn fault_refusals(facts: &Facts, page_bytes: u64) -> Option<Vec<LowLimit<'_>>> {
    refusals(
        facts,
        page_bytes,
        0,
        |limits| limits.fault_limit,
        Version::fault_limit_file,
    )
}

/// `least`: pages that have to be allowed, even if the next start takes fewer.
fn refusals(
    facts: &Facts,
    page_bytes: u64,
    least: u64,
    limit: impl Fn(&Limits) -> Option<u64>,
    file: impl Fn(Version, u64) -> String,
) -> Option<Vec<LowLimit<'_>>> {
    let version = facts.hugetlb.as_ref().ok()?.version;
    let levels = levels(facts, page_bytes).ok()?;
    let mut limited = levels
        .filter_map(|(group, limits)| Some((group, limits, limit(limits)?)))
        .peekable();
    if limited.peek().is_none() {
        return Some(Vec::new());
    }
    let own = own_pages(facts, page_bytes)?;
    let pages = wanted(facts).pages(page_bytes).max(least);
    let required = pages.saturating_mul(page_bytes);
    let refusing = limited.filter_map(|(group, limits, limit)| {
        let others = held_by_others(facts, limits, own);
        let wanted = Bounds {
            least: required.saturating_add(others.least),
            most: required.saturating_add(others.most),
        };
        let file = file(version, page_bytes);
        (wanted.most > limit).then_some(LowLimit {
            group,
            file,
            limit,
            wanted,
        })
    });
    Some(refusing.collect())
}

/// Bytes that others have in a group or below it: what they have touched was promised to them
/// first. Before Linux 5.7 a group counts no promises: of our pages at least those are in its count
/// that are promised nowhere any more, and perhaps all that anybody uses, since promises are the
/// host's.
fn held_by_others(facts: &Facts, limits: &Limits, own_pages: u64) -> Bounds {
    let held = limits.reservation_use.max(limits.fault_use).unwrap_or(0);
    let beside = |pages: u64| held.saturating_sub(pages.saturating_mul(limits.page_bytes));
    let mut pools = facts.pools.iter().flatten();
    let pool = pools.find(|pool| pool.page_bytes == limits.page_bytes);
    let (Some(pool), None) = (pool, limits.reservation_use) else {
        let others = beside(own_pages);
        return Bounds {
            least: others,
            most: others,
        };
    };
    let used = pool.total.saturating_sub(pool.free);
    Bounds {
        least: beside(own_pages.min(used)),
        most: beside(own_pages.saturating_sub(pool.reserved)),
    }
}

impl LowLimit<'_> {
    /// Whether it is too low for the least that may be wanted, too.
    pub fn is_certain(&self) -> bool {
        self.wanted.least > self.limit
    }

    fn raise(&self, page_bytes: u64, counts: Counts) -> Step {
        Step::RaiseLimit {
            group: self.group.directory.clone(),
            file: self.file.clone(),
            page_bytes,
            counts,
            bytes: self.wanted.most,
        }
    }
}

/// Whether the next start maps more pages of that size than the server has mapped. One that does
/// not is no more in danger than the running server, whatever others have in its groups.
pub(crate) fn will_map_more(facts: &Facts, page_bytes: u64) -> bool {
    own_pages(facts, page_bytes).is_none_or(|own| wanted(facts).pages(page_bytes) > own)
}

/// What lifts every limit that is in the way of a start with pages of that size. The server is
/// never put on more huge pages that it may map, and not touch.
pub fn raise(facts: &Facts, page_bytes: u64) -> Vec<Step> {
    let will_map_more = will_map_more(facts, page_bytes);
    let of = |refusals: Option<Vec<LowLimit<'_>>>, counts| {
        let refusals = refusals.unwrap_or_default();
        let steps = refusals
            .iter()
            .filter(|refusal| will_map_more || refusal.is_certain())
            .map(|refusal| refusal.raise(page_bytes, counts));
        steps.collect::<Vec<_>>()
    };
    // What the running server has mapped, it may touch until its restart.
    let own = own_pages(facts, page_bytes).unwrap_or(0);
    let faults = refusals(
        facts,
        page_bytes,
        own,
        |limits| limits.fault_limit,
        Version::fault_limit_file,
    );
    let mut steps = of(faults, Counts::Faults);
    steps.extend(of(
        reservation_refusals(facts, page_bytes),
        Counts::Reservations,
    ));
    steps
}

/// Whether one of the limits that [`raise`] lifts can be set from outside of the server's container
/// alone.
pub fn is_set_outside(facts: &Facts, page_bytes: u64) -> bool {
    let mut limits = raise(facts, page_bytes).into_iter();
    limits.any(|step| matches!(step, Step::RaiseLimit { group, .. } if is_fixed(facts, &group)))
}

/// Whether no step taken here sets a limit of that group.
pub(super) fn is_fixed(facts: &Facts, group: &Path) -> bool {
    let mut groups = facts.hugetlb.iter().flat_map(|all| &all.groups);
    groups.any(|one| one.directory == group && one.is_set_outside)
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

fn wanted(facts: &Facts) -> Server {
    Server {
        shared_memory_bytes: facts.needed_bytes(),
        ..facts.next_start().clone()
    }
}
