//! What an administrator can do, one step at a time.

use std::path::PathBuf;

use crate::{
    linux::boot::Edit,
    server::{facts::Server, restored::TooLow},
};

/// A step, as data. `advice::words` alone knows how it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Set the persistent pages of a pool, on one node or on all.
    SetPool {
        /// Whose.
        page_bytes: u64,
        /// `None`: all nodes.
        node: Option<u32>,
        /// How many.
        pages: u64,
    },
    /// The same for the next boot.
    SetPoolAtBoot {
        /// Whose.
        page_bytes: u64,
        /// How many.
        pages: u64,
        /// What is written, and where.
        edit: Edit,
    },
    /// Raise a limit of a control group.
    RaiseLimit {
        /// Its directory.
        group: PathBuf,
        /// The file in it.
        file: String,
        /// Which pages it limits.
        page_bytes: u64,
        /// Whether pages that are touched, or pages that are reserved.
        counts: Counts,
        /// The limit after it.
        bytes: u64,
    },
    /// Change a setting of PostgreSQL, for the next start.
    Change {
        /// Which, and to what.
        setting: Setting,
        /// Where.
        by: By,
    },
    /// Change a setting as planned.
    Plan(Planned),
    /// Let PostgreSQL read its files.
    Reload,
    /// Change how the service is started, for the next start.
    ChangeService(Service),
    /// Stop PostgreSQL.
    Stop,
    /// Start PostgreSQL.
    Start,
    /// Both.
    Restart,
    /// Let the kernel move pages together.
    Compact,
    /// Set a kernel setting below `/proc/sys/vm`.
    SetVm {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What keeps it over the next boot, where something has to and can.
        at_boot: Option<Edit>,
    },
    /// Set a mode of transparent huge pages.
    SetThp {
        /// The file, below `/sys/kernel/mm/transparent_hugepage`.
        file: String,
        /// The mode.
        mode: &'static str,
    },
    /// What a person has to decide: no step can do it.
    Decide(Decision),
}

/// What a limit of a control group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Pages touched.
    Faults,
    /// Pages reserved.
    Reservations,
}

/// A setting that affects huge pages, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `huge_pages = try`.
    HugePagesTry,
    /// `shared_memory_type = mmap`.
    SharedMemoryMmap,
    /// `huge_page_size`, in bytes; 0: the kernel's default.
    HugePageSize(u64),
}

impl Setting {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HugePagesTry => "huge_pages",
            Self::SharedMemoryMmap => "shared_memory_type",
            Self::HugePageSize(_) => "huge_page_size",
        }
    }
}

/// Where a setting can be changed so that the next start has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// `ALTER SYSTEM`.
    AlterSystem,
    /// A line of a file, where `ALTER SYSTEM` is not allowed.
    File(Option<PathBuf>),
    /// The command line of the server, which goes before all files.
    CommandLine,
}

/// A planned setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Its value, as a configuration file has it.
    pub value: String,
    /// Where it can be changed.
    pub by: By,
    /// When it takes effect.
    pub waits: Waits,
    /// What the next start will use after it. Errors: why it would fail, in PostgreSQL's words.
    pub next: Result<Server, String>,
}

/// What settings that have been changed wait for; the one after includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// All are in effect.
    ForNothing,
    /// The server has to read its files.
    ForReload,
    /// The server has to be restarted.
    ForStart,
}

/// How the service is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// The OOM killer spares the postmaster, and not its children.
    ProtectPostmaster,
    /// Children of the postmaster are not spared with it.
    ExposeBackends,
    /// No limit on locked memory.
    UnlimitedLockedMemory,
    /// The main segment lies on all nodes in turn.
    Interleave,
}

/// What only a person can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The segment is too large for this host.
    LowerSharedBuffers {
        /// To this many bytes at most. `None`: how far is unknown, or nothing would be left.
        to_bytes: Option<u64>,
        /// What is missing.
        missing_bytes: u64,
        /// Pages that do not fit.
        pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// All servers of this host together are too large for it.
    FewerServers {
        /// Pages that they need.
        pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// Memory is short now, and would be enough if others gave it up.
    FreeMemory {
        /// What is missing.
        bytes: u64,
        /// What `shared_buffers` could be instead. `None`: nothing would be left.
        to_bytes: Option<u64>,
    },
    /// The pool is another program's.
    OthersHoldThePools,
    /// Others have not touched yet what they reserved, and a smaller pool may take it from them.
    LetOthersTouch,
    /// Pages that nobody needs who can be seen from here.
    LookForHiddenServers {
        /// How many.
        pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// Page tables grow with connections.
    FewerConnections,
    /// The server is swapped out.
    LookForSwap,
    /// The server waits for its own pages.
    LookForFaults,
    /// `CommitLimit` is too low.
    RaiseCommitLimit,
    /// The files do not let the server start.
    CorrectTheFiles,
    /// These settings do not let it start, or may not: it brings back more than they have room for.
    RaiseSettings(Vec<TooLow>),
    /// The NUMA nodes that the server may use are too small for the segment.
    BeyondNodes {
        /// What `shared_buffers` could be. `None`: nothing would be left.
        to_bytes: Option<u64>,
        /// Pages that it takes.
        pages: u64,
        /// Pages that these nodes can give it.
        most_pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// The memory of a NUMA node has no room for its part of a pool.
    NoRoom {
        /// Pages that are missing.
        pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// Whatever cures this makes another check worse.
    WouldBeWorse {
        /// Its name.
        check: &'static str,
    },
    /// No plan cures without harm, for no reason that is known.
    NoSafeWay,
    /// What a start would get is unknown, because a source cannot be read.
    LookAtSources,
    /// What waits in the files is not told to this role.
    AskAsSuperuser,
    /// The configuration that is planned is too large.
    PlanLess {
        /// Its main segment.
        bytes: u64,
        /// One that would fit. `None`: none would.
        to_bytes: Option<u64>,
    },
    /// The planned configuration does not start without huge pages, and cannot get them.
    PlanWithoutOn,
    /// The next boot sets up too little on the nodes that the server may use, and files of sysctl
    /// name no nodes.
    NameNodesAtBoot {
        /// Their numbers.
        nodes: Vec<u32>,
        /// What the server takes on them.
        pages: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// No file can say what the next boot sets up: one that comes later, or that cannot be read,
    /// wins.
    LookAtBootFiles,
    /// The memory limit of the server's group is too low.
    RaiseMemoryLimit {
        /// By this many bytes.
        bytes: u64,
    },
    /// A limit that only the orchestrator can raise.
    RaiseLimitOutside,
}

impl Decision {
    /// Whether it names figures of the next start.
    pub(crate) fn has_figures(&self) -> bool {
        matches!(
            self,
            Self::LowerSharedBuffers { .. }
                | Self::FewerServers { .. }
                | Self::FreeMemory { .. }
                | Self::BeyondNodes { .. }
                | Self::NoRoom { .. }
                | Self::RaiseMemoryLimit { .. }
        )
    }
}
