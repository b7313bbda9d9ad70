//! Limits of control groups on huge pages of one size (mm/hugetlb_cgroup.c), and of the memory
//! controller where that counts huge pages too.
//!
//! Version 1 and 2 count alike and show it differently: version 1 a `failcnt` of the level that
//! refuses, version 2 `events` of the group that was refused and of all above it. The root has no
//! limit and no place here.

use crate::model::refusal::Refusal;

/// Which of the two limits of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pages that are touched: v1 `limit_in_bytes`, v2 `max`.
    Fault,
    /// Pages that are promised: v1 `rsvd.limit_in_bytes`, v2 `rsvd.max`.
    Reservation,
}

/// A limit and what counts against it, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// `None`: no limit.
    pub limit: Option<u64>,
    /// `usage_in_bytes` or `current`, of the group and all below it.
    pub used: u64,
    /// `failcnt` of version 1: how often this level refused.
    pub refusals: u64,
}

impl Counter {
    fn room(&self) -> u64 {
        self.limit
            .map_or(u64::MAX, |limit| limit.saturating_sub(self.used))
    }
}

/// The memory controller's, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// `memory.max`; `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// What cannot be reclaimed of `memory.current`: caches make way.
    pub used_bytes: u64,
}

/// One control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// Its place in the list, before that of its children. `None`: right below the root.
    pub parent: Option<usize>,
    /// What is touched.
    pub faults: Counter,
    /// What is promised. `None`: a kernel before 5.7.
    pub reservations: Option<Counter>,
    /// Only where cgroup2 is mounted with `memory_hugetlb_accounting` (Linux 6.6).
    pub memory: Option<Memory>,
    /// `events` of version 2: refusals of the group and all below it.
    pub events: u64,
    /// `events.local` of version 2.
    pub local_events: u64,
}

impl Group {
    fn counter(&self, kind: Kind) -> Option<&Counter> {
        match kind {
            Kind::Fault => Some(&self.faults),
            Kind::Reservation => self.reservations.as_ref(),
        }
    }

    fn counter_mut(&mut self, kind: Kind) -> Option<&mut Counter> {
        match kind {
            Kind::Fault => Some(&mut self.faults),
            Kind::Reservation => self.reservations.as_mut(),
        }
    }
}

/// Groups, parents before their children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups(pub Vec<Group>);

impl Groups {
    /// The group and all above it.
    pub fn path(&self, group: usize) -> impl Iterator<Item = usize> {
        let parent = |&place: &usize| self.0.get(place)?.parent.filter(|&parent| parent < place);
        let first = Some(group).filter(|&group| group < self.0.len());
        std::iter::successors(first, parent)
    }

    /// Pages that the group can still have.
    pub fn room(&self, group: usize, kind: Kind) -> u64 {
        let counters = self
            .path(group)
            .filter_map(|place| self.0[place].counter(kind));
        counters.map(Counter::room).min().unwrap_or(u64::MAX)
    }

    /// Charges pages to the group and all above it, or to none (`page_counter_try_charge`).
    pub(crate) fn charge(&mut self, group: usize, kind: Kind, pages: u64) -> Result<(), Refusal> {
        let short = |&place: &usize| {
            let counter = self.0[place].counter(kind);
            counter.is_some_and(|counter| counter.room() < pages)
        };
        let Some(refusing) = self.path(group).find(short) else {
            self.add(group, kind, pages);
            return Ok(());
        };
        if let Some(counter) = self.0[refusing].counter_mut(kind) {
            counter.refusals = counter.refusals.saturating_add(1);
        }
        let path: Vec<usize> = self.path(group).collect();
        for place in path {
            self.0[place].events = self.0[place].events.saturating_add(1);
        }
        if let Some(group) = self.0.get_mut(group) {
            group.local_events = group.local_events.saturating_add(1);
        }
        Err(match kind {
            Kind::Fault => Refusal::FaultLimit { group: refusing },
            Kind::Reservation => Refusal::ReservationLimit { group: refusing },
        })
    }

    /// Takes back what was charged to that group.
    pub(crate) fn uncharge(&mut self, group: usize, kind: Kind, pages: u64) {
        let path: Vec<usize> = self.path(group).collect();
        for place in path {
            if let Some(counter) = self.0[place].counter_mut(kind) {
                counter.used = counter.used.saturating_sub(pages);
            }
        }
    }

    /// Sets a limit, rounded down to whole pages; `None` lifts it. Below what is in use it is
    /// refused (`page_counter_set_max`).
    pub fn set_limit(
        &mut self,
        group: usize,
        kind: Kind,
        bytes: Option<u64>,
        page_bytes: u64,
    ) -> Result<(), Refusal> {
        let limit = bytes.map(|bytes| bytes.checked_div(page_bytes).unwrap_or(0));
        let group = self.0.get_mut(group).ok_or(Refusal::Missing)?;
        let counter = group.counter_mut(kind).ok_or(Refusal::Missing)?;
        if limit.is_some_and(|limit| limit < counter.used) {
            return Err(Refusal::LimitBelowUse);
        }
        counter.limit = limit;
        Ok(())
    }

    /// Bytes that the memory controller still gives the group.
    pub(crate) fn memory_room(&self, group: usize) -> u64 {
        let levels = self.path(group).filter_map(|place| self.0[place].memory);
        let room = |level: Memory| match level.limit_bytes {
            Some(limit) => limit.saturating_sub(level.used_bytes),
            None => u64::MAX,
        };
        levels.map(room).min().unwrap_or(u64::MAX)
    }

    /// Charges bytes to the memory controller's group and all above it, or to none. What is
    /// refused ends in SIGBUS, after the kernel has reclaimed what it could.
    pub(crate) fn charge_memory(&mut self, group: usize, bytes: u64) -> Result<(), Refusal> {
        let short = |&place: &usize| {
            let level = self.0[place].memory.unwrap_or_default();
            level
                .limit_bytes
                .is_some_and(|limit| limit.saturating_sub(level.used_bytes) < bytes)
        };
        if let Some(group) = self.path(group).find(short) {
            return Err(Refusal::MemoryLimit { group });
        }
        self.change_memory(group, |used| used.saturating_add(bytes));
        Ok(())
    }

    /// Takes back what was charged to that group.
    pub(crate) fn uncharge_memory(&mut self, group: usize, bytes: u64) {
        self.change_memory(group, |used| used.saturating_sub(bytes));
    }

    fn add(&mut self, group: usize, kind: Kind, pages: u64) {
        let path: Vec<usize> = self.path(group).collect();
        for place in path {
            if let Some(counter) = self.0[place].counter_mut(kind) {
                counter.used = counter.used.saturating_add(pages);
            }
        }
    }

    fn change_memory(&mut self, group: usize, change: impl Fn(u64) -> u64) {
        let path: Vec<usize> = self.path(group).collect();
        for place in path {
            if let Some(level) = self.0[place].memory.as_mut() {
                level.used_bytes = change(level.used_bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
