//! A diagnosis.

use serde_json::Value;

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
}

/// One diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// How bad it is.
    pub status: Status,
    /// What was found.
    pub finding: String,
    /// The figures that it rests on: an object, empty where a source is missing.
    pub evidence: Value,
    /// What to type; `None`: nothing.
    pub remedy: Option<String>,
}

impl Check {
    pub(super) fn new(name: &'static str, status: Status, finding: impl Into<String>) -> Self {
        Self {
            name,
            status,
            finding: finding.into(),
            evidence: Value::Object(serde_json::Map::new()),
            remedy: None,
        }
    }

    pub(super) fn with_evidence(self, evidence: Value) -> Self {
        Self { evidence, ..self }
    }

    pub(super) fn with_remedy(self, remedy: impl Into<Option<String>>) -> Self {
        Self {
            remedy: remedy.into(),
            ..self
        }
    }
}
