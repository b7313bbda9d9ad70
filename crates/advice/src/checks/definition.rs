//! The parts of a check.

use crate::{
    decision::Decision,
    finding::Judgment,
    model::{machine::Machine, step::Step},
};

/// A check, with its documentation.
pub(super) struct Check {
    /// The stable name, in SQL and in the documentation.
    pub(super) name: &'static str,
    /// Judges a machine.
    pub(super) judge: fn(&Machine) -> Judgment,
    /// Source of the remedy.
    pub(super) cure: Cure,
    /// Whether the check is about the memory or the processes of the running server.
    pub(super) needs_running_server: bool,
    /// Whether its warnings count for the whole server.
    pub(super) counts_for_server: fn(&Machine) -> bool,
    /// The section in docs/checks.md, in Markdown: the sources, the codes and the instructions. The
    /// first column of the table has the codes, the second column their statuses.
    pub(super) docs: &'static str,
}

/// Source of the remedy of a check.
#[derive(Clone, Copy)]
pub(crate) enum Cure {
    /// There is no remedy.
    None,
    /// The plan. If the plan does not fix the finding, this decision, or that of the plan.
    Core(fn(&Machine) -> Option<Decision>),
    /// Steps that only this check needs.
    Steps(fn(&Machine) -> Result<Vec<Step>, Decision>),
    /// A person decides.
    Decision(fn(&Machine) -> Decision),
}
