//! The result of a check, with its remedy.

pub use super::{
    checks::CheckId,
    finding::{Finding, Status, Unknown},
    plan::Remedy,
};

/// The result of a check, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// Which check.
    pub id: CheckId,
    pub is_muted: bool,
    pub finding: Finding,
    /// The means to fix it.
    pub remedy: Remedy,
}

impl CheckResult {
    /// The stable name.
    pub fn name(&self) -> &'static str {
        self.id.name()
    }

    /// True for a warning or worse that is not muted.
    pub fn needs_attention(&self) -> bool {
        self.finding.status.needs_attention() && !self.is_muted
    }
}
