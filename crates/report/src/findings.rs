//! What follows from a subject.

use hugeinfo::{
    advice::{
        check::{Check, Status},
        diagnosis::{self, Verdict},
        runbook, words,
    },
    model::{
        forecast::Forecast,
        page_tables::{self, Cost},
    },
};
use serde_json::Value;

use crate::{redact::Redaction, subject::Subject};

/// All that is said of it, as everywhere else.
pub(crate) struct Findings {
    pub(crate) verdict: Verdict,
    /// What to type for the verdict.
    pub(crate) remedy: Option<String>,
    pub(crate) runbook: Vec<runbook::Row>,
    pub(crate) checks: Vec<Check>,
    /// Of each pool, smallest page first. `Err`: why they cannot be seen.
    pub(crate) pools: Result<Vec<Forecast>, String>,
    pub(crate) page_tables: Vec<Cost>,
}

impl Findings {
    pub(crate) fn of(subject: &Subject) -> Self {
        let machine = &subject.machine;
        let processes = subject.processes.iter();
        let each: Vec<_> = processes
            .map(|process| process.memory.page_tables)
            .collect();
        let max_connections = machine
            .around
            .as_ref()
            .map_or(0, |around| around.max_connections);
        Self {
            verdict: diagnosis::verdict(machine),
            remedy: words::remedy(machine, &diagnosis::remedy(machine)),
            runbook: runbook::of(machine, None),
            checks: diagnosis::checks(machine),
            pools: Forecast::of_each_pool(machine).map_err(|absent| absent.to_string()),
            page_tables: page_tables::on_each_size(&machine.facts, &each, max_connections),
        }
    }

    /// The checks that are not well, and not muted, the worst first.
    pub(crate) fn ill(&self) -> Vec<&Check> {
        let is_ill = |check: &&Check| check.status >= Status::Warning && !check.is_muted;
        let mut ill: Vec<_> = self.checks.iter().filter(is_ill).collect();
        ill.sort_by_key(|check| std::cmp::Reverse(check.status));
        ill
    }

    pub(crate) fn redact(&mut self, redaction: &Redaction) {
        let texts = [&mut self.verdict.reason];
        let texts = texts.into_iter().chain(&mut self.remedy);
        let of_checks = self.checks.iter_mut().flat_map(|check| {
            redact_value(&mut check.evidence, redaction);
            std::iter::once(&mut check.finding).chain(&mut check.remedy)
        });
        let of_steps = self.runbook.iter_mut().flat_map(|row| {
            [&mut row.command, &mut row.why]
                .into_iter()
                .chain(&mut row.expected)
        });
        let all = texts.chain(of_checks).chain(of_steps);
        for text in all.chain(self.pools.as_mut().err()) {
            *text = redaction.text(text);
        }
    }
}

fn redact_value(value: &mut Value, redaction: &Redaction) {
    match value {
        Value::String(text) => *text = redaction.text(text),
        Value::Array(values) => values.iter_mut().for_each(|v| redact_value(v, redaction)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|v| redact_value(v, redaction)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
