//! The facts about one server and its machine on which all advice is based. Read once, and never
//! changed: steps change a copy of the [`State`].

use std::{collections::BTreeMap, path::PathBuf};

use crate::linux::{
    buddyinfo::{self, FreeBlocks},
    cgroup::{
        self,
        memory::{self, MemoryLimit},
        memory_events,
    },
    container,
    error::{Absent, Fact, ReadError, fact},
    hugepages, meminfo,
    numa::node::Node,
    process::{
        Process, oom_score,
        segment::{self, Segment},
        through,
    },
    root::Root,
    sysctl, transparent_hugepage,
    vmstat::{self, Vmstat},
    zfs::{self, ZfsCache},
};
use crate::server::{
    connection::Connection,
    rights,
    state::{AllowedNodes, Server, State},
    unit,
    visibility::Visibility,
};

/// Identifies the server and its main segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The postmaster; `None` in single-user mode.
    pub postmaster: Option<u32>,
    /// An address inside the main segment, the same in every process of the server.
    pub address: u64,
}

/// An environment variable for a limit on huge pages whose value is not a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidLimit {
    /// The page size of the limit.
    pub page_bytes: u64,
    pub variable: String,
    /// Value, escaped and truncated.
    pub value: String,
}

/// Facts about one server and its machine. Unknown facts are [`Absent`] or `None`, never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The state that steps can change, as it was read.
    pub state: State,
    /// Whether more facts were read than those of [`Facts::read`]. Others are absent.
    pub is_whole: bool,
    /// Limits in the server's environment with invalid values.
    pub invalid_limits: Vec<InvalidLimit>,
    /// The NUMA nodes that the server is allowed to use.
    pub allowed_nodes: AllowedNodes,
    /// Release and machine (`uname -rm`). Empty: not read.
    pub kernel: String,
    /// Counters of the kernel's memory management.
    pub vmstat: Fact<Vmstat>,
    /// Free memory by block size.
    pub free_blocks: Fact<FreeBlocks>,
    /// The NUMA nodes, with their part of the pools.
    pub nodes: Fact<Vec<Node>>,
    /// Whether the main segment starts at a multiple of the size of transparent huge pages
    /// (`hpage_pmd_size`). If it does not, the kernel cannot map it with them. `None`: unknown.
    pub is_segment_aligned: Option<bool>,
    /// Whether processes started like the postmaster can get a lower `oom_score_adj` than it has:
    /// its bounding set has `CAP_SYS_RESOURCE`, and it is in the initial user namespace. `None`:
    /// unknown. Any process can raise its own value.
    pub can_lower_oom_score: Option<bool>,
    /// The nearest cgroup of the postmaster, own or ancestor, with `memory.oom.group` = 1. If the
    /// OOM killer acts for this cgroup or one above it, it kills every process in it, except those
    /// with `oom_score_adj` = -1000.
    pub memory_oom_group: Option<PathBuf>,
    /// Processes that the OOM killer has killed in the postmaster's cgroup since the cgroup exists
    /// (`oom_kill` in v1 `memory.oom_control`, v2 `memory.events`). `None`: not reported.
    pub cgroup_oom_kills: Option<u64>,
    /// How often the kernel has refused pages of each size to the postmaster's cgroup, if cgroups
    /// above it are hidden. Empty: not reported.
    pub refused_pages: BTreeMap<u64, u64>,
    /// The postmaster's cgroups with `memory.high`, which is their limit here, nearest first.
    pub memory_high: Vec<MemoryLimit>,
    /// Free swap on zram, in bytes ([`meminfo::read_free_zram`]).
    pub free_zram_bytes: u64,
    /// The memory of ZFS. `None`: it is not loaded.
    pub zfs_cache: Option<ZfsCache>,
    /// Whether this server runs in a container: its PID or cgroup namespace is not the initial one,
    /// or its root directory is not that of process 1. `None`: unknown.
    pub is_container: Option<bool>,
    /// Whether systemd manages services here (`/run/systemd/system`). `None`: unknown.
    pub has_systemd: Option<bool>,
    /// The user and address with which a program on this host connects to the server.
    pub connection: Connection,
    /// Which processes of the host are visible.
    pub visibility: Visibility,
    /// `max_connections`. 0: unknown, see [`Self::known_max_connections`].
    pub max_connections: u64,
    /// `shared_buffers`, in bytes.
    pub shared_buffers_bytes: u64,
    /// Whether `ALTER SYSTEM` is allowed. PostgreSQL 17 can forbid it.
    pub allows_alter_system: bool,
}

impl Facts {
    /// `max_connections`. `None`: unknown, as for files that PostgreSQL refuses.
    pub fn known_max_connections(&self) -> Option<u64> {
        Some(self.max_connections).filter(|number| *number > 0)
    }

    /// The facts with this state, when nothing else has been read.
    pub fn unread(state: State) -> Self {
        Self {
            state,
            is_whole: false,
            invalid_limits: Vec::new(),
            allowed_nodes: AllowedNodes::All,
            kernel: String::new(),
            vmstat: Err(Absent::not_looked_at()),
            free_blocks: Err(Absent::not_looked_at()),
            nodes: Err(Absent::not_looked_at()),
            is_segment_aligned: None,
            can_lower_oom_score: None,
            memory_oom_group: None,
            cgroup_oom_kills: None,
            refused_pages: BTreeMap::new(),
            memory_high: Vec::new(),
            free_zram_bytes: 0,
            zfs_cache: None,
            is_container: None,
            has_systemd: None,
            connection: Connection::default(),
            visibility: Visibility::Hidden,
            max_connections: 0,
            shared_buffers_bytes: 0,
            allows_alter_system: false,
        }
    }

    /// Reads a few files, enough for `hugeinfo_status` of a healthy server, with the page size of
    /// the running kernel.
    ///
    /// Errors: only out of memory. Facts that cannot be read or parsed are absent.
    pub fn read(root: &Root, server: Server, subject: &Subject) -> Result<Self, ReadError> {
        let (process, segment) = find_segment(root, subject)?;
        Self::of_process(root, server, process.as_ref(), segment)
    }

    /// Like [`Self::read`], for a process of the server that was found by other means.
    pub fn of_process(
        root: &Root,
        server: Server,
        process: Result<&Process, &Absent>,
        segment: Result<Segment, Absent>,
    ) -> Result<Self, ReadError> {
        let pools = fact(hugepages::read(root))?;
        let page_sizes: Vec<u64> = match &pools {
            Ok(pools) => pools.iter().map(|pool| pool.page_bytes).collect(),
            // The limits of cgroups are known even if a counter of a pool is not.
            Err(_) => fact(hugepages::page_sizes(root))?.unwrap_or_default(),
        };
        let (meminfo, usage) = meminfo::read(root)?;
        let state = State {
            segment,
            meminfo,
            usage,
            hugetlb: through(process, |process| cgroup::read(root, process, &page_sizes))?,
            pools,
            ..State::unread(server)
        };
        Ok(Self {
            allowed_nodes: AllowedNodes::read(root, process)?,
            ..Self::unread(state)
        })
    }

    /// Adds the facts about the process of a postmaster and its cgroups, and those about the host
    /// that only some checks need.
    pub fn with_postmaster(
        self,
        root: &Root,
        postmaster: Result<&Process, &Absent>,
    ) -> Result<Self, ReadError> {
        let mut buffer = Vec::new();
        let can_lower_oom_score = match postmaster {
            Ok(postmaster) => rights::can_lower_oom_score(postmaster, &mut buffer)?,
            Err(_) => None,
        };
        let oom_killer = through(postmaster, |postmaster| {
            memory_events::oom_killer(root, postmaster)
        })?
        .unwrap_or_default();
        let pools = self.state.pools.iter().flatten();
        let sizes = pools.map(|pool| pool.page_bytes);
        let refused = through(postmaster, |process| cgroup::refusals(root, process, sizes))?;
        let high = through(postmaster, |process| memory::read_high(root, process))?;
        let state = State {
            oom_score_adj: through(postmaster, |postmaster| {
                oom_score::score_adj(postmaster, &mut buffer)
            })?,
            memory_limits: through(postmaster, |postmaster| memory::read(root, postmaster))?,
            unit: through(postmaster, |postmaster| unit::read(root, postmaster))?
                .unwrap_or_default(),
            ..self.state
        };
        let facts = Self {
            can_lower_oom_score,
            memory_oom_group: oom_killer.group,
            cgroup_oom_kills: oom_killer.kills,
            refused_pages: refused.unwrap_or_default(),
            memory_high: high.unwrap_or_default(),
            connection: match postmaster {
                Ok(postmaster) => Connection::read(root, postmaster, &mut buffer)?,
                Err(_) => Connection::default(),
            },
            state,
            ..self
        };
        facts.with_host(root)
    }

    /// Adds the facts about the host that only some checks need.
    pub fn with_host(self, root: &Root) -> Result<Self, ReadError> {
        let name = rustix::system::uname();
        let (release, machine) = (name.release(), name.machine());
        Ok(Self {
            kernel: format!(
                "{} {}",
                release.to_string_lossy(),
                machine.to_string_lossy()
            ),
            vmstat: fact(vmstat::read(root))?,
            free_blocks: fact(buddyinfo::read(root))?,
            has_systemd: container::has_systemd(root)?,
            free_zram_bytes: meminfo::read_free_zram(root, self.state.usage.as_ref().ok())?,
            zfs_cache: fact(zfs::read(root))?.ok(),
            state: State {
                vm: sysctl::read(root)?,
                thp: fact(transparent_hugepage::read(root))?,
                ..self.state
            },
            ..self
        })
    }
}

/// Returns the process of the server to read from, and the main segment in it.
///
/// Tries the postmaster first. It has faulted in the least memory, so walking its page tables is
/// fast, and the segment was reserved in its cgroup. If the postmaster does not map the segment,
/// the PID might belong to another process, because `/proc` can be of another PID namespace.
fn find_segment(root: &Root, subject: &Subject) -> Result<Found, ReadError> {
    let look = |process: Result<Process, ReadError>| {
        let process = fact(process)?;
        let segment = through(process.as_ref(), |process| {
            segment::read(process, subject.address)
        })?;
        Ok::<Found, ReadError>((process, segment))
    };
    if let Some(pid) = subject.postmaster {
        let found = look(Process::open(root, pid))?;
        if found.1.is_ok() {
            return Ok(found);
        }
    }
    look(Process::this(root))
}

type Found = (Result<Process, Absent>, Result<Segment, Absent>);
