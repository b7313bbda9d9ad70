//! All that the reasoning needs to know about one server and its machine.

use serde::{Deserialize, Serialize};

use crate::linux::{
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
};

/// The setting `huge_pages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HugePages {
    /// Never.
    Off,
    /// Else refuse to start.
    On,
    /// Else fall back to small pages, without a message.
    Try,
}

impl HugePages {
    /// As the setting is written.
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
    /// As the setting is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Sysv => "sysv",
        }
    }
}

/// What the server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `huge_pages`.
    pub huge_pages: HugePages,
    /// `shared_memory_type`.
    pub shared_memory_type: SharedMemoryType,
    /// `huge_page_size`; `None`: the kernel's default.
    pub huge_page_size_bytes: Option<u64>,
    /// `shared_memory_size`: what the server needs, rounded up to whole MB by PostgreSQL.
    /// Exact in a plan.
    pub shared_memory_bytes: u64,
}

impl Server {
    /// Whether a start with these settings asks for huge pages.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.huge_pages != HugePages::Off && self.shared_memory_type == SharedMemoryType::Mmap
    }

    /// Huge pages of that size that a start with these settings maps. PostgreSQL rounds its need up
    /// to the size that it was told, the kernel to pages that it has (port/sysv_shmem.c
    /// `CreateAnonymousSegment`).
    pub fn pages(&self, page_bytes: u64) -> u64 {
        let needed = self.shared_memory_bytes;
        let told = self.huge_page_size_bytes.filter(|&told| told < page_bytes);
        let rounded = told.and_then(|told| needed.checked_next_multiple_of(told));
        pages::pages_required(rounded.unwrap_or(needed), page_bytes)
    }
}

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The postmaster; `None` in single-user mode.
    pub postmaster: Option<u32>,
    /// An address inside the main segment, the same in every process of the server.
    pub address: u64,
}

/// One server and its machine. What the kernel doesn't tell is [`Absent`], never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// What the server says.
    pub server: Server,
    /// What its next start will use, and exactly how many bytes it will need, where a plan has
    /// told; `None`: the same as now.
    pub planned: Option<Server>,
    /// Size of a small page: 4 kB, or up to 64 kB on arm64.
    pub base_page_bytes: u64,
    /// The main shared memory segment.
    pub segment: Result<Segment, Absent>,
    /// RAM and default huge page size.
    pub meminfo: Result<Meminfo, Absent>,
    /// The kernel's pools.
    pub pools: Result<Vec<Pool>, Absent>,
    /// The control group's limits.
    pub hugetlb: Result<Hugetlb, Absent>,
    /// Limits in the server's environment whose values are not understood.
    pub misread_limits: Vec<MisreadLimit>,
    /// The NUMA nodes that it may take memory from.
    pub allowed_nodes: AllowedNodes,
}

/// An environment variable that should hold a limit on huge pages, and holds something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisreadLimit {
    /// The page size that it is about.
    pub page_bytes: u64,
    /// Its name.
    pub variable: String,
    /// Value, escaped and truncated.
    pub value: String,
}

/// The NUMA nodes that a server may take memory from: its control group says which
/// (`cpuset.mems`), and whether it was bound to some (`numactl --membind`).
///
/// A mapping on huge pages is refused if these nodes have too few, whatever the pool has
/// (mm/hugetlb.c `hugetlb_acct_memory`, `allowed_mems_nr`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedNodes {
    /// All that have memory, as where there is one, or the kernel knows no NUMA.
    All,
    /// These, which are not all.
    Only(Vec<Node>),
    /// The kernel doesn't tell.
    Untold(Absent),
}

impl AllowedNodes {
    /// Whether it may take memory from that node. `None`: the kernel does not report it.
    pub fn allows(&self, number: u32) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::Only(nodes) => Some(nodes.iter().any(|node| node.number == number)),
            Self::Untold(_) => None,
        }
    }

    /// The counters of nodes are read only where it matters: most hosts have one node, and most
    /// servers may use all.
    fn read(root: &Root, process: &Result<Process, Absent>) -> Result<Self, ReadError> {
        let with_memory = match fact(nodes::with_memory(root))? {
            Ok(list) if list.count() < 2 => return Ok(Self::All),
            Ok(list) => list,
            Err(absent) => {
                // A kernel without NUMA, or one that doesn't tell of its nodes.
                return Ok(match fact(nodes::read(root))? {
                    Ok(nodes) if nodes.len() < 2 => Self::All,
                    Err(nodes) if nodes.why == Absence::Missing => Self::All,
                    Ok(_) | Err(_) => Self::Untold(absent),
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
            Err(absent) => return Ok(Self::Untold(absent)),
        };
        if allowed.covers(&with_memory) {
            return Ok(Self::All);
        }
        let nodes = node::read_among(root, |number| allowed.contains(number), || ());
        Ok(match fact(nodes)? {
            Ok(nodes) => Self::Only(nodes),
            Err(absent) => Self::Untold(absent),
        })
    }
}

/// The pages that back the main segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiesOn {
    /// Of this many bytes each.
    HugePages(u64),
    /// Small pages, transparent huge pages among them or not.
    SmallPages,
    /// That cannot be seen.
    Unseen,
}

impl LiesOn {
    /// Whether these are huge. `None`: unknown.
    pub fn is_huge(self) -> Option<bool> {
        match self {
            Self::HugePages(_) => Some(true),
            Self::SmallPages => Some(false),
            Self::Unseen => None,
        }
    }

    /// Their size where they are huge.
    pub fn huge_page_bytes(self) -> Option<u64> {
        match self {
            Self::HugePages(bytes) => Some(bytes),
            Self::SmallPages | Self::Unseen => None,
        }
    }
}

impl Facts {
    /// Reads all facts, with the page size of the running kernel.
    ///
    /// Errors: only out of memory. Facts that cannot be read or parsed are absent.
    pub fn read(root: &Root, server: Server, subject: &Subject) -> Result<Self, ReadError> {
        let pools = fact(hugepages::read(root))?;
        let page_sizes: Vec<u64> = match &pools {
            Ok(pools) => pools.iter().map(|pool| pool.page_bytes).collect(),
            // The limits of cgroups are known even if a counter of a pool is not.
            Err(_) => fact(hugepages::page_sizes(root))?.unwrap_or_default(),
        };
        let (process, segment) = find_segment(root, subject)?;
        Ok(Self {
            server,
            planned: None,
            misread_limits: Vec::new(),
            base_page_bytes: pages::base_page_bytes(),
            segment,
            meminfo: fact(meminfo::read(root))?,
            allowed_nodes: AllowedNodes::read(root, &process)?,
            hugetlb: through(&process, |process| cgroup::read(root, process, &page_sizes))?,
            pools,
        })
    }

    /// Size of the pages that back the segment, huge or not.
    pub fn page_bytes(&self) -> Option<u64> {
        self.segment.as_ref().ok()?.page_bytes
    }

    /// The pages that back the segment.
    pub fn lies_on(&self) -> LiesOn {
        match self.page_bytes() {
            Some(bytes) if bytes > self.base_page_bytes => LiesOn::HugePages(bytes),
            Some(_) => LiesOn::SmallPages,
            None => LiesOn::Unseen,
        }
    }

    /// What the next start of the server will use.
    pub fn next_start(&self) -> &Server {
        self.planned.as_ref().unwrap_or(&self.server)
    }

    /// Size of the huge pages that the next start asks for (port/sysv_shmem.c `GetHugePageSize`).
    /// `None` where neither the setting nor the kernel names one.
    ///
    /// PostgreSQL hands the kernel the logarithm of the setting, rounded up: 1536 kB gets pages of
    /// 2 MB.
    pub fn huge_page_asked_for(&self) -> Option<u64> {
        self.huge_page_of(self.next_start())
    }

    /// The same for a start with these settings.
    pub(crate) fn huge_page_of(&self, server: &Server) -> Option<u64> {
        self.huge_page_of_setting(server.huge_page_size_bytes)
    }

    /// The same for this `huge_page_size`. `None`: 0.
    pub(crate) fn huge_page_of_setting(&self, setting: Option<u64>) -> Option<u64> {
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

    /// Whether the next start asks for huge pages at all.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.next_start().asks_for_huge_pages()
    }

    /// Whether the next start asks for huge pages of that size. `None`: unknown.
    pub fn asks_for(&self, page_bytes: u64) -> Option<bool> {
        if !self.asks_for_huge_pages() {
            return Some(false);
        }
        self.huge_page_asked_for().map(|asked| asked == page_bytes)
    }

    /// Whether a start with these settings takes as many pages as the server has now, of the same
    /// kind. Where the kernel doesn't tell how many it has, PostgreSQL does, in whole MB, rounded
    /// up.
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

    /// The pool that the next start asks for.
    pub fn target_pool(&self) -> Option<&Pool> {
        let page_bytes = self.huge_page_asked_for()?;
        self.pools
            .as_ref()
            .ok()?
            .iter()
            .find(|pool| pool.page_bytes == page_bytes)
    }

    /// Bytes that the main segment of the next start has to hold. Without a plan as closely as can
    /// be told: the mapping is rounded up to whole pages, PostgreSQL's own figure to whole MB.
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

/// The process of the server to look into, and the main segment there.
///
/// The postmaster first: it has touched the least, so that the slow way is quick there, and its
/// control group is the one that the segment was reserved in. Where the segment isn't seen in it,
/// that may be another's number: `/proc` can be of another PID namespace.
fn find_segment(root: &Root, subject: &Subject) -> Result<Found, ReadError> {
    let look = |process: Result<Process, ReadError>| {
        let process = fact(process)?;
        let segment = through(&process, |process| segment::read(process, subject.address))?;
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

/// What is read through an opened directory.
fn through<T>(
    process: &Result<Process, Absent>,
    read: impl FnOnce(&Process) -> Result<T, ReadError>,
) -> Result<Result<T, Absent>, ReadError> {
    match process {
        Ok(process) => fact(read(process)),
        Err(absent) => Ok(Err(absent.clone())),
    }
}
