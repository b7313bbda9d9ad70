//! How many huge pages of one size are needed, and by whom. Whoever names a number of pages, names
//! it from here.

use crate::{
    linux::{hugepages::Pool, pages::pages_required, process::segment::Segment},
    model::{headroom::Headroom, machine::Machine},
    server::{
        facts::{Facts, SharedMemoryType},
        sight::Sight,
    },
};

/// Pages of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// What the next start of this server takes.
    pub own: u64,
    /// What this server has now, touched or reserved.
    pub own_now: u64,
    /// In use or reserved by others.
    pub others: u64,
    /// What the servers of this host that are on small pages would take.
    pub neighbours: u64,
}

impl Need {
    /// Of the pool of that size, for a server that asks for huge pages. Servers on small pages
    /// count where the host has the memory for all of them. `None`: what this server has cannot be
    /// seen.
    pub fn of(machine: &Machine, pool: &Pool) -> Option<Self> {
        Self::with(machine, pool, own_of_next_start(machine, pool.page_bytes))
    }

    /// The same where the next start takes this many pages of this pool.
    pub fn with(machine: &Machine, pool: &Pool, own: u64) -> Option<Self> {
        let need = Self::everybodys(machine, pool, own)?;
        let is_room = room(machine, pool, need).is_none_or(|headroom| headroom.is_enough());
        Some(Self {
            neighbours: if is_room { need.neighbours } else { 0 },
            ..need
        })
    }

    /// With all servers of the host, whether it has memory for them or not.
    pub(crate) fn of_all(machine: &Machine, pool: &Pool) -> Option<Self> {
        Self::everybodys(machine, pool, own_of_next_start(machine, pool.page_bytes))
    }

    fn everybodys(machine: &Machine, pool: &Pool, own: u64) -> Option<Self> {
        let own_now = own_pages(&machine.facts, pool.page_bytes)?;
        Some(Self {
            own,
            own_now,
            others: pool.committed().saturating_sub(own_now),
            neighbours: neighbours(machine, pool.page_bytes),
        })
    }

    /// What the pool has to hold once the server has been restarted.
    pub(crate) fn after_restart(&self) -> u64 {
        self.others
            .saturating_add(self.own)
            .saturating_add(self.neighbours)
    }

    /// What it should hold then: idle pages stay while servers that cannot be seen may want them.
    /// What this server gives back was never theirs.
    pub(crate) fn with_unseen(&self, machine: &Machine, pool: &Pool) -> u64 {
        let pages = self.after_restart();
        if unseen(machine).is_none() {
            return pages;
        }
        let given_back = self.now().saturating_sub(pages);
        pages.max(pool.persistent().saturating_sub(given_back))
    }

    /// What it has to hold now: a running server keeps what it has until its restart.
    pub fn now(&self) -> u64 {
        Self {
            own: self.own.max(self.own_now),
            ..*self
        }
        .after_restart()
    }

    /// The same without those that ask for nothing yet.
    pub(crate) fn without_neighbours(self) -> Self {
        Self {
            neighbours: 0,
            ..self
        }
    }
}

/// Servers that may want huge pages, and how many nobody can tell from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseen {
    /// Processes of other users are hidden, or the list of processes is.
    Processes,
    /// Those outside this PID namespace, as in other containers.
    OtherNamespaces,
    /// This many servers are visible, but their memory may not be read.
    Servers(usize),
}

/// Who may want the pages that seem to be unused. `None`: nobody, or not read.
pub fn unseen(machine: &Machine) -> Option<Unseen> {
    let around = machine.around.as_ref()?;
    let Ok(servers) = &around.neighbours else {
        return Some(Unseen::Processes);
    };
    if around.sight == Sight::Hidden {
        return Some(Unseen::Processes);
    }
    let hidden = servers.iter().filter(|server| server.segment.is_none());
    match (hidden.count(), around.sight) {
        (0, Sight::Namespace) => Some(Unseen::OtherNamespaces),
        (0, _) => None,
        (count, _) => Some(Unseen::Servers(count)),
    }
}

/// What this need leaves of RAM, beside what is needed of the other pools: idle pages there are no
/// reason to leave a server out. `None`: the kernel does not report it.
fn room(machine: &Machine, pool: &Pool, need: Need) -> Option<Headroom> {
    let with = Headroom::with(machine, pool.page_bytes, need.after_restart())?;
    let others = machine.facts.pools.iter().flatten();
    let others = others.filter(|other| other.page_bytes != pool.page_bytes);
    let mut pools_bytes = with.pools_bytes;
    for other in others {
        let own_now = own_pages(&machine.facts, other.page_bytes)?;
        let kept = other.committed().saturating_sub(own_now);
        let needed = kept.saturating_add(own_of_next_start(machine, other.page_bytes));
        let bytes = |pages: u64| pages.saturating_mul(other.page_bytes);
        pools_bytes = pools_bytes
            .saturating_sub(bytes(other.total))
            .saturating_add(bytes(needed));
    }
    Some(Headroom {
        pools_bytes,
        ..with
    })
}

/// Pages that the next start takes of the pool of that size, if it asks for huge pages.
pub(crate) fn own_of_next_start(machine: &Machine, page_bytes: u64) -> u64 {
    let aim = machine.aim();
    if machine.facts.huge_page_of(&aim) == Some(page_bytes) {
        pages_of_aim(machine, page_bytes)
    } else {
        0
    }
}

/// Pages of that size that a start as [`Machine::aim`] maps. PostgreSQL tells its need in whole MB:
/// where it is rounded up to a `huge_page_size` that is no power of two, that may be a page more
/// than the kernel counts now.
pub(crate) fn pages_of_aim(machine: &Machine, page_bytes: u64) -> u64 {
    let (facts, aim) = (&machine.facts, machine.aim());
    let pages = aim.pages(page_bytes);
    let is_as_now =
        facts.planned.is_none() && aim.huge_page_size_bytes == facts.server.huge_page_size_bytes;
    let own = own_pages(facts, page_bytes).filter(|&own| is_as_now && own > 0);
    own.filter(|own| own.checked_add(1) == Some(pages))
        .unwrap_or(pages)
}

/// Pages of our segment in the pool of this size. A mapped segment holds all of them: those that
/// nobody has touched are reserved.
pub fn own_pages(facts: &Facts, page_bytes: u64) -> Option<u64> {
    let segment = facts.segment.as_ref().ok()?;
    Some(pages_in(segment, segment.page_bytes?, page_bytes))
}

fn pages_in(segment: &Segment, is_on: u64, page_bytes: u64) -> u64 {
    if is_on == page_bytes {
        segment.bytes / page_bytes
    } else {
        0
    }
}

/// Nobody knows which size another server asks for: the default is likeliest. System V segments lie
/// on small pages whatever is asked for.
fn neighbours(machine: &Machine, page_bytes: u64) -> u64 {
    let servers = machine.around.as_ref().map(|around| &around.neighbours);
    if machine.default_page_bytes() != Some(page_bytes) {
        return 0;
    }
    servers
        .and_then(|servers| servers.as_ref().ok())
        .into_iter()
        .flatten()
        .filter(|server| server.shared_memory_type != Some(SharedMemoryType::Sysv))
        .filter_map(|server| server.segment.as_ref())
        .filter(|segment| {
            let base = machine.facts.base_page_bytes;
            segment.page_bytes.is_some_and(|bytes| bytes <= base)
        })
        .map(|segment| pages_required(segment.bytes, page_bytes))
        .fold(0, u64::saturating_add)
}
