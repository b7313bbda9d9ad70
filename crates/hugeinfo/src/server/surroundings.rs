//! What the diagnoses look at beyond [`Facts`](crate::server::facts::Facts): the host around the
//! server, its processes, its neighbours.

use std::collections::BTreeMap;

use crate::{
    linux::{
        boot::NextBoot,
        buddyinfo::FreeBlocks,
        cgroup::{Refused, memory::MemoryLimit},
        error::Absent,
        numa::node::Node,
        vmstat::Vmstat,
    },
    server::{
        facts::Server, host::Host, instances::Instance, restored::TooLow, setting::Setting,
        sight::Sight,
    },
};

/// What the kernel doesn't tell is [`Absent`] or `None`, never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Memory, kernel and its settings.
    pub host: Host,
    /// Counters of the kernel's memory management.
    pub vmstat: Result<Vmstat, Absent>,
    /// Free memory in whole blocks.
    pub free_blocks: Result<FreeBlocks, Absent>,
    /// What asks for huge pages when the machine starts.
    pub asked_at_boot: Result<NextBoot, Absent>,
    /// The NUMA nodes, with their part of the pools.
    pub nodes: Result<Vec<Node>, Absent>,
    /// Pages of the main segment by node, as far as one process has touched it. `None`: there is
    /// one node, or it can't be seen.
    pub segment_nodes: Option<BTreeMap<u32, u64>>,
    /// Bytes of the main segment on transparent huge pages. Looked up only where the kernel may use
    /// them.
    pub segment_thp_bytes: Option<Result<u64, Absent>>,
    /// The processes of this server.
    pub processes: Vec<ProcessFigures>,
    /// The postmaster's `oom_score_adj`.
    pub oom_score_adj: Result<i32, Absent>,
    /// The postmaster's limit on locked memory; `None`: unlimited.
    pub locked_memory: Result<Option<u64>, Absent>,
    /// What limits the server's memory, nearest first; empty: nothing that can be seen.
    pub memory_limits: Result<Vec<MemoryLimit>, Absent>,
    /// What the limits of the server's control groups have refused so far.
    pub refused_by_limits: Vec<Refused>,
    /// The servers of this host but this one, as far as they are seen.
    pub neighbours: Result<Vec<Instance>, Absent>,
    /// Which are.
    pub sight: Sight,
    /// `io_method = io_uring` (PostgreSQL 18).
    pub uses_io_uring: bool,
    /// `max_connections`.
    pub max_connections: u64,
    /// `shared_buffers`, in bytes.
    pub shared_buffers_bytes: u64,
    /// The settings that affect the main segment and its pages, by name.
    pub settings: BTreeMap<&'static str, Setting>,
    /// Whether one of them has been changed in the files, as of the last reload, and takes effect
    /// at the next start.
    pub settings_wait_for_restart: bool,
    /// Those that wait in the files, by name, as far as somebody has looked.
    pub waiting_settings: Vec<String>,
    /// Whether `ALTER SYSTEM` is allowed. PostgreSQL 17 can forbid it.
    pub allows_alter_system: bool,
    /// What the configuration files say of the next start.
    pub files: Files,
}

/// One process of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// `VmPTE`, in bytes.
    pub page_tables: Option<u64>,
    /// `RssAnon`, in bytes.
    pub rss_anon: Option<u64>,
    /// `RssShmem`, in bytes: shared memory on small pages that it has touched.
    pub rss_shmem: Option<u64>,
    /// `VmSwap`, in bytes.
    pub swap: Option<u64>,
    /// Faults that needed reading from disk, since it started.
    pub major_faults: u64,
    /// Seconds since it started.
    pub age_seconds: Option<u64>,
    /// `oom_score_adj`; of the postmaster, too.
    pub oom_score_adj: Option<i32>,
    /// Whether this is the postmaster.
    pub is_postmaster: bool,
}

/// What the configuration files on disk mean for the next start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// No setting waits for a restart that the main segment, or its pages, depend on.
    NothingWaits,
    /// What the next start will use.
    Planned(Server),
    /// The next start would fail, in PostgreSQL's words.
    Refused(String),
    /// It would fail for want of room for what it brings back, whether something waits in the files
    /// or not.
    TooLow(Vec<TooLow>),
    /// Nobody could look, and why.
    Unseen(String),
}

impl Files {
    /// Whether the server would not come up again after a stop.
    pub fn stop_a_start(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::TooLow(_))
    }
}
