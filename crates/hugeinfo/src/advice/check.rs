//! A diagnosis, and what it is made of.

use serde_json::{Map, Value};

use crate::{
    linux::error::Absent,
    model::{machine::Machine, step::Step},
    server::surroundings::Surroundings,
};

/// How bad a finding is, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Looked at and found well.
    Ok,
    /// A source that is needed to tell is missing or denied.
    Unknown,
    /// Works, but not as it should.
    Warning,
    /// Will break, or will not start again.
    Critical,
}

impl Status {
    /// As it is shown in SQL.
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
}

/// What a check says where it could look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub status: Status,
    /// What was found.
    pub text: String,
    /// The figures that it rests on.
    pub evidence: Value,
}

impl Finding {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            evidence: Value::Object(Map::new()),
        }
    }

    pub(crate) fn ok(text: impl Into<String>) -> Self {
        Self::new(Status::Ok, text)
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self::new(Status::Warning, text)
    }

    pub(crate) fn critical(text: impl Into<String>) -> Self {
        Self::new(Status::Critical, text)
    }

    pub(crate) fn with(self, evidence: Value) -> Self {
        Self { evidence, ..self }
    }
}

/// Why a check could not look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold(pub String);

impl From<&Absent> for Untold {
    fn from(absent: &Absent) -> Self {
        Self(absent.to_string())
    }
}

impl From<&str> for Untold {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

/// A finding, or what is untold.
pub type Answer = Result<Finding, Untold>;

/// One diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// How bad it is.
    pub status: Status,
    /// Whether it is muted.
    pub is_muted: bool,
    /// What was found.
    pub finding: String,
    /// The figures that it rests on: an object, empty where a source is missing.
    pub evidence: Value,
    /// What to type; `None`: nothing.
    pub remedy: Option<String>,
    /// The same as data.
    pub steps: Vec<Step>,
}

impl Machine {
    /// What is beyond the facts of the server itself.
    pub(crate) fn around(&self) -> Result<&Surroundings, Untold> {
        self.around
            .as_ref()
            .ok_or_else(|| Untold("nobody has looked".to_owned()))
    }

    /// Whether settings wait for a restart, as far as the server itself knows.
    pub(crate) fn may_wait(&self) -> bool {
        self.around
            .as_ref()
            .is_some_and(|around| around.settings_wait_for_restart)
    }
}
