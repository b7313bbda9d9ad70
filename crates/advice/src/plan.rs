//! The plan: the steps from a machine to its desired state, computed once for each answer.

use super::{
    checks::{self, CheckId},
    decision::{self, Decision},
    desired::{self, Boot, Desired},
    diff,
    finding::{Finding, Status},
    render,
};
use crate::model::{
    demand::{self, Demands, PoolTarget},
    forecast, limits,
    machine::{Machine, ServerState},
    start::{self, Fit, Reason, StartOutcome},
    step::{Counts, Pending, SettingChange, Step},
};
use host::{
    server::state::{Backing, HugePages, Server},
    units::{PageSize, Pages},
};

/// Steps, and the decisions that they leave to a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The decisions that remain after the steps.
    pub remaining: Vec<Decision>,
}

/// The means to fix a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing has to be done.
    Nothing,
    /// These steps, in order.
    Steps(Plan),
    /// The remedy of another check, whose row prints it.
    As(CheckId),
    /// A person has to decide.
    NeedsDecision(Decision),
}

impl Remedy {
    /// Whether sessions end.
    pub(crate) fn is_disruptive(&self) -> bool {
        matches!(self, Self::Steps(plan) if plan.is_disruptive())
    }
}

pub(crate) type Findings = [(CheckId, Finding)];

/// The status of one of these checks.
pub(crate) fn status(findings: &Findings, id: CheckId) -> Status {
    let found = findings.iter().find(|(of, _)| *of == id);
    found.map_or(Status::Ok, |(_, finding)| finding.status)
}

impl Plan {
    /// Steps that leave nothing to decide.
    pub(crate) fn of_steps(steps: Vec<Step>) -> Self {
        Self {
            steps,
            remaining: Vec::new(),
        }
    }

    /// The steps to the desired state, or those that are safe as long as a decision remains.
    pub(crate) fn of(machine: &Machine, findings: &Findings) -> Self {
        Self::complete(machine, findings, Pending::Nothing)
            .unwrap_or_else(|decision| Self::safe_part(machine, findings, decision))
    }

    /// The steps to the desired state. `pending`: when settings that have been changed take effect.
    ///
    /// Errors: the decision that comes first.
    pub(crate) fn complete(
        machine: &Machine,
        findings: &Findings,
        pending: Pending,
    ) -> Result<Self, Decision> {
        if let Some(question) = about_other_size(machine) {
            return Err(question);
        }
        let towards = |desired: Desired| {
            let boot = Boot::of(machine, &desired.next, Some(&desired));
            let steps = diff::plan(machine, &desired, &boot.lines)?;
            // The next boot matters if pages move.
            let matters = moves_pages(&steps) || needs_boot(findings);
            let at_boot = if matters { boot.decisions } else { Vec::new() };
            let left_over = left_over_on_nodes(machine, &desired);
            let remaining = left_over.into_iter().chain(at_boot).collect();
            Ok(Self { steps, remaining })
        };
        let all = Desired::of(machine, pending).and_then(towards);
        let all = all.or_else(|decision| {
            // Pages for other servers must not keep this one from pages that exist.
            let own = Desired::of(&machine.without_requests(), pending).and_then(towards);
            let mut own = own.unwrap_or_default();
            // For a bound server, no step adds pages to a pool: it makes surplus pages persistent.
            let adds_pages =
                |step: &Step| matches!(step, Step::SetPool { .. }) && !machine.is_bound_to_nodes();
            if own.steps.is_empty() || own.steps.iter().any(adds_pages) {
                return Err(decision);
            }
            own.remaining.retain(|later| *later != decision);
            own.remaining.insert(0, decision);
            Ok(own)
        });
        let plan = all?;
        let after = machine.apply_all(&plan.steps);
        let after = after.map_or_else(|_| machine.clone(), |after| after.at_next_start());
        match start::outcome(&after) {
            StartOutcome::Fails(..) => Err(decision::for_next_start(&after)),
            StartOutcome::SmallPages(_, fit)
                if fit != Fit::Fits && checks::undo_pending(machine).is_some() =>
            {
                Err(decision::for_next_start(&after))
            }
            _ => Ok(plan),
        }
    }

    /// Steps that are safe whatever is decided: they keep the running server from a crash, release
    /// idle pages, let the server start on small pages, or set the pool of the next boot.
    fn safe_part(machine: &Machine, findings: &Findings, decision: Decision) -> Self {
        let wanted = desired::wanted_settings(machine);
        // Whether idle pages are used decides about the pools.
        let asks_about_size = matches!(decision, Decision::UseOtherSize { .. });
        let boot = match &wanted {
            // Lines for settings that no step changes would lock memory for nobody.
            Ok(next) if !asks_about_size && *next == machine.next_start() => {
                Boot::of(machine, next, None)
            }
            _ => Boot::default(),
        };
        // Pages that the wanted settings need are not idle.
        let with_wanted = wanted.map(|next| machine.with_next_start(next));
        let with_wanted = with_wanted.as_ref().unwrap_or(machine);
        let mut steps = Vec::new();
        let mut at = machine.clone();
        for part in [
            against_crash(machine, findings),
            match asks_about_size {
                true => Vec::new(),
                false => without_idle_pages(with_wanted, findings),
            },
            fall_back(machine),
            boot.lines,
        ] {
            if let Ok(after) = at.apply_all(&part) {
                at = after;
                steps.extend(part);
            }
        }
        let pending = about_pending(machine, findings, &decision).filter(|_| !asks_about_size);
        // Other figures about the next boot assume the pending change.
        let is_by_hand = |later: &Decision| matches!(later, Decision::SetOnCommandLine(_));
        let is_pending = pending.is_some();
        let small_pages = || about_small_pages(machine, &decision);
        let first = pending.or_else(small_pages).unwrap_or(decision);
        let at_boot = boot.decisions.into_iter().filter(|later| {
            needs_boot(findings) && !first.covers(later) && (!is_pending || is_by_hand(later))
        });
        let at_boot: Vec<_> = at_boot.collect();
        let remaining = [vec![first], at_boot].concat();
        Self { steps, remaining }
    }

    /// The machine after the steps that need no person's condition. Decisions that stay are about
    /// it. `stops`: whether a stop counts. What it releases can be known only within bounds.
    pub(crate) fn applied_safely(&self, machine: &Machine, stops: bool) -> Machine {
        let mut at = machine.clone();
        for (index, step) in self.steps.iter().enumerate() {
            // Later steps can depend on a step that a person has to allow.
            let later = &self.steps[index + 1..];
            match at.apply(step) {
                Ok(_) if matches!(step, Step::Stop | Step::Restart) && !stops => break,
                Ok(after) if render::condition(machine, &at, step, later).is_none() => at = after,
                _ => break,
            }
        }
        at.at_next_start()
    }

    /// The machine after the change that the first decision asks about, if that is its answer.
    pub(crate) fn applied_if_allowed(&self, machine: &Machine) -> Option<Machine> {
        match self.remaining.first()? {
            Decision::UseOtherSize { step, .. } => {
                machine.apply_all([&**step, &start_of(machine)]).ok()
            }
            _ => None,
        }
    }

    /// The decision that the plan leaves for this check.
    pub(crate) fn decision_about(&self, id: CheckId, machine: &Machine) -> Decision {
        let is_by_hand = |left: &&Decision| matches!(left, Decision::SetOnCommandLine(_));
        let left = match id {
            // Decisions about the next boot come last. What is known comes before a file to look
            // at, which is about pages of another size.
            CheckId::Reboot => {
                let by_hand = self.remaining.iter().find(is_by_hand);
                by_hand.or(self.remaining.last())
            }
            _ => self.remaining.first(),
        };
        left.cloned()
            .unwrap_or_else(|| decision::for_next_start(machine))
    }

    /// Whether sessions end.
    pub(crate) fn is_disruptive(&self) -> bool {
        self.steps.iter().any(Step::is_disruptive)
    }

    /// Whether the first decision comes before the steps, because these are only for the next boot,
    /// or because they only release idle pages, while the decision is about a limit.
    pub(crate) fn decides_first(&self) -> bool {
        let is_about_limit = |first: &Decision| matches!(first, Decision::RaiseLimitOutside { .. });
        let is_about_limit = self.remaining.first().is_some_and(is_about_limit);
        let is_later = |step: &Step| match step {
            Step::SetPoolAtBoot { .. } => true,
            Step::SetPool { .. } => is_about_limit,
            _ => false,
        };
        !self.remaining.is_empty() && self.steps.iter().all(is_later)
    }
}

/// The question whether to use idle pages of another size before a second pool grows. There is no
/// question if `huge_page_size` is set.
fn about_other_size(machine: &Machine) -> Option<Decision> {
    let next = desired::wanted_settings(machine).ok()?;
    // Other settings have to change first.
    if next != machine.next_start() {
        return None;
    }
    let wanted = machine.with_next_start(next.clone());
    let (StartOutcome::SmallPages(reason, _) | StartOutcome::Fails(reason, _)) =
        start::outcome(&wanted)
    else {
        return None;
    };
    let Reason::PoolShort { size, .. } = reason else {
        return None;
    };
    let is_set = next.huge_page_size_bytes.is_some_and(|bytes| bytes > 0);
    if is_set {
        return None;
    }
    let sizes = machine.pools().map(|pool| PageSize(pool.page_bytes));
    let mut sizes: Vec<_> = sizes.filter(|other| *other != size).collect();
    // First those that no other server asks for.
    sizes.sort_by_key(|other| {
        let demands = Demands::with_all(&wanted, *other, &next);
        demands.map_or(Pages(0), |demands| demands.asked_by_others())
    });
    let (other, idle, with_other) = sizes.into_iter().find_map(|other| {
        let has_them = machine.pages_held(other)? > Pages(0);
        let of_other = PoolTarget::of(&wanted, other, &next)?;
        let idle = of_other.persistent - of_other.now.total();
        let with_other = Server {
            huge_page_size_bytes: Some(other.0),
            ..next.clone()
        };
        let starts = wanted.with_next_start(with_other.clone());
        let is_enough = demand::pages_of_next_start(&wanted, other, &with_other) <= idle
            && start::outcome(&starts) == StartOutcome::HugePages(other)
            && starts.can_use_huge_pages().is_ok();
        (!has_them && is_enough).then_some((other, idle, with_other))
    })?;
    let pages = PoolTarget::of(&wanted, size, &next)?.recommended();
    let change = Step::ChangeSetting(SettingChange {
        name: "huge_page_size".to_owned(),
        value: other.to_string().replace(' ', ""),
        place: machine.setting_place("huge_page_size", None),
        pending: Pending::Restart,
        next: Ok(with_other),
    });
    let text = |step: &Step| render::in_sentence(machine, step);
    let grow = Step::SetPool { size, pages };
    let with = |steps: &[&Step]| machine.apply_all(steps.iter().copied());
    let stopped = || with(&[&Step::Stop, &Step::Compact, &grow]);
    let grown = with(&[&Step::Compact, &grow]);
    // A server that has such pages keeps them if the pool can grow.
    if machine.backing() == Backing::HugePages(size) && (grown.is_ok() || stopped().is_ok()) {
        return None;
    }
    let instead = match grown {
        Ok(_) => text(&grow),
        Err(_) if stopped().is_ok() => {
            format!("stop PostgreSQL, {}, and start it", text(&grow))
        }
        Err(blocked) => decision::for_blocked(&wanted, size, pages, blocked).to_string(),
    };
    let start = match start_of(machine) {
        Step::Start => "start",
        _ => "restart",
    };
    Some(Decision::UseOtherSize {
        idle: (idle, other),
        change: format!(
            "{} and {start} PostgreSQL",
            text(&change).trim_end_matches(';')
        ),
        step: Box::new(change),
        instead,
    })
}

/// The decision about pages that a bound server does not need after its restart. No command
/// releases them, because the kernel would choose the nodes.
fn left_over_on_nodes(machine: &Machine, desired: &Desired) -> Option<Decision> {
    if !desired.restart || !machine.is_bound_to_nodes() {
        return None;
    }
    let machine = machine.with_next_start(desired.next.clone());
    let mut targets = PoolTarget::each(&machine, &desired.next);
    let target = targets.find(|target| forecast::is_left_over(&machine, target))?;
    let idle = target.persistent - target.recommended();
    let kept = target.after.of_this_server();
    let release = decision::release_by_node(&machine, target.now.size, idle, kept);
    let line = target.at_boot.map_or_else(String::new, |(pages, place)| {
        format!("; {place} sets {pages} at boot, on all nodes together")
    });
    Some(Decision::Text(format!(
        "after the restart, {release}{line}"
    )))
}

/// The step after which changed settings are in effect.
fn start_of(machine: &Machine) -> Step {
    match machine.server_state {
        ServerState::Running => Step::Restart,
        ServerState::Stopped | ServerState::NotCreated => Step::Start,
    }
}

fn needs_boot(findings: &Findings) -> bool {
    status(findings, CheckId::Reboot).needs_attention()
}

/// Whether steps change the pages of the server or of a pool.
fn moves_pages(steps: &[Step]) -> bool {
    let moves = |step: &Step| {
        matches!(step, Step::SetPool { .. } | Step::ChangeSetting(_)) || step.is_disruptive()
    };
    steps.iter().any(moves)
}

/// Steps that keep the running server from a crash: higher limits on the pages that it has.
fn against_crash(machine: &Machine, findings: &Findings) -> Vec<Step> {
    let Backing::HugePages(size) = machine.backing() else {
        return Vec::new();
    };
    if status(findings, CheckId::CgroupFaultLimit) < Status::Critical {
        return Vec::new();
    }
    let held = machine.pages_held(size).unwrap_or_default();
    limits::to_raise(machine, size, held)
        .into_iter()
        .filter(|change| change.counts == Counts::Faults)
        .map(Step::RaiseLimit)
        .collect()
}

/// Releases idle pages of the pool that has most of them.
fn without_idle_pages(machine: &Machine, findings: &Findings) -> Vec<Step> {
    let about_idle = [CheckId::PoolSize, CheckId::MemoryLeft];
    let needs_attention = |id: &CheckId| status(findings, *id).needs_attention();
    let target = || {
        let size = checks::largest_idle_size(machine)?;
        Some(PoolTarget::of(machine, size, &machine.next_start())?.until_restart())
    };
    match target() {
        Some(target)
            if about_idle.iter().any(needs_attention)
                && !CheckId::PoolSize.is_muted(machine)
                && !machine.is_bound_to_nodes()
                && target.recommended() < target.persistent =>
        {
            vec![Step::SetPool {
                size: target.now.size,
                pages: target.recommended(),
            }]
        }
        _ => Vec::new(),
    }
}

/// Sets huge_pages = try if the server cannot get huge pages now, but can start on small pages.
fn fall_back(machine: &Machine) -> Vec<Step> {
    match start::outcome(machine) {
        StartOutcome::Fails(..) => desired::fall_back_to_try(machine).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The decision about a start on small pages, if such a start does not fit and has to be decided
/// first.
fn about_small_pages(machine: &Machine, decision: &Decision) -> Option<Decision> {
    let is_about_it = match decision {
        Decision::WouldNotStart(_) => true,
        Decision::AddSwap { .. } => {
            let misfit = start::misfit(machine);
            !machine.state.asks_for_huge_pages()
                && matches!(misfit, Some(Fit::BeyondCommitLimit { .. }))
        }
        _ => false,
    };
    (is_about_it && !decision::next_start_fits(machine)).then(|| decision::for_next_start(machine))
}

/// The one decision about a pending change for which memory is too small. `decision`: the
/// alternative, unless there is a plan that stops the server.
fn about_pending(machine: &Machine, findings: &Findings, decision: &Decision) -> Option<Decision> {
    let undo = checks::undo_pending(machine)?;
    // As if the change were planned.
    let mut planned = machine.clone();
    planned.state.next.gives_up_huge_pages |= !machine.next_start().asks_for_huge_pages();
    let text = match Plan::complete(&planned, findings, Pending::Restart) {
        Ok(_) => format!(
            "{undo}; or, because {}, follow the steps of {}",
            match machine.next_start().huge_pages {
                HugePages::On => "the server does not start without huge pages",
                _ => "the segment does not fit on small pages",
            },
            runbook_of_pending(machine)
        ),
        Err(_) => format!("{undo}; otherwise, {decision}"),
    };
    Some(Decision::Text(text))
}

/// The call that plans the pending settings, with the value that is known.
fn runbook_of_pending(machine: &Machine) -> String {
    let next = machine.next_start();
    let value = |name: &str| match name {
        "huge_page_size" => Some(
            PageSize(next.huge_page_size_bytes?)
                .to_string()
                .replace(' ', ""),
        ),
        "huge_pages" => Some(next.huge_pages.as_str().to_owned()),
        "shared_memory_type" => Some(next.shared_memory_type.as_str().to_owned()),
        _ => None,
    };
    let known = match machine.state.next.pending.as_slice() {
        [name] => value(name).map(|value| format!("'{name}={value}'")),
        _ => None,
    };
    format!(
        "hugeinfo_runbook({})",
        known.as_deref().unwrap_or("settings")
    )
}

/// The remedy for the number of pages of one pool, as if the server asked for its page size.
pub fn how_to_set(machine: &Machine, size: PageSize) -> Remedy {
    let next = forecast::counted(machine, size);
    // A pool that fits only once the server has left its small pages needs a restart, which helps
    // only if the server then asks for this size.
    let may_restart = machine.backing() == Backing::SmallPages
        && machine.size_to_map(&machine.next_start()) == Some(size);
    let machine = machine.with_next_start(next.clone());
    // A start from the files can need another pool, and a line for it.
    let mut of_size = machine.clone();
    let files = &mut of_size.state.next.from_files;
    files.take_if(|files| machine.size_to_map(files) != Some(size));
    let with = |restart| {
        let desired = Desired::for_pool(&machine, size, next.clone(), restart)?;
        let boot = Boot::of(&of_size, &next, Some(&desired));
        let steps = diff::plan(&machine, &desired, &boot.lines)?;
        Ok(Plan {
            steps,
            remaining: boot.decisions,
        })
    };
    let plan = match with(false) {
        Err(_) if may_restart => with(true),
        plan => plan,
    };
    match plan {
        Ok(plan) if !plan.steps.is_empty() => Remedy::Steps(plan),
        Ok(plan) => plan
            .remaining
            .first()
            .cloned()
            .map_or(Remedy::Nothing, Remedy::NeedsDecision),
        Err(decision) => Remedy::NeedsDecision(decision),
    }
}
