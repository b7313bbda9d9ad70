//! The facts about one server and its machine on which all advice is based.

use crate::{
    linux::{
        boot::Kernel,
        cgroup::{self, Hugetlb},
        error::{Absence, Absent, ReadError, fact},
        hugepages::{self, Pool},
        meminfo::{self, Meminfo},
        numa::{
            node::{self, Node},
            nodes,
        },
        pages,
        process::{
            Process, numa_maps,
            segment::{self, Segment},
            status,
        },
        root::Root,
    },
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
    /// Returns the value of the setting.
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
    /// Returns the value of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Sysv => "sysv",
        }
    }
}

/// Settings of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Identifies the server and its main segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The postmaster; `None` in single-user mode.
    pub postmaster: Option<u32>,
    /// An address inside the main segment, the same in every process of the server.
    pub address: u64,
}

/// Facts about one server and its machine. Unknown facts are [`Absent`], never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Settings of the running server.
    pub server: Server,
    /// Settings of the next start, with the exact size of its segment if a plan has computed it.
    /// `None`: as now.
    pub planned: Option<Server>,
    /// Size of a small page: 4 kB, or up to 64 kB on arm64.
    pub base_page_bytes: u64,
    /// The main shared memory segment.
    pub segment: Result<Segment, Absent>,
    /// RAM and default huge page size.
    pub meminfo: Result<Meminfo, Absent>,
    /// The kernel's pools.
    pub pools: Result<Vec<Pool>, Absent>,
    /// Limits of the server's cgroups.
    pub hugetlb: Result<Hugetlb, Absent>,
    /// Limits in the server's environment with invalid values.
    pub misread_limits: Vec<MisreadLimit>,
    /// The NUMA nodes that the server is allowed to use.
    pub allowed_nodes: AllowedNodes,
}

/// An environment variable for a limit on huge pages whose value is not a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisreadLimit {
    /// The page size of the limit.
    pub page_bytes: u64,
    /// Name.
    pub variable: String,
    /// Value, escaped and truncated.
    pub value: String,
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
    fn read(root: &Root, process: Result<&Process, &Absent>) -> Result<Self, ReadError> {
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
    /// Unknown.
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

impl Facts {
    /// Reads all facts, with the page size of the running kernel.
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
        Ok(Self {
            server,
            planned: None,
            misread_limits: Vec::new(),
            base_page_bytes: pages::base_page_bytes(),
            segment,
            meminfo: fact(meminfo::read(root))?,
            allowed_nodes: AllowedNodes::read(root, process)?,
            hugetlb: through(process, |process| cgroup::read(root, process, &page_sizes))?,
            pools,
        })
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
        self.planned.as_ref().unwrap_or(&self.server)
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
        let page_bytes = self.huge_page_asked_for()?;
        self.pools
            .as_ref()
            .ok()?
            .iter()
            .find(|pool| pool.page_bytes == page_bytes)
    }

    /// Bytes of the main segment at the next start. Exact with a plan. Otherwise an upper bound,
    /// because the mapping is rounded up to whole pages and PostgreSQL's own figure to whole MB.
    pub fn needed_bytes(&self) -> u64 {
        if let Some(planned) = &self.planned {
            return planned.shared_memory_bytes;
        }
        let stated = self.server.shared_memory_bytes;
        self.segment
            .as_ref()
            .map_or(stated, |segment| segment.bytes.min(stated))
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

/// Reads facts through an opened directory.
pub fn through<T>(
    process: Result<&Process, &Absent>,
    read: impl FnOnce(&Process) -> Result<T, ReadError>,
) -> Result<Result<T, Absent>, ReadError> {
    match process {
        Ok(process) => fact(read(process)),
        Err(absent) => Ok(Err(absent.clone())),
    }
}
