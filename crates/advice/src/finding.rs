//! The finding of a check.

use serde_json::{Map, Value};

use crate::model::machine::Machine;
use host::{linux::error::Absent, server::facts::Facts};

/// Severity of a finding, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Healthy.
    Ok,
    /// A source that the check needs is missing or cannot be read.
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

impl From<Absent> for Unknown {
    fn from(absent: Absent) -> Self {
        Self::from(&absent)
    }
}

impl From<String> for Unknown {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Unknown {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// A finding, or why there is none.
pub(crate) type Judgment = Result<Finding, Unknown>;

/// The facts about a machine. Errors: not all were read.
pub(crate) fn whole(machine: &Machine) -> Result<&Facts, Unknown> {
    machine.whole().ok_or("it was not read".into())
}
