//! All checks of a machine, and the answer for the whole server.

use crate::{
    advice::{
        check::{Check, Finding, Status},
        checks::{ALL, CHEAP},
        remedy::{self, Search},
        words,
    },
    model::{machine::Machine, step::Step},
};

/// The answer for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// That of the worst check.
    pub status: Status,
    /// The finding of the worst check; if all is well, all findings.
    pub reason: String,
    /// What to type; `None`: nothing.
    pub remedy: Option<String>,
    /// The same as data.
    pub steps: Vec<Step>,
}

/// How every check stands, by its name.
pub fn statuses(machine: &Machine) -> Vec<(&'static str, Status)> {
    ALL.iter()
        .map(|entry| (entry.name, entry.judge(machine).status))
        .collect()
}

/// All checks: the cheap ones first, then by weight.
pub fn checks(machine: &Machine) -> Vec<Check> {
    let findings = remedy::findings(machine);
    let summed_up = machine.summed_up();
    let mut before = Vec::with_capacity(findings.len());
    before.extend(findings.iter().map(|finding| finding.status));
    let search = Search::new(&summed_up, before);
    ALL.iter()
        .zip(findings)
        .enumerate()
        .map(|(index, (entry, finding))| {
            let Finding {
                status,
                text,
                evidence,
            } = finding;
            let steps = if status >= Status::Warning {
                search.remedy(index)
            } else {
                Vec::new()
            };
            Check {
                name: entry.name,
                status,
                finding: text,
                evidence,
                remedy: words::remedy(machine, &steps),
                steps,
            }
        })
        .collect()
}

/// What the cheap checks say: enough to know whether anything is wrong. For a remedy the whole
/// machine has to be looked at.
pub fn verdict(machine: &Machine) -> Verdict {
    let findings: Vec<Finding> = ALL[..CHEAP]
        .iter()
        .map(|entry| entry.judge(machine))
        .collect();
    let status = findings
        .iter()
        .fold(Status::Ok, |worst, finding| worst.max(finding.status));
    if status == Status::Ok {
        // Of a limit that limits nothing there is nothing to say.
        let texts: Vec<_> = findings.into_iter().skip(1).map(|f| f.text).collect();
        return Verdict {
            status,
            reason: texts.join("; "),
            remedy: None,
            steps: Vec::new(),
        };
    }
    let worst = findings.iter().position(|finding| finding.status == status);
    let index = worst.unwrap_or_default();
    let steps = if status >= Status::Warning && machine.around.is_some() {
        let machine = &machine.summed_up();
        let before: Vec<_> = remedy::findings(machine)
            .iter()
            .map(|finding| finding.status)
            .collect();
        Search::new(machine, before).remedy(index)
    } else {
        Vec::new()
    };
    let text = findings.into_iter().nth(index).map(|finding| finding.text);
    Verdict {
        status,
        reason: text.unwrap_or_default(),
        remedy: words::remedy(machine, &steps),
        steps,
    }
}
