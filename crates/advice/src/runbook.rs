//! All steps from a machine to a healthy one, or to a planned configuration.

use super::{
    decision::Decision,
    desired::{self, Desired},
    diagnosis::{self, Verdict},
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

/// The steps, in order, then the decisions. None if the machine is healthy and nothing is planned.
/// Findings of muted checks stay as they are.
pub fn of(machine: &Machine, planned: Option<&Planned>) -> Vec<Row> {
    let mut machine = machine.clone();
    let next = match planned {
        None => desired::wanted_settings(&machine),
        Some(planned) => {
            machine.pending = planned.pending;
            Ok(planned.next.clone())
        }
    };
    let desired_of = |machine: &Machine| match planned {
        None => Desired::of(machine),
        Some(planned) => Desired::of_plan(machine, planned),
    };
    let changes_settings = planned.is_some_and(|planned| planned.pending() != Pending::Nothing);
    let (steps, decisions) =
        diagnosis::everything(&machine, next.as_ref(), desired_of, changes_settings);
    let mut rows = rows(&machine, &steps);
    rows.extend(decisions.into_iter().map(decision));
    rows
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

fn rows(machine: &Machine, steps: &[Step]) -> Vec<Row> {
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
        let lines = render::command(&at, step);
        let instruction = lines.is_none().then(|| render::instruction(&at, step));
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
    rows
}

fn status(machine: &Machine) -> String {
    if machine.server_state != ServerState::Running {
        return "the server is stopped".to_owned();
    }
    let Verdict { status, reason, .. } = diagnosis::verdict(machine);
    format!("{}: {reason}", status.as_str())
}
