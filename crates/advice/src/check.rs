//! The result of a check, with its remedy.

use std::cmp::Reverse;

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
    /// An earlier check that has the same remedy, so both are one problem.
    pub same_as: Option<CheckId>,
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

/// Groups checks by their remedy: one cause is one problem. In each problem and among the problems,
/// the worst check comes first. If memory runs out after the next start, the cause of `memory_left`
/// is that of `restart`, although less memory can be enough for `memory_left`.
pub fn problems<'a>(
    checks: impl IntoIterator<Item = &'a CheckResult>,
) -> Vec<Vec<&'a CheckResult>> {
    let mut checks: Vec<_> = checks.into_iter().collect();
    checks.sort_by_key(|check| Reverse(check.finding.status));
    let cause = |check: &CheckResult| check.same_as.unwrap_or(check.id);
    let fails_to_start = |check: &CheckResult| {
        check.id == CheckId::Restart && check.finding.status == Status::Critical
    };
    let is_same = |one: &CheckResult, other: &CheckResult| {
        cause(one) == cause(other)
            || fails_to_start(one) && other.finding.code == "would_run_out_of_memory"
    };
    let mut problems: Vec<Vec<&CheckResult>> = Vec::new();
    for check in checks {
        let known = problems
            .iter_mut()
            .find(|problem| problem.iter().any(|other| is_same(other, check)));
        match known {
            Some(problem) => problem.push(check),
            None => problems.push(vec![check]),
        }
    }
    problems
}

/// The names of checks, separated by commas.
pub fn names<'a>(checks: impl IntoIterator<Item = &'a &'a CheckResult>) -> String {
    let names: Vec<_> = checks.into_iter().map(|check| check.name()).collect();
    names.join(", ")
}
