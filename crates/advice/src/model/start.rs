//! The outcome of the next start of PostgreSQL (port/sysv_shmem.c `CreateAnonymousSegment`).

use std::{fmt, path::PathBuf};

use host::server::state::{AllowedNodes, HugePages, SharedMemoryType};
use host::{
    escape,
    linux::{error::Absence, hugepages::Pool},
    units::{Bytes, PageSize, Pages, huge_page_size_setting, huge_pages},
};

use crate::model::{
    demand,
    limits::{self, Breach},
    machine::Machine,
    memory::{self, CgroupMemory, CommitLimit, Shortage},
    numa,
    step::Counts,
};

/// The outcome of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The server gets the huge pages that it requests.
    HugePages(PageSize),
    /// The server starts on small pages.
    SmallPages(Reason, Fit),
    /// The server does not start.
    Fails(Reason, Option<Fit>),
    /// Only a start shows whether it gets huge pages.
    Unknown(Reason),
}

/// Why a start gets no huge pages, or might not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `huge_pages = off`.
    Off,
    /// `shared_memory_type = sysv`.
    Sysv,
    /// The kernel or the processor has no huge pages.
    NoHugePages,
    /// The kernel does not have the size that is set.
    NoSuchSize {
        /// The size that is set.
        asked: PageSize,
        /// The sizes of the kernel.
        known: Vec<PageSize>,
    },
    /// Limits of cgroups on reservations.
    Limits(Vec<LowLimit>),
    /// The pool has too few pages.
    PoolShort {
        size: PageSize,
        /// Pages that the start needs.
        required: Pages,
        /// Pages that it can get.
        available: Pages,
        /// Another size of which there are enough.
        other: Option<PageSize>,
    },
    /// The pool has enough pages, but not on the nodes that the server is allowed to use.
    NodesShort {
        size: PageSize,
        /// Pages that the start needs.
        required: Pages,
        /// Pages that are available on these nodes.
        available: Pages,
        nodes: Vec<u32>,
    },
    /// The kernel has to allocate pages during the start (`vm.nr_overcommit_hugepages`).
    Overcommit {
        size: PageSize,
        /// Pages that the start needs.
        required: Pages,
        /// Pages that have to be allocated.
        missing: Pages,
    },
    /// A fact is missing.
    Missing(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "The next start uses huge_pages = off."),
            Self::Sysv => write!(
                f,
                "The next start uses shared_memory_type = sysv, which cannot use huge pages."
            ),
            Self::NoHugePages => write!(f, "This kernel or processor has no huge pages."),
            Self::NoSuchSize { asked, known } => {
                let known: Vec<_> = known.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "huge_page_size asks for {asked} pages; the kernel has {}.",
                    known.join(", ")
                )
            }
            Self::Limits(limits) => {
                let limits: Vec<_> = limits.iter().map(ToString::to_string).collect();
                write!(f, "{}", limits.join(" "))
            }
            Self::PoolShort {
                size,
                required,
                available,
                other,
            } => {
                let verb = available.verb("is", "are");
                let needed = huge_pages(*required, *size);
                write!(f, "Needs {needed}; {available} {verb} available.")?;
                match other {
                    Some(other) => write!(
                        f,
                        " There are enough {other} pages for a start with {}.",
                        huge_page_size_setting(*other)
                    ),
                    None => Ok(()),
                }
            }
            Self::NodesShort {
                size,
                required,
                available,
                nodes,
            } => write!(
                f,
                "Needs {} on the NUMA nodes that the server is allowed to use ({}); {available} {} available there.",
                huge_pages(*required, *size),
                numa::numbers(nodes),
                available.verb("is", "are")
            ),
            Self::Overcommit {
                size,
                required,
                missing,
            } => write!(
                f,
                "Needs {}; the kernel has to allocate {missing} of them during the start (vm.nr_overcommit_hugepages).",
                huge_pages(*required, *size)
            ),
            Self::Missing(why) => write!(f, "{why}."),
        }
    }
}

/// A limit of a cgroup that the next start exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowLimit {
    /// The directory of the cgroup.
    pub cgroup: PathBuf,
    pub limit: Bytes,
    /// Needed under it.
    pub needed: Bytes,
}

impl LowLimit {
    fn of(breach: &Breach<'_>) -> Self {
        Self {
            cgroup: breach.group.directory.clone(),
            limit: breach.limit,
            needed: breach.most,
        }
    }
}

impl fmt::Display for LowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Cgroup {} limits reserved huge pages to {}, but {} is needed.",
            escape::name(&self.cgroup),
            self.limit,
            self.needed
        )
    }
}

/// Whether the segment fits on small pages, beside the pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It fits, as far as known.
    Fits,
    /// The strict commit limit refuses it.
    BeyondCommitLimit {
        segment: Bytes,
        /// The limit once the running server has stopped.
        limit: Box<CommitLimit>,
    },
    /// The kernel refuses a mapping that is larger than RAM and swap (mm/util.c, with
    /// `vm.overcommit_memory = 0`).
    BeyondRamAndSwap {
        segment: Bytes,
        /// RAM and swap.
        all: Bytes,
    },
    /// Memory cannot hold this segment and those of other servers on small pages once all of them
    /// are in use, or less than the reserve would be left.
    BeyondMemory(Shortage),
    /// The segment exceeds a memory limit of a cgroup once all of it is in use.
    BeyondCgroup {
        /// The directory of the cgroup.
        cgroup: PathBuf,
        limit: Bytes,
        /// Needed in the cgroup.
        needed: Bytes,
        /// Whether more could be needed.
        is_least: bool,
        /// The increase of the limit that is certain to be enough.
        to_raise: Bytes,
    },
}

impl Fit {
    /// Whether memory runs out, and not only the reserve.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Fits => false,
            Self::BeyondMemory(shortage) => shortage.is_certain,
            _ => true,
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits => write!(f, "Small pages can hold the segment."),
            Self::BeyondCommitLimit { segment, limit } => write!(
                f,
                "On small pages, the segment takes {segment}; CommitLimit leaves {}.",
                limit.room()
            ),
            Self::BeyondRamAndSwap { segment, all } => write!(
                f,
                "On small pages, the segment takes {segment}; the kernel refuses more than RAM and swap ({all})."
            ),
            Self::BeyondMemory(shortage) => {
                write!(f, "On small pages, the segment takes {shortage}")
            }
            Self::BeyondCgroup {
                cgroup,
                limit,
                needed,
                is_least,
                ..
            } => write!(
                f,
                "On small pages, cgroup {} needs {}{needed}; its memory limit is {limit}.",
                escape::name(cgroup),
                memory::at_least(*is_least)
            ),
        }
    }
}

/// The outcome of a start with the settings of the next start, once the running server has stopped.
pub fn outcome(machine: &Machine) -> StartOutcome {
    let size = match obstacle(machine) {
        Ok(size) => return StartOutcome::HugePages(size),
        Err(reason @ (Reason::Missing(_) | Reason::Overcommit { .. })) => {
            return StartOutcome::Unknown(reason);
        }
        Err(reason) => reason,
    };
    if machine.state.next_start().huge_pages == HugePages::On {
        return StartOutcome::Fails(size, None);
    }
    match fit_on_small_pages(machine) {
        fit @ (Fit::BeyondCommitLimit { .. } | Fit::BeyondRamAndSwap { .. }) => {
            StartOutcome::Fails(size, Some(fit))
        }
        fit => StartOutcome::SmallPages(size, fit),
    }
}

impl StartOutcome {
    /// Why small pages cannot hold the segment. `None`: they can, as far as known, or the server
    /// gets huge pages.
    pub fn misfit(self) -> Option<Fit> {
        match self {
            Self::SmallPages(_, fit) => (fit != Fit::Fits).then_some(fit),
            Self::Fails(_, fit) => fit,
            Self::HugePages(_) | Self::Unknown(_) => None,
        }
    }
}

/// Whether the server would start, on huge pages or on small pages that memory can hold, as far as
/// known.
pub fn succeeds(machine: &Machine) -> bool {
    let outcome = outcome(machine);
    !matches!(outcome, StartOutcome::Fails(..)) && outcome.misfit().is_none()
}

/// Why small pages cannot hold the segment of the next start: see [`StartOutcome::misfit`].
pub fn misfit(machine: &Machine) -> Option<Fit> {
    outcome(machine).misfit()
}

/// Why small pages cannot hold the segment of the next start if the kernel allocates only a part of
/// the pages by which this pool has grown: one page fewer than the start needs. `None`: they can,
/// or the start does not depend on these pages.
pub fn misfit_if_pool_is_short(machine: &Machine, size: PageSize, growth: Pages) -> Option<Fit> {
    let mut short = machine.at_next_start();
    let required = demand::pages_of_next_start(&short, size, &short.next_start());
    if required == Pages(0) {
        return None;
    }
    let supply = Supply::of(&short, short.pool(size)?)?.most;
    let fewer = supply + Pages(1) - required;
    if fewer > growth {
        return None;
    }
    let pool = short.pool_mut(size)?;
    pool.total = pool.total.saturating_sub(fewer.0);
    pool.free = pool.free.saturating_sub(fewer.0);
    misfit(&short)
}

/// The huge page size that the next start gets. Errors: why it gets none.
fn obstacle(machine: &Machine) -> Result<PageSize, Reason> {
    let next = machine.state.next_start();
    if next.huge_pages == HugePages::Off {
        return Err(Reason::Off);
    }
    if next.shared_memory_type == SharedMemoryType::Sysv {
        return Err(Reason::Sysv);
    }
    let names_no_size = || {
        let meminfo = machine.state.meminfo.as_ref();
        meminfo.is_ok_and(|meminfo| meminfo.default_huge_page_bytes.is_none())
    };
    if let Err(absent) = &machine.state.pools {
        return Err(if absent.why == Absence::Missing && names_no_size() {
            Reason::NoHugePages
        } else {
            Reason::Missing(absent.to_string())
        });
    }
    let Some(size) = machine.size_asked_for(next) else {
        return Err(match &machine.state.meminfo {
            Ok(_) => Reason::Missing("/proc/meminfo has no Hugepagesize".to_owned()),
            Err(absent) => Reason::Missing(absent.to_string()),
        });
    };
    let Some(pool) = machine.pool(size) else {
        let known = machine.pools().map(|pool| PageSize(pool.page_bytes));
        return Err(Reason::NoSuchSize {
            asked: size,
            known: known.collect(),
        });
    };
    let required = demand::pages_of_next_start(machine, size, &machine.next_start());
    let breaches = limits::breaches(machine, size, required, Counts::Reservations);
    if let Some(breaches) = breaches.as_ref().filter(|breaches| !breaches.is_empty()) {
        return Err(Reason::Limits(breaches.iter().map(LowLimit::of).collect()));
    }
    let supply = Supply::of(machine, pool).ok_or_else(|| match pool.bad_counter() {
        Some(absent) => Reason::Missing(absent.to_string()),
        None => missing_segment(machine),
    })?;
    if supply.most < required {
        return Err(Reason::PoolShort {
            size,
            required,
            available: supply.most,
            other: other_size(machine, size),
        });
    }
    on_allowed_nodes(machine, size, required)?;
    if supply.certain < required {
        return Err(Reason::Overcommit {
            size,
            required,
            missing: required - supply.certain,
        });
    }
    match &machine.state.hugetlb {
        Ok(_) => Ok(size),
        Err(absent) => Err(Reason::Missing(absent.to_string())),
    }
}

/// Another page size of which the pool has enough pages.
fn other_size(machine: &Machine, size: PageSize) -> Option<PageSize> {
    let mut others = machine.pools().filter(|pool| pool.page_bytes != size.0);
    let fits = |pool: &&Pool| {
        let size = PageSize(pool.page_bytes);
        let required = Bytes(machine.state.needed_bytes()).in_pages(size);
        let breaches = limits::breaches(machine, size, required, Counts::Faults);
        Supply::of(machine, pool).is_some_and(|supply| supply.certain >= required)
            && breaches.is_some_and(|breaches| breaches.is_empty())
    };
    others.find(fits).map(|pool| PageSize(pool.page_bytes))
}

fn missing_segment(machine: &Machine) -> Reason {
    Reason::Missing(match &machine.state.segment {
        Err(absent) => absent.to_string(),
        Ok(_) => "the page size of the segment is unknown".to_owned(),
    })
}

fn on_allowed_nodes(machine: &Machine, size: PageSize, required: Pages) -> Result<(), Reason> {
    match &machine.facts.allowed_nodes {
        AllowedNodes::All => return Ok(()),
        AllowedNodes::Unknown(absent) => return Err(Reason::Missing(absent.to_string())),
        AllowedNodes::Only(_) => {}
    }
    let unknown = || Reason::Missing("the pages of the NUMA nodes are unknown".to_owned());
    let (certain, most) = numa::supply_on_allowed(machine, size).ok_or_else(unknown)?;
    if most < required {
        return Err(Reason::NodesShort {
            size,
            required,
            available: most,
            nodes: numa::allowed_numbers(machine),
        });
    }
    if certain < required {
        return Err(Reason::Missing(
            "other processes could need their reserved pages on the same NUMA nodes".to_owned(),
        ));
    }
    Ok(())
}

/// Pages that the server can have from a pool once its own are released.
///
/// Surplus pages cease to exist when they are released (mm/hugetlb.c
/// `return_unused_surplus_pages`). The kernel allocates new ones only as far as
/// `nr_overcommit_hugepages` allows, if it finds memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supply {
    /// In the pool.
    pub certain: Pages,
    /// Including those that the kernel would try to allocate.
    pub most: Pages,
}

impl Supply {
    /// `None`: the pages of the running server are unknown, or a counter is below zero.
    pub fn of(machine: &Machine, pool: &Pool) -> Option<Self> {
        let held = machine.pages_held(PageSize(pool.page_bytes))?;
        let others = Pages(pool.committed()?) - held;
        let surplus_left = Pages(pool.surplus) - held;
        let persistent = Pages(pool.persistent());
        let allocatable = surplus_left.max(Pages(pool.overcommit));
        Some(Self {
            certain: persistent + surplus_left - others,
            most: persistent + allocatable - others,
        })
    }
}

/// Whether small pages can hold the segment of the next start once the running one is gone.
pub fn fit_on_small_pages(machine: &Machine) -> Fit {
    let segment = Bytes(machine.state.needed_bytes());
    if let Some(limit) = CommitLimit::of(machine) {
        let limit = Box::new(limit.once_stopped(machine));
        if limit.room() < segment {
            return Fit::BeyondCommitLimit { segment, limit };
        }
    }
    if let Some(all) = memory::largest_mapping(machine)
        && all < segment
    {
        return Fit::BeyondRamAndSwap { segment, all };
    }
    // A certain shortage, then a limit, then a reserve that is too small.
    let shortage = Shortage::after_start(machine, segment).map(Fit::BeyondMemory);
    let limit = || beyond_cgroup(machine, segment, false);
    match shortage {
        Some(certain) if certain.is_certain() => certain,
        shortage => limit().or(shortage).unwrap_or(Fit::Fits),
    }
}

/// Why memory cannot hold the segment of the running server once all of it is in use. Unlike a
/// misfit of the next start, this happens without a restart. `None`: memory can hold it, or that is
/// unknown.
pub fn present_misfit(machine: &Machine) -> Option<Fit> {
    let segment = machine.segment().map(|segment| Bytes(segment.bytes))?;
    let is_huge = machine.is_on_huge_pages()?;
    let shortage = Shortage::now(machine).filter(|shortage| shortage.taken > Bytes(0));
    let shortage = shortage.map(Fit::BeyondMemory).filter(Fit::is_certain);
    shortage.or_else(|| beyond_cgroup(machine, segment, is_huge))
}

/// Whether memory is too small for small pages, now or after a restart.
pub fn is_short(machine: &Machine) -> bool {
    let of_start = || matches!(misfit(machine), Some(Fit::BeyondMemory(_)));
    Shortage::now(machine).is_some() || of_start()
}

/// A misfit of the next start that the running server does not have already.
pub fn coming_misfit(machine: &Machine) -> Option<Fit> {
    let is_present = present_misfit(machine).is_some();
    misfit(machine).filter(|_| !is_present)
}

fn beyond_cgroup(machine: &Machine, segment: Bytes, is_huge: bool) -> Option<Fit> {
    match memory::in_cgroups(machine, segment, is_huge) {
        CgroupMemory::Exceeds(excess) if !excess.can_swap => Some(Fit::BeyondCgroup {
            cgroup: excess.limit.directory.clone(),
            limit: Bytes(excess.limit.limit_bytes),
            needed: excess.needed,
            is_least: excess.is_least,
            to_raise: excess.to_raise,
        }),
        CgroupMemory::Fits | CgroupMemory::Unknown(_) | CgroupMemory::Exceeds(_) => None,
    }
}
