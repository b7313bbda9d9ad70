//! A check, its finding and its remedy.

use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value};

use super::decision::Decision;
use crate::model::{machine::Machine, step::Step};
use host::{linux::error::Absent, server::facts::Facts};

/// Which check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckId {
    /// A cgroup lets the server map huge pages that it cannot fault in.
    CgroupFaultLimit,
    /// Which pages back the segment.
    HugePages,
    /// Whether a restart would get huge pages.
    Restart,
    /// Settings in the configuration files that wait for the next start.
    PendingSettings,
    /// Whether the pools hold idle pages.
    PoolSize,
    /// The pools that the next boot sets up.
    Reboot,
    /// Whether the kernel has the page size that is set.
    HugePageSize,
    /// Whether the pools have the pages that this boot requested.
    PoolFilled,
    /// Whether the pool can grow.
    PoolGrowth,
    /// RAM outside of the pools.
    MemoryLeft,
    /// Whether the pool is enough for all servers of the host.
    OtherServers,
    /// The distribution of the segment over NUMA nodes.
    NumaSegment,
    /// The size of page tables.
    PageTables,
    /// Whether the server is swapped out.
    Swap,
    /// The rate of major faults.
    MajorFaults,
    /// Transparent huge pages for private memory.
    ThpPrivate,
    /// Transparent huge pages for shared memory.
    ThpShared,
    /// Strict overcommit.
    Overcommit,
    /// Whether the OOM killer spares the postmaster.
    OomProtection,
    /// `vm.hugetlb_shm_group`.
    HugetlbShmGroup,
}

impl CheckId {
    /// All checks, the most important first.
    pub fn all() -> impl Iterator<Item = Self> {
        super::checks::ALL.into_iter()
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CgroupFaultLimit => "cgroup_fault_limit",
            Self::HugePages => "huge_pages",
            Self::Restart => "restart",
            Self::PendingSettings => "pending_settings",
            Self::PoolSize => "pool_size",
            Self::Reboot => "reboot",
            Self::HugePageSize => "huge_page_size",
            Self::PoolFilled => "pool_filled",
            Self::PoolGrowth => "pool_growth",
            Self::MemoryLeft => "memory_left",
            Self::OtherServers => "other_servers",
            Self::NumaSegment => "numa_segment",
            Self::PageTables => "page_tables",
            Self::Swap => "swap",
            Self::MajorFaults => "major_faults",
            Self::ThpPrivate => "thp_private",
            Self::ThpShared => "thp_shared",
            Self::Overcommit => "overcommit",
            Self::OomProtection => "oom_protection",
            Self::HugetlbShmGroup => "hugetlb_shm_group",
        }
    }
}

impl Display for CheckId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Severity of a finding, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Healthy.
    Ok,
    /// A source that is needed to judge is missing or denied.
    Unknown,
    /// Works, but not as it should.
    Warning,
    /// Will break, or will not start again.
    Critical,
}

impl Status {
    /// Name in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// For sorting and thresholds: 0 ok, 1 unknown, 2 warning, 3 critical.
    pub fn severity(self) -> i32 {
        match self {
            Self::Ok => 0,
            Self::Unknown => 1,
            Self::Warning => 2,
            Self::Critical => 3,
        }
    }

    /// True for a warning or worse.
    pub fn needs_attention(self) -> bool {
        self >= Self::Warning
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub status: Status,
    /// A stable reason for programs, such as `fell_back`.
    pub code: &'static str,
    /// The finding for people: one statement, one number, one cause.
    pub text: String,
    /// The figures behind the finding, named like SQL columns.
    pub evidence: Value,
}

impl Finding {
    pub(crate) fn new(status: Status, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            status,
            code,
            text: text.into(),
            evidence: Value::Object(Map::new()),
        }
    }

    pub(crate) fn ok(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Ok, code, text)
    }

    pub(crate) fn does_not_ask() -> Self {
        Self::ok("does_not_ask", "This server does not ask for huge pages.")
    }

    pub(crate) fn warning(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Warning, code, text)
    }

    pub(crate) fn critical(code: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Critical, code, text)
    }

    pub(crate) fn unknown(text: impl Into<String>) -> Self {
        Self::new(Status::Unknown, "unknown", text)
    }

    pub(crate) fn with(self, evidence: Value) -> Self {
        Self { evidence, ..self }
    }
}

/// Why a check could not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown(pub String);

impl From<&Absent> for Unknown {
    fn from(absent: &Absent) -> Self {
        Self(absent.to_string())
    }
}

impl From<&str> for Unknown {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// A finding, or why there is none.
pub(crate) type Judgment = Result<Finding, Unknown>;

/// Steps, and what remains for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The decision that remains after the steps.
    pub remaining: Option<Decision>,
}

/// The means to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing has to be done.
    Nothing,
    /// These steps, in order.
    Steps(Plan),
    /// The steps are part of the remedy of an earlier check.
    As(CheckId),
    /// A person has to decide.
    NeedsDecision(Decision),
}

impl Remedy {
    /// Steps that leave nothing to decide.
    pub(crate) fn steps(steps: Vec<Step>) -> Self {
        Self::Steps(Plan {
            steps,
            remaining: None,
        })
    }
}

/// A check of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Which check.
    pub id: CheckId,
    /// Whether it is muted.
    pub is_muted: bool,
    /// The result.
    pub finding: Finding,
    /// The means to fix it.
    pub remedy: Remedy,
}

impl Check {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        self.id.name()
    }

    /// True for a warning or worse that is not muted.
    pub fn needs_attention(&self) -> bool {
        self.finding.status.needs_attention() && !self.is_muted
    }
}

/// The environment of a machine. Errors: it was not read.
pub(crate) fn whole(machine: &Machine) -> Result<&Facts, Unknown> {
    machine.whole().ok_or("it was not read".into())
}
