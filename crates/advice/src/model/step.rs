//! The steps that an administrator can take, as data. The module `render` turns them into
//! commands.

use std::path::PathBuf;

use crate::model::demand::Name;
use host::server::{setting::FileLine, state::Server};
use host::{
    linux::boot::Edit,
    units::{Bytes, PageSize, Pages},
};

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Let the kernel compact memory, so that it finds blocks for huge pages.
    Compact,
    /// Set the persistent pages of a pool.
    SetPool {
        size: PageSize,
        /// Pages in the whole pool.
        pages: Pages,
    },
    /// Split idle pages of one pool into pages of the next smaller size (since Linux 5.16).
    Demote {
        /// Size of the pages that are split.
        from: PageSize,
        /// Size of the pages that result.
        into: PageSize,
        /// Pages that are split.
        pages: Pages,
    },
    /// Set the persistent pages of a pool at boot.
    SetPoolAtBoot {
        size: PageSize,
        /// Pages in the whole pool.
        pages: Pages,
        /// The change of the boot configuration.
        edit: Edit,
    },
    /// Stop if the kernel allocated fewer pages than requested, before a start that needs them.
    CheckPool {
        size: PageSize,
        /// Pages that the pool has to have.
        pages: Pages,
    },
    /// Raise a limit of a cgroup on huge pages.
    RaiseLimit(LimitChange),
    /// Change a setting of PostgreSQL.
    ChangeSetting(SettingChange),
    /// Let PostgreSQL read its configuration files.
    Reload,
    /// Change how the service is started. Takes effect at the next start.
    ChangeService(ServiceChange),
    /// Stop PostgreSQL.
    Stop,
    /// Start PostgreSQL.
    Start,
    /// Stop PostgreSQL and start it again.
    Restart,
    /// Restart another server on small pages, so that it gets the pages that the pool has for it.
    RestartOther {
        server: Name,
        size: PageSize,
        /// Pages that it needs.
        pages: Pages,
    },
    /// Change a mode of transparent huge pages until the next boot.
    SetThp {
        /// The file, below `/sys/kernel/mm/transparent_hugepage`.
        file: String,
        mode: &'static str,
    },
}

impl Step {
    /// Whether sessions end.
    pub fn is_disruptive(&self) -> bool {
        matches!(self, Self::Stop | Self::Restart)
    }
}

/// A limit on huge pages that has to be higher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitChange {
    /// The directory of the cgroup.
    pub cgroup: PathBuf,
    /// The name of the file that holds the limit.
    pub file: String,
    /// Which pages it limits.
    pub size: PageSize,
    /// Pages that the limit counts.
    pub counts: Counts,
    /// The new limit.
    pub bytes: Bytes,
}

/// Pages that a limit of a cgroup counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    Faults,
    /// Pages reserved.
    Reservations,
}

/// A changed setting of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    pub name: String,
    /// Value, as in a configuration file.
    pub value: String,
    /// The place to change it.
    pub place: SettingPlace,
    /// The event after which it takes effect.
    pub pending: Pending,
    /// The settings of the next start after the change. Errors: the message with which PostgreSQL
    /// would reject them.
    pub next: Result<Server, String>,
}

/// The place where a setting can be changed so that the next start uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingPlace {
    /// `ALTER SYSTEM`.
    AlterSystem,
    /// A line of a file, where `ALTER SYSTEM` is not allowed. `None`: which file is unknown.
    File(Option<FileLine>),
    /// The command line of the server, which takes precedence over all files.
    CommandLine,
}

/// When a changed setting takes effect. The later includes the earlier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// It is in effect.
    #[default]
    Nothing,
    /// When the server reads its files.
    Reload,
    /// When the server is restarted.
    Restart,
}

/// A change of the way in which the service is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceChange {
    /// The OOM killer prefers all other processes to the postmaster, and backends are not exempt.
    ProtectPostmaster,
    /// Backends have a higher OOM score than the postmaster.
    ExposeBackends,
    /// systemd keeps the service after an OOM kill.
    ContinueAfterKill,
    /// The memory of the segment is spread over all NUMA nodes.
    Interleave,
}
