//! All checks of a machine with their remedies, and the answer for the whole server.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    check::{Check, CheckId, Finding, Plan, Remedy, Status},
    checks::{self, ALL, Cure},
    decision::{self, Decision},
    desired::{self, Boot, Desired},
    diff,
};
use crate::model::{
    demand::PoolTarget,
    limits,
    machine::{Machine, ServerState},
    start::{self, Fit, StartOutcome},
    step::{Counts, Step},
};
use host::server::state::{Backing, Files, Server};

/// The answer for the whole server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The status of the worst check that counts.
    pub status: Status,
    /// The code of this check.
    pub code: &'static str,
    /// The finding of this check. For a healthy server: the pages of the segment, and the pages
    /// that a restart would get.
    pub reason: String,
}

/// The findings of all checks, the most important first.
pub fn findings(machine: &Machine) -> Vec<(CheckId, Finding)> {
    let all = ALL.iter().map(|id| (*id, id.judge(machine)));
    all.collect()
}

/// The finding of one check.
pub fn finding(machine: &Machine, id: CheckId) -> Finding {
    id.judge(machine)
}

/// All checks, the most important first. Muted checks keep their findings and remedies. Without
/// checks of a running server, if it does not run.
pub fn checks(machine: &Machine) -> Vec<Check> {
    all(machine, |id| id.is_muted(machine))
}

/// Like [`checks()`], but only these.
pub fn chosen(machine: &Machine, is_chosen: impl Fn(CheckId) -> bool) -> Vec<Check> {
    let mut checks = all(machine, |id| !is_chosen(id));
    checks.retain(|check| is_chosen(check.id));
    checks
}

/// All checks. A check that the caller might leave out is referred to only by the remedies of such
/// checks.
fn all(muted: &Machine, is_left_out: impl Fn(CheckId) -> bool) -> Vec<Check> {
    let machine = &Machine {
        muted: BTreeSet::new(),
        ..muted.clone()
    };
    let findings: Vec<_> = ALL.iter().map(|id| id.judge(machine)).collect();
    let remedies = Remedies::of(machine, &findings);
    let is_judged =
        |id: CheckId| machine.server_state == ServerState::Running || !id.needs_running_server();
    let mut checks: Vec<_> = ALL
        .iter()
        .zip(findings)
        .filter(|(id, _)| is_judged(**id))
        .map(|(id, finding)| Check {
            id: *id,
            is_muted: id.is_muted(muted),
            remedy: match finding.status.needs_attention() {
                true => remedies.of_check(machine, *id),
                false => Remedy::Nothing,
            },
            finding,
        })
        .collect();
    let mut listed = Vec::new();
    for left_out in [false, true] {
        for check in checks
            .iter_mut()
            .filter(|check| is_left_out(check.id) == left_out)
        {
            let remedy = std::mem::replace(&mut check.remedy, Remedy::Nothing);
            check.remedy = unless_listed(&mut listed, check.id, remedy);
            // No server is restarted for the next boot alone.
            if check.id == CheckId::Reboot
                && let Remedy::Steps(plan) = &check.remedy
                && plan.steps.iter().any(Step::is_disruptive)
            {
                check.remedy = Remedy::NeedsDecision(remedies.decision_about_boot(machine));
                listed.pop();
            }
        }
    }
    checks
}

/// Replaces a remedy that another check has by the name of that check, so that typing all rows from
/// top to bottom does nothing twice.
fn unless_listed(listed: &mut Vec<(CheckId, Remedy)>, id: CheckId, mut remedy: Remedy) -> Remedy {
    if let Remedy::Steps(plan) = &mut remedy {
        // A line that is added twice can have another effect.
        let is_listed = |step: &Step| {
            let of_boot = matches!(step, Step::SetPoolAtBoot { .. });
            of_boot
                && listed.iter().any(|(_, earlier)| match earlier {
                    Remedy::Steps(earlier) => earlier.steps.contains(step),
                    _ => false,
                })
        };
        if !plan.steps.iter().all(is_listed) {
            plan.steps.retain(|step| !is_listed(step));
        }
    }
    let has_steps = |earlier: &Remedy, plan: &Plan| match earlier {
        Remedy::Steps(earlier) => plan.steps.iter().all(|step| earlier.steps.contains(step)),
        _ => false,
    };
    let leaves = |earlier: &Remedy, left: &Decision| match earlier {
        Remedy::Steps(earlier) => earlier.remaining.as_ref() == Some(left),
        _ => false,
    };
    // An earlier check has the steps, and leaves something else to decide.
    if let Remedy::Steps(plan) = &remedy
        && let Some(left) = &plan.remaining
        && listed.iter().any(|(_, earlier)| has_steps(earlier, plan))
        && !listed
            .iter()
            .any(|(_, earlier)| has_steps(earlier, plan) && leaves(earlier, left))
    {
        remedy = Remedy::NeedsDecision(left.clone());
    }
    let contains = |earlier: &Remedy| match (earlier, &remedy) {
        (_, Remedy::Steps(plan)) => {
            let left = plan.remaining.as_ref();
            has_steps(earlier, plan) && left.is_none_or(|left| leaves(earlier, left))
        }
        (Remedy::NeedsDecision(earlier), Remedy::NeedsDecision(decision)) => earlier == decision,
        _ => false,
    };
    if let Some((earlier, _)) = listed.iter().find(|(_, earlier)| contains(earlier)) {
        return Remedy::As(*earlier);
    }
    listed.push((id, remedy.clone()));
    remedy
}

/// The parts of the difference between the machine and its desired state.
pub(crate) struct Remedies {
    /// Pools, limits, settings and a restart, with the boot configuration.
    core: Result<Vec<Step>, Decision>,
    /// The checks that the core fixes.
    fixed: BTreeSet<CheckId>,
    /// Why the core leaves out pages for other servers. `None`: it does not.
    withheld: Option<Decision>,
    /// A decision about the boot configuration that the core leaves to a person.
    left_by_core: Option<Decision>,
    /// The boot configuration alone.
    boot: Boot,
    /// `huge_pages = try` for a server that would not start.
    fall_back: Option<Step>,
}

impl Remedies {
    fn of(machine: &Machine, findings: &[Finding]) -> Self {
        let next = desired::wanted_settings(machine);
        Self::with(machine, findings, next.as_ref(), Desired::of, &[])
    }

    fn with(
        machine: &Machine,
        findings: &[Finding],
        next: Result<&Server, &Decision>,
        desired_of: impl Fn(&Machine) -> Result<Desired, Decision>,
        extra: &[Step],
    ) -> Self {
        let desired = desired_of(machine);
        let boot_of = |desired: Option<&Desired>| {
            next.map_or(Boot::default(), |next| Boot::of(machine, next, desired))
        };
        let mut with_core = boot_of(desired.as_ref().ok());
        let raises = |desired: &Desired| !desired.limits.is_empty();
        // Alone, the lines must not lead into limits that the core raises.
        let boot = match desired.as_ref().is_ok_and(raises) {
            false => with_core.clone(),
            true => boot_of(None),
        };
        let plan =
            |desired: &Desired, boot: &Boot| diff::plan(machine, desired, &boot.lines, extra);
        let mut withheld = None;
        let core = desired.and_then(|desired| plan(&desired, &with_core));
        let core = core.or_else(|decision| {
            // Pages for other servers must not keep this one from pages that exist.
            let own = desired_of(&desired::without_requests(machine));
            let with_own = boot_of(own.as_ref().ok());
            let steps = own
                .and_then(|own| plan(&own, &with_own))
                .unwrap_or_default();
            let sets_pool = |step: &Step| matches!(step, Step::SetPool { .. });
            if steps.iter().all(|step| extra.contains(step)) || steps.iter().any(sets_pool) {
                return Err(decision);
            }
            withheld = Some(decision);
            with_core = with_own;
            Ok(steps)
        });
        // A change of the command line is not visible before the next start.
        let after = match &core {
            Ok(steps) => machine
                .apply_all(steps)
                .ok()
                .map(|after| after.at_next_start()),
            Err(_) => None,
        };
        let is_fixed = |id: &CheckId| {
            let after = after.as_ref();
            after.is_some_and(|after| !id.judge(after).status.needs_attention())
        };
        let fails = |machine: &Machine| matches!(start::outcome(machine), StartOutcome::Fails(..));
        // Without a core, the machine is as it is before the next start.
        let before_start = after.as_ref().unwrap_or(machine);
        Self {
            fixed: ALL
                .iter()
                .zip(findings)
                .filter(|(id, finding)| finding.status.needs_attention() && is_fixed(id))
                .map(|(id, _)| *id)
                .collect(),
            fall_back: fails(before_start)
                .then(|| desired::fall_back_to_try(before_start))
                .flatten(),
            core,
            withheld,
            left_by_core: with_core.decision,
            boot,
        }
    }

    fn of_check(&self, machine: &Machine, id: CheckId) -> Remedy {
        match id.cure() {
            Cure::None => Remedy::Nothing,
            Cure::Decision(decide) => Remedy::NeedsDecision(decide(machine)),
            Cure::Steps(steps) => match steps(machine) {
                Ok(steps) => Remedy::steps(steps),
                Err(decision) => Remedy::NeedsDecision(decision),
            },
            Cure::Boot => self.of_boot(machine, id),
            Cure::Core(decide) => {
                if let (CheckId::PoolSize | CheckId::MemoryLeft, Err(_)) = (id, &self.core)
                    && let Some(remedy) = Self::of_idle_pages(machine, id)
                {
                    return remedy;
                }
                match &self.core {
                    Ok(steps) if self.fixed.contains(&id) => Remedy::Steps(Plan {
                        steps: steps.clone(),
                        remaining: {
                            let of_boot = self.left_by_core.as_ref();
                            let of_boot = of_boot.filter(|_| moves_pages(steps));
                            let withheld = self.withheld.as_ref();
                            match id {
                                CheckId::OtherServers => withheld.or(of_boot),
                                _ => of_boot.or(withheld),
                            }
                            .cloned()
                        },
                    }),
                    core => {
                        if let Some(steps) = steps_for_running(machine, id) {
                            return Remedy::Steps(Plan {
                                steps,
                                remaining: core.as_ref().err().cloned(),
                            });
                        }
                        let own = decide(machine);
                        // Pages that cannot be had now can be set for the next boot.
                        let lines = match (&own, id) {
                            (None, CheckId::HugePages | CheckId::Restart | CheckId::PoolGrowth) => {
                                &self.boot.lines[..]
                            }
                            _ => &[],
                        };
                        let decision = own.or_else(|| {
                            // The figure for a start on small pages is larger, or the first.
                            let is_beyond_limit = || {
                                let misfit = start::misfit(machine);
                                matches!(misfit, Some(Fit::BeyondCommitLimit { .. }))
                            };
                            let is_about_small_pages = match core {
                                Err(Decision::WouldNotStart(_)) => true,
                                Err(Decision::AddSwap { .. }) => {
                                    !machine.state.asks_for_huge_pages()
                                        && (id.is_about_start() || is_beyond_limit())
                                }
                                _ => false,
                            };
                            if is_about_small_pages && !decision::next_start_fits(machine) {
                                return Some(decision::of_next_start(machine));
                            }
                            core.as_ref().err().or(self.withheld.as_ref()).cloned()
                        });
                        let decision = decision.unwrap_or_else(|| decision::of_next_start(machine));
                        let fall_back = self.fall_back.iter().filter(|_| id.is_about_start());
                        let steps: Vec<_> = fall_back.chain(lines).cloned().collect();
                        if steps.is_empty() {
                            return Remedy::NeedsDecision(decision);
                        }
                        Remedy::Steps(Plan {
                            steps,
                            remaining: Some(decision),
                        })
                    }
                }
            }
        }
    }

    /// Releases idle pages, even if nothing else can be done.
    fn of_idle_pages(machine: &Machine, id: CheckId) -> Option<Remedy> {
        if machine.is_bound_to_nodes() {
            return None;
        }
        let size = checks::largest_idle_size(machine)?;
        let target = PoolTarget::of(machine, size, &machine.next_start())?;
        let pages = target.recommended();
        let step = Step::SetPool { size, pages };
        let after = machine.apply(&step).ok()?;
        let is_fixed = !id.judge(&after).status.needs_attention();
        is_fixed.then(|| Remedy::steps(vec![step]))
    }

    /// The steps of the core that fix the next boot, and if possible do not disturb the running
    /// server: lines with the limits that they need, or more.
    fn for_boot(&self, machine: &Machine, id: CheckId) -> Option<Vec<Step>> {
        let core = self.core.as_ref().ok()?;
        let is_needed =
            |step: &&Step| matches!(step, Step::SetPoolAtBoot { .. } | Step::RaiseLimit(_));
        let needed: Vec<_> = core.iter().filter(is_needed).cloned().collect();
        let is_quiet = |step: &&Step| !step.is_disruptive();
        let quiet: Vec<_> = core.iter().filter(is_quiet).cloned().collect();
        let may_restart =
            self.fixed.contains(&CheckId::HugePages) && !CheckId::HugePages.is_muted(machine);
        let all = may_restart.then(|| core.clone());
        let mut candidates = [needed, quiet].into_iter().chain(all);
        candidates.find(|steps| {
            let after = machine.apply_all(steps);
            after.is_ok_and(|after| !id.judge(&after).status.needs_attention())
        })
    }

    fn of_boot(&self, machine: &Machine, id: CheckId) -> Remedy {
        let Boot { lines, decision } = &self.boot;
        if !lines.is_empty() {
            // The lines alone do not disturb the running server.
            return Remedy::Steps(Plan {
                steps: lines.clone(),
                remaining: decision.clone(),
            });
        }
        if let Some(steps) = self.for_boot(machine, id) {
            return Remedy::steps(steps);
        }
        Remedy::NeedsDecision(self.decision_about_boot(machine))
    }

    fn decision_about_boot(&self, machine: &Machine) -> Decision {
        let of_core = self.core.as_ref().err().cloned();
        let decision = self.boot.decision.clone().or(of_core);
        let decision = decision.or_else(|| checks::decision_about_boot(machine));
        decision.unwrap_or_else(|| decision::of_next_start(machine))
    }
}

/// Steps that keep the running server from a crash, if its next start cannot be planned. `None`: it
/// is not about to crash, or they do not help.
fn steps_for_running(machine: &Machine, id: CheckId) -> Option<Vec<Step>> {
    let Backing::HugePages(size) = machine.backing() else {
        return None;
    };
    if id.judge(machine).status != Status::Critical {
        return None;
    }
    let steps = match id {
        CheckId::CgroupFaultLimit => {
            let limits = limits::to_raise(machine, size, machine.pages_held(size)?);
            let limits = limits.into_iter();
            let limits = limits.filter(|change| change.counts == Counts::Faults);
            limits.map(Step::RaiseLimit).collect()
        }
        _ => return None,
    };
    let after = machine.apply_all(&steps).ok()?;
    (id.judge(&after).status < Status::Critical).then_some(steps)
}

/// Whether steps change the pages of the server or of a pool, so that the next boot matters.
fn moves_pages(steps: &[Step]) -> bool {
    let moves = |step: &Step| {
        matches!(step, Step::SetPool { .. } | Step::ChangeSetting(_)) || step.is_disruptive()
    };
    steps.iter().any(moves)
}

/// All steps to a healthy machine, or to a planned configuration, and the decisions that remain.
pub(crate) fn everything(
    machine: &Machine,
    next: Result<&Server, &Decision>,
    desired_of: impl Fn(&Machine) -> Result<Desired, Decision>,
    is_planned: bool,
) -> (Vec<Step>, Vec<Decision>) {
    let findings: Vec<_> = ALL.iter().map(|id| id.judge(machine)).collect();
    let needs_attention =
        |id: &CheckId, finding: &Finding| finding.status.needs_attention() && !id.is_muted(machine);
    let mut own = Vec::new();
    let mut decisions = Vec::new();
    let mut wants_core = is_planned;
    for (id, finding) in ALL.iter().zip(&findings) {
        if !needs_attention(id, finding) {
            continue;
        }
        match id.cure() {
            Cure::Core(_) | Cure::Boot => wants_core = true,
            Cure::Steps(steps) => match steps(machine) {
                Ok(steps) => own.extend(steps),
                Err(decision) => decisions.push(decision),
            },
            Cure::Decision(decide) => decisions.push(decide(machine)),
            Cure::None => {}
        }
    }
    if !wants_core {
        return (own, decisions);
    }
    // Changes of the service take effect at the restart, if there is one.
    let remedies = Remedies::with(machine, &findings, next, desired_of, &own);
    let mut all = Vec::new();
    if is_planned {
        match &remedies.core {
            Ok(steps) => {
                all.extend(steps.iter().cloned());
                decisions.extend(remedies.left_by_core.clone());
            }
            Err(decision) => decisions.insert(0, decision.clone()),
        }
    }
    for (id, finding) in ALL.iter().zip(&findings) {
        let is_moot = is_planned && remedies.fixed.contains(id);
        if is_moot
            || !needs_attention(id, finding)
            || !matches!(id.cure(), Cure::Core(_) | Cure::Boot)
        {
            continue;
        }
        match remedies.of_check(machine, *id) {
            Remedy::Steps(plan) => {
                decisions.extend(plan.remaining);
                let is_new = |step: &Step| !all.contains(step);
                let new: Vec<_> = plan.steps.into_iter().filter(|step| is_new(step)).collect();
                all.extend(new);
            }
            Remedy::NeedsDecision(decision) => decisions.push(decision),
            Remedy::As(_) | Remedy::Nothing => {}
        }
    }
    // The decision that the steps leave, even if no remedy above states it.
    if (remedies.core.as_ref()).is_ok_and(|steps| steps.iter().all(|step| all.contains(step))) {
        decisions.extend(remedies.withheld.clone());
    }
    let missing: Vec<_> = own.into_iter().filter(|step| !all.contains(step)).collect();
    all.extend(missing);
    let mut seen: Vec<Decision> = Vec::new();
    for decision in decisions {
        // The largest figure is enough for all.
        let figures = [Decision::missing, Decision::missing_in_commit_limit];
        let figure = figures
            .into_iter()
            .find(|figure| figure(&decision).is_some());
        let same = |other: &&mut Decision| {
            **other == decision || figure.is_some_and(|figure| figure(other).is_some())
        };
        match seen.iter_mut().find(same) {
            Some(other) if figure.is_some_and(|figure| figure(&decision) > figure(other)) => {
                *other = decision;
            }
            Some(_) => {}
            None => seen.push(decision),
        }
    }
    (all, seen)
}

/// The answer for the server: the first of the checks about its start and its pages that is worst,
/// and any critical finding.
pub fn verdict(machine: &Machine) -> Verdict {
    let findings: Vec<_> = ALL.iter().map(|id| id.judge(machine)).collect();
    let counted = counted(machine, &findings);
    let (status, code, mut reason) = match worst(machine, &counted) {
        Some((_, finding)) if finding.status > Status::Ok => {
            (finding.status, finding.code, finding.text.clone())
        }
        _ => healthy(machine, &counted),
    };
    if let Some(pending) = pending(machine) {
        reason = format!("{reason} {pending}");
    }
    Verdict {
        status,
        code,
        reason,
    }
}

/// Selects the findings that count for the whole server.
fn counted<'f>(machine: &Machine, findings: &'f [Finding]) -> Vec<(CheckId, &'f Finding)> {
    let all = ALL.into_iter().zip(findings);
    all.filter(|(id, finding)| id.is_about_server(machine) || finding.status == Status::Critical)
        .collect()
}

/// The most important of these findings that is not muted.
fn worst<'f>(
    machine: &Machine,
    counted: &[(CheckId, &'f Finding)],
) -> Option<(CheckId, &'f Finding)> {
    let counted = counted.iter().copied();
    counted
        .filter(|(id, _)| !id.is_muted(machine))
        .max_by_key(|(id, finding)| (finding.status, Reverse(*id)))
}

fn healthy(machine: &Machine, findings: &[(CheckId, &Finding)]) -> (Status, &'static str, String) {
    let of = |id: CheckId| {
        let found = findings.iter().find(|(other, _)| *other == id);
        found.map(|(_, finding)| *finding)
    };
    let huge_pages = match machine.server_state {
        ServerState::Running => of(CheckId::HugePages),
        ServerState::Stopped | ServerState::NotCreated => of(CheckId::Restart),
    };
    // Avoids repeating that the server does not request huge pages, or has none.
    let code = huge_pages.map(|finding| finding.code);
    let is_new = |finding: &&Finding| finding.code != "does_not_ask" && Some(finding.code) != code;
    let restart = of(CheckId::Restart).filter(is_new);
    let shown = [huge_pages, restart].into_iter().flatten();
    let texts: Vec<_> = shown
        .filter(|finding| finding.status == Status::Ok)
        .map(|finding| finding.text.clone())
        .collect();
    let muted = findings
        .iter()
        .filter(|(id, finding)| id.is_muted(machine) && finding.status > Status::Ok);
    let muted = muted.map(|(id, finding)| {
        format!(
            "Muted: {id} ({}): {}",
            finding.status.as_str(),
            finding.text
        )
    });
    let texts: Vec<_> = texts.into_iter().chain(muted).collect();
    (
        Status::Ok,
        huge_pages.map_or("unknown", |finding| finding.code),
        texts.join(" "),
    )
}

fn pending(machine: &Machine) -> Option<&'static str> {
    if CheckId::PendingSettings.is_muted(machine) {
        return None;
    }
    match machine.whole_state()?.files {
        Files::Planned(_) => Some("Settings are pending a restart."),
        Files::Unknown(_) if machine.whole_state()?.has_pending_restart => {
            Some("Settings are pending a restart, and the pages that they need are unknown.")
        }
        Files::NotNamed(_) => Some("The settings of the next start are unknown."),
        Files::NothingPending | Files::Refused(_) | Files::Unknown(_) => None,
    }
}

/// Whether the server is healthy by its own facts. Other facts cannot change that, except pending
/// settings and other servers. False on small pages, and on huge pages that count as memory of the
/// cgroup, because the verdict then also depends on memory.
pub fn is_healthy_by_facts(machine: &Machine) -> bool {
    let hugetlb = machine.state.hugetlb.as_ref();
    // The verdict is the most expensive condition.
    machine.is_on_huge_pages() == Some(true)
        && hugetlb.is_ok_and(|hugetlb| !hugetlb.counts_as_memory)
        && matches!(start::outcome(machine), StartOutcome::HugePages(_))
        && verdict(machine).status == Status::Ok
}

/// Whether the verdict depends on the page tables of all processes.
pub fn depends_on_page_tables(machine: &Machine) -> bool {
    CheckId::PageTables.is_about_server(machine)
}

/// Whether the facts alone show idle pages that are worth releasing.
pub fn has_unused_pages(machine: &Machine) -> bool {
    CheckId::PoolSize.judge(machine).status.needs_attention()
}

/// The remedy for the verdict.
pub fn remedy(machine: &Machine) -> Remedy {
    let findings: Vec<_> = ALL.iter().map(|id| id.judge(machine)).collect();
    match worst(machine, &counted(machine, &findings)) {
        Some((id, finding)) if finding.status.needs_attention() && machine.facts.is_whole => {
            Remedies::of(machine, &findings).of_check(machine, id)
        }
        _ => Remedy::Nothing,
    }
}

/// Whether this remedy could be another one if all processes of the server were read: they show how
/// much of a segment on small pages has been faulted in. What some processes show is less, and a
/// remedy without a stop and without a decision would stay the same.
pub fn depends_on_all_processes(machine: &Machine, remedy: &Remedy) -> bool {
    let is_simple = match remedy {
        Remedy::Steps(plan) => plan.remaining.is_none() && !plan.steps.contains(&Step::Stop),
        Remedy::NeedsDecision(_) => false,
        Remedy::Nothing | Remedy::As(_) => true,
    };
    if is_simple || machine.backing() != Backing::SmallPages {
        return false;
    }
    let mut all = machine.clone();
    all.touched.least = all.touched.most;
    self::remedy(&all) != *remedy
}

/// The remedy for the number of pages of one pool, as if the server asked for its page size.
pub fn how_to_set(machine: &Machine, size: host::units::PageSize) -> Remedy {
    let next = crate::model::forecast::asking_for(machine, size);
    // A pool that fits only once the server has left its small pages needs a restart, which helps
    // only if the server then asks for this size.
    let may_restart = machine.backing() == Backing::SmallPages
        && machine.size_to_map(&machine.next_start()) == Some(size);
    let machine = machine.with_next_start(next.clone());
    let with = |restart| {
        let desired = Desired::for_pool(&machine, size, next.clone(), restart)?;
        let boot = Boot::of(&machine, &next, Some(&desired));
        let steps = diff::plan(&machine, &desired, &boot.lines, &[])?;
        Ok((steps, boot.decision))
    };
    let plan = match with(false) {
        Err(_) if may_restart => with(true),
        plan => plan,
    };
    match plan {
        Ok((steps, None)) if steps.is_empty() => Remedy::Nothing,
        Ok((steps, Some(decision))) if steps.is_empty() => Remedy::NeedsDecision(decision),
        Ok((steps, remaining)) => Remedy::Steps(Plan { steps, remaining }),
        Err(decision) => Remedy::NeedsDecision(decision),
    }
}
