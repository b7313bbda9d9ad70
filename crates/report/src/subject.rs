//! What a report is about.

use hugeinfo::{
    linux::process::status::Memory,
    model::machine::Machine,
    server::{footprint::Footprint, sources::Source},
};

/// A server and its machine, looked at once.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The server, its machine and its surroundings.
    pub machine: Machine,
    /// Who it is.
    pub about: About,
    /// Its processes.
    pub processes: Vec<Process>,
    /// What it costs its host.
    pub footprint: Footprint,
    /// What was tried to be read.
    pub sources: Vec<Source>,
    /// Whether the caller may have the configuration files read for a plan.
    pub may_plan: bool,
}

/// Who a server is, and when it was looked at.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Of this extension.
    pub version: String,
    /// As `server_version`.
    pub server_version: String,
    /// When, with the time zone.
    pub taken_at: String,
    /// Whether it is a standby.
    pub is_in_recovery: bool,
    /// Of the machine. `None`, here and below: there is none, or it is left out.
    pub host_name: Option<String>,
    /// As `cluster_name`.
    pub cluster_name: Option<String>,
    /// As `port`.
    pub port: Option<String>,
}

/// A process of the server.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// As `hugeinfo_backends.backend_type`.
    pub backend_type: Option<String>,
    /// The role that it is logged in as.
    pub role: Option<String>,
    /// The database that it is connected to.
    pub database: Option<String>,
    /// What its client calls itself.
    pub application: Option<String>,
    /// What it has.
    pub memory: Memory,
    /// Faults that needed reading from disk, since it started.
    pub major_faults: u64,
}

impl Process {
    /// What it has for itself, as far as that is known: private memory, page tables and swap.
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
