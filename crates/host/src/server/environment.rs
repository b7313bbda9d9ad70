//! The environment of a server: facts about the host, the processes of the server, and other
//! servers, which checks need in addition to [`Facts`](crate::server::facts::Facts).

use std::{collections::BTreeMap, path::PathBuf};

use crate::linux::{
    boot::NextBoot,
    buddyinfo::{self, FreeBlocks},
    cgroup::{
        memory::{self, MemoryLimit},
        memory_events,
    },
    container,
    error::{Absent, ReadError, fact},
    numa::node::Node,
    process::{Process, oom_score, stat::Stat, status::Memory},
    root::Root,
    vmstat::{self, Vmstat},
};

use crate::server::{
    connection::Connection,
    facts::{Server, through},
    host::Host,
    instances::Instance,
    rights,
    setting::Setting,
    visibility::Visibility,
};

/// Unknown facts are [`Absent`] or `None`, never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Memory, and the kernel with its settings.
    pub host: Host,
    /// Counters of the kernel's memory management.
    pub vmstat: Result<Vmstat, Absent>,
    /// Free memory by block size.
    pub free_blocks: Result<FreeBlocks, Absent>,
    /// Huge pages requested at the next boot.
    pub next_boot: Result<NextBoot, Absent>,
    /// The NUMA nodes, with their part of the pools.
    pub nodes: Result<Vec<Node>, Absent>,
    /// Pages of the main segment by node, as far as one process has faulted them in. `None`: there
    /// is only one node, or unknown.
    pub segment_nodes: Option<BTreeMap<u32, u64>>,
    /// Bytes of the main segment on transparent huge pages, at least. `None`: not read, because the
    /// segment is on hugetlb pages or the kernel does not use transparent ones for it.
    pub segment_thp_bytes: Option<Result<u64, Absent>>,
    /// Whether the main segment starts at a multiple of the size of transparent huge pages
    /// (`hpage_pmd_size`). If it does not, the kernel cannot map it with them. `None`: unknown.
    pub is_segment_aligned: Option<bool>,
    /// The processes of this server.
    pub processes: Vec<ProcessFigures>,
    /// The postmaster's `oom_score_adj`.
    pub oom_score_adj: Result<i32, Absent>,
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
    /// Whether this server runs in a container: its PID or cgroup namespace is not the initial one,
    /// or its root directory is not that of process 1. `None`: unknown.
    pub is_container: Option<bool>,
    /// Whether systemd manages services here (`/run/systemd/system`). `None`: unknown.
    pub has_systemd: Option<bool>,
    /// The user and address with which a program on this host connects to the server.
    pub connection: Connection,
    /// Memory limits of the server's cgroups, nearest first. Empty: no visible limit.
    pub memory_limits: Result<Vec<MemoryLimit>, Absent>,
    /// Other servers on this host, as far as they are visible.
    pub other_servers: Result<Vec<Instance>, Absent>,
    /// Which processes of the host are visible.
    pub visibility: Visibility,
    /// `max_connections`.
    pub max_connections: u64,
    /// `shared_buffers`, in bytes.
    pub shared_buffers_bytes: u64,
    /// The settings that affect the main segment and its pages, by name.
    pub settings: BTreeMap<&'static str, Setting>,
    /// Whether one of them is pending a restart, as of the last reload.
    pub has_pending_restart: bool,
    /// Names of the settings in the files that are pending a restart, if they were read.
    pub pending_settings: Vec<String>,
    /// Whether `ALTER SYSTEM` is allowed. PostgreSQL 17 can forbid it.
    pub allows_alter_system: bool,
    /// The effect of the configuration files on the next start.
    pub files: Files,
}

/// One process of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// `VmPTE`, in bytes.
    pub page_tables: Option<u64>,
    /// `RssAnon`, in bytes.
    pub rss_anon: Option<u64>,
    /// `RssShmem`, in bytes: shared memory on small pages that the process has faulted in.
    pub rss_shmem: Option<u64>,
    /// `VmSwap`, in bytes.
    pub swap: Option<u64>,
    /// Page faults that read from disk, since the process started.
    pub major_faults: u64,
    /// Seconds since the process started.
    pub age_seconds: Option<u64>,
    /// `oom_score_adj`.
    pub oom_score_adj: Option<i32>,
    /// Whether this is the postmaster.
    pub is_postmaster: bool,
    /// Whether this is a client backend. Read only together with `page_tables`.
    pub is_client_backend: bool,
}

impl ProcessFigures {
    /// The figures in these two files. `uptime` is the age of the system in seconds.
    pub fn of(memory: &Memory, stat: &Stat, uptime: Option<u64>) -> Self {
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let started = stat.start_ticks.checked_div(ticks_per_second);
        Self {
            page_tables: memory.page_tables,
            rss_anon: memory.rss_anon,
            rss_shmem: memory.rss_shmem,
            swap: memory.swap,
            major_faults: stat.major_faults.unwrap_or_default(),
            age_seconds: uptime
                .zip(started)
                .map(|(now, then)| now.saturating_sub(then)),
            ..Self::default()
        }
    }
}

impl Environment {
    /// An environment of which only the host has been read.
    pub fn unread(host: Host) -> Self {
        Self {
            host,
            vmstat: Err(Absent::not_looked_at()),
            free_blocks: Err(Absent::not_looked_at()),
            next_boot: Err(Absent::not_looked_at()),
            nodes: Err(Absent::not_looked_at()),
            segment_nodes: None,
            segment_thp_bytes: None,
            is_segment_aligned: None,
            processes: Vec::new(),
            oom_score_adj: Err(Absent::not_looked_at()),
            can_lower_oom_score: None,
            memory_oom_group: None,
            cgroup_oom_kills: None,
            is_container: None,
            has_systemd: None,
            connection: Connection::default(),
            memory_limits: Err(Absent::not_looked_at()),
            other_servers: Err(Absent::not_looked_at()),
            visibility: Visibility::Hidden,
            max_connections: 0,
            shared_buffers_bytes: 0,
            settings: BTreeMap::new(),
            has_pending_restart: false,
            pending_settings: Vec::new(),
            allows_alter_system: false,
            files: Files::Unknown("they were not read".to_owned()),
        }
    }

    /// The host, and the facts about the process of a postmaster and its cgroups. Everything else
    /// counts as missing.
    pub fn of_postmaster(
        root: &Root,
        host: Host,
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
        Ok(Self {
            vmstat: fact(vmstat::read(root))?,
            free_blocks: fact(buddyinfo::read(root))?,
            oom_score_adj: through(postmaster, |postmaster| {
                oom_score::score_adj(postmaster, &mut buffer)
            })?,
            can_lower_oom_score,
            memory_oom_group: oom_killer.group,
            cgroup_oom_kills: oom_killer.kills,
            has_systemd: container::has_systemd(root)?,
            connection: match postmaster {
                Ok(postmaster) => Connection::read(root, postmaster, &mut buffer)?,
                Err(_) => Connection::default(),
            },
            memory_limits: through(postmaster, |postmaster| memory::read(root, postmaster))?,
            ..Self::unread(host)
        })
    }
}

/// The effect of the configuration files on disk on the next start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// No setting that affects the main segment or its pages is pending a restart.
    NothingPending,
    /// Settings that the next start will use.
    Planned(Server),
    /// The next start would fail with this message of PostgreSQL.
    Refused(String),
    /// The files could not be read, for this reason.
    Unknown(String),
    /// Only PostgreSQL can evaluate the files, and root runs it only for servers that are named. This
    /// command names the server.
    NotNamed(String),
}

impl Files {
    /// True if the server would not start after a stop.
    pub fn stop_a_start(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}
