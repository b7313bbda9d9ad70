//! The state of one server and its machine, which steps can change.

use std::collections::BTreeMap;

use crate::server::{instances::Instance, setting::Setting};
use crate::{
    linux::{
        boot::{Kernel, NextBoot},
        cgroup::{Hugetlb, memory::MemoryLimit},
        error::{Absence, Absent, Fact, ReadError, fact},
        hugepages::Pool,
        meminfo::{Meminfo, Usage},
        numa::{
            node::{self, Node},
            nodes,
        },
        pages,
        process::{
            Process, numa_maps,
            segment::Segment,
            stat::Stat,
            status::{self, Memory},
            through,
        },
        root::Root,
        sysctl::Vm,
        transparent_hugepage::Modes,
    },
    server::unit::Unit,
    units::PageSize,
};
use serde::{Deserialize, Serialize};

/// The setting `huge_pages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HugePages {
    /// Do not use huge pages.
    Off,
    /// Use huge pages, or fail to start.
    On,
    /// Use huge pages, or fall back to small pages without a message.
    Try,
}

impl HugePages {
    /// Parses the setting like PostgreSQL (guc_tables.c `huge_pages_options`).
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "try" => Some(Self::Try),
            "on" | "true" | "yes" | "1" => Some(Self::On),
            "off" | "false" | "no" | "0" => Some(Self::Off),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Try => "try",
        }
    }
}

/// The setting `shared_memory_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedMemoryType {
    /// Anonymous shared memory, the only type that can use huge pages.
    Mmap,
    /// System V shared memory.
    Sysv,
}

impl SharedMemoryType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Sysv => "sysv",
        }
    }

    /// Parses the setting like PostgreSQL.
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "mmap" => Some(Self::Mmap),
            "sysv" => Some(Self::Sysv),
            _ => None,
        }
    }
}

/// Settings of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `huge_pages`.
    pub huge_pages: HugePages,
    /// `shared_memory_type`.
    pub shared_memory_type: SharedMemoryType,
    /// `huge_page_size`; `None`: the kernel's default.
    pub huge_page_size_bytes: Option<u64>,
    /// `shared_memory_size`, which PostgreSQL rounds up to whole MB. Exact in a plan.
    pub shared_memory_bytes: u64,
}

impl Server {
    /// True if a start with these settings requests huge pages.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.huge_pages != HugePages::Off && self.shared_memory_type == SharedMemoryType::Mmap
    }

    /// True if both have the same `huge_pages` and `shared_memory_type`.
    pub fn asks_alike(&self, other: &Self) -> bool {
        let of = |server: &Self| (server.huge_pages, server.shared_memory_type);
        of(self) == of(other)
    }

    /// Huge pages of that size that a start with these settings maps. PostgreSQL rounds the segment
    /// up to the requested size, and the kernel rounds it up to its own page size
    /// (port/sysv_shmem.c `CreateAnonymousSegment`).
    pub fn pages(&self, page_bytes: u64) -> u64 {
        let needed = self.shared_memory_bytes;
        let told = self.huge_page_size_bytes.filter(|&told| told < page_bytes);
        let rounded = told.and_then(|told| needed.checked_next_multiple_of(told));
        pages::pages_required(rounded.unwrap_or(needed), page_bytes)
    }
}

/// Bytes of the main shared memory segment, from `shared_memory_size_in_huge_pages` with
/// `huge_page_size = 4kB`.
///
/// The size is a multiple of 8 kB (storage/ipc/ipci.c `CalculateShmemSize`). The number of pages is
/// exact or, as in PostgreSQL 15, one too large, so rounding it down to an even number is correct
/// in both cases.
pub fn bytes_of_small_pages(pages: u64) -> u64 {
    (pages & !1) << 12
}

/// The state that steps can change: the settings and the memory of the server, the pools with their
/// limits, and the configuration files. An unknown value is [`Absent`] or `None`, never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Settings of the running server.
    pub server: Server,
    /// Settings of the next start.
    pub next: NextSettings,
    /// Size of a small page: 4 kB, or up to 64 kB on arm64.
    pub base_page_bytes: u64,
    /// The main shared memory segment.
    pub segment: Fact<Segment>,
    /// Pages of the main segment that one process has faulted in, by node. `None`: there is only
    /// one node, or unknown.
    pub segment_nodes: Option<BTreeMap<u32, u64>>,
    /// Bytes of the main segment on transparent huge pages, at least. `None`: not read, because the
    /// segment is on hugetlb pages or the kernel does not use transparent ones for it.
    pub segment_thp_bytes: Option<Fact<u64>>,
    pub processes: Vec<ProcessFigures>,
    /// The postmaster's `oom_score_adj`.
    pub oom_score_adj: Fact<i32>,
    /// The systemd unit of the server. `None`: there is none, or it is hidden.
    pub unit: Option<Unit>,
    /// RAM and default huge page size.
    pub meminfo: Fact<Meminfo>,
    /// The use of the host's memory.
    pub usage: Fact<Usage>,
    /// The kernel's pools.
    pub pools: Fact<Vec<Pool>>,
    /// Limits of the server's cgroups on huge pages.
    pub hugetlb: Fact<Hugetlb>,
    /// Memory limits of the server's cgroups, nearest first. Empty: no visible limit.
    pub memory_limits: Fact<Vec<MemoryLimit>>,
    /// `/proc/sys/vm`.
    pub vm: Vm,
    /// Modes of transparent huge pages.
    pub thp: Fact<Modes>,
    /// Huge pages requested at the next boot.
    pub next_boot: Fact<NextBoot>,
    /// The visible other servers on this host.
    pub other_servers: Fact<Vec<Instance>>,
}

/// The NUMA nodes that a server is allowed to use: those of its cgroup (`cpuset.mems`) and of its
/// memory policy (`numactl --membind`).
///
/// The kernel refuses a mapping on huge pages if these nodes have too few, even if the whole pool
/// has enough (mm/hugetlb.c `hugetlb_acct_memory`, `allowed_mems_nr`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedNodes {
    /// All nodes with memory, or the kernel has no NUMA support.
    All,
    /// Some of the nodes with memory.
    Only(Vec<Node>),
    /// Not reported.
    Unknown(Absent),
}

impl AllowedNodes {
    /// True if the server is allowed to use this node. `None`: unknown.
    pub fn allows(&self, number: u32) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::Only(nodes) => Some(nodes.iter().any(|node| node.number == number)),
            Self::Unknown(_) => None,
        }
    }

    /// Reads the counters of nodes only if the server is restricted to some nodes, because most
    /// servers are not.
    pub(crate) fn read(root: &Root, process: Result<&Process, &Absent>) -> Result<Self, ReadError> {
        let with_memory = match fact(nodes::with_memory(root))? {
            Ok(list) if list.count() < 2 => return Ok(Self::All),
            Ok(list) => list,
            Err(absent) => {
                // The kernel has no NUMA support, or does not report nodes.
                return Ok(match fact(nodes::read(root))? {
                    Ok(nodes) if nodes.len() < 2 => Self::All,
                    Err(nodes) if nodes.why == Absence::Missing => Self::All,
                    Ok(_) | Err(_) => Self::Unknown(absent),
                });
            }
        };
        let restrictions = through(process, |process| {
            let by_group = status::read_allowed_nodes(process, &mut Vec::new())?;
            Ok([by_group, numa_maps::bound_nodes(process)?])
        })?;
        let allowed = match restrictions {
            Ok(lists) => lists
                .iter()
                .flatten()
                .fold(with_memory.clone(), |allowed, list| {
                    allowed.intersection(list)
                }),
            Err(absent) => return Ok(Self::Unknown(absent)),
        };
        if allowed.covers(&with_memory) {
            return Ok(Self::All);
        }
        let nodes = node::read_among(root, |number| allowed.contains(number), || ());
        Ok(match fact(nodes)? {
            Ok(nodes) => Self::Only(nodes),
            Err(absent) => Self::Unknown(absent),
        })
    }
}

/// The pages that back the main segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// Pages of a hugetlb pool.
    HugePages(PageSize),
    /// Base pages, transparent huge pages included.
    SmallPages,
    Unknown,
}

impl Backing {
    /// True for huge pages. `None`: unknown.
    pub fn is_huge(self) -> Option<bool> {
        match self {
            Self::HugePages(_) => Some(true),
            Self::SmallPages => Some(false),
            Self::Unknown => None,
        }
    }

    /// The size of the huge pages. `None`: not huge, or unknown.
    pub fn huge_page(self) -> Option<PageSize> {
        match self {
            Self::HugePages(size) => Some(size),
            Self::SmallPages | Self::Unknown => None,
        }
    }
}

impl State {
    /// The state of a server with these settings, when nothing else has been read.
    pub fn unread(server: Server) -> Self {
        Self {
            server,
            next: NextSettings {
                files: Files::Unknown {
                    why: "they were not read".to_owned(),
                    is_pending: false,
                },
                ..NextSettings::default()
            },
            base_page_bytes: pages::base_page_bytes(),
            segment: Err(Absent::not_looked_at()),
            segment_nodes: None,
            segment_thp_bytes: None,
            processes: Vec::new(),
            oom_score_adj: Err(Absent::not_looked_at()),
            unit: None,
            meminfo: Err(Absent::not_looked_at()),
            usage: Err(Absent::not_looked_at()),
            pools: Err(Absent::not_looked_at()),
            hugetlb: Err(Absent::not_looked_at()),
            memory_limits: Err(Absent::not_looked_at()),
            vm: Vm::default(),
            thp: Err(Absent::not_looked_at()),
            next_boot: Err(Absent::not_looked_at()),
            other_servers: Err(Absent::not_looked_at()),
        }
    }

    /// What the reader of the boot configuration has to know about the kernel.
    pub fn kernel(&self) -> Kernel {
        let sizes = |pools: &Vec<Pool>| pools.iter().map(|pool| pool.page_bytes).collect();
        Kernel {
            sizes: self.pools.as_ref().ok().map(sizes),
            default_bytes: self.huge_page_of_setting(None),
        }
    }

    /// Size of the pages that back the segment, huge or not.
    pub fn page_bytes(&self) -> Option<u64> {
        self.segment.as_ref().ok()?.page_bytes
    }

    /// The pages that back the segment.
    pub fn backing(&self) -> Backing {
        match self.page_bytes() {
            Some(bytes) if bytes > self.base_page_bytes => Backing::HugePages(PageSize(bytes)),
            Some(_) => Backing::SmallPages,
            None => Backing::Unknown,
        }
    }

    /// Settings that the next start will use.
    pub fn next_start(&self) -> &Server {
        self.next.server.as_ref().unwrap_or(&self.server)
    }

    /// Size of the huge pages that the next start requests (port/sysv_shmem.c `GetHugePageSize`).
    /// `None`: neither the setting nor the kernel has a size.
    ///
    /// PostgreSQL passes the logarithm of the setting, rounded up: 1536 kB requests 2 MB pages.
    pub fn huge_page_asked_for(&self) -> Option<u64> {
        self.huge_page_of(self.next_start())
    }

    /// Like [`Self::huge_page_asked_for`], for a start with these settings.
    pub fn huge_page_of(&self, server: &Server) -> Option<u64> {
        self.huge_page_of_setting(server.huge_page_size_bytes)
    }

    /// Like [`Self::huge_page_asked_for`], for this value of `huge_page_size`. `None`: 0.
    pub fn huge_page_of_setting(&self, setting: Option<u64>) -> Option<u64> {
        let Some(setting) = setting else {
            return self.meminfo.as_ref().ok()?.default_huge_page_bytes;
        };
        let rounded_up = setting.checked_next_power_of_two()?;
        let is_there = self
            .pools
            .iter()
            .flatten()
            .any(|pool| pool.page_bytes == rounded_up);
        Some(if is_there { rounded_up } else { setting })
    }

    /// True if the next start requests huge pages.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.next_start().asks_for_huge_pages()
    }

    /// True if a start with these settings maps as many pages of the same kind as the server has
    /// now. If the kernel does not report the size of the segment, compares PostgreSQL's figure in
    /// whole MB, rounded up.
    pub fn is_as_now(&self, next: &Server) -> bool {
        let now = &self.server;
        let is_of_same_size = match &self.segment {
            Ok(Segment {
                bytes,
                page_bytes: Some(page),
                ..
            }) => next.pages(*page) == bytes.div_ceil(*page),
            _ => next.shared_memory_bytes.div_ceil(1 << 20) == now.shared_memory_bytes >> 20,
        };
        let has_same_settings = Server {
            shared_memory_bytes: now.shared_memory_bytes,
            ..next.clone()
        } == *now;
        is_of_same_size && has_same_settings
    }

    /// The pool from which the next start requests pages.
    pub fn target_pool(&self) -> Option<&Pool> {
        self.pool(self.huge_page_asked_for()?)
    }

    /// The pool with pages of this size, in bytes.
    pub fn pool(&self, page_bytes: u64) -> Option<&Pool> {
        let mut pools = self.pools.iter().flatten();
        pools.find(|pool| pool.page_bytes == page_bytes)
    }

    /// Bytes of the main segment at the next start. Exact with a plan. Otherwise an upper bound,
    /// because the mapping is rounded up to whole pages and PostgreSQL's own figure to whole MB.
    pub fn needed_bytes(&self) -> u64 {
        if let Some(next) = &self.next.server {
            return next.shared_memory_bytes;
        }
        let stated = self.server.shared_memory_bytes;
        self.segment
            .as_ref()
            .map_or(stated, |segment| segment.bytes.min(stated))
    }
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
    /// `RssFile`, in bytes.
    pub rss_file: Option<u64>,
    /// `VmSwap`, in bytes.
    pub swap: Option<u64>,
    /// Page faults that read from disk, since the process started.
    pub major_faults: u64,
    /// Seconds since the process started.
    pub age_seconds: Option<u64>,
    /// `oom_score_adj`.
    pub oom_score_adj: Option<i32>,
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
            rss_file: memory.rss_file,
            swap: memory.swap,
            major_faults: stat.major_faults.unwrap_or_default(),
            age_seconds: uptime
                .zip(started)
                .map(|(now, then)| now.saturating_sub(then)),
            ..Self::default()
        }
    }
}

/// The settings of the next start. What is pending a restart follows from a comparison with the
/// settings of the running server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextSettings {
    /// The settings, with the exact size of the segment if PostgreSQL has computed it. `None`: the
    /// known settings of the running server.
    pub server: Option<Server>,
    /// The settings after a change of the command line, which the files and the running server do
    /// not show. `None`: no step has changed it.
    pub on_command_line: Option<Server>,
    /// The settings of a start without the command line of the running server, from the files
    /// alone. `None`: the same, or unknown.
    pub from_files: Option<Server>,
    /// PostgreSQL's message if it refuses the files without the command line of the running server.
    pub refused_alone: Option<String>,
    /// Whether the files allow a start.
    pub files: Files,
    /// Names of the settings in the files that are pending a restart, if they were read.
    pub pending: Vec<String>,
    /// The settings that affect the main segment and its pages, by name: the value in effect, and
    /// the source that decides it.
    pub settings: BTreeMap<&'static str, Setting>,
    /// True if steps have turned huge pages off on purpose, or if the server ran without them, so
    /// that a start on small pages is no loss.
    pub gives_up_huge_pages: bool,
}

impl NextSettings {
    /// Resets the settings after a start, when nothing is pending.
    pub fn started(&mut self) {
        *self = Self {
            settings: std::mem::take(&mut self.settings),
            from_files: self.from_files.take(),
            refused_alone: self.refused_alone.take(),
            ..Self::default()
        };
    }

    /// Adds the start from the files alone. `None`: the same, or unknown. Errors: PostgreSQL's
    /// message about the files.
    pub fn with_start_from_files(self, start: Option<Result<Server, String>>) -> Self {
        let (from_files, refused_alone) = match start {
            Some(Ok(server)) => (Some(server), None),
            Some(Err(message)) => (None, Some(message)),
            None => (None, None),
        };
        Self {
            from_files,
            refused_alone,
            ..self
        }
    }
}

/// Whether the configuration files on disk allow a start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Files {
    /// The files allow a start, and their settings are known.
    #[default]
    Valid,
    /// The next start would fail with this message of PostgreSQL.
    Refused(String),
    /// The files could not be read.
    Unknown {
        why: String,
        /// Whether a setting for the main segment or its pages is pending a restart, as of the last
        /// reload.
        is_pending: bool,
    },
    /// Only PostgreSQL can evaluate the files, and root runs it only for servers that are named.
    /// This command names the server.
    NotNamed(String),
}

impl Files {
    /// True if the server would not start after a stop.
    pub fn stop_a_start(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// True if settings could be pending a restart whose values are unknown.
    pub fn hide_pending_settings(&self) -> bool {
        match self {
            Self::Unknown { is_pending, .. } => *is_pending,
            Self::NotNamed(_) => true,
            Self::Valid | Self::Refused(_) => false,
        }
    }
}
