//! All steps from a machine to a healthy one, or to a planned configuration.

use std::mem::discriminant;

use super::{
    answer::{self, Answer, Verdict},
    check::Remedy,
    checks::Cure,
    decision::Decision,
    desired,
    plan::Plan,
    planned::Planned,
    render::{self, Place},
};
use crate::model::{
    machine::{Machine, ServerState},
    step::{Pending, Step},
};

/// A row of the runbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The step. `None`: a person has to decide.
    pub step: Option<Step>,
    /// The place to run it. `None`: a decision.
    pub place: Option<Place>,
    /// The command. `None`: see `instruction`.
    pub command: Option<String>,
    /// The instruction for a step that is not a command, or for a decision.
    pub instruction: Option<String>,
    /// The reason.
    pub why: String,
    /// The status of the server after the step. `None`: unchanged, or unknown.
    pub expected: Option<String>,
    /// Whether sessions end.
    pub is_disruptive: bool,
}

/// The steps of all checks that are not muted, in order, then the decisions.
pub fn for_answer(machine: &Machine, answer: &Answer) -> Vec<Row> {
    rows(machine, Vec::new(), remedies(answer, Plan::default()))
}

/// The changes to a planned configuration, and the steps that the machine then needs. If the next
/// start cannot use the planned settings, only the first decision.
pub fn for_settings(machine: &Machine, planned: &Planned) -> Vec<Row> {
    let changes = desired::planned_changes(machine, planned);
    let changed = machine
        .apply_all(&changes)
        .unwrap_or_else(|_| machine.clone());
    let changed = changed.with_next_start(planned.next.clone());
    let findings = answer::findings(&changed);
    match Plan::complete(&changed, &findings, planned.pending()) {
        Ok(plan) => {
            let answer = Answer::with_plan(&changed, findings, plan.clone());
            // Settings that take effect at once need only the steps of the checks.
            let plan = (planned.pending() > Pending::Nothing).then_some(plan);
            rows(
                machine,
                changes,
                remedies(&answer, plan.unwrap_or_default()),
            )
        }
        // The planned settings do not cause the decision.
        Err(_) if planned.next == machine.next_start() => {
            let answer = Answer::of(&changed);
            rows(machine, changes, remedies(&answer, Plan::default()))
        }
        Err(first) => vec![decision(first)],
    }
}

/// Adds the remedies of all checks that are not muted to a plan. Changes of the service take effect
/// at the restart, if there is one.
fn remedies(answer: &Answer, mut all: Plan) -> Plan {
    let mut own = Vec::new();
    for check in answer.checks().into_iter().filter(|check| !check.is_muted) {
        match check.remedy {
            Remedy::Steps(plan) => {
                let steps = match check.id.cure() {
                    Cure::Steps(_) => &mut own,
                    _ => &mut all.steps,
                };
                let known = steps.clone();
                steps.extend(plan.steps.into_iter().filter(|step| !known.contains(step)));
                all.remaining.extend(plan.remaining);
            }
            Remedy::NeedsDecision(decision) => all.remaining.push(decision),
            Remedy::As(_) | Remedy::Nothing => {}
        }
    }
    let restart = all.steps.iter().position(Step::is_disruptive);
    let at = restart.unwrap_or(all.steps.len());
    all.steps.splice(at..at, own);
    let mut remaining: Vec<Decision> = Vec::new();
    for decision in all.remaining {
        // The larger of two figures for the same memory is enough.
        let missing = decision.missing();
        let is_same = |other: &Decision| {
            let is_of_kind = discriminant(other) == discriminant(&decision);
            *other == decision || missing.is_some() && is_of_kind
        };
        match remaining.iter_mut().find(|other| is_same(other)) {
            Some(other) if missing > other.missing() => *other = decision,
            Some(_) => {}
            None => remaining.push(decision),
        }
    }
    Plan { remaining, ..all }
}

fn decision(decision: Decision) -> Row {
    Row {
        step: None,
        place: None,
        command: None,
        instruction: Some(decision.to_string()),
        why: "a person has to decide".to_owned(),
        expected: None,
        is_disruptive: false,
    }
}

fn rows(machine: &Machine, changes: Vec<Step>, plan: Plan) -> Vec<Row> {
    let steps = [changes, plan.steps].concat();
    let mut at = machine.clone();
    let mut before = status(&at);
    let mut rows = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let after = at.apply(step).ok();
        let expected = after
            .as_ref()
            .map(status)
            .filter(|status| *status != before);
        let mut why = render::why(&at, step);
        if let Some(check) = render::before_start(machine, &steps[..index], &at, step) {
            why = format!("{why}; {check}");
        }
        if let Some(note) = render::more_at_boot(&at, step) {
            why = format!("{why}; {note}");
        }
        let lines = render::command(&at, step);
        // A command with a condition is not there to be pasted.
        let condition = render::condition(machine, &at, step).zip(lines.clone());
        let conditional = condition.map(|(condition, command)| format!("{condition}: {command}"));
        let lines = lines.filter(|_| conditional.is_none());
        let without_command = || lines.is_none().then(|| render::instruction(&at, step));
        let instruction = conditional.or_else(without_command);
        let lines: Vec<_> = match &lines {
            Some(lines) => lines.lines().map(|line| Some(line.to_owned())).collect(),
            None => vec![None],
        };
        // A step of several commands has a row for each; its effect is that of the last.
        let last = lines.len().saturating_sub(1);
        for (number, command) in lines.into_iter().enumerate() {
            let comment = command.as_ref().and_then(|line| line.strip_prefix("# "));
            let place = match comment {
                Some(_) => Place::ByHand,
                None => render::place(&at, step),
            };
            let instruction = comment.map(str::to_owned).or_else(|| instruction.clone());
            let command = command.filter(|line| !line.starts_with("# "));
            rows.push(Row {
                step: Some(step.clone()),
                place: Some(place),
                command,
                instruction,
                why: why.clone(),
                expected: expected.clone().filter(|_| number == last),
                is_disruptive: step.is_disruptive(),
            });
        }
        if let Some(after) = after {
            before = status(&after);
            at = after;
        }
    }
    rows.extend(plan.remaining.into_iter().map(decision));
    rows
}

fn status(machine: &Machine) -> String {
    if machine.server_state != ServerState::Running {
        return "the server is stopped".to_owned();
    }
    let Verdict { status, reason, .. } = answer::verdict(machine);
    format!("{}: {reason}", status.as_str())
}
