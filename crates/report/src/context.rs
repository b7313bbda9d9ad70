//! The data and the limits of a page.

use advice::{
    answer::{Answer, Verdict},
    check::{CheckId, CheckResult, problems},
    model::{
        forecast::Forecast,
        page_tables::{self, Cost},
    },
    runbook,
};
use host::escape;

use crate::subject::Subject;

/// The data and the limits that all sections share.
pub(crate) struct Context<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) advice: &'a Advice,
    /// Maximum number of entries of a list.
    pub(crate) most: usize,
    /// Maximum number of characters of a text.
    pub(crate) longest: usize,
}

/// The advice on a subject, the same as in SQL.
pub(crate) struct Advice {
    pub(crate) verdict: Verdict,
    pub(crate) runbook: Vec<runbook::Row>,
    /// The most important first.
    pub(crate) checks: Vec<CheckResult>,
    /// The smallest page size first. `Err`: why the pools are unknown.
    pub(crate) pools: Result<Vec<Forecast>, String>,
    /// The smallest page size first.
    pub(crate) page_tables: Vec<Cost>,
}

impl Context<'_> {
    /// The entries that are shown, and the number of those that are not.
    pub(crate) fn first<'l, T>(&self, list: &'l [T]) -> (&'l [T], usize) {
        let shown = list.len().min(self.most);
        (&list[..shown], list.len() - shown)
    }

    /// An untrusted text: truncated if it is too long, and without hidden characters.
    pub(crate) fn shown(&self, text: &str) -> String {
        escape::lines(escape::shortened(text, self.longest))
    }

    /// A command or an instruction, or `None` if it is too long. Half of a command is dangerous.
    pub(crate) fn whole(&self, command: &str) -> Option<String> {
        let fits = command.chars().count() <= self.longest;
        fits.then(|| self.shown(command))
    }
}

impl Advice {
    pub(crate) fn of(subject: &Subject, answer: &Answer) -> Self {
        let machine = &subject.machine;
        Self {
            runbook: runbook::for_answer(machine, answer),
            checks: answer.checks(),
            verdict: answer.verdict.clone(),
            pools: Forecast::for_each_pool(machine).map_err(|absent| absent.to_string()),
            page_tables: page_tables::on_each_size(
                &machine.state,
                &machine.state.processes,
                machine.facts.max_connections,
            ),
        }
    }

    /// The checks that need attention, by problem: those that have the same remedy.
    pub(crate) fn problems(&self) -> Vec<Vec<&CheckResult>> {
        problems(self.checks.iter().filter(|check| check.needs_attention()))
    }

    pub(crate) fn is_bad(&self, id: CheckId) -> bool {
        self.checks
            .iter()
            .any(|check| check.id == id && check.needs_attention())
    }
}
