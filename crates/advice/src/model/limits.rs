//! Limits of cgroups on huge pages (hugetlb controller).

use std::path::PathBuf;

use host::{
    linux::{
        cgroup::{Group, Limits},
        error::Absent,
    },
    server::state::State,
    units::{Bytes, PageSize, Pages},
};

use crate::model::{
    demand,
    machine::Machine,
    step::{Counts, LimitChange},
};

/// The tightest limits over a path of cgroups, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// On pages faulted in. `None`: unlimited.
    pub fault_limit: Option<u64>,
    /// The directory of the cgroup with this limit, or the environment variable that states it.
    pub fault_limit_source: Option<PathBuf>,
    /// Pages faulted in, in the cgroup with this limit, else in the server's own.
    pub fault_use: Option<u64>,
    /// On pages reserved. `None`: unlimited.
    pub reservation_limit: Option<u64>,
    /// Pages reserved, in the cgroup with this limit, else in the server's own.
    pub reservation_use: Option<u64>,
}

impl CgroupLimits {
    /// The limits of this server.
    ///
    /// Errors: absent if the cgroups are not visible.
    pub fn of(machine: &Machine, size: PageSize) -> Result<Self, Absent> {
        let levels: Vec<_> = levels(&machine.state, size)?.collect();
        let tightest = |limit: fn(&Limits) -> Option<u64>| {
            let limited = levels.iter().filter(|(_, level)| limit(level).is_some());
            let tightest = limited.min_by_key(|(_, level)| limit(level));
            tightest.or(levels.first()).copied()
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

/// A limit that is lower than the pages needed under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach<'a> {
    /// The cgroup.
    pub group: &'a Group,
    /// The name of the file that holds the limit.
    pub file: String,
    /// Pages that the limit counts.
    pub counts: Counts,
    pub limit: Bytes,
    /// Needed at least, including use by others.
    pub least: Bytes,
    /// Needed at most. Kernels before 5.7 do not count reservations by cgroup, so that the use by
    /// others is only known within bounds.
    pub most: Bytes,
}

impl Breach<'_> {
    /// Whether the limit is too low for certain.
    pub fn is_certain(&self) -> bool {
        self.least > self.limit
    }

    /// The step that raises the limit.
    pub fn raise(&self, size: PageSize) -> LimitChange {
        LimitChange {
            cgroup: self.group.directory.clone(),
            file: self.file.clone(),
            size,
            counts: self.counts,
            bytes: self.most,
        }
    }
}

/// The limits that this many pages of the server exceed or could exceed, nearest cgroup first.
/// Pages that the server has now are not counted twice. `None`: unknown.
pub fn breaches(
    machine: &Machine,
    size: PageSize,
    pages: Pages,
    counts: Counts,
) -> Option<Vec<Breach<'_>>> {
    let version = machine.state.hugetlb.as_ref().ok()?.version;
    let limit_of = |limits: &Limits| match counts {
        Counts::Faults => limits.fault_limit,
        Counts::Reservations => limits.reservation_limit,
    };
    let limited: Vec<_> = levels(&machine.state, size)
        .ok()?
        .filter_map(|(group, limits)| Some((group, limits, Bytes(limit_of(limits)?))))
        .collect();
    if limited.is_empty() {
        return Some(Vec::new());
    }
    let held = machine.pages_held(size)?;
    let required = pages * size;
    let breaches = limited.into_iter().filter_map(|(group, limits, limit)| {
        let (least, most) = used_by_others(machine, limits, size, held);
        let (least, most) = (required + least, required + most);
        (most > limit).then(|| Breach {
            group,
            file: match counts {
                Counts::Faults => version.fault_limit_file(size.0),
                Counts::Reservations => version.reservation_limit_file(size.0),
            },
            counts,
            limit,
            least,
            most,
        })
    });
    Some(breaches.collect())
}

/// How often the kernel has refused pages of this size to the server's cgroup because of a limit
/// above it that is not visible. 0 if a visible limit can be the reason: one that does not allow
/// the whole pool and all pages that the server needs.
pub fn refused_by_hidden_limit(machine: &Machine, size: PageSize) -> u64 {
    let facts = machine.whole();
    let Some(count) = facts.and_then(|facts| facts.refused_pages.get(&size.0)) else {
        return 0;
    };
    // Steps change neither the counter nor its reason.
    let past = machine.before_steps();
    let pool = past.pool(size);
    let pool = pool.map_or(0, |pool| pool.total.saturating_add(pool.overcommit));
    let next = demand::pages_of_next_start(&past, size, &past.next_start());
    let held = past.pages_held(size).unwrap_or_default();
    let most = Pages(pool).max(next).max(held) * size;
    let can_refuse = |(_, limits): (&Group, &Limits)| {
        let all = [limits.fault_limit, limits.reservation_limit];
        all.into_iter().flatten().any(|limit| Bytes(limit) < most)
    };
    let is_visible = levels(&past.state, size).is_ok_and(|mut levels| levels.any(can_refuse));
    if is_visible { 0 } else { *count }
}

/// Whether limits keep the server, certainly or possibly, from faulting in this many pages.
pub(crate) fn exceed_fault_limit(machine: &Machine, size: PageSize, pages: Pages) -> bool {
    let breaches = breaches(machine, size, pages, Counts::Faults);
    breaches.is_some_and(|breaches| !breaches.is_empty())
}

/// Bytes that others use in a cgroup or below it, as bounds. Pages that are faulted in were
/// reserved first, where the kernel counts reservations.
fn used_by_others(
    machine: &Machine,
    limits: &Limits,
    size: PageSize,
    held: Pages,
) -> (Bytes, Bytes) {
    let used = Bytes(limits.reservation_use.max(limits.fault_use).unwrap_or(0));
    let exact = used - held * size;
    if limits.reservation_use.is_some() {
        return (exact, exact);
    }
    let (least, most) = match machine.pool(size) {
        Some(pool) => {
            let in_use = Pages(pool.total) - Pages(pool.free);
            (held - Pages(pool.reserved), held.min(in_use))
        }
        None => (Pages(0), held),
    };
    (used - most * size, used - least * size)
}

/// The changes that raise every limit below the needs of the running server and of a start with
/// this many pages, so that the server never maps pages that it cannot fault in.
pub fn to_raise(machine: &Machine, size: PageSize, pages: Pages) -> Vec<LimitChange> {
    let held = machine.pages_held(size).unwrap_or_default();
    let of = |pages: Pages, counts| {
        let breaches = breaches(machine, size, pages, counts).unwrap_or_default();
        let needed = breaches.into_iter();
        let needed = needed.filter(|breach| pages > held || breach.is_certain());
        needed.map(|breach| breach.raise(size)).collect::<Vec<_>>()
    };
    let mut changes = of(pages.max(held), Counts::Faults);
    changes.extend(of(pages, Counts::Reservations));
    changes
}

/// True if only somebody outside of the server's container can set limits of that cgroup, such as
/// the kubelet for pods.
pub fn is_set_outside(machine: &Machine, change: &LimitChange) -> bool {
    if change.cgroup.to_string_lossy().contains("kubepods") {
        return true;
    }
    let mut groups = machine.state.hugetlb.iter().flat_map(|all| &all.groups);
    groups.any(|group| group.directory == change.cgroup && group.is_set_outside)
}

fn levels(
    state: &State,
    size: PageSize,
) -> Result<impl Iterator<Item = (&Group, &Limits)>, Absent> {
    let hugetlb = state.hugetlb.as_ref().map_err(Clone::clone)?;
    Ok(hugetlb.groups.iter().filter_map(move |group| {
        let mut limits = group.limits.iter();
        Some((group, limits.find(|limits| limits.page_bytes == size.0)?))
    }))
}

/// Sets a limit. The file of a change names what it counts.
pub(crate) fn set(machine: &mut Machine, change: &LimitChange) {
    let groups = machine.state.hugetlb.iter_mut();
    let groups = groups.flat_map(|all| &mut all.groups);
    let limits = groups
        .filter(|group| group.directory == change.cgroup)
        .flat_map(|group| &mut group.limits)
        .filter(|limits| limits.page_bytes == change.size.0);
    for limits in limits {
        match change.counts {
            Counts::Faults => limits.fault_limit = Some(change.bytes.0),
            Counts::Reservations => limits.reservation_limit = Some(change.bytes.0),
        }
    }
}

/// Adds to or subtracts from the use of this size in all cgroups of the server.
pub(crate) fn count(machine: &mut Machine, size: PageSize, change: impl Fn(&mut Limits)) {
    let groups = machine.state.hugetlb.iter_mut();
    let groups = groups.flat_map(|all| &mut all.groups);
    let limits = groups.flat_map(|group| &mut group.limits);
    for limits in limits.filter(|limits| limits.page_bytes == size.0) {
        change(limits);
    }
}
