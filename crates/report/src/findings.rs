//! The findings on a subject.

use hugeinfo::{
    advice::{
        check::{Check, Remedy},
        diagnosis::{self, Verdict},
        render, runbook,
    },
    model::{
        forecast::Forecast,
        page_tables::{self, Cost},
    },
    server::environment::ProcessFigures,
};
use serde_json::Value;

use crate::{redact::Redaction, subject::Subject};

/// Findings on one server and its machine, the same as in SQL.
pub(crate) struct Findings {
    pub(crate) verdict: Verdict,
    /// The remedy for the verdict, as lines to paste.
    pub(crate) remedy: Option<String>,
    pub(crate) runbook: Vec<runbook::Row>,
    /// All checks, the most important first.
    pub(crate) checks: Vec<Judged>,
    /// Forecast for each pool, the smallest page size first. `Err`: why the pools are unknown.
    pub(crate) pools: Result<Vec<Forecast>, String>,
    pub(crate) page_tables: Vec<Cost>,
}

/// A check with its remedy as text.
pub(crate) struct Judged {
    pub(crate) check: Check,
    pub(crate) remedy: Option<String>,
}

impl Findings {
    pub(crate) fn of(subject: &Subject) -> Self {
        let machine = &subject.machine;
        let processes: Vec<_> = subject
            .processes
            .iter()
            .map(|process| ProcessFigures {
                page_tables: process.memory.page_tables,
                rss_shmem: process.memory.rss_shmem,
                ..ProcessFigures::default()
            })
            .collect();
        let max_connections = machine.env.as_ref().map_or(0, |env| env.max_connections);
        let judged = |check: Check| Judged {
            remedy: render::remedy(machine, &check.remedy),
            check,
        };
        Self {
            verdict: diagnosis::verdict(machine),
            remedy: render::remedy(machine, &diagnosis::remedy(machine)),
            runbook: runbook::of(machine, None),
            checks: diagnosis::checks(machine).into_iter().map(judged).collect(),
            pools: Forecast::of_each_pool(machine).map_err(|absent| absent.to_string()),
            page_tables: page_tables::on_each_size(&machine.facts, &processes, max_connections),
        }
    }

    /// The checks that need attention and are not muted, the worst first.
    pub(crate) fn need_attention(&self) -> Vec<&Check> {
        let mut checks: Vec<_> = self
            .checks
            .iter()
            .map(|judged| &judged.check)
            .filter(|check| check.finding.status.needs_attention() && !check.is_muted)
            .collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.finding.status));
        checks
    }

    pub(crate) fn redact(&mut self, redaction: &Redaction) {
        let of_verdict = std::iter::once(&mut self.verdict.reason).chain(&mut self.remedy);
        let of_checks = self.checks.iter_mut().flat_map(|judged| {
            let finding = &mut judged.check.finding;
            redact_value(&mut finding.evidence, redaction);
            std::iter::once(&mut finding.text).chain(&mut judged.remedy)
        });
        let of_steps = self.runbook.iter_mut().flat_map(|row| {
            std::iter::once(&mut row.why)
                .chain(&mut row.command)
                .chain(&mut row.instruction)
                .chain(&mut row.expected)
        });
        let all = of_verdict.chain(of_checks).chain(of_steps);
        for text in all.chain(self.pools.as_mut().err()) {
            *text = redaction.text(text);
        }
    }
}

impl Judged {
    /// The earlier check whose remedy contains this one.
    pub(crate) fn same_as(&self) -> Option<&'static str> {
        match self.check.remedy {
            Remedy::As(id) => Some(id.name()),
            Remedy::Nothing | Remedy::Steps(_) | Remedy::NeedsDecision(_) => None,
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
