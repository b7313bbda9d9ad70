//! The way from a machine to a healthy one, or to a planned configuration, step by step.

use std::collections::BTreeSet;

use crate::{
    advice::{
        check::Status,
        checks::ALL,
        diagnosis,
        needed::Needed,
        planned::Planned,
        plans,
        remedy::{self, Search},
        shortest::shortest,
        words::{self, Place},
    },
    model::{
        machine::Machine,
        step::{Decision, Step, Waits},
        take::{take, take_all},
    },
    server::restored::TooLow,
};

/// More would not be read.
const MOST_REMEDIES: usize = 16;

/// One step of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As data.
    pub step: Step,
    /// Where it is taken.
    pub place: Place,
    /// What to type, or to do.
    pub command: String,
    /// Its reason.
    pub why: String,
    /// What `hugeinfo_status` will say after it: status and reason.
    pub expected: Option<String>,
    /// Whether it stops the server.
    pub is_disruptive: bool,
}

/// The steps, in order. None where all is well and nothing is planned. What is muted is left as it
/// is, unless something is planned.
pub fn of(machine: &Machine, planned: Option<&Planned>) -> Vec<Row> {
    let mut machine = machine.summed_up();
    let mut changes = Vec::new();
    let muted = match planned {
        None => machine.muted.clone(),
        Some(_) => BTreeSet::new(),
    };
    if let Some(planned) = planned {
        machine.waits = planned.waits;
        let aimed = machine.planning(planned.next.clone());
        machine.is_given_up =
            planned.waits() == Waits::ForStart && !aimed.facts.asks_for_huge_pages();
        changes = plans::changes_of(&machine, planned);
    }
    let machine = &machine;
    let mut steps = Vec::new();
    let mut at = machine.clone();
    if let Some(planned) = planned {
        match plans::to(machine, planned) {
            Ok(plan) => {
                if let Ok(after) = take_all(&at, &plan) {
                    at = after;
                }
                steps = plan;
            }
            Err(decision) => return rows(machine, vec![Step::Decide(decision)]),
        }
    }
    let decisions = heal(&mut at, &mut steps, planned, &muted);
    let mut goal = statuses(&at);
    for (index, before) in statuses(machine).into_iter().enumerate() {
        if muted.contains(ALL[index].name) {
            goal[index] = before;
        }
    }
    let needed = Needed::of(&at);
    let fewest = shortest(steps.clone(), |steps| {
        let Ok(after) = take_all(machine, steps) else {
            return false;
        };
        let keeps_plan = changes.iter().all(|change| steps.contains(change))
            && after.waits <= at.waits
            && planned.is_none_or(|_| {
                after.facts.server == at.facts.server && after.facts.planned == at.facts.planned
            });
        keeps_plan
            && needed.is_in(&after)
            && statuses(&after)
                .iter()
                .zip(&goal)
                .all(|(now, goal)| now <= goal)
    });
    let mut steps = fewest.unwrap_or(steps);
    for decision in decisions {
        if !steps.contains(&decision) {
            steps.push(decision);
        }
    }
    rows(machine, steps)
}

/// What to do about a plan that the server would not start with.
pub fn refused(machine: &Machine, settings: Vec<TooLow>) -> Vec<Row> {
    let step = Step::Decide(Decision::RaiseSettings(settings));
    rows(machine, vec![step])
}

fn statuses(machine: &Machine) -> Vec<Status> {
    let findings = remedy::findings(machine);
    findings.iter().map(|finding| finding.status).collect()
}

/// Cures what can be cured, the worst first, and tells what a person has to decide. Settings stay
/// as they are planned.
fn heal(
    at: &mut Machine,
    steps: &mut Vec<Step>,
    planned: Option<&Planned>,
    muted: &BTreeSet<&str>,
) -> Vec<Step> {
    let is_planned = |step: &Step| {
        let mut names = planned.iter().flat_map(|planned| &planned.names);
        matches!(step, Step::Change { setting, .. } if names.any(|name| name == setting.name()))
    };
    for _ in 0..MOST_REMEDIES {
        let before = statuses(at);
        let mut ill: Vec<usize> = (0..before.len())
            .filter(|&index| before[index] >= Status::Warning)
            .filter(|&index| !muted.contains(ALL[index].name))
            .collect();
        // The sort is stable: of two that are equally bad the earlier one.
        ill.sort_by_key(|&index| std::cmp::Reverse(before[index]));
        let search = Search::new(at, before);
        let mut decisions = Vec::new();
        let mut cure = None;
        for index in ill {
            let remedy = search.remedy(index);
            if remedy.iter().any(is_planned) {
                continue;
            }
            if remedy.is_empty() || remedy.iter().any(|step| matches!(step, Step::Decide(_))) {
                decisions.extend(remedy);
            } else if let Ok(after) = take_all(at, &remedy) {
                cure = Some((remedy, after));
                break;
            }
        }
        let Some((remedy, after)) = cure else {
            return decisions;
        };
        *at = after;
        steps.extend(remedy);
    }
    Vec::new()
}

fn rows(machine: &Machine, steps: Vec<Step>) -> Vec<Row> {
    let mut at = machine.clone();
    let mut rows = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().cloned().enumerate() {
        let (after, trouble) = take(&at, &step);
        let is_decision = matches!(step, Step::Decide(_));
        let expected = (!is_decision && trouble.is_none()).then(|| {
            if after.is_running {
                let verdict = diagnosis::verdict(&after);
                format!("{}: {}", verdict.status.as_str(), verdict.reason)
            } else {
                "the server is down".to_owned()
            }
        });
        let mut why = words::why(&at, &step);
        if let Some(first) = words::before(machine, &steps[..number], &step) {
            why = format!("{why}; {first}");
        }
        rows.push(Row {
            place: words::place(&step),
            command: words::command(&at, &step),
            why,
            expected,
            is_disruptive: words::is_disruptive(&step),
            step,
        });
        at = after;
    }
    rows
}
