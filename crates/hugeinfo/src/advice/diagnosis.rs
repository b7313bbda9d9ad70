//! All checks of a machine, and the answer for the whole server.

use std::cmp::Reverse;

use crate::{
    advice::{
        check::{Check, Finding, Status},
        checks::{ALL, CHEAP},
        remedy::{self, Search},
        words,
    },
    model::{
        landing::{self, Landing},
        machine::Machine,
        step::Step,
    },
    server::surroundings::Files,
};

/// The answer for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// That of the worst check that is not muted.
    pub status: Status,
    /// The finding of that check; if all is well, all findings, and what muted checks would say.
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
                is_muted: machine.muted.contains(entry.name),
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
    let (status, mut texts) = match worst(machine, &findings) {
        Some(worst) if findings[worst].status > Status::Ok => {
            let worst = findings.swap_remove(worst);
            (worst.status, vec![worst.text])
        }
        _ => (Status::Ok, all_well(findings)),
    };
    texts.extend(waiting(machine).map(str::to_owned));
    Verdict {
        status,
        reason: texts.join("; "),
    }
}

/// What waits in the configuration files for the next start, where that is known.
fn waiting(machine: &Machine) -> Option<&'static str> {
    if machine.muted.contains("restart_with_files") {
        return None;
    }
    match machine.around.as_ref()?.files {
        Files::Planned(_) => Some("settings wait for a restart"),
        Files::Unseen(_) if machine.may_wait() => {
            Some("settings wait for a restart; what they need cannot be determined")
        }
        // Those that stop a start are a finding.
        Files::NothingWaits | Files::Refused(_) | Files::TooLow(_) | Files::Unseen(_) => None,
    }
}

/// What is not well here is muted.
fn all_well(findings: Vec<Finding>) -> Vec<String> {
    let (well, muted): (Vec<_>, Vec<_>) = ALL
        .iter()
        .zip(findings)
        // Of a limit that limits nothing there is nothing to say.
        .filter(|(entry, finding)| finding.status > Status::Ok || entry.name != ALL[0].name)
        .partition(|(_, finding)| finding.status == Status::Ok);
    let well = well.into_iter().map(|(_, finding)| finding.text);
    let muted = muted.into_iter().map(|(entry, finding)| {
        let status = finding.status.as_str();
        format!("muted: {} ({status}: {})", entry.name, finding.text)
    });
    well.chain(muted).collect()
}

/// Whether all is well as far as the facts go, and no surroundings can change that, but for
/// settings that wait and other servers. Whether small pages can hold the segment of the next start
/// depends on them.
pub fn is_well_by_facts(machine: &Machine) -> bool {
    let is_on_small_pages = || matches!(landing::of_next_start(machine), Landing::SmallPages(..));
    verdict(machine).status < Status::Warning
        && (machine.muted.contains("restart") || !is_on_small_pages())
}

/// What cures that: nothing where nothing is wrong. The whole machine has to be looked at for it.
pub fn remedy(machine: &Machine) -> Vec<Step> {
    let findings = cheap(machine);
    let ill = worst(machine, &findings).filter(|&worst| findings[worst].status >= Status::Warning);
    let Some(worst) = ill.filter(|_| machine.around.is_some()) else {
        return Vec::new();
    };
    let machine = &machine.summed_up();
    let before: Vec<_> = remedy::findings(machine)
        .iter()
        .map(|finding| finding.status)
        .collect();
    Search::new(machine, before).remedy(worst)
}

/// And what the files say, where they stop the next start.
fn cheap(machine: &Machine) -> Vec<Finding> {
    let files = machine.around.as_ref().map(|around| &around.files);
    let with_files = usize::from(files.is_some_and(Files::stop_a_start));
    let cheap = ALL[..CHEAP + with_files].iter();
    cheap.map(|entry| entry.judge(machine)).collect()
}

/// Of those that are not muted, and the first of those that are equally bad.
fn worst(machine: &Machine, findings: &[Finding]) -> Option<usize> {
    let by_status = |&index: &usize| (findings[index].status, Reverse(index));
    (0..findings.len())
        .filter(|&index| !machine.muted.contains(ALL[index].name))
        .max_by_key(by_status)
}
