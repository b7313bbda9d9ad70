//! All checks of a machine, and the answer for the whole server.

use std::cmp::Reverse;

use crate::{
    advice::{
        check::{Check, Finding, Status},
        checks::{ALL, CHEAP},
        remedy::{self, Search},
        words,
    },
    model::{machine::Machine, step::Step},
    server::surroundings::Files,
};

/// The answer for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// That of the worst check.
    pub status: Status,
    /// The finding of the worst check; if all is well, all findings.
    pub reason: String,
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

/// What the cheap checks say: enough to know whether anything is wrong.
pub fn verdict(machine: &Machine) -> Verdict {
    let mut findings = cheap(machine);
    let worst = worst(&findings);
    let status = findings[worst].status;
    let mut texts: Vec<_> = if status == Status::Ok {
        // Of a limit that limits nothing there is nothing to say.
        findings.into_iter().skip(1).map(|f| f.text).collect()
    } else {
        vec![findings.swap_remove(worst).text]
    };
    texts.extend(waiting(machine).map(str::to_owned));
    Verdict {
        status,
        reason: texts.join("; "),
    }
}

/// What waits in the configuration files for the next start, where that is known.
fn waiting(machine: &Machine) -> Option<&'static str> {
    match machine.around.as_ref()?.files {
        Files::Planned(_) => Some("settings wait for a restart"),
        Files::Refused(_) | Files::TooLow(_) => {
            Some("the next start would fail: see restart_with_files in hugeinfo_checks")
        }
        Files::Unseen(_) if machine.may_wait() => {
            Some("settings wait for a restart, and what they need cannot be told")
        }
        Files::NothingWaits | Files::Unseen(_) => None,
    }
}

/// What cures that: nothing where nothing is wrong. The whole machine has to be looked at for it.
pub fn remedy(machine: &Machine) -> Vec<Step> {
    let findings = cheap(machine);
    let worst = worst(&findings);
    if findings[worst].status < Status::Warning || machine.around.is_none() {
        return Vec::new();
    }
    let machine = &machine.summed_up();
    let before: Vec<_> = remedy::findings(machine)
        .iter()
        .map(|finding| finding.status)
        .collect();
    Search::new(machine, before).remedy(worst)
}

fn cheap(machine: &Machine) -> Vec<Finding> {
    let cheap = ALL[..CHEAP].iter();
    cheap.map(|entry| entry.judge(machine)).collect()
}

/// The first of those that are equally bad.
fn worst(findings: &[Finding]) -> usize {
    let by_status = |&index: &usize| (findings[index].status, Reverse(index));
    (0..findings.len())
        .max_by_key(by_status)
        .unwrap_or_default()
}
