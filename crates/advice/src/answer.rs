//! The answer about a machine: each check judged once, the plan, and the verdict. All interfaces
//! print this answer.

use super::{
    check::CheckResult,
    checks::{self, ALL, CheckId, Cure},
    decision::Decision,
    finding::{Finding, Status},
    plan::{Findings, Plan, Remedy},
};
use crate::model::{
    machine::{Machine, ServerState},
    memory, page_tables,
    start::{self, StartOutcome},
    step::Step,
};
use host::server::state::{Backing, Files};

/// The answer about a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// All checks, the most important first, each with its whole remedy. Without checks of a
    /// running server, if it does not run.
    checks: Vec<CheckResult>,
    /// The steps to the desired state. Empty if no check needs it.
    pub plan: Plan,
    /// The answer for the whole server.
    pub verdict: Verdict,
    /// The check that decides the verdict.
    pub(crate) worst: Option<CheckId>,
    /// The remedy of `reboot` where no other row has the plan, which ends sessions.
    at_boot: Remedy,
}

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

pub fn finding(machine: &Machine, id: CheckId) -> Finding {
    id.judge(machine)
}

/// The verdict alone.
pub fn verdict(machine: &Machine) -> Verdict {
    Verdict::of(machine, &findings(machine))
}

impl Answer {
    /// Judges a machine.
    pub fn of(machine: &Machine) -> Self {
        let findings = findings(machine);
        let has_plan = |id: CheckId| matches!(id.cure(), Cure::Core(_));
        let needs_plan =
            |(id, finding): &(CheckId, Finding)| has_plan(*id) && finding.status.needs_attention();
        let plan = match findings.iter().any(needs_plan) {
            true => Plan::of(machine, &findings),
            false => Plan::default(),
        };
        Self::with_plan(machine, findings, plan)
    }

    pub(crate) fn with_plan(
        machine: &Machine,
        findings: Vec<(CheckId, Finding)>,
        plan: Plan,
    ) -> Self {
        // A change of the command line is not visible before the next start.
        let after = match plan.steps.is_empty() {
            true => None,
            false => machine.apply_all(&plan.steps).ok(),
        };
        let after = after.map(|after| after.at_next_start());
        let allowed = plan.applied_if_allowed(machine);
        let moves = machine.backing() == Backing::SmallPages
            && !machine.is_kept_off()
            && !CheckId::HugePages.is_muted(machine);
        let fixes = |after: Option<&Machine>, id: CheckId, finding: &Finding| {
            after.is_some_and(|after| {
                let left = id.judge(after);
                let is_other = || {
                    id == CheckId::PendingSettings
                        && left.code != finding.code
                        && checks::is_left_to_others(after)
                };
                !left.status.needs_attention() || is_other()
            })
        };
        let is_judged = |id: CheckId| {
            machine.server_state == ServerState::Running || !id.needs_running_server()
        };
        let remedy = |id: CheckId, finding: &Finding| match id.cure() {
            _ if !finding.status.needs_attention() => Remedy::Nothing,
            Cure::None => Remedy::Nothing,
            Cure::Decision(decide) => Remedy::NeedsDecision(decide(machine)),
            Cure::Steps(steps) => match steps(machine) {
                Ok(steps) => Remedy::Steps(Plan::of_steps(steps)),
                Err(decision) => Remedy::NeedsDecision(decision),
            },
            Cure::Core(_) if fixes(after.as_ref(), id, finding) => Remedy::Steps(plan.clone()),
            Cure::Core(_) if fixes(allowed.as_ref(), id, finding) => {
                Remedy::NeedsDecision(plan.decision_about(id, machine))
            }
            Cure::Core(decide) => {
                // The decision of the plan about the next boot is more precise.
                let is_known = id == CheckId::Reboot && !plan.remaining.is_empty();
                let stops = machine.faulted_in.is_exact() || id != CheckId::MemoryLeft;
                let safe = plan.applied_safely(machine, stops);
                // Figures of memory are those after the steps. Causes are those before them.
                let at = match id {
                    CheckId::MemoryLeft | CheckId::Overcommit => &safe,
                    _ => machine,
                };
                let own = if is_known { None } else { decide(at) };
                // The decision about a critical finding stays, because less memory can be enough
                // for it.
                let is_critical = finding.status == Status::Critical;
                let covers = |left: &&Decision, own: &Decision| match (*left, own) {
                    (left, own) if is_critical => left == own,
                    // A pool with enough memory also ends a shortage of small pages.
                    (
                        Decision::FreeMemory { .. },
                        Decision::LowerSharedBuffers { release: None, .. },
                    ) if moves => true,
                    (left, own) => left.covers(own),
                };
                let left = |own| plan.remaining.iter().find(|left| covers(left, own));
                match own.as_ref().map(|own| (left(own), own)) {
                    Some((None, own)) => Remedy::NeedsDecision(own.clone()),
                    _ if !plan.steps.is_empty() && !plan.remaining.is_empty() => {
                        Remedy::Steps(plan.clone())
                    }
                    Some((Some(left), _)) => Remedy::NeedsDecision(left.clone()),
                    None => Remedy::NeedsDecision(plan.decision_about(id, machine)),
                }
            }
        };
        let (worst, verdict) = Verdict::with_check(machine, &findings);
        Self {
            checks: findings
                .into_iter()
                .filter(|(id, _)| is_judged(*id))
                .map(|(id, finding)| CheckResult {
                    id,
                    is_muted: id.is_muted(machine),
                    remedy: remedy(id, &finding),
                    same_as: None,
                    finding,
                })
                .collect(),
            at_boot: match plan.is_disruptive() {
                true => at_boot(machine, &plan),
                false => Remedy::Nothing,
            },
            plan,
            verdict,
            worst,
        }
    }

    pub fn finding(&self, id: CheckId) -> Option<&Finding> {
        let check = self.checks.iter().find(|check| check.id == id)?;
        Some(&check.finding)
    }

    /// The remedy for the verdict.
    pub fn remedy(&self) -> Remedy {
        let worst = self
            .checks
            .iter()
            .find(|check| Some(check.id) == self.worst);
        worst.map_or(Remedy::Nothing, |check| check.remedy.clone())
    }

    /// All checks. Muted ones keep their findings and remedies.
    pub fn checks(&self) -> Vec<CheckResult> {
        self.rows(|check| !check.is_muted)
    }

    pub fn chosen(&self, is_chosen: impl Fn(CheckId) -> bool) -> Vec<CheckResult> {
        let mut rows = self.rows(|check| is_chosen(check.id));
        rows.retain(|check| is_chosen(check.id));
        rows
    }

    /// Prints each remedy in the first row that has it. Other rows refer to that row, so that
    /// running all rows from top to bottom runs no command twice. A shown row does not refer to a
    /// hidden row.
    fn rows(&self, is_shown: impl Fn(&CheckResult) -> bool) -> Vec<CheckResult> {
        let mut rows = self.checks.clone();
        let mut order: Vec<_> = (0..rows.len()).collect();
        // No server is restarted for the next boot alone.
        let is_late =
            |check: &CheckResult| check.id == CheckId::Reboot && check.remedy.is_disruptive();
        order.sort_by_key(|&at| (!is_shown(&rows[at]), is_late(&rows[at])));
        let mut printed: Vec<(CheckId, Remedy)> = Vec::new();
        for at in order {
            let (is_shown, is_late) = (is_shown(&rows[at]), is_late(&rows[at]));
            let CheckResult {
                id,
                remedy,
                same_as,
                ..
            } = &mut rows[at];
            if *remedy == Remedy::Nothing {
                continue;
            }
            let same = |remedy: &Remedy| {
                let same = printed.iter().find(|(_, earlier)| is_same(earlier, remedy));
                same.map(|(earlier, _)| *earlier)
            };
            if is_late && same(remedy).is_none() {
                *remedy = self.at_boot.clone();
            }
            match same(remedy) {
                Some(earlier) => {
                    *remedy = Remedy::As(earlier);
                    *same_as = is_shown.then_some(earlier);
                }
                None => printed.push((*id, remedy.clone())),
            }
        }
        rows
    }
}

/// Whether two remedies print the same text.
fn is_same(one: &Remedy, other: &Remedy) -> bool {
    match (one, other) {
        // Figures are printed in whole MB.
        (Remedy::NeedsDecision(one), Remedy::NeedsDecision(other)) => {
            one.to_string() == other.to_string()
        }
        (one, other) => one == other,
    }
}

/// Whether the answer depends on the processes of the server: how much of a segment on small pages
/// they have faulted in, or how large their page tables are.
pub fn depends_on_processes(machine: &Machine) -> bool {
    memory::depends_on_processes(machine)
        || machine.is_kept_off()
            && page_tables::could_be_large(machine)
            && verdict(machine).status.needs_attention()
}

/// The steps of the plan that set up the next boot without a restart, if they are enough.
fn at_boot(machine: &Machine, plan: &Plan) -> Remedy {
    let is_of_boot =
        |step: &&Step| matches!(step, Step::SetPoolAtBoot { .. } | Step::RaiseLimit(_));
    let steps: Vec<_> = plan.steps.iter().filter(is_of_boot).cloned().collect();
    let after = machine.apply_all(&steps);
    let is_fixed = |after: Machine| !CheckId::Reboot.judge(&after).status.needs_attention();
    if !steps.is_empty() && after.is_ok_and(is_fixed) {
        return Remedy::Steps(Plan::of_steps(steps));
    }
    let own = || checks::decision_about_boot(machine).filter(|_| plan.remaining.is_empty());
    let decision = own().unwrap_or_else(|| plan.decision_about(CheckId::Reboot, machine));
    Remedy::NeedsDecision(decision)
}

impl Verdict {
    /// Chooses the worst finding. Of equal ones, the most important check counts. Warnings count
    /// only for checks about the start and the pages of the server, critical findings for all
    /// checks.
    pub(crate) fn of(machine: &Machine, findings: &Findings) -> Self {
        Self::with_check(machine, findings).1
    }

    fn with_check(machine: &Machine, findings: &Findings) -> (Option<CheckId>, Self) {
        let counted = findings.iter().filter(|(id, finding)| {
            finding.status == Status::Critical || id.is_about_server(machine)
        });
        let counted: Vec<_> = counted.collect();
        let shown = counted.iter().filter(|(id, _)| !id.is_muted(machine));
        // `max_by_key` returns the last of several equal findings.
        let worst = shown.rev().max_by_key(|(_, finding)| finding.status);
        let worst = worst.filter(|(_, finding)| finding.status > Status::Ok);
        let (status, code, mut reason) = match worst {
            Some((_, finding)) => (finding.status, finding.code, finding.text.clone()),
            None => healthy(machine, &counted),
        };
        if let Some(pending) = pending(machine) {
            reason = format!("{reason} {pending}");
        }
        if machine.server_state == ServerState::Stopped {
            reason = format!("The server is stopped. {reason}");
        }
        let verdict = Self {
            status,
            code,
            reason,
        };
        (worst.map(|(id, _)| *id), verdict)
    }
}

fn healthy(machine: &Machine, findings: &[&(CheckId, Finding)]) -> (Status, &'static str, String) {
    let of = |id: CheckId| {
        let found = findings.iter().find(|(other, _)| *other == id);
        found.map(|(_, finding)| finding)
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
    let texts = shown
        .filter(|finding| finding.status == Status::Ok)
        .map(|finding| finding.text.clone());
    let muted = findings
        .iter()
        .filter(|(id, finding)| id.is_muted(machine) && finding.status > Status::Ok)
        .map(|(id, finding)| {
            let status = finding.status.as_str();
            format!("Muted: {id} ({status}): {}", finding.text)
        });
    let texts: Vec<_> = texts.chain(muted).collect();
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
    let state = machine.whole_state()?;
    match state.next.files {
        Files::Valid => machine.pending().map(|_| "Settings are pending a restart."),
        Files::Unknown {
            is_pending: true, ..
        } => Some("Settings are pending a restart, and the pages that they need are unknown."),
        Files::NotNamed(_) => Some("The settings of the next start are unknown."),
        Files::Refused(_) | Files::Unknown { .. } => None,
    }
}

/// The verdict on a server that is healthy by its own facts. Only pending settings and other
/// servers can change this verdict. `None`: the server is not healthy, or the verdict also depends
/// on memory, because the server is on small pages, or on huge pages that count as memory of the
/// cgroup.
pub fn verdict_if_healthy(machine: &Machine) -> Option<Verdict> {
    let hugetlb = machine.state.hugetlb.as_ref();
    let is_decided = machine.is_on_huge_pages() == Some(true)
        && hugetlb.is_ok_and(|hugetlb| !hugetlb.counts_as_memory)
        && matches!(start::outcome(machine), StartOutcome::HugePages(_));
    if !is_decided {
        return None;
    }
    let decisive = ALL.iter().filter(|id| id.is_about_server(machine));
    let findings: Vec<_> = decisive.map(|id| (*id, id.judge(machine))).collect();
    let verdict = Verdict::of(machine, &findings);
    (verdict.status == Status::Ok).then_some(verdict)
}

/// Whether the facts alone show idle pages that are worth releasing.
pub fn has_unused_pages(machine: &Machine) -> bool {
    CheckId::PoolSize.judge(machine).status.needs_attention()
}
