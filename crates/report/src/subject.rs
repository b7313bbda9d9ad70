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
    /// Processes of the server.
    pub processes: Vec<Process>,
    /// Memory of all these processes together.
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
    /// Value of `server_version`.
    pub server_version: String,
    /// Time of the report, with the time zone.
    pub taken_at: String,
    /// Whether the server is a standby.
    pub is_in_recovery: bool,
    /// Name of the host. In this and the following fields, `None` means missing or redacted.
    pub host_name: Option<String>,
    /// Value of `cluster_name`.
    pub cluster_name: Option<String>,
    /// Value of `port`.
    pub port: Option<String>,
}

/// A process of the server.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// As `hugeinfo_backends.backend_type`.
    pub backend_type: Option<String>,
    /// Role of the session.
    pub role: Option<String>,
    /// Database of the session.
    pub database: Option<String>,
    /// Value of `application_name`.
    pub application: Option<String>,
    /// Memory of the process.
    pub memory: Memory,
    /// Major faults since the process started.
    pub major_faults: u64,
}

impl Process {
    /// Sum of private memory, page tables and swap. Unknown values count as 0.
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
