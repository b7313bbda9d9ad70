//! The subject of a report.

use advice::model::machine::Machine;
use host::{
    linux::process::status::Memory,
    server::{footprint::Footprint, sources::Source},
};

/// A server and its machine, read once.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The server and its machine.
    pub machine: Machine,
    /// Identity of the server.
    pub about: About,
    pub processes: Vec<Process>,
    /// Memory of all these processes together.
    pub footprint: Footprint,
    /// The memory at an earlier time, to compare.
    pub before: Option<Figures>,
    /// The kernel sources, and whether they could be read.
    pub sources: Vec<Source>,
    /// Whether the role is allowed to read the configuration files for a plan.
    pub may_plan: bool,
}

/// Memory of a server in bytes: these columns of `hugeinfo_footprint`. `None`: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    pub(crate) segment: Option<u64>,
    pub(crate) private: Option<u64>,
    pub(crate) other_shared: Option<u64>,
    pub(crate) page_tables: Option<u64>,
    pub(crate) swap: Option<u64>,
    pub(crate) full_total: Option<u64>,
}

impl Figures {
    /// A saved row. `None`: it has no figure for page tables.
    pub fn of_row(column: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        Some(Self {
            segment: column("segment_bytes"),
            private: column("private_bytes"),
            other_shared: column("other_shared_bytes"),
            page_tables: Some(column("page_table_bytes")?),
            swap: column("swap_bytes"),
            full_total: column("full_total_bytes"),
        })
    }
}

impl From<&Footprint> for Figures {
    fn from(footprint: &Footprint) -> Self {
        Self {
            segment: footprint.segment,
            private: footprint.private,
            other_shared: footprint.other_shared,
            page_tables: footprint.page_tables,
            swap: footprint.swap,
            full_total: footprint.total_when_full(),
        }
    }
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
    /// Name of the host. In this and the following fields, `None` means missing.
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
