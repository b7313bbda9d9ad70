//! Decisions for a person, if no command is safe.

mod sentences;

use std::{cmp::Reverse, mem::discriminant};

use crate::model::{
    allowed_part::NodePart,
    apply::Blocked,
    demand::{self, Demands, Hidden, IdleFor, Name, PoolTarget},
    limits,
    machine::Machine,
    memory::{self, CommitLimit, Shortage},
    numa,
    start::{self, Fit, Reason, StartOutcome, Supply},
    step::{LimitChange, Step},
};
use host::{
    linux::boot::Words,
    server::state::{Backing, Files},
    units::{Bytes, PageSize, Pages, huge_pages},
};

/// A decision. Figures are enough when they are followed exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Free memory for a pool, or lower `shared_buffers`.
    FreeMemory {
        /// Available memory that is missing.
        missing: Bytes,
        /// Whether less memory could be enough, because the memory that the server releases is
        /// known only within bounds.
        is_bound: bool,
        /// Whether programs use that much memory. Otherwise, RAM is too small.
        is_used: bool,
        /// The reserve, if only a part of it is missing.
        reserve: Option<Bytes>,
        /// An alternative.
        lower: Option<Lower>,
        /// Pages that others hold.
        others: Option<(Pages, PageSize)>,
        /// Whether the next boot can set up the pool.
        or_at_boot: bool,
    },
    /// Lower `shared_buffers`, add memory, or free huge pages.
    LowerSharedBuffers {
        /// By how much.
        lower: Option<Lower>,
        missing: Bytes,
        /// Whether more could be missing.
        is_least: bool,
        /// Whether small pages need the memory, so that swap helps.
        can_swap: bool,
        /// Whether there is swap on zram, which does not help.
        has_zram: bool,
        /// Pages that others hold.
        others: Option<(Pages, PageSize)>,
        /// Pages that can be released, if that is enough.
        release: Option<Release>,
    },
    /// Set a pool on the host if it has the memory, which is unknown here.
    CheckMemory {
        size: PageSize,
        /// Pages to set.
        pages: Pages,
        /// The reason.
        why: String,
    },
    /// Allocate pages on some NUMA nodes: which node gets how many is for a person to decide.
    AllocateOnNodes {
        size: PageSize,
        /// Pages that this server needs on the nodes that it is allowed to use.
        needed: Pages,
        /// Reserved pages of other processes, which they could need on the same nodes.
        reserved: Pages,
        /// Pages that these nodes lack.
        lacking: Pages,
        /// The nodes, with the figures of each.
        nodes: Vec<NodePart>,
        /// An alternative.
        lower: Option<Lower>,
    },
    /// Raise the strict commit limit by swap, or lower what is committed.
    AddSwap {
        missing: Bytes,
        /// `vm.overcommit_ratio`, if it decides.
        ratio: Option<u64>,
        /// The lowest ratio that is enough.
        enough: Option<u64>,
        /// A restart that is enough.
        pending: Option<Lower>,
    },
    /// Wait until reserved pages are in use.
    WaitForReservedPages,
    /// Raise a limit on huge pages from outside of the container.
    RaiseLimitOutside {
        size: PageSize,
        /// Pages that the node of a pod should have first, because a pod that asks for more than
        /// the node has is not scheduled. 0: it has them.
        pool: Pages,
        /// The limit that is enough. 0: unknown.
        bytes: Bytes,
        /// The place where the limit is set.
        setter: LimitSetter,
    },
    /// Raise a memory limit of a cgroup, or lower `shared_buffers`.
    RaiseMemoryLimit {
        /// By how much.
        by: Bytes,
    },
    /// The server would not start, for a reason that no step removes.
    WouldNotStart(String),
    /// Only a start shows whether the server gets its pages.
    OnlyAStartShows(String),
    /// Correct the configuration files.
    CorrectFiles(String),
    /// Look at boot files that could not be understood.
    LookAtBootFiles(Vec<String>),
    /// Write words on the kernel command line, in the configuration of the boot loader.
    SetOnCommandLine(Words),
    /// Change the boot configuration of another system, such as the host of a container.
    SetAtBootElsewhere {
        size: PageSize,
        /// Pages to set.
        pages: Pages,
        /// Why it cannot be changed from here.
        why: String,
    },
    /// Find out, as a user that can see all servers, whether a hidden one needs idle pages.
    HiddenServers {
        /// The servers that are hidden.
        hidden: Hidden,
        size: PageSize,
        /// Idle pages.
        pages: Pages,
    },
    /// Find out whether another server is meant to use idle pages.
    MeantForServer {
        server: Name,
        size: PageSize,
        /// Idle pages.
        pages: Pages,
    },
    /// Use idle pages of another size, or let a second pool grow.
    UseOtherSize {
        idle: (Pages, PageSize),
        /// The change that lets the server use them, and its text, with the start.
        step: Box<Step>,
        change: String,
        /// The command that makes a second pool.
        instead: String,
    },
    /// Stop other servers first, because memory cannot hold their pages and their present segments.
    OtherServers {
        /// The servers that have to stop before the pool can grow.
        servers: Vec<Name>,
        size: PageSize,
        /// The number that all servers need.
        pages: Pages,
        /// Whether RAM can hold them once the other servers have stopped.
        fits: bool,
    },
    /// Repeat the query as a role that is allowed to plan.
    AskAsSuperuser(String),
    /// Lower `max_connections` or use a pooler.
    FewerConnections,
    /// Find out what takes the memory.
    LookForSwap,
    /// Look at the rate of major faults.
    LookForFaults,
    /// Anything else, as a sentence.
    Text(String),
}

impl Decision {
    /// The missing memory, if the decision is about memory.
    pub(crate) fn missing(&self) -> Option<Bytes> {
        match self {
            Self::FreeMemory { missing, .. }
            | Self::LowerSharedBuffers { missing, .. }
            | Self::AddSwap { missing, .. }
            | Self::RaiseMemoryLimit { by: missing } => Some(*missing),
            _ => None,
        }
    }

    /// Whether following this decision also settles the other one: they are equal, or this one is
    /// about at least as much of the same memory.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_same = match (self, other) {
            (
                Self::FreeMemory { lower, .. },
                Self::LowerSharedBuffers {
                    lower: less,
                    release,
                    ..
                },
            ) => release.is_none() && Lower::is_enough(*lower, *less),
            // Swap does not help a pool.
            (
                Self::LowerSharedBuffers {
                    lower, can_swap, ..
                },
                Self::FreeMemory { lower: less, .. },
            ) => !can_swap && Lower::is_enough(*lower, *less),
            _ => discriminant(self) == discriminant(other),
        };
        let missing = other.missing();
        self == other || is_same && missing.is_some() && missing <= self.missing()
    }

    /// Whether this decision is enough for both. It takes over the figure of the other one if that
    /// is larger.
    pub(crate) fn absorb(&mut self, other: &Self) -> bool {
        if discriminant(self) == discriminant(other) && other.covers(self) {
            self.clone_from(other);
        }
        self.covers(other)
    }
}

/// The place where a limit on huge pages is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSetter {
    Pod,
    Container,
    /// The host, for example in a systemd unit.
    Host,
}

/// Pages that can be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub pages: Pages,
    pub size: PageSize,
    /// The place of the boot configuration that sets them, and the number that it should set.
    pub line: Option<(String, Pages)>,
    /// Whether the running server has some of them.
    pub needs_stop: bool,
}

/// A lower value of `shared_buffers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lower {
    /// The value, in MB.
    To(u64),
    /// The reduction, in MB, where the value that is pending is unknown.
    By(u64),
    /// The reduction of the segment, in MB, that takes place at the next start.
    Pending(u64),
    /// The reduction, in MB, on another server.
    OfOther(Name, u64),
}

impl Lower {
    /// Whether `lower` is at least as low as `other`, where it is offered.
    fn is_enough(lower: Option<Self>, other: Option<Self>) -> bool {
        match (lower, other) {
            (None, _) => true,
            (Some(Self::To(lower)), Some(Self::To(other))) => lower <= other,
            (Some(Self::By(lower)), Some(Self::By(other)))
            | (Some(Self::Pending(lower)), Some(Self::Pending(other))) => lower >= other,
            (Some(Self::OfOther(server, lower)), Some(Self::OfOther(same, other))) => {
                server == same && lower >= other
            }
            _ => false,
        }
    }

    /// Lowers `shared_buffers` so that the segment needs this many pages less. `None`: it does not
    /// need as many, or nothing has to be lowered.
    pub(crate) fn by_pages(
        machine: &Machine,
        size: PageSize,
        required: Pages,
        fewer: Pages,
    ) -> Option<Self> {
        let segment = Bytes(machine.state.needed_bytes());
        let Bytes(fits) = (required - fewer) * size;
        // PostgreSQL rounds the segment up to a multiple of the setting, which can be any number.
        let setting = machine.state.next_start().huge_page_size_bytes;
        let multiple = setting.filter(|bytes| (1..size.0).contains(bytes));
        let fits = Bytes(fits - fits % multiple.unwrap_or(1));
        (Pages(0) < fewer && fewer < required)
            .then(|| Self::by_bytes(machine, segment - fits))
            .flatten()
    }

    /// Lowers `shared_buffers` by at least this much. What depends on its size only gets smaller.
    /// `None`: it is not as large.
    pub(crate) fn by_bytes(machine: &Machine, bytes: Bytes) -> Option<Self> {
        let by = bytes.megabytes_at_least().max(1);
        if by >= machine.state.needed_bytes() >> 20 {
            return None;
        }
        let facts = machine.whole();
        let running = facts.map(|facts| facts.shared_buffers_bytes >> 20);
        // A planned or pending segment belongs to another, unknown value of the setting.
        let stated = machine.state.server.shared_memory_bytes;
        let present = machine
            .state
            .segment
            .as_ref()
            .map_or(stated, |segment| stated.min(segment.bytes));
        let is_present = machine.state.needed_bytes() == present;
        let next = &machine.state.next;
        let has_pending = next.files != Files::Valid || !next.pending.is_empty();
        match running {
            Some(running) if is_present && !has_pending => {
                (running > by).then(|| Self::To(running - by))
            }
            _ => Some(Self::By(by)),
        }
    }
}

/// The decision that a blocked step leaves to a person.
pub(crate) fn for_blocked(
    machine: &Machine,
    size: PageSize,
    required: Pages,
    blocked: Blocked,
) -> Decision {
    // For a bound server, the pool can have to grow by more pages than the server needs. If a start
    // from the files takes small pages, memory has to hold them in addition to the pool.
    let from_files = machine.state.next.from_files.as_ref();
    let is_enough = !machine.is_bound_to_nodes()
        && from_files.is_none_or(|files| machine.size_to_map(files).is_some());
    let lower = |missing: Bytes| {
        let lower = Lower::by_pages(machine, size, required, missing.in_pages(size));
        lower.filter(|_| is_enough)
    };
    match blocked {
        Blocked::Memory { missing } => {
            let is_used = memory::used(machine).is_some_and(|used| used >= missing);
            let next = machine.next_start();
            let at_boot = Demands::at_boot(machine, size, &next);
            Decision::FreeMemory {
                missing: if is_used {
                    missing
                } else {
                    memory::to_add(machine, missing)
                },
                is_bound: memory::is_not_faulted_in_a_bound(machine),
                is_used,
                reserve: memory::reserve(machine).filter(|reserve| missing <= *reserve),
                lower: lower(missing),
                others: held_by_others(machine, size),
                or_at_boot: at_boot.is_some_and(|demands| {
                    let pages = demands.total() + demand::unexplained(machine, size);
                    demands.missing_at_boot(machine, pages) == Some(Bytes(0))
                }),
            }
        }
        Blocked::UnknownMemory { size, pages, why } => Decision::CheckMemory { size, pages, why },
        Blocked::UnknownNodes { size, missing } => about_nodes(machine, size, missing),
        Blocked::CommitLimit(limit) => raise_commit_limit(&limit),
        Blocked::ReservedPages => Decision::WaitForReservedPages,
        Blocked::SetOutside | Blocked::FaultLimit => raise_limit(machine, size, required),
        Blocked::CgroupMemory { to_raise } => Decision::RaiseMemoryLimit { by: to_raise },
        Blocked::WouldNotFit(fit) | Blocked::WouldNotStart(_, Some(fit)) => {
            for_misfit(machine, fit)
        }
        Blocked::FromFiles => Decision::Text(
            "first, correct the settings in the files: with a larger pool, a start without the options of the command line would run out of memory or exceed a limit".to_owned(),
        ),
        Blocked::WouldNotStart(reason, None) => would_not_start(machine, &reason),
        Blocked::LosesHugePages(reason) => Decision::WouldNotStart(reason.to_string()),
        Blocked::OnlyAStartShows(reason) => match reason {
            Reason::Missing(why) => Decision::Text(format!(
                "find out why some facts are unknown (hugeinfo_sources): {why}"
            )),
            reason => Decision::OnlyAStartShows(reason.to_string()),
        },
        Blocked::ConfigurationFiles => Decision::CorrectFiles(String::new()),
        Blocked::Fragmented => fragmented(machine, size, required),
        Blocked::Inapplicable => Decision::Text(
            "find out why some facts are unknown (hugeinfo_sources): no remedy is known to be safe"
                .to_owned(),
        ),
    }
}

/// Pages that the next start gets from the pool as it is.
fn available(machine: &Machine, size: PageSize) -> Pages {
    let pool = machine.pool(size);
    let supply = pool.and_then(|pool| Supply::of(machine, pool));
    supply.map_or(Pages(0), |supply| supply.certain)
}

/// The decision about pages that even this boot could not allocate.
fn fragmented(machine: &Machine, size: PageSize, required: Pages) -> Decision {
    let available = available(machine, size);
    let lower = Lower::by_pages(machine, size, required, required - available);
    let lower = lower.map_or(String::new(), |lower| {
        let has = huge_pages(available, size);
        format!("{lower}, so that the segment fits into the {has} that are available, or ")
    });
    Decision::Text(format!(
        "{lower}use a smaller huge_page_size: this boot could not allocate more pages of {size}"
    ))
}

/// The decision about a pool that lacks this many pages, on a host on which this server is bound to
/// some NUMA nodes.
pub(crate) fn about_nodes(machine: &Machine, size: PageSize, missing: Pages) -> Decision {
    let required = demand::pages_of_next_start(machine, size, &machine.next_start());
    let part = machine.allowed_part(size);
    let lacking = numa::lacking_on_allowed(machine, size, required).unwrap_or_default();
    if lacking == Pages(0) {
        return about_other_nodes(missing, size);
    }
    let mapped = numa::most_for_mapped(machine, size).and_then(|_| machine.pages_held(size));
    Decision::AllocateOnNodes {
        size,
        needed: required.max(mapped.unwrap_or_default()),
        reserved: numa::reserved_by_others(machine, size).unwrap_or_default(),
        // A write to the file of a node makes its surplus pages persistent first (mm/hugetlb.c
        // `set_max_huge_pages`).
        lacking: lacking + part.map_or(Pages(0), |part| part.surplus),
        nodes: part.map_or(Vec::new(), |part| part.nodes.clone()),
        lower: match mapped {
            Some(_) => None,
            None => Lower::by_pages(machine, size, required, lacking),
        },
    }
}

/// A sentence about idle pages of a server that is bound to some NUMA nodes. A person releases them
/// node by node, because the kernel would choose the nodes. `kept`: the pages that the server
/// needs.
pub(crate) fn release_by_node(
    machine: &Machine,
    size: PageSize,
    idle: Pages,
    kept: Pages,
) -> String {
    let release = format!(
        "release up to {} node by node (hugeinfo_numa)",
        huge_pages(idle, size)
    );
    match kept {
        Pages(0) => release,
        kept => format!(
            "{release}, and keep {kept} on NUMA {}, which the server is allowed to use",
            numa::named_nodes(&numa::allowed_numbers(machine))
        ),
    }
}

/// The decision about pages for other servers, if this server has its own.
pub(crate) fn about_other_nodes(missing: Pages, size: PageSize) -> Decision {
    Decision::Text(format!(
        "allocate {} for other servers, on the NUMA nodes that they use",
        huge_pages(missing, size)
    ))
}

/// The decision about a limit on huge pages that is too low for this many pages.
pub(crate) fn raise_limit(machine: &Machine, size: PageSize, pages: Pages) -> Decision {
    let changes = limits::to_raise(machine, size, pages);
    let groups = machine.state.hugetlb.iter().flat_map(|all| &all.groups);
    let is_told = groups.filter(|group| group.is_told).any(|group| {
        changes
            .iter()
            .any(|change| change.cgroup == group.directory)
    });
    let is_of_pod = |change: &LimitChange| change.cgroup.to_string_lossy().contains("kubepods");
    let is_container = machine.whole().and_then(|facts| facts.is_container);
    let setter = if is_told || changes.iter().any(is_of_pod) {
        LimitSetter::Pod
    } else if is_container == Some(true) {
        LimitSetter::Container
    } else {
        LimitSetter::Host
    };
    // The pod does not have to wait for pages of other servers.
    let pool = machine.pool(size).filter(|_| setter == LimitSetter::Pod);
    let node = pool.and_then(|pool| {
        let missing = pages - Supply::of(machine, pool)?.certain;
        (missing > Pages(0)).then(|| Pages(pool.persistent()) + missing)
    });
    Decision::RaiseLimitOutside {
        size,
        pool: node.unwrap_or_default(),
        bytes: changes
            .iter()
            .map(|change| change.bytes)
            .max()
            .unwrap_or_default(),
        setter,
    }
}

/// The decision about a strict commit limit that is too low.
pub(crate) fn raise_commit_limit(limit: &CommitLimit) -> Decision {
    if let Some(available) = limit.contradicted_by {
        return Decision::Text(format!(
            "do not add swap: Committed_AS is wrong ({available} of RAM is available). Update the kernel and reboot; only a reboot corrects the counter (since Linux 6.5, mremap can count memory twice)"
        ));
    }
    let missing = limit.missing();
    // One percent of RAM outside of the pools for each percent of the ratio.
    let gained = |more, ratio| limit.outside.percent(more) - limit.outside.percent(ratio);
    let lowest = |ratio| (ratio + 1..=100).find(|more| gained(*more, ratio) >= missing);
    Decision::AddSwap {
        missing,
        ratio: limit.ratio,
        enough: limit.ratio.and_then(lowest),
        pending: None,
    }
}

/// Like [`raise_commit_limit`], for what is committed now.
pub(crate) fn committed_now(machine: &Machine) -> Option<Decision> {
    let mut decision = raise_commit_limit(&CommitLimit::of(machine)?);
    if let Decision::AddSwap { pending, .. } = &mut decision {
        let is_enough = |limit: CommitLimit| limit.missing() == Bytes(0);
        *pending = pending_change(machine, |after| {
            CommitLimit::of(after).is_some_and(is_enough)
        });
    }
    Some(decision)
}

/// The decision about pools of the next boot that the host cannot hold, old or new ones.
pub(crate) fn for_boot(machine: &Machine, demands: &Demands, blocked: Blocked) -> Decision {
    let by = match &blocked {
        Blocked::Memory { missing } => Some(*missing),
        // The limit includes this share of RAM outside of the pools.
        Blocked::CommitLimit(limit) => limit
            .ratio
            .filter(|ratio| *ratio > 0)
            .map(|ratio| Bytes(limit.missing().0 / ratio * 100 + 100)),
        _ => None,
    };
    if let Some(lower) = by.and_then(|by| lower_pools_at_boot(machine, by)) {
        return lower;
    }
    let size = demands.size;
    let blocked = for_blocked(machine, size, demands.of_this_server(), blocked);
    let request = machine.next_boot().and_then(|boot| boot.pages(size.0));
    // A present line has the pages that servers need, so the server comes first.
    match (&blocked, request, by) {
        (
            Decision::FreeMemory {
                lower: Some(lower), ..
            },
            Some(request),
            Some(by),
        ) if Pages(request.pages) >= demands.total() => Decision::Text(format!(
            "{lower}, restart PostgreSQL, and then lower {} to {}: the host cannot hold both the pool and the other programs",
            request.place,
            Pages(request.pages) - by.in_pages(size)
        )),
        _ => blocked,
    }
}

/// The decision to lower the lines that set more than is needed, by this much in total, the line
/// with the largest excess first. `None`: the excess is smaller.
fn lower_pools_at_boot(machine: &Machine, by: Bytes) -> Option<Decision> {
    let boot = machine.next_boot()?;
    let next = machine.next_start();
    let mut lines = Vec::new();
    for (size, pages) in memory::pools_at_boot(machine) {
        if let Some((request, pages)) = boot.pages(size.0).zip(pages) {
            let needed = Demands::with_all(machine, size, &next)?.total();
            lines.push((request, size, pages, needed));
        }
    }
    lines.sort_by_key(|&(_, size, pages, needed)| Reverse((pages - needed) * size));
    let mut rest = by;
    let mut texts = Vec::new();
    for (request, size, pages, needed) in lines {
        let fewer = rest.in_pages(size).min(pages - needed);
        rest = rest - fewer * size;
        if fewer > Pages(0) {
            texts.push(format!(
                "lower {} from {pages} to at most {} ({})",
                request.place,
                huge_pages(pages - fewer, size),
                match needed {
                    Pages(1) => "1 is needed".to_owned(),
                    needed => format!("{needed} are needed"),
                }
            ));
        }
    }
    (rest == Bytes(0)).then(|| Decision::Text(texts.join(", and ")))
}

/// The decision about a next start that would fail for a reason that no step removes.
pub(crate) fn for_next_start(machine: &Machine) -> Decision {
    match start::outcome(machine) {
        StartOutcome::Fails(reason, None) => would_not_start(machine, &reason),
        StartOutcome::Unknown(Reason::Missing(why)) => Decision::Text(format!(
            "find out why some facts are unknown (hugeinfo_sources): {why}"
        )),
        StartOutcome::SmallPages(reason @ Reason::NoSuchSize { .. }, Fit::Fits) => {
            Decision::WouldNotStart(reason.to_string())
        }
        outcome => match outcome.misfit() {
            Some(fit) => for_misfit(machine, fit),
            None => Decision::Text(
                "apply the other remedies first: no separate remedy is known".to_owned(),
            ),
        },
    }
}

/// Whether the next start succeeds and has enough memory, as far as known.
pub(crate) fn next_start_fits(machine: &Machine) -> bool {
    let outcome = start::outcome(machine);
    !matches!(outcome, StartOutcome::Fails(..)) && outcome.misfit().is_none()
}

/// A start with `huge_pages = on` fails. If small pages do not fit either, that decides.
fn would_not_start(machine: &Machine, reason: &Reason) -> Decision {
    match start::fit_on_small_pages(machine) {
        Fit::Fits => Decision::WouldNotStart(reason.to_string()),
        fit => for_misfit(machine, fit),
    }
}

/// Pages of that size that others use or have reserved. `None`: none, or unknown.
pub(crate) fn held_by_others(machine: &Machine, size: PageSize) -> Option<(Pages, PageSize)> {
    let held = machine.pages_held(size)?;
    let others = Pages(machine.pool(size)?.committed()?) - held;
    (others > Pages(0)).then_some((others, size))
}

/// Pages of one pool that are idle now and that the next start does not need, if they are this many
/// bytes.
fn idle(machine: &Machine, missing: Bytes) -> Option<Release> {
    let next = machine.next_start();
    machine.pools().find_map(|pool| {
        let size = PageSize(pool.page_bytes);
        let files = machine.state.next.from_files.as_ref();
        let files = demand::pages_from_files(machine, size, files);
        let needed = demand::pages_of_next_start(machine, size, &next).max(files);
        let more = needed - machine.pages_held(size)?;
        let idle = Pages(pool.free) - Pages(pool.reserved) - more;
        let pages = missing.in_pages(size);
        (pages <= idle).then_some(Release {
            pages,
            size,
            line: line_without(machine, size, pages),
            needs_stop: false,
        })
    })
}

/// The place of the boot configuration that sets more pages than a pool has without this many, and
/// that number.
fn line_without(machine: &Machine, size: PageSize, fewer: Pages) -> Option<(String, Pages)> {
    let request = machine.next_boot()?.pages(size.0)?;
    let left = Pages(machine.pool(size)?.persistent()) - fewer;
    (Pages(request.pages) > left).then(|| (request.place.to_string(), left))
}

/// Pages of one pool that neither others nor a start on small pages needs, if they are this many
/// bytes.
fn releasable(machine: &Machine, missing: Bytes) -> Option<Release> {
    machine.pools().find_map(|pool| {
        let size = PageSize(pool.page_bytes);
        let others = Pages(pool.committed()?) - machine.pages_held(size)?;
        let idle = Pages(pool.total) - others;
        let pages = missing.in_pages(size);
        (pages <= idle).then_some(Release {
            pages,
            size,
            line: line_without(machine, size, pages),
            needs_stop: pages > Pages(pool.free) - Pages(pool.reserved),
        })
    })
}

/// The decision about this much memory that is missing for small pages now.
pub(crate) fn short_now(machine: &Machine, shortage: &Shortage) -> Decision {
    let missing = shortage.missing;
    let next = machine.next_start();
    let size = machine.size_to_map(&next);
    let size = size.filter(|size| machine.pool(*size).is_some());
    // The lower value has to be enough in any case.
    let most = memory::missing_for_pools(machine, Bytes(0)).unwrap_or(missing);
    let lower = match size {
        // Idle pages of a bound server are released by node.
        Some(_) if machine.is_bound_to_nodes() => None,
        Some(size) if machine.backing() != Backing::SmallPages => {
            let required = machine.pages_mapped(&next, size);
            // Pages of a pending growth are not in the pool yet. Those that the server gives up
            // are in it.
            let held = machine.pages_held(size).filter(|held| *held > Pages(0));
            let held = held.unwrap_or(required);
            let fewer = most.in_pages(size) + (required - held) - (held - required);
            Lower::by_pages(machine, size, required, fewer)
        }
        _ => {
            // The pending settings already release a part of the missing memory.
            let segment = memory::segment_on_small_pages(machine);
            let pending = segment - Bytes(machine.state.needed_bytes());
            lower_on_small_pages(machine, most - pending)
        }
    };
    let pending = || pending_change(machine, |after| Shortage::now(after).is_none());
    let lower = match (shortage.is_by_others(), shortage.can_swap()) {
        (true, true) => lower_other(machine, most),
        // A part of the reserve is missing, which swap does not hold.
        (true, false) => lower_other(machine, most + shortage.swap),
        (false, _) => pending().or(lower),
    };
    let size = size.or(machine.default_size());
    Decision::LowerSharedBuffers {
        lower,
        missing,
        is_least: shortage.is_least,
        can_swap: shortage.can_swap(),
        has_zram: machine.facts.free_zram_bytes > 0,
        others: size.and_then(|size| held_by_others(machine, size)),
        release: idle(machine, missing),
    }
}

/// Lowers `shared_buffers` of the other server that has yet to fault in the most memory, if that is
/// enough.
fn lower_other(machine: &Machine, missing: Bytes) -> Option<Lower> {
    let (server, _) = memory::yet_to_fault_in(machine).max_by_key(|(_, bytes)| *bytes)?;
    let segment = Bytes(server.segment.as_ref()?.bytes);
    (missing < segment).then(|| {
        Lower::OfOther(
            Name::of(machine, server),
            missing.megabytes_at_least().max(1),
        )
    })
}

/// A restart with the pending settings, if they need less memory. The restart has to be certain to
/// succeed, and to end a shortage once the pages that this server gives up have been released.
pub(crate) fn pending_change(
    machine: &Machine,
    ends_shortage: impl Fn(&Machine) -> bool,
) -> Option<Lower> {
    // Idle pages of a bound server are released by node.
    let next = machine.pending().filter(|_| !machine.is_bound_to_nodes());
    let next = Bytes(next?.shared_memory_bytes);
    let less = Bytes(machine.segment()?.bytes) - next;
    // The restart does not depend on other steps.
    machine.before_steps().apply(&Step::Restart).ok()?;
    let mut after = machine.apply(&Step::Restart).ok()?;
    if let Backing::HugePages(size) = machine.backing() {
        let given_up = machine.pages_held(size)? - after.pages_held(size)?;
        // Surplus pages cease to exist by themselves.
        let given_up = given_up - Pages(machine.pool(size)?.surplus);
        let pages = Pages(after.pool(size)?.persistent()) - given_up;
        after = after.apply(&Step::SetPool { size, pages }).ok()?;
    }
    (less > Bytes(0) && ends_shortage(&after)).then_some(Lower::Pending(less.0 >> 20))
}

/// Lowers `shared_buffers` of a server on small pages, if that is enough. A segment that fits into
/// the huge pages that are available needs no small pages. `None`: that is not enough, or nothing
/// has to be lowered.
fn lower_on_small_pages(machine: &Machine, missing: Bytes) -> Option<Lower> {
    let next = machine.next_start();
    if let Some(size) = machine.size_to_map(&next) {
        let required = machine.pages_mapped(&next, size);
        let lacking = required - available(machine, size);
        let fits = memory::missing_once_stopped(machine, Bytes(0), Bytes(0));
        let fits = fits.unwrap_or_default() == Bytes(0);
        let mapped = required - lacking;
        let is_allowed = !limits::exceed_fault_limit(machine, size, mapped)
            && memory::missing_for_huge_pages(machine, mapped * size).is_none();
        if fits && is_allowed && Pages(0) < lacking && lacking * size < missing {
            return Lower::by_pages(machine, size, required, lacking);
        }
    }
    let small = Bytes(machine.state.needed_bytes()) - missing;
    let still = memory::missing_once_stopped(machine, Bytes(0), small);
    let is_enough = missing > Bytes(0) && still.unwrap_or_default() == Bytes(0);
    Lower::by_bytes(machine, missing).filter(|_| is_enough)
}

fn short_of(machine: &Machine, missing: Bytes, is_least: bool, can_swap: bool) -> Decision {
    let size = machine.default_size();
    Decision::LowerSharedBuffers {
        lower: lower_on_small_pages(machine, missing),
        missing,
        is_least,
        can_swap,
        has_zram: machine.facts.free_zram_bytes > 0,
        others: size.and_then(|size| held_by_others(machine, size)),
        release: releasable(machine, missing),
    }
}

/// The decision about small pages that cannot hold the segment.
pub(crate) fn for_misfit(machine: &Machine, fit: Fit) -> Decision {
    match fit {
        Fit::Fits => Decision::Text("nothing has to be decided".to_owned()),
        Fit::BeyondCommitLimit { segment, limit } => raise_commit_limit(&CommitLimit {
            committed: limit.committed + segment,
            ..*limit
        }),
        Fit::BeyondMemory(shortage) => {
            let is_least = shortage.is_least || shortage.is_most;
            short_of(machine, shortage.missing, is_least, shortage.can_swap())
        }
        Fit::BeyondRamAndSwap { segment, all } => {
            let shortage = Shortage::after_start(machine, segment);
            let missing = shortage.map_or(Bytes(0), |shortage| shortage.missing);
            // More could be missing, so that the reserve stays available.
            let is_bound = || memory::is_not_faulted_in_a_bound(machine);
            let is_least = shortage.map_or_else(is_bound, |short| short.is_least || short.is_most);
            short_of(machine, missing.max(segment - all), is_least, true)
        }
        Fit::BeyondCgroup { to_raise, .. } => Decision::RaiseMemoryLimit { by: to_raise },
    }
}

/// The decision about a server for which root does not run PostgreSQL.
pub(crate) fn about_unnamed(command: &str) -> Decision {
    Decision::Text(format!(
        "if you trust the configuration of this server, let PostgreSQL compute its next start: {command}"
    ))
}

/// The decision about idle pages that are not free to be released. `None`: nothing else could
/// need them.
pub(crate) fn about_idle(target: &PoolTarget) -> Option<Decision> {
    let size = target.now.size;
    Some(match target.idle_for.as_ref()? {
        IdleFor::Hidden(hidden) => Decision::HiddenServers {
            hidden: *hidden,
            size,
            pages: target.idle(),
        },
        IdleFor::Server(server) => Decision::MeantForServer {
            server: *server,
            size,
            pages: target.idle(),
        },
        IdleFor::PendingSettings(why) => Decision::AskAsSuperuser(why.clone()),
        IdleFor::NotNamed(command) => about_unnamed(command),
        IdleFor::UnknownBoot(why) => Decision::LookAtBootFiles(vec![why.clone()]),
        IdleFor::Files(_) => Decision::Text(
            "if the server never starts without the options of its command line, set them in its files, too: its idle pages are then released".to_owned(),
        ),
    })
}
