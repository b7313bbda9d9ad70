//! All steps from a machine to a healthy one, or to a planned configuration.

use super::{
    answer::{self, Answer, Verdict},
    check::{Remedy, problems},
    checks::{self, CheckId},
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
    /// The step. `None`: no command is known to be safe, so a person decides.
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

/// The steps and decisions of all checks that are not muted, in order.
pub fn for_answer(machine: &Machine, answer: &Answer) -> Vec<Row> {
    rows(machine, Vec::new(), items(answer, Plan::default(), None))
}

/// The changes to a planned configuration, and the steps that the machine then needs. If the next
/// start cannot use the planned settings, only the first decision.
pub fn for_settings(machine: &Machine, planned: &Planned) -> Vec<Row> {
    let changes = desired::planned_changes(machine, planned);
    let changed = machine
        .apply_all(&changes)
        .unwrap_or_else(|_| machine.clone());
    let mut changed = changed.with_next_start(planned.next.clone());
    // A planned change is intended, also one that the files have already.
    changed.state.next.gives_up_huge_pages |=
        planned.is_about_request && !planned.next.asks_for_huge_pages();
    if let Some(first) = desired::undone(machine, &changed) {
        return vec![decision(first)];
    }
    let findings = answer::findings(&changed);
    match Plan::complete(&changed, &findings, planned.pending()) {
        Ok(plan) => {
            let answer = Answer::with_plan(&changed, findings, plan.clone());
            let after = changed.apply_all(&plan.steps).ok();
            let about_files = after.and_then(|after| checks::about_files(&after));
            let about_files = about_files.filter(|_| !planned.settings.is_empty());
            // Settings that take effect at once need only the steps of the checks.
            let plan = (planned.pending() > Pending::Nothing).then_some(plan);
            let mut items = items(&answer, plan.unwrap_or_default(), about_files);
            let is_planned = planned.pending() == Pending::Restart && planned.is_about_request;
            if is_planned && changed.will_turn_off() {
                let question = checks::question_about_off(&changed).map(Item::Decision);
                items.retain(|item| Some(item) != question.as_ref());
            }
            rows(machine, changes, items)
        }
        // The planned settings do not cause the decision.
        Err(_) if planned.next == machine.next_start() => {
            let answer = Answer::of(&changed);
            rows(machine, changes, items(&answer, Plan::default(), None))
        }
        Err(first) => vec![decision(first)],
    }
}

/// An item of the runbook.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Step(Step),
    Decision(Decision),
}

/// The plan, and the remedies of all checks that are not muted, those of the worst problem first.
/// `about_files`: the decision about files with which the server would not start after the plan.
fn items(answer: &Answer, plan: Plan, about_files: Option<Decision>) -> Vec<Item> {
    let mut items = Vec::new();
    // Changes of the service that the restart needs, and decisions about files with which the
    // server would not start.
    let mut for_restart = Vec::new();
    add(&mut items, plan);
    let mut checks = answer.checks();
    checks.retain(|check| !check.is_muted);
    let ends_sessions = |item: &Item| matches!(item, Item::Step(step) if step.is_disruptive());
    for check in problems(&checks).into_iter().flatten() {
        let is_late = items.iter().any(ends_sessions);
        let items = match check.id {
            CheckId::OomProtection | CheckId::NumaSegment => &mut for_restart,
            CheckId::PendingSettings
                if is_late
                    && check.finding.code == "needs_command_line"
                    && matches!(check.remedy, Remedy::NeedsDecision(_)) =>
            {
                &mut for_restart
            }
            _ => &mut items,
        };
        match &check.remedy {
            Remedy::Steps(plan) => add(items, plan.clone()),
            Remedy::NeedsDecision(decision) => add_decision(items, decision.clone()),
            Remedy::As(_) | Remedy::Nothing => {}
        }
    }
    let is_new = |decision: &Decision| !items.contains(&Item::Decision(decision.clone()));
    if let Some(decision) = about_files.filter(is_new)
        && items.iter().any(ends_sessions)
    {
        add_decision(&mut for_restart, decision);
    }
    let checks_pool = |item: &Item| matches!(item, Item::Step(Step::CheckPool { .. }));
    let restart = items.iter().position(ends_sessions);
    let mut at = restart.unwrap_or(items.len());
    while restart.is_some() && items[..at].last().is_some_and(checks_pool) {
        at -= 1;
    }
    items.splice(at..at, for_restart);
    items
}

/// Adds a plan. Lines for the next boot do not help now, so the first decision comes before them.
fn add(items: &mut Vec<Item>, plan: Plan) {
    let is_first = plan.decides_first();
    let mut remaining = plan.remaining.into_iter();
    if is_first && let Some(first) = remaining.next() {
        add_decision(items, first);
    }
    for step in plan.steps.into_iter().map(Item::Step) {
        if !items.contains(&step) {
            items.push(step);
        }
    }
    remaining.for_each(|decision| add_decision(items, decision));
}

/// Adds a decision. The larger of two figures for the same memory is enough.
fn add_decision(items: &mut Vec<Item>, decision: Decision) {
    let absorbs = |item: &mut Item| match item {
        Item::Decision(other) => other.absorb(&decision),
        Item::Step(_) => false,
    };
    if !items.iter_mut().any(absorbs) {
        items.push(Item::Decision(decision));
    }
}

fn decision(decision: Decision) -> Row {
    Row {
        step: None,
        place: None,
        command: None,
        instruction: Some(decision.to_string()),
        why: "no command is known to be safe here".to_owned(),
        expected: None,
        is_disruptive: false,
    }
}

fn rows(machine: &Machine, changes: Vec<Step>, items: Vec<Item>) -> Vec<Row> {
    let planned = changes.len();
    let changes = changes.into_iter().map(Item::Step);
    let items: Vec<_> = changes.chain(items).collect();
    let mut at = machine.clone();
    let mut before = status(&at);
    let mut rows = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let step = match item {
            Item::Step(step) => step,
            Item::Decision(left) => {
                rows.push(decision(left.clone()));
                continue;
            }
        };
        let after = at.apply(step).ok();
        let expected = after
            .as_ref()
            .map(status)
            .filter(|status| *status != before);
        let mut why = match index < planned {
            true => "as planned".to_owned(),
            false => render::why(&at, step),
        };
        if let Some(note) = render::more_at_boot(&at, step) {
            why = format!("{why}; {note}");
        }
        let later = items[index + 1..].iter().filter_map(|item| match item {
            Item::Step(step) => Some(step),
            Item::Decision(_) => None,
        });
        let conditional = render::conditional(machine, &at, step, later);
        let command = render::command(&at, step).filter(|_| conditional.is_none());
        let without_command = || command.is_none().then(|| render::instruction(&at, step));
        let next = match items.get(index + 1) {
            Some(Item::Step(next)) => Some(next),
            _ => None,
        };
        let kept = render::to_keep(step, next);
        rows.push(Row {
            step: Some(step.clone()),
            place: Some(render::place(&at, step)),
            instruction: conditional.or_else(without_command),
            command,
            why: why.clone(),
            expected,
            is_disruptive: step.is_disruptive(),
        });
        rows.extend(kept.map(|kept| Row {
            step: Some(step.clone()),
            place: Some(Place::ByHand),
            command: None,
            instruction: Some(kept.to_owned()),
            why,
            expected: None,
            is_disruptive: false,
        }));
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
    let Verdict { status, reason, .. } = answer::verdict(machine);
    format!("{}: {reason}", status.as_str())
}
