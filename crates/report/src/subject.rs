//! The subject of a report.

use hugeinfo::{
    linux::process::status::Memory,
    model::machine::Machine,
    server::{footprint::Footprint, sources::Source},
};

/// A server and its machine, read once.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The server, its machine and its environment.
    pub machine: Machine,
    /// Identity of the server.
    pub about: About,
    /// Its processes.
    pub processes: Vec<Process>,
    /// Memory of all its processes together.
    pub footprint: Footprint,
    /// The kernel sources, and whether they could be read.
    pub sources: Vec<Source>,
    /// Whether the role is allowed to read the configuration files for a plan.
    pub may_plan: bool,
}

/// Identity of a server, and the time of the report.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Version of this extension.
    pub version: String,
    /// As `server_version`.
    pub server_version: String,
    /// Time of the report, with the time zone.
    pub taken_at: String,
    /// Whether it is a standby.
    pub is_in_recovery: bool,
    /// Name of the host. `None`, here and below: there is none, or it is redacted.
    pub host_name: Option<String>,
    /// As `cluster_name`.
    pub cluster_name: Option<String>,
    /// As `port`.
    pub port: Option<String>,
}

/// A process of the server.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// As `hugeinfo_backends.backend_type`.
    pub backend_type: Option<String>,
    /// The role that it is logged in as.
    pub role: Option<String>,
    /// The database that it is connected to.
    pub database: Option<String>,
    /// `application_name`.
    pub application: Option<String>,
    /// Its memory.
    pub memory: Memory,
    /// Major faults since it started.
    pub major_faults: u64,
}

impl Process {
    /// Private memory, page tables and swap, as far as they are known.
    pub(crate) fn own_bytes(&self) -> u64 {
        let Memory {
            rss_anon,
            page_tables,
            swap,
            ..
        } = self.memory;
        let parts = [rss_anon, page_tables, swap];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }
}
