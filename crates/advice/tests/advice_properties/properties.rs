//! The properties.

use std::sync::Arc;

use advice::{
    answer::{self, Answer, findings, verdict},
    check::{CheckId, CheckResult, Finding, Remedy, Status, problems},
    decision::{Decision, Lower},
    ensure,
    model::{
        apply::Blocked,
        demand::{self, Demands, Name, PoolTarget, When},
        forecast::{self, Forecast},
        limits,
        machine::{Machine, ServerState},
        memory, next_boot,
        start::{self, Reason, StartOutcome},
        step::{Pending, SettingPlace, Step},
    },
    plan::{Plan, how_to_set},
    planned::{Planned, PlannedSetting},
    render, runbook, text,
};
use host::{
    linux::{
        boot::{Change, NextBoot},
        error::{Absence, Absent},
        hugepages::Pool,
        numa::node::Node,
        process::segment::Segment,
    },
    server::{
        configuration::RequestedPages,
        facts::Facts,
        instances::Instance,
        setting::{FileLine, SettingSource},
        state::{AllowedNodes, Files, HugePages, Server, SharedMemoryType, State},
        unit::OomPolicy,
    },
    units::{Bytes, PageSize, Pages},
};
use proptest::{prelude::*, test_runner::TestCaseResult};

use super::{
    build::{FACTS, SOURCES, absent, remove},
    machines::{Arch, GB, MB, Spec, Strict},
};

fn checks(machine: &Machine) -> Vec<CheckResult> {
    Answer::of(machine).checks()
}

fn runbook_of(machine: &Machine) -> Vec<runbook::Row> {
    runbook::for_answer(machine, &Answer::of(machine))
}

type Statuses = Vec<(&'static str, Status)>;

fn statuses(machine: &Machine) -> Statuses {
    let all = findings(machine).into_iter();
    all.map(|(id, finding)| (id.name(), finding.status))
        .collect()
}

/// The checks that became worse, apart from muted ones.
fn worse(machine: &Machine, before: &Statuses, after: &Statuses) -> Vec<String> {
    let pairs = before.iter().zip(after);
    pairs
        .filter(|(before, after)| after.1 > before.1 && after.1.needs_attention())
        .filter(|(before, _)| !machine.is_muted(before.0))
        .map(|(before, after)| format!("{}: {:?} -> {:?}", before.0, before.1, after.1))
        .collect()
}

/// The steps of the runbook. A step of several commands has a row for each.
fn steps_of(rows: &[runbook::Row]) -> Vec<Step> {
    let mut steps: Vec<_> = rows.iter().filter_map(|row| row.step.clone()).collect();
    steps.dedup();
    steps
}

fn steps(remedy: &Remedy) -> &[Step] {
    match remedy {
        Remedy::Steps(plan) => &plan.steps,
        _ => &[],
    }
}

/// Steps of all remedies, each list with its name and the machine that it is for.
fn all_steps(machine: &Machine) -> Vec<(String, Machine, Vec<Step>)> {
    let rows = runbook_of(machine);
    let of = machine.clone();
    let mut all = vec![("runbook".to_owned(), of, steps_of(&rows))];
    for check in checks(machine) {
        let steps = steps(&check.remedy).to_vec();
        all.push((check.name().to_owned(), machine.clone(), steps));
    }
    for pool in machine.pools() {
        let size = PageSize(pool.page_bytes);
        let remedy = how_to_set(machine, size);
        // As if the server requested that size.
        let asking = machine.with_next_start(forecast::counted(machine, size));
        all.push((
            format!("how_to_set {size}"),
            asking,
            steps(&remedy).to_vec(),
        ));
    }
    all.retain(|(_, _, steps)| !steps.is_empty());
    all
}

fn decisions(machine: &Machine) -> Vec<(&'static str, Decision)> {
    let decisions = |check: CheckResult| {
        let name = check.name();
        let decisions = match check.remedy {
            Remedy::NeedsDecision(decision) => vec![decision],
            Remedy::Steps(plan) => plan.remaining,
            Remedy::As(_) | Remedy::Nothing => Vec::new(),
        };
        decisions.into_iter().map(move |decision| (name, decision))
    };
    checks(machine).into_iter().flat_map(decisions).collect()
}

fn is_of(step: &Step, of: PageSize) -> bool {
    matches!(step, Step::SetPool { size, .. } if *size == of)
}

/// Every state on the way, with the step that leads to it.
fn way<'s>(machine: &Machine, steps: &'s [Step]) -> Vec<(&'s Step, Machine)> {
    let mut at = machine.clone();
    let mut states = Vec::new();
    for step in steps {
        let Ok(after) = at.apply(step) else { break };
        states.push((step, after.clone()));
        at = after;
    }
    states
}

pub fn no_step_does_harm(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, machine, steps) in all_steps(machine) {
        let blocked = machine.apply_all(&steps).err();
        prop_assert!(blocked.is_none(), "{name}: {blocked:?} by {steps:#?}");
    }
    Ok(())
}

/// The remedy of a stopped server, if it only adds pages, gets them, and leaves enough memory.
fn pages_that_are_enough(stopped: &Machine) -> Option<Vec<Step>> {
    let restart = checks(stopped)
        .into_iter()
        .find(|check| check.id == CheckId::Restart)?;
    let mut at = stopped.clone();
    let mut added = Vec::new();
    for step in steps(&restart.remedy) {
        match step {
            Step::SetPool { size, pages, .. } if at.pool(*size)?.persistent() < pages.0 => {
                added.push(step.clone());
            }
            Step::Compact => added.push(step.clone()),
            Step::SetPoolAtBoot { .. } | Step::CheckPool { .. } | Step::Start => continue,
            _ => return None,
        }
        at = at.apply(step).ok()?;
    }
    let gets_them = matches!(start::outcome(&at), StartOutcome::HugePages(_));
    (gets_them && leaves_reserve(&at)? && !added.is_empty()).then_some(added)
}

/// Whether 2% of RAM and 256 MB stay available, and memory and swap hold what segments have yet to
/// fault in. `None`: unknown.
fn leaves_reserve(machine: &Machine) -> Option<bool> {
    let usage = machine.usage()?;
    let (available, swap) = (usage.available?, usage.swap_free?);
    let reserve = (memory::host_ram(machine)?.0 / 50).max(256 << 20);
    let all = available.saturating_add(swap);
    let needed = memory::not_faulted_in(machine).0.saturating_add(reserve);
    Some(available >= reserve && all >= needed)
}

/// Pages that are added before a start are enough, not one too many, taken from nobody, and not
/// withheld.
pub fn ensured_starts_get_huge_pages(_: &Spec, machine: &Machine) -> TestCaseResult {
    // A stopped server has no options, so the next start is the one from its files.
    let mut machine = machine.clone();
    machine.state.next.from_files = None;
    let Ok(stopped) = machine.apply(&Step::Stop) else {
        return Ok(());
    };
    let steps = match ensure::steps(&stopped) {
        Ok(steps) => steps,
        Err(decision) => {
            let needless = pages_that_are_enough(&stopped);
            prop_assert!(needless.is_none(), "{decision}, but not {needless:?}");
            return Ok(());
        }
    };
    let outcome = |steps: &[Step]| {
        let after = stopped.apply_all(steps);
        after.map(|after| (start::outcome(&after), leaves_reserve(&after)))
    };
    let (after, leaves_reserve) = outcome(&steps)
        .map_err(|blocked| TestCaseError::fail(format!("{blocked:?} by {steps:?}")))?;
    let asks = stopped.state.asks_for_huge_pages();
    prop_assert!(
        !asks || matches!(after, StartOutcome::HugePages(_)),
        "{after:?}"
    );
    for (index, step) in steps.iter().enumerate() {
        let Step::SetPool { size, pages } = step else {
            prop_assert_eq!(step, &Step::Compact);
            continue;
        };
        let before = stopped.pool(*size).map_or(0, |pool| pool.persistent());
        prop_assert!(*pages > Pages(before), "{steps:?} from {before}");
        let mut fewer = steps.clone();
        fewer[index] = Step::SetPool {
            size: *size,
            pages: *pages - Pages(1),
        };
        if let Ok((outcome, _)) = outcome(&fewer) {
            let is_enough = matches!(outcome, StartOutcome::HugePages(_));
            prop_assert!(!is_enough, "a page less is enough: {steps:?}");
        }
    }
    prop_assert!(
        steps.is_empty() || leaves_reserve != Some(false),
        "too little is left by {steps:?}"
    );
    Ok(())
}

pub fn rows_in_order_do_what_the_runbook_does(_: &Spec, machine: &Machine) -> TestCaseResult {
    // The runbook does not contain what is muted.
    prop_assume!(machine.muted.is_empty());
    let rows = runbook_of(machine);
    let planned = machine.apply_all(&steps_of(&rows));
    prop_assume!(planned.is_ok());
    let planned = statuses(&planned.expect("it was assumed"));
    let mut at = machine.clone();
    for check in checks(machine).iter().filter(|check| !check.is_muted) {
        for step in steps(&check.remedy) {
            match at.apply(step) {
                Ok(after) => at = after,
                Err(blocked) => {
                    return Err(TestCaseError::fail(format!(
                        "{}: {blocked:?} by {step:?}",
                        check.name()
                    )));
                }
            }
        }
    }
    let typed = statuses(&at);
    // A changed service waits for a restart, which another row can contain.
    let waits = ["oom_protection", "numa_segment"];
    for (planned, typed) in planned.iter().zip(&typed) {
        prop_assert!(
            waits.contains(&planned.0) || planned == typed || machine.is_muted(planned.0),
            "{planned:?} by the runbook, {typed:?} by the rows, {:#?}, {:#?}",
            steps_of(&rows),
            checks(machine)
                .iter()
                .map(|check| steps(&check.remedy).to_vec())
                .collect::<Vec<_>>()
        );
    }
    Ok(())
}

/// If this server is healthy by its own facts and no setting is pending, `hugeinfo_status` reads
/// nothing else. Reading the rest does not change the verdict unless there are other servers.
pub fn healthy_by_facts_is_healthy(_: &Spec, machine: &Machine) -> TestCaseResult {
    let facts = &machine.facts;
    prop_assume!(facts.is_whole);
    let is_alone = facts.state.other_servers.as_ref().is_ok_and(Vec::is_empty);
    prop_assume!(
        is_alone && facts.state.next.server.is_none() && facts.state.next.files == Files::Valid
    );
    let with = |facts: Facts| Machine {
        muted: machine.muted.clone(),
        ..Machine::new(facts)
    };
    let by_facts = with(Facts {
        is_whole: false,
        ..Facts::clone(facts)
    });
    let by_facts = answer::verdict_if_healthy(&by_facts);
    prop_assume!(by_facts.is_some());
    let by_facts = by_facts.expect("it was assumed");
    // The facts that the status reads otherwise.
    let whole = with(Facts {
        vmstat: Err(Absent::not_looked_at()),
        free_blocks: Err(Absent::not_looked_at()),
        state: State {
            next_boot: Err(Absent::not_looked_at()),
            segment_nodes: None,
            segment_thp_bytes: None,
            oom_score_adj: Err(Absent::not_looked_at()),
            ..facts.state.clone()
        },
        ..Facts::clone(facts)
    });
    let whole = verdict(&whole);
    prop_assert_eq!((by_facts.status, by_facts.code), (whole.status, whole.code));
    Ok(())
}

pub fn remedies_cure(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let before = statuses(machine);
    for check in checks(machine) {
        let Remedy::Steps(plan) = &check.remedy else {
            continue;
        };
        prop_assert!(!plan.steps.is_empty(), "{}: no steps", check.name());
        let after = machine.apply_all(&plan.steps);
        prop_assume!(after.is_ok());
        let after = after.expect("it was assumed").at_next_start();
        let after_all = statuses(&after);
        let mut worse = worse(machine, &before, &after_all);
        // Smaller pools show that `/proc/meminfo` could be that of the host.
        worse.retain(|worse| machine.shows_host_memory || !worse.starts_with("memory_left"));
        // The boot configuration is what remains.
        worse.retain(|worse| plan.remaining.is_empty() || !worse.starts_with("reboot"));
        // Idle pages stay as long as others have reserved pages.
        let waits = plan.remaining.contains(&Decision::WaitForReservedPages);
        worse.retain(|worse| !waits || !worse.starts_with("pool_size"));
        // Reserved pages have no node: other nodes keep as many for a bound server.
        worse.retain(|worse| !machine.is_bound_to_nodes() || !worse.starts_with("pool_size"));
        // A server that gets its pages leaves others fewer, and shows what its cgroup needs.
        worse.retain(|worse| !worse.starts_with("other_servers"));
        // A server that requests pages from now on finds that this boot allocated too few, or that
        // the next boot leaves too little for programs.
        let warns = |(id, found): &(CheckId, Finding)| {
            let of_files = ["boot_fell_short", "too_many_at_boot"];
            *id == CheckId::Reboot && of_files.contains(&found.code)
        };
        let warns = findings(&after).iter().any(warns);
        worse.retain(|worse| !warns || !worse.starts_with("reboot"));
        // A limit that is not visible can be on pages of the size that the remedy requests.
        worse.retain(|worse| spec.refused == 0 || !worse.starts_with("cgroup_fault_limit"));
        // Idle pages of an unknown owner are idle once a server has its own.
        let asks_about_idle = findings(&after)
            .iter()
            .any(|(id, found)| *id == CheckId::PoolSize && found.code == "unused_pages");
        worse.retain(|worse| !asks_about_idle || !worse.starts_with("pool_size"));
        // Released memory can be enough for pages that other servers request.
        worse.retain(|worse| !worse.starts_with("pool_filled"));
        // Pending settings are judged as the restart is.
        let of_restart = |worse: &String| {
            worse.starts_with("pending_settings: ") && worse.ends_with("-> Warning")
        };
        worse.retain(|worse| !of_restart(worse));
        // A present shortage is a finding of memory_left alone, until it is settled.
        let happens = |machine: &Machine| {
            let codes = ["will_run_out_of_memory", "cgroup_out_of_memory"];
            codes.contains(&answer::finding(machine, CheckId::MemoryLeft).code)
        };
        let is_settled = happens(machine) && !happens(&after);
        worse.retain(|worse| {
            let of_start = ["restart: ", "pending_settings: "];
            !is_settled || !of_start.iter().any(|check| worse.starts_with(check))
        });
        let is_limited = !spec.memory_limits.is_empty();
        // Warnings say that a cgroup will swap, which a start on larger pages, or on small pages
        // instead of none, can cause.
        worse.retain(|worse| {
            let swaps = findings(&after).iter().any(|(id, found)| {
                *id == CheckId::MemoryLeft
                    && (found.code == "will_swap" || found.status == Status::Unknown)
            });
            !is_limited
                || !worse.starts_with("memory_left")
                || worse.ends_with("-> Critical")
                || !swaps
        });
        prop_assert!(
            worse.is_empty(),
            "{}: {worse:?}: {:#?}",
            check.name(),
            plan.steps
        );
        let is_service = plan.steps.iter().all(|step| match step {
            Step::ChangeService(_) => true,
            Step::ChangeSetting(change) => change.place == SettingPlace::CommandLine,
            _ => false,
        });
        let status = after_all.iter().find(|(name, _)| *name == check.name());
        let status = status.map(|(_, status)| *status);
        // A limit of the next start can be another one, of another page size: it is a warning once
        // the running server is safe.
        let is_safe_now = check.finding.status == Status::Critical
            && findings(&after)
                .iter()
                .any(|(_, found)| found.code == "cgroup_bomb_at_restart");
        // As long as the next start fails, the check is about that start. It looks at a start from
        // the files once the remedy has been applied, with a decision of its own.
        let is_of_files = check.finding.status == Status::Critical
            && check.id == CheckId::PendingSettings
            && answer::finding(&after, check.id).code == "needs_command_line";
        // Like cgroup_fault_limit above, which pending settings are judged by, too.
        let is_of_limit = spec.refused > 0
            && check.id == CheckId::PendingSettings
            && answer::finding(&after, check.id).code
                == answer::finding(&after, CheckId::CgroupFaultLimit).code;
        prop_assert!(
            !plan.remaining.is_empty()
                || is_service
                || is_safe_now
                || is_of_files
                || is_of_limit
                || status < Some(Status::Warning),
            "{} is {status:?}: {:#?}",
            check.name(),
            plan.steps
        );
    }
    Ok(())
}

pub fn findings_that_stay_have_a_decision(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let all = checks(machine);
    for check in &all {
        // No server is restarted for the next boot alone.
        let alone = steps(&check.remedy);
        let stops = check.id == CheckId::Reboot && alone.iter().any(Step::is_disruptive);
        prop_assert!(!stops, "{alone:?}");
        let needs_attention = check.finding.status.needs_attention();
        prop_assert_eq!(
            needs_attention,
            check.remedy != Remedy::Nothing,
            "{}: {:?}",
            check.name(),
            check.remedy
        );
        if let Remedy::As(id) = &check.remedy {
            let earlier = all.iter().find(|other| other.id == *id);
            let earlier = earlier.map(|other| &other.remedy);
            prop_assert!(!matches!(
                earlier,
                None | Some(Remedy::As(_) | Remedy::Nothing)
            ));
        }
    }
    let rows = runbook_of(machine);
    let after = machine.apply_all(&steps_of(&rows));
    prop_assume!(after.is_ok());
    let after = after.expect("it was assumed").at_next_start();
    // Now, or after the steps have been applied.
    let decides = |rows: &[runbook::Row]| rows.iter().any(|row| row.step.is_none());
    let decides = decides(&rows) || decides(&runbook_of(&after));
    let ill: Vec<_> = findings(&after)
        .into_iter()
        .filter(|(id, finding)| finding.status.needs_attention() && !machine.is_muted(id.name()))
        .filter(|(id, _)| after.service.is_empty() || !is_about_service(*id))
        .filter(|(id, _)| !machine.is_bound_to_nodes() || *id != CheckId::PoolSize)
        .filter(|(id, _)| spec.memory_limits.is_empty() || *id != CheckId::MemoryLeft)
        .filter(|(id, _)| *id != CheckId::OtherServers)
        .collect();
    prop_assert!(ill.is_empty() || decides, "no decision: {ill:#?}");
    Ok(())
}

fn is_about_service(id: CheckId) -> bool {
    matches!(id, CheckId::OomProtection | CheckId::NumaSegment)
}

pub fn no_state_on_the_way_is_critical(_: &Spec, machine: &Machine) -> TestCaseResult {
    let critical = |machine: &Machine| -> Vec<_> {
        let all = findings(machine).into_iter();
        all.filter(|(_, finding)| finding.status == Status::Critical)
            .collect()
    };
    for (name, machine, steps) in all_steps(machine) {
        let before: Vec<_> = critical(&machine).into_iter().map(|(id, _)| id).collect();
        let way = way(&machine, &steps);
        for (index, (step, state)) in way.iter().enumerate() {
            // Settings belong together.
            let is_setting = |step: &Step| matches!(step, Step::ChangeSetting(_));
            let goes_on = way.get(index + 1).is_some_and(|(next, _)| is_setting(next));
            // A pool can get split pages first, and then the rest.
            let (done, rest) = way.split_at(index + 1);
            let splits = |(step, _): &(&Step, Machine)| matches!(step, Step::Demote { .. });
            let sets = |(step, _): &(&Step, Machine)| matches!(step, Step::SetPool { .. });
            let is_split = done.iter().any(splits) && rest.iter().any(sets);
            let goes_on = is_setting(step) && goes_on || is_split;
            if state.server_state != ServerState::Running || goes_on {
                continue;
            }
            for (check, finding) in critical(&state.at_next_start()) {
                // Pending settings are judged as the restart is.
                let is_same =
                    check == CheckId::PendingSettings && before.contains(&CheckId::Restart);
                // A present shortage is a finding of memory_left alone, until it is settled.
                let of_start = [CheckId::Restart, CheckId::PendingSettings];
                let is_settled = of_start.contains(&check) && before.contains(&CheckId::MemoryLeft);
                prop_assert!(
                    is_same || is_settled || before.contains(&check),
                    "{name}: {check} after {step:?}: {} in {steps:#?}",
                    finding.text
                );
            }
        }
    }
    Ok(())
}

pub fn pools_leave_enough_memory(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, machine, steps) in all_steps(machine) {
        let mut before = machine.clone();
        for (step, state) in way(&machine, &steps) {
            let grown = memory::in_pools(&state) - memory::in_pools(&before);
            if matches!(step, Step::SetPool { .. }) && grown > Bytes(0) {
                prop_assert!(
                    leaves_reserve(&state) != Some(false),
                    "{name}: {step:?} leaves {:?} for {}",
                    state.usage(),
                    memory::not_faulted_in(&state)
                );
            }
            before = state;
        }
    }
    Ok(())
}

pub fn numbers_agree(_: &Spec, machine: &Machine) -> TestCaseResult {
    let all = checks(machine);
    let evidence = |name: &str, key: &str| {
        let check = all.iter().find(|check| check.name() == name)?;
        check.finding.evidence.get(key)?.as_u64().map(Pages)
    };
    for pool in machine.pools() {
        let size = PageSize(pool.page_bytes);
        let forecast = Forecast::for_pool(machine, pool);
        let Some(recommended) = forecast.recommended() else {
            continue;
        };
        let is_target = machine.state.target_pool() == Some(pool);
        for (name, _, steps) in all_steps(machine) {
            let mut sets = steps.iter().filter_map(|step| match step {
                Step::SetPool { pages, .. } if is_of(step, size) => Some(pages),
                _ => None,
            });
            let has = Pages(pool.persistent());
            let total = Pages(pool.total);
            let is_bound = machine.is_bound_to_nodes();
            for pages in sets.clone() {
                // The nodes that would get or lose pages are unknown.
                prop_assert!(
                    !is_bound || (has..=total).contains(pages),
                    "{name}: {steps:?} for a bound server, {has} of {total} are persistent"
                );
                let most = recommended.max(total);
                // The recommended number of a pool assumes that this server requests its pages.
                let of_others = PoolTarget::of(machine, size, &machine.next_start());
                let most = most.max(of_others.map_or(Pages(0), |target| target.recommended()));
                prop_assert!(
                    *pages <= most,
                    "{name}: {steps:?}, {recommended} are recommended, {most} are there"
                );
            }
            if let Some(pages) = sets.next_back()
                && *pages > has
                && is_target
                && !is_bound
                && machine.state.asks_for_huge_pages()
            {
                prop_assert_eq!(*pages, recommended, "{}: {:?}", name, steps);
            }
        }
        if is_target && machine.state.asks_for_huge_pages() {
            let target = forecast.target.as_ref().expect("it is recommended");
            if let Some(shown) = evidence("restart", "recommended_nr_hugepages") {
                prop_assert_eq!(shown, recommended);
            }
            if evidence("pool_size", "page_size_bytes") == Some(Pages(size.0)) {
                let shown = evidence("pool_size", "needed_pages");
                prop_assert_eq!(shown, Some(target.now.total()));
            }
            let keys = [
                "page_size_bytes",
                "own_pages",
                "others_pages",
                "other_programs_pages",
            ];
            let parts = keys.map(|key| evidence("other_servers", key));
            if let [Some(judged), Some(own), Some(others), Some(programs)] = parts
                && judged == Pages(size.0)
            {
                let known = target.after.total();
                prop_assert!(own + others + programs >= known);
            }
        }
    }
    for (name, _, steps) in all_steps(machine) {
        for step in &steps {
            if let (Step::SetPoolAtBoot { pages, size, .. }, Some(shown)) =
                (step, evidence("reboot", "required_pages"))
            {
                // A line that systemd does not read could also be meant for others.
                let boot = machine.next_boot();
                let line = boot.and_then(|boot| boot.ineffective.as_ref());
                let is_moved = line.is_some_and(|line| line.request.pages == pages.0);
                // A line that is lowered keeps what it had in addition to the demands.
                let asked = boot.and_then(|boot| boot.pages(size.0));
                let is_lowered = asked.is_some_and(|asked| asked.pages > pages.0) && *pages > shown;
                // The plan corrects a size that the kernel does not have, and sets the pages of the
                // corrected start. The finding is about the settings as they are: it counts only a
                // start from the files.
                let own = machine.size_to_map(&machine.next_start());
                let is_corrected = own.is_some_and(|own| machine.pool(own).is_none());
                prop_assert!(
                    *pages == shown
                        || is_moved
                        || is_lowered
                        || is_corrected
                        || evidence("reboot", "page_size_bytes") != Some(Pages(size.0)),
                    "{name}: {step:?}, {shown} are needed"
                );
            }
        }
    }
    Ok(())
}

pub fn pages_for_other_servers_are_kept(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, of, steps) in all_steps(machine) {
        for pool in of.pools() {
            let size = PageSize(pool.page_bytes);
            let has = Pages(pool.persistent());
            let asked = Demands::with_all(&of, size, &of.next_start())
                .map_or(Pages(0), |demands| demands.asked_by_others());
            let least = match demand::with_unknown_request(&of, size).as_slice() {
                [] => asked.min(has),
                _ => has,
            };
            let mut sets = steps.iter().filter_map(|step| match step {
                Step::SetPool { pages, .. } if is_of(step, size) => Some(*pages),
                _ => None,
            });
            if let Some(pages) = sets.next_back() {
                prop_assert!(pages >= least, "{name}: {pages} of {size}, not {least}");
            }
        }
    }
    Ok(())
}

/// A start whose pool grew before is preceded by a line that stops if the pool is short.
pub fn starts_after_a_growing_pool_have_a_condition(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, of, steps) in all_steps(machine) {
        let mut at = of.clone();
        let mut grown = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            if let Step::SetPool { size, pages } = step
                && at
                    .pool(*size)
                    .is_some_and(|pool| *pages > Pages(pool.total))
            {
                grown.push((*size, *pages));
            }
            if matches!(step, Step::Start | Step::Restart)
                && let Some(size) = at.size_to_map(&at.at_next_start().next_start())
                && let Some((size, pages)) = grown.iter().rev().find(|grown| grown.0 == size)
            {
                // Pages for other servers must not keep this one from its own.
                let own = demand::pages_of_next_start(&at, *size, &at.at_next_start().next_start());
                let last = index.checked_sub(1).map(|last| &steps[last]);
                let is_condition = matches!(
                    last,
                    Some(Step::CheckPool { size: of, pages: least, .. })
                        if of == size && (own..=*pages).contains(least)
                );
                prop_assert!(is_condition, "{name}: no condition in {steps:#?}");
            }
            at = at.apply(step).unwrap_or(at);
        }
    }
    Ok(())
}

/// The text about a pool that is short while the server is stopped has the old number of each pool
/// and the running value of each setting that has changed.
pub fn stopped_server_has_a_way_back(_: &Spec, machine: &Machine) -> TestCaseResult {
    let mut all = all_steps(machine);
    for pool in machine.pools().filter(|_| machine.facts.is_whole) {
        let next = Server {
            huge_page_size_bytes: Some(pool.page_bytes),
            ..machine.next_start()
        };
        let value = format!("{}kB", pool.page_bytes >> 10);
        let planned = plan_of("huge_page_size", &value, next);
        let steps = steps_of(&runbook::for_settings(machine, &planned));
        all.push((
            format!("{} kB", pool.page_bytes >> 10),
            machine.clone(),
            steps,
        ));
    }
    for (name, of, steps) in all {
        let mut at = of.clone();
        let mut changed = Vec::new();
        for step in &steps {
            if matches!(step, Step::CheckPool { .. }) && at.server_state != ServerState::Running {
                let text = render::command(&at, step).unwrap_or_default();
                for was in of.pools() {
                    let size = PageSize(was.page_bytes);
                    let pages = Pages(was.persistent());
                    let back = render::command(&of, &Step::SetPool { size, pages });
                    let is_there = back.is_some_and(|back| text.contains(&back));
                    let is_changed = at.pool(size).map(Pool::persistent) != Some(pages.0);
                    prop_assert!(is_there || !is_changed, "{name}: {size}: {text}");
                }
                for setting in &changed {
                    let running = of.state.next.settings.get(*setting);
                    let running =
                        running.map(|running| format!("set {setting} = {}", running.value));
                    let is_there = running.is_none_or(|back| text.contains(&back));
                    prop_assert!(is_there, "{name}: {setting}: {text}");
                }
            }
            if let Step::ChangeSetting(change) = step
                && change.next.as_ref() != Ok(&of.next_start())
            {
                changed.push(change.name.as_str());
            }
            at = at.apply(step).unwrap_or(at);
        }
    }
    Ok(())
}

/// What the last step leaves is for a person to decide.
pub fn runbook_ends_healthy_or_with_a_decision(_: &Spec, machine: &Machine) -> TestCaseResult {
    let rows = runbook_of(machine);
    let last = rows.iter().rev().find_map(|row| row.expected.as_deref());
    let is_ill = last.is_some_and(|last| {
        last.starts_with(Status::Warning.as_str()) || last.starts_with(Status::Critical.as_str())
    });
    let has_decision = rows.iter().any(|row| row.place.is_none());
    // A changed command line is not visible before the next start, which can be later.
    let is_on_command_line = |step: &Step| match step {
        Step::ChangeSetting(change) => change.place == SettingPlace::CommandLine,
        _ => false,
    };
    let is_later = steps_of(&rows).iter().any(is_on_command_line);
    prop_assert!(
        !is_ill || has_decision || is_later,
        "{last:?} after {rows:#?}"
    );
    Ok(())
}

/// No line is printed twice in a remedy or in the runbook.
pub fn no_line_is_printed_twice(_: &Spec, machine: &Machine) -> TestCaseResult {
    let mut texts = Vec::new();
    for check in checks(machine) {
        let remedy = render::remedy(machine, &check.remedy).unwrap_or_default();
        let lines: Vec<_> = remedy.lines().map(str::to_owned).collect();
        texts.push((check.name(), lines));
    }
    let rows = runbook_of(machine).into_iter();
    let rows = rows.filter_map(|row| row.command.or(row.instruction));
    texts.push(("runbook", rows.collect()));
    for (name, lines) in texts {
        for (index, line) in lines.iter().enumerate() {
            // The place of the next lines.
            let is_place = line.ends_with("as root:") || line.ends_with("of PostgreSQL:");
            let is_again = lines[..index].contains(line) && !is_place;
            prop_assert!(!is_again, "{name}: twice: {line}");
        }
    }
    Ok(())
}

/// One cause is one problem: each check is in exactly one, and no two have the same remedy.
pub fn problems_have_different_remedies(_: &Spec, machine: &Machine) -> TestCaseResult {
    let answer = Answer::of(machine);
    let is_chosen = |id: CheckId| id.name().len().is_multiple_of(2);
    let mut unmuted = answer.checks();
    unmuted.retain(|check| !check.is_muted);
    for shown in [unmuted, answer.chosen(is_chosen)] {
        let attention: Vec<_> = shown
            .iter()
            .filter(|check| check.finding.status.needs_attention())
            .collect();
        let problems = problems(attention.iter().copied());
        let mut ids: Vec<_> = problems.iter().flatten().map(|check| check.id).collect();
        ids.sort();
        let all: Vec<_> = attention.iter().map(|check| check.id).collect();
        prop_assert_eq!(ids, all);
        let remedies: Vec<_> = problems
            .iter()
            .map(|problem| render::remedy(machine, resolved(&shown, problem[0])))
            .collect();
        for (index, problem) in problems.iter().enumerate() {
            let first = resolved(&shown, problem[0]);
            // Less memory can be enough for memory_left than for the cause, which is `restart`.
            let of_memory = problem.iter().find(|check| check.id == CheckId::MemoryLeft);
            let of_memory = of_memory.map(|check| resolved(&shown, check));
            let differs = |check: &&CheckResult| {
                let remedy = resolved(&shown, check);
                remedy != first && Some(remedy) != of_memory
            };
            let other = problem.iter().copied().find(differs);
            prop_assert!(other.is_none(), "{first:?}, but {other:?}");
            prop_assert!(
                !remedies[..index].contains(&remedies[index]),
                "{} is not the only problem with {:?}",
                problem[0].name(),
                remedies[index]
            );
        }
    }
    Ok(())
}

/// The remedy of a check, which can be that of an earlier one.
fn resolved<'c>(all: &'c [CheckResult], check: &'c CheckResult) -> &'c Remedy {
    match &check.remedy {
        Remedy::As(id) => {
            let earlier = all.iter().find(|other| other.id == *id);
            &earlier.expect("an earlier row").remedy
        }
        remedy => remedy,
    }
}

/// The runbook starts with the remedy of the worst check. The rows of a problem follow each other,
/// and the changes of the service that a restart needs come before the restart.
pub fn runbook_is_in_the_order_of_problems(_: &Spec, machine: &Machine) -> TestCaseResult {
    let all = checks(machine);
    let rows = runbook_of(machine);
    // Changes of the service, and of files that keep the server down, come before the restart.
    let is_for_restart = |check: &CheckResult| {
        is_about_service(check.id) || check.finding.code == "needs_command_line"
    };
    let of_service: Vec<_> = all
        .iter()
        .filter(|check| is_for_restart(check))
        .flat_map(|check| decided(&check.remedy))
        .collect();
    let is_service = |row: &runbook::Row| match (&row.step, &row.instruction) {
        (Some(step), _) => matches!(step, Step::ChangeService(_)),
        (None, Some(text)) => of_service.contains(text),
        (None, None) => false,
    };
    let disruptive = rows.iter().position(|row| row.is_disruptive);
    let last_service = rows.iter().rposition(is_service);
    prop_assert!(
        disruptive.is_none() || last_service < disruptive,
        "a restart comes before a change that needs it: {rows:#?}"
    );
    let shown = all.iter().filter(|check| check.needs_attention());
    let mut done = 0;
    let mut known: Vec<usize> = Vec::new();
    for problem in problems(shown) {
        let remedies = problem.iter().map(|check| resolved(&all, check));
        let remedies: Vec<_> = remedies.collect();
        let has_steps = remedies.iter().any(|remedy| !steps(remedy).is_empty());
        if is_about_service(problem[0].id) || is_for_restart(problem[0]) && !has_steps {
            continue;
        }
        let exact: Vec<_> = remedies.iter().flat_map(|remedy| decided(remedy)).collect();
        // The runbook has the figure of another problem if that is larger.
        let is_shown = |text: &&String| {
            rows.iter()
                .any(|row| row.instruction.as_ref() == Some(*text))
        };
        let absorbed = exact.iter().filter(|text| !is_shown(text));
        let kinds: Vec<_> = absorbed.map(|text| kind(text)).collect();
        let is_own = |row: &runbook::Row| match (&row.step, &row.instruction) {
            (Some(step), _) => remedies.iter().any(|remedy| steps(remedy).contains(step)),
            (None, Some(text)) => exact.contains(text) || kinds.contains(&kind(text)),
            (None, None) => false,
        };
        let own = (0..rows.len()).filter(|at| is_own(&rows[*at]) && !known.contains(at));
        let own: Vec<_> = own.collect();
        // An earlier problem has the same rows.
        let Some((first, last)) = own.first().zip(own.last()) else {
            prop_assert!(
                (0..rows.len()).any(|at| is_own(&rows[at])),
                "{}",
                problem[0].name()
            );
            continue;
        };
        let is_between =
            |at: &usize| !own.contains(at) && !known.contains(at) && !is_service(&rows[*at]);
        let between: Vec<_> = (done..*last)
            .filter(is_between)
            .map(|at| &rows[at])
            .collect();
        prop_assert!(
            between.is_empty(),
            "{} starts in row {first}: unrelated are {between:#?} in {rows:#?}",
            problem[0].name()
        );
        done = last + 1;
        known.extend(own);
    }
    Ok(())
}

/// The sentences of the decisions in a remedy.
fn decided(remedy: &Remedy) -> Vec<String> {
    match remedy {
        Remedy::Steps(plan) => plan.remaining.iter().map(ToString::to_string).collect(),
        Remedy::NeedsDecision(decision) => vec![decision.to_string()],
        Remedy::As(_) | Remedy::Nothing => Vec::new(),
    }
}

/// The kind of a decision. The runbook has only the largest figure of each kind; memory for the
/// pool also counts for small pages.
fn kind(text: &str) -> String {
    // Only the reserve can be missing.
    if text.contains(" would stay available") {
        return "too little memory is available".to_owned();
    }
    let kinds = [
        "too little memory is available",
        "lower committed memory by as much",
        "raise the memory limit of the server's cgroup",
    ];
    let kind = kinds.into_iter().find(|kind| text.contains(kind));
    kind.map_or_else(|| without_digits(text), str::to_owned)
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// A setting is changed in the place that decides it. The value with which the server runs undoes a
/// pending change.
pub fn settings_are_changed_in_the_place_that_decides(
    spec: &Spec,
    machine: &Machine,
) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole);
    let file = |path: &str, line| {
        SettingPlace::File(Some(FileLine {
            path: path.into(),
            line,
        }))
    };
    // The command line has those that differ from the files.
    let place = |name: &str| match &machine.facts.state.next.settings[name].source {
        SettingSource::CommandLine => SettingPlace::CommandLine,
        _ if spec.server.allows_alter_system => SettingPlace::AlterSystem,
        SettingSource::File(line) => SettingPlace::File(line.clone()),
        SettingSource::AutoConf => file("postgresql.auto.conf", 0),
        _ => SettingPlace::File(None),
    };
    let change = |name: &str, value: &str| match &place(name) {
        SettingPlace::AlterSystem => format!("ALTER SYSTEM SET {name} = {value}"),
        SettingPlace::File(Some(line)) => format!("in {line}: {name} = {value}"),
        SettingPlace::File(None) => format!("in the configuration file: {name} = {value}"),
        SettingPlace::CommandLine => format!("set {name} = {value} on the command line"),
    };
    let quoted = |value: &str| match value.parse::<u64>() {
        Ok(number) => number.to_string(),
        Err(_) => format!("'{value}'"),
    };
    for (name, of, steps) in all_steps(machine) {
        let mut at = of;
        for step in &steps {
            if let Step::ChangeSetting(setting) = step {
                prop_assert_eq!(&setting.place, &place(&setting.name), "{}", name);
                let text = render::command(&at, step);
                let text = text.unwrap_or_else(|| render::instruction(&at, step));
                let value = quoted(&setting.value);
                prop_assert!(
                    text.contains(&change(&setting.name, &value)),
                    "{name}: {text}"
                );
            }
            at = at.apply(step).unwrap_or(at);
        }
    }
    let running = &machine.facts.state.next.settings;
    for (name, decision) in decisions(machine) {
        let text = decision.to_string();
        prop_assert!(!text.contains("RESET"), "{name}: {text}");
        let undone = match text.split_once("undo the pending change (") {
            Some((_, undone)) => undone.split("; otherwise").next().unwrap_or_default(),
            None => match text.split_once("is intended; otherwise ") {
                Some((_, undone)) => undone,
                None => continue,
            },
        };
        let pending = &machine.state.next.pending;
        let all = [
            "huge_pages",
            "huge_page_size",
            "shared_memory_type",
            "shared_buffers",
        ];
        let is_sysv = machine.state.server.shared_memory_type == SharedMemoryType::Sysv;
        for setting in all.into_iter().filter(|setting| undone.contains(setting)) {
            if is_sysv && setting == "shared_memory_type" {
                prop_assert!(
                    undone.contains(&change(setting, "'mmap'")),
                    "{name}: {text}"
                );
                continue;
            }
            prop_assert!(pending.iter().any(|name| name == setting), "{name}: {text}");
            let value = quoted(&running[setting].value);
            prop_assert!(undone.contains(&change(setting, &value)), "{name}: {text}");
        }
    }
    Ok(())
}

/// Settings that only the command line has are named, because a start without it has others.
pub fn settings_of_the_command_line_are_named(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let is_known = machine.facts.is_whole && machine.state.next.files == Files::Valid;
    let names = match spec.server.source {
        SettingSource::CommandLine if is_known => &machine.state.next.settings,
        _ => return Ok(()),
    };
    let answer = Answer::of(machine);
    let pending = answer.finding(CheckId::PendingSettings);
    prop_assume!(pending.is_some_and(|finding| finding.status != Status::Unknown));
    let pending = pending.map_or("", |finding| &finding.text);
    let lines = text::lines(machine, &answer).into_iter();
    let words: Vec<_> = lines
        .flat_map(|line| {
            let words = line.text.split_whitespace().map(str::to_owned);
            words.collect::<Vec<_>>()
        })
        .collect();
    let text = words.join(" ");
    for (name, setting) in names {
        let setting = format!("{name} = {}", setting.value);
        prop_assert!(pending.contains(&setting), "{setting}: {pending}");
        prop_assert!(text.contains(&setting), "{setting}: {text}");
    }
    Ok(())
}

/// Every text about the machine: findings, remedies, the runbook and the whole answer.
fn texts(machine: &Machine) -> Vec<String> {
    let answer = Answer::of(machine);
    let mut texts = vec![answer.verdict.reason.clone()];
    for check in answer.checks() {
        texts.extend(render::remedy(machine, &check.remedy));
        texts.push(check.finding.text);
    }
    for row in runbook::for_answer(machine, &answer) {
        texts.extend(
            [row.command, row.instruction, row.expected]
                .into_iter()
                .flatten(),
        );
        texts.push(row.why);
    }
    let lines = text::lines(machine, &answer).into_iter();
    texts.extend(lines.map(|line| line.text));
    texts
}

/// A text about a source that could not be read names only the thing that has failed.
pub fn texts_name_what_failed(spec: &Spec, _: &Machine) -> TestCaseResult {
    let kinds = [
        Absence::Missing,
        Absence::Denied,
        Absence::NoEntry("entry with this name"),
        Absence::SubsetPid,
        Absence::NotMounted,
        Absence::OfAnotherRoot,
        Absence::Failed(5),
        Absence::NoProcess,
        Absence::TooLarge,
        Absence::BelowZero,
        Absence::Malformed {
            line: 3,
            problem: "expected a number",
        },
    ];
    let mut spec = spec.clone();
    spec.absent.clear();
    spec.visibility = 'h';
    spec.boot.is_readable = true;
    let number = usize::try_from(spec.server.next.plus_kb / 8).expect("64 bits");
    let fact = number % FACTS;
    // A missing file is a known fact.
    let why = kinds[1 + number / FACTS % (kinds.len() - 1)];
    let known = spec.machine().expect("the machine was possible");
    let mut facts = spec.facts().expect("the machine was possible");
    remove(fact, &mut facts, why);
    let machine = Machine {
        muted: known.muted.clone(),
        ..Machine::new(facts)
    };
    let failed = |why| SOURCES.map(|path| absent(path, why).to_string());
    let texts = texts(&machine);
    // If a check can no longer be judged, a text says why.
    let before = Answer::of(&known);
    let unknown = Answer::of(&machine).checks().into_iter().find(|check| {
        let was = before.finding(check.id).map(|finding| finding.status);
        let was_known = was.is_some_and(|was| was != Status::Unknown);
        // If a server could use all nodes, numa_segment also needs numa_maps. memory_left names all
        // sources that it needs.
        let is_other =
            (check.id, fact) == (CheckId::NumaSegment, 5) || check.id == CheckId::MemoryLeft;
        check.finding.text.starts_with("Cannot judge") && was_known && !is_other
    });
    let names = |text: &String| failed(why).iter().any(|right| text.contains(right));
    if let Some(check) = unknown {
        let text = &check.finding.text;
        let is_source = fact < 15 && ![1, 10].contains(&fact);
        prop_assert!(
            !is_source || texts.iter().any(names),
            "{why:?}, but fact {fact} is not named, as in: {text}"
        );
    }
    let others = kinds.into_iter().filter(|other| *other != why);
    let wrong: Vec<_> = others.flat_map(failed).collect();
    let all = texts.join("\n");
    for wrong in wrong {
        prop_assert!(
            spec.host.arch == Arch::None || !all.contains(&wrong),
            "{why:?}, but {wrong} in: {all}"
        );
    }
    Ok(())
}

/// A figure that depends on how much one process has faulted in, or on shared memory of unknown
/// programs, is called a bound.
pub fn figures_that_are_bounds_are_called_so(_: &Spec, machine: &Machine) -> TestCaseResult {
    // If it is unknown, the use of memory is assumed.
    prop_assume!(machine.facts.is_whole && machine.usage().is_some());
    let less_of_processes = |facts: &mut Facts| {
        for process in &mut facts.state.processes {
            process.rss_shmem = process.rss_shmem.map(|bytes| bytes / 2);
        }
        for server in facts.state.other_servers.iter_mut().flatten() {
            server.rss_shmem_bytes = server.rss_shmem_bytes.map(|bytes| bytes / 2);
        }
    };
    let more_of_unknown_programs = |facts: &mut Facts| {
        let segment = facts.state.segment.as_ref();
        let more = segment.map_or(0, |segment| segment.bytes / 4);
        if let Ok(usage) = &mut facts.state.usage {
            usage.shmem = usage.shmem.map(|bytes| bytes + more);
        }
    };
    is_called_a_bound(machine, less_of_processes)?;
    is_called_a_bound(machine, more_of_unknown_programs)
}

fn is_called_a_bound(machine: &Machine, change: impl Fn(&mut Facts)) -> TestCaseResult {
    let mut facts = Facts::clone(&machine.facts);
    change(&mut facts);
    let other = Machine {
        muted: machine.muted.clone(),
        ..Machine::new(facts)
    };
    let is_bound = |text: &str| {
        let words = ["at least", "at most", "up to", "about"];
        words.iter().any(|word| text.contains(word))
    };
    let (answer, of_other) = (Answer::of(machine), Answer::of(&other));
    let has_same_steps = answer.plan.steps == of_other.plan.steps;
    for (check, of_other) in answer.checks().into_iter().zip(of_other.checks()) {
        // Commands are removed, because they depend on the possible steps.
        let remedy = |machine: &Machine, check: &CheckResult| {
            let remedy = render::remedy(machine, &check.remedy).unwrap_or_default();
            let is_command = |line: &str| {
                // What is committed after other steps is another figure, which is exact.
                if line.contains("lower committed memory") && !has_same_steps {
                    return true;
                }
                let commands = [
                    "nr_hugepages",
                    "let the node have",
                    "at boot by hand",
                    "on the host, allocate",
                    "there is too little for",
                    "ends all of its sessions",
                    // Another number for the command above it.
                    "that no visible server holds",
                ];
                commands.iter().any(|word| line.contains(word))
            };
            let is_sentence = |line: &&str| line.starts_with('#') && !is_command(line);
            remedy
                .lines()
                .filter(is_sentence)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let texts = [
            (check.finding.text.clone(), of_other.finding.text.clone()),
            (remedy(machine, &check), remedy(&other, &of_other)),
        ];
        for (one, other) in texts {
            let pairs = one.lines().zip(other.lines());
            let pairs = pairs.map(|(one, other)| (without_values(one), without_values(other)));
            for (one, other) in pairs.filter(|(one, other)| one != other) {
                let is_figure = without_digits(&one) == without_digits(&other);
                prop_assert!(
                    !is_figure || is_bound(&other),
                    "{}: {one}, or {other}",
                    check.name()
                );
            }
        }
    }
    Ok(())
}

/// The text without the values after "lower … to", "lower … by" and "raise … by", which are enough
/// in any case.
fn without_values(text: &str) -> String {
    let (mut lowers, mut is_value) = (false, false);
    let is_kept = |word: &&str| {
        let is_kept = !is_value || !word.starts_with(|first: char| first.is_ascii_digit());
        lowers = matches!(*word, "lower" | "raise") || lowers && !is_value;
        is_value = lowers && matches!(*word, "to" | "by");
        is_kept
    };
    let words: Vec<_> = text.split(' ').filter(is_kept).collect();
    words.join(" ")
}

/// If nothing is wrong with a start on small pages, the reserve stays available afterwards.
pub fn small_pages_leave_a_reserve(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && machine.segment().is_some());
    prop_assume!(matches!(
        start::outcome(machine),
        StartOutcome::SmallPages(..)
    ));
    let checks = [CheckId::MemoryLeft, CheckId::Restart];
    let is_ok = |id| answer::finding(machine, id).status == Status::Ok;
    prop_assume!(checks.into_iter().all(is_ok));
    let figures = memory::host_ram(machine).zip(machine.usage());
    prop_assume!(figures.is_some());
    let (ram, usage) = figures.expect("assumed");
    let (available, swap) = (
        Bytes(usage.available.unwrap_or(0)),
        usage.swap_free.unwrap_or(0),
    );
    let segment = Bytes(machine.next_start().shared_memory_bytes);
    // A start that takes no more than the running server has is always possible.
    let released = machine
        .faulted_in
        .most
        .min(memory::segment_on_small_pages(machine));
    let surplus: Bytes = machine
        .pools()
        .map(|pool| Pages(pool.surplus) * PageSize(pool.page_bytes))
        .sum();
    let then = available + released + surplus;
    let reserve = ram.percent(2).max(Bytes(256 << 20));
    prop_assert!(
        segment <= released + surplus || then + Bytes(swap) >= segment + reserve && then >= reserve,
        "{segment} on small pages of {then}, and {swap} of swap"
    );
    Ok(())
}

/// The runbook has the largest figure about the commit limit, and all interfaces have the same
/// ratio for the same figure.
pub fn one_ratio_is_enough(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.muted.is_empty());
    let figures = |decision: &Decision| match decision {
        Decision::AddSwap {
            missing, enough, ..
        } => Some((*missing, *enough)),
        _ => None,
    };
    let mut all: Vec<_> = decisions(machine)
        .iter()
        .filter_map(|(_, decision)| figures(decision))
        .collect();
    let of_checks = all.iter().max().copied();
    if let Some(pool) = machine.state.target_pool() {
        let remedy = how_to_set(machine, PageSize(pool.page_bytes));
        all.extend(match remedy {
            Remedy::NeedsDecision(decision) => figures(&decision),
            _ => None,
        });
    }
    for (missing, enough) in &all {
        let same = all.iter().filter(|(other, _)| other == missing);
        let ratios: Vec<_> = same.map(|(_, enough)| enough).collect();
        prop_assert!(
            ratios.iter().all(|ratio| *ratio == enough),
            "{missing}: {ratios:?}"
        );
    }
    let Some((missing, enough)) = of_checks else {
        return Ok(());
    };
    let rows = runbook_of(machine);
    let swap = format!("add {} MB of swap", missing.megabytes_at_least());
    let ratio = enough.map(|ratio| format!("set vm.overcommit_ratio to {ratio}"));
    let is_named = rows
        .iter()
        .filter_map(|row| row.instruction.as_ref())
        .any(|text| {
            text.contains(&swap) && ratio.as_ref().is_none_or(|ratio| text.contains(ratio))
        });
    prop_assert!(is_named, "{missing}, {enough:?}: {rows:#?}");
    Ok(())
}

pub fn no_remedy_has_a_redundant_step(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole);
    for check in checks(machine) {
        let Remedy::Steps(plan) = &check.remedy else {
            continue;
        };
        // A change of the command line or of the service is not visible before the next start.
        let is_hidden = |step: &Step| match step {
            Step::ChangeSetting(change) => change.place == SettingPlace::CommandLine,
            Step::ChangeService(_) => true,
            _ => false,
        };
        if plan.steps.iter().any(is_hidden) {
            continue;
        }
        let Ok(full) = machine.apply_all(&plan.steps) else {
            continue;
        };
        let full_statuses = statuses(&full);
        for (index, step) in plan.steps.iter().enumerate() {
            // The next change of a setting contains the one before.
            let is_contained = matches!(
                plan.steps[index..],
                [Step::ChangeSetting(_), Step::ChangeSetting(_), ..]
            );
            // A pool that grows is kept over the next boot, whatever the check is about.
            let is_exempt = is_contained
                || matches!(
                    step,
                    Step::Compact
                        | Step::Reload
                        | Step::Demote { .. }
                        | Step::SetPoolAtBoot { .. }
                        | Step::RestartOther { .. }
                        | Step::CheckPool { .. }
                );
            if plan.steps.len() == 1 || is_exempt {
                continue;
            }
            let rest = plan.steps.iter().enumerate();
            let rest = rest.filter(|(at, _)| *at != index).map(|(_, step)| step);
            let Ok(after) = machine.apply_all(rest) else {
                continue;
            };
            let differs = statuses(&after)
                .iter()
                .zip(&full_statuses)
                .any(|(without, full)| without.1 > full.1);
            let reaches = |machine: &Machine| recommended(machine);
            prop_assert!(
                differs
                    || after.server_state != full.server_state
                    || reaches(&after) != reaches(&full),
                "{}: {step:?} is redundant in {:#?}",
                check.name(),
                plan.steps
            );
        }
    }
    Ok(())
}

/// Whether each pool has the recommended number of pages.
fn recommended(machine: &Machine) -> Vec<bool> {
    let pools = machine.pools();
    pools
        .map(|pool| {
            let size = PageSize(pool.page_bytes);
            let target = PoolTarget::of(machine, size, &machine.next_start());
            target.map(|target| target.recommended()) == Some(Pages(pool.persistent()))
        })
        .collect()
}

pub fn healthy_machines_get_no_advice(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, finding) in findings(machine) {
        prop_assert!(!finding.status.needs_attention(), "{name}: {finding:?}");
    }
    prop_assert!(!verdict(machine).status.needs_attention());
    let rows = runbook_of(machine);
    prop_assert!(rows.is_empty(), "{rows:?}");
    prop_assert_eq!(Answer::of(machine).remedy(), Remedy::Nothing);
    Ok(())
}

/// If the status is a warning, it has a remedy, a decision or a question.
pub fn status_has_a_remedy(_: &Spec, machine: &Machine) -> TestCaseResult {
    let answer = Answer::of(machine);
    prop_assert_eq!(
        answer.verdict.status.needs_attention(),
        answer.remedy() != Remedy::Nothing,
        "{:?}",
        answer.verdict
    );
    Ok(())
}

/// The status and its remedy are those of the checks, although `hugeinfo_status` reads less.
pub fn status_agrees_with_checks(_: &Spec, machine: &Machine) -> TestCaseResult {
    let facts = &machine.facts;
    prop_assume!(facts.is_whole);
    // The facts that the status does not read.
    let facts = Facts {
        vmstat: Err(Absent::not_looked_at()),
        state: State {
            segment_nodes: None,
            segment_thp_bytes: None,
            oom_score_adj: Err(Absent::not_looked_at()),
            ..facts.state.clone()
        },
        ..Facts::clone(facts)
    };
    let with = |facts: Facts| Machine {
        muted: machine.muted.clone(),
        ..Machine::new(facts)
    };
    let read = with(facts);
    let without_processes = with(Facts {
        state: State {
            processes: Vec::new(),
            ..read.facts.state.clone()
        },
        ..Facts::clone(&read.facts)
    });
    let read = match answer::depends_on_processes(&without_processes) {
        true => Answer::of(&read),
        false => Answer::of(&without_processes),
    };
    let whole = Answer::of(machine);
    prop_assert_eq!(&read.verdict, &whole.verdict);
    prop_assert_eq!(read.remedy(), whole.remedy());
    Ok(())
}

/// A plan for the settings of the server is the plan of the server.
pub fn plan_for_present_settings_is_the_plan(_: &Spec, machine: &Machine) -> TestCaseResult {
    // A change makes files known, or corrects them.
    prop_assume!(machine.facts.is_whole);
    prop_assume!(machine.state.next.files == Files::Valid);
    let setting = PlannedSetting {
        name: "wal_buffers".to_owned(),
        value: "-1".to_owned(),
        source: SettingSource::Default,
        pending: Pending::Nothing,
        next: Ok(machine.next_start()),
    };
    let mut present = Planned {
        settings: Vec::new(),
        is_about_request: false,
        pending: Pending::Nothing,
        next: machine.next_start(),
    };
    let plan = runbook_of(machine);
    prop_assert_eq!(&runbook::for_settings(machine, &present), &plan);
    present.settings.push(setting);
    prop_assert_eq!(
        steps_of(&runbook::for_settings(machine, &present)[1..]),
        steps_of(&plan)
    );
    Ok(())
}

/// The machine with one more fact absent.
fn without(spec: &Spec, fact: usize) -> Option<Machine> {
    let mut absent = spec.absent.clone();
    absent.push(fact);
    let spec = Spec {
        absent,
        ..spec.clone()
    };
    spec.machine()
}

pub fn absent_facts_yield_no_command(spec: &Spec, _: &Machine) -> TestCaseResult {
    // Any fact: it depends on a number that nothing else depends on.
    let fact = usize::try_from(spec.server.next.plus_kb / 8).expect("64 bits") % FACTS;
    let machine = without(spec, fact).expect("the machine was possible");
    // Without an environment, only the verdict is computed.
    for (name, _, steps) in all_steps(&machine)
        .iter()
        .filter(|_| machine.facts.is_whole)
    {
        for step in steps {
            let is_wrong = match step {
                Step::SetPool { size, pages, .. } => {
                    let total = machine.pool(*size).map_or(0, |pool| pool.total);
                    matches!(fact, 0 | 1 | 3 | 19) || fact == 18 && *pages > Pages(total)
                }
                Step::SetPoolAtBoot { .. } => matches!(fact, 0 | 1 | 3 | 8 | 19),
                Step::RaiseLimit(_) => fact == 4,
                Step::Restart | Step::Stop => matches!(fact, 0 | 1 | 3 | 4 | 5 | 19),
                Step::SetThp { .. } => fact == 14,
                _ => false,
            };
            prop_assert!(!is_wrong, "{name} without fact {fact}: {step:?}");
        }
    }
    everything_can_be_rendered(spec, &machine)?;
    Ok(())
}

/// Facts that decide whether a server is healthy.
pub fn absent_facts_improve_no_verdict(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let before = verdict(machine);
    prop_assume!(before.status.needs_attention() && machine.muted.is_empty());
    for fact in [0, 1, 2, 3, 4, 5, 19] {
        let machine = without(spec, fact).expect("the machine was possible");
        let after = verdict(&machine);
        prop_assert!(
            after.status > Status::Ok || !matches!(before.code, "fell_back" | "would_not_start"),
            "without fact {fact}: {before:?}, then {after:?}"
        );
    }
    Ok(())
}

pub fn expected_is_the_status_after_the_step(_: &Spec, machine: &Machine) -> TestCaseResult {
    let mut at = machine.clone();
    let mut shown = verdict_text(machine);
    let rows = runbook_of(machine);
    for (index, row) in rows.iter().enumerate() {
        let Some(step) = &row.step else { continue };
        // The next row of the same step only keeps its effect.
        let is_first = index == 0 || rows[index - 1].step != row.step;
        if !is_first {
            prop_assert_eq!(&row.expected, &None);
            continue;
        }
        let after = at.apply(step);
        prop_assume!(after.is_ok());
        at = after.expect("it was assumed");
        let now = verdict_text(&at);
        let expected = (now != shown).then(|| now.clone());
        prop_assert_eq!(&row.expected, &expected);
        shown = now;
    }
    Ok(())
}

fn verdict_text(machine: &Machine) -> String {
    if machine.server_state != ServerState::Running {
        return "the server is stopped".to_owned();
    }
    let verdict = verdict(machine);
    format!("{}: {}", verdict.status.as_str(), verdict.reason)
}

pub fn following_the_runbook_twice_changes_nothing(_: &Spec, machine: &Machine) -> TestCaseResult {
    // Roles that cannot read the files now cannot read them later.
    let files = &machine.state.next.files;
    prop_assume!(!machine.facts.is_whole || !matches!(files, Files::Unknown { .. }));
    let rows = runbook_of(machine);
    // Released memory can make a decision unnecessary, and make room for other servers.
    prop_assume!(rows.iter().all(|row| row.step.is_some()));
    let next = machine.next_start_on_huge_pages();
    prop_assume!(machine.pools().all(|pool| {
        let size = PageSize(pool.page_bytes);
        Demands::of(machine, size, &next, When::AfterRestart)
            == Demands::with_all(machine, size, &next)
    }));
    let steps = steps_of(&rows);
    let after = machine.apply_all(&steps);
    prop_assume!(after.is_ok());
    let mut after = after.expect("it was assumed");
    // A later session would read the machine like this.
    after.is_compacted = false;
    let mut again = steps_of(&runbook_of(&after));
    // Changes of the service and its command line are not visible before the next start.
    again.retain(|step| match step {
        Step::ChangeService(change) => !after.service.contains(change),
        Step::ChangeSetting(change) => {
            change.place != SettingPlace::CommandLine || after.state.next.on_command_line.is_none()
        }
        // With few facts, the boot configuration is that of a new host in each answer.
        Step::SetPoolAtBoot { .. } => after.facts.is_whole,
        _ => true,
    });
    prop_assert!(again.is_empty(), "{again:#?}, after {steps:#?}");
    Ok(())
}

pub fn decisions_are_enough(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, decision) in decisions(machine) {
        let mut followed = machine.clone();
        match &decision {
            Decision::FreeMemory {
                missing,
                is_used,
                lower,
                or_at_boot,
                ..
            } => {
                prop_assert!(*missing > Bytes(0), "{decision:?}");
                free(&mut followed, *missing);
                if let Ok(meminfo) = &mut followed.state.meminfo
                    && !is_used
                {
                    let more = |bytes: u64| bytes.saturating_add(missing.0);
                    meminfo.total_bytes = meminfo.total_bytes.map(more);
                }
                // Memory can be missing at boot, and now.
                still_asks_for(name, &followed, &decision, |other| match other {
                    Decision::FreeMemory {
                        or_at_boot: again, ..
                    } => again == or_at_boot,
                    _ => false,
                })?;
                if let Some(lower) = lower {
                    lowered(name, machine, *lower, &decision)?;
                }
            }
            Decision::LowerSharedBuffers { lower, missing, .. } => {
                prop_assert!(*missing > Bytes(0), "{decision:?}");
                // The pools are judged as they are, and the pending settings are those that change.
                let is_pending = machine.state.next.server.is_some() && name == "memory_left";
                if matches!(lower, Some(Lower::Pending(_))) {
                    prop_assert!(machine.apply(&Step::Restart).is_ok(), "{decision:?}");
                }
                if let Some(Lower::OfOther(server, megabytes)) = lower {
                    lower_other(&mut followed, *server, megabytes << 20);
                    still_asks_for(name, &followed, &decision, |other| {
                        matches!(other, Decision::LowerSharedBuffers { .. })
                    })?;
                } else if let Some(lower) = lower.filter(|_| !is_pending) {
                    lowered(name, machine, lower, &decision)?;
                }
            }
            Decision::RaiseMemoryLimit { by } => {
                prop_assert!(*by > Bytes(0), "{decision:?}");
                for limit in followed.state.memory_limits.iter_mut().flatten() {
                    limit.limit_bytes = limit.limit_bytes.saturating_add(by.0);
                }
                still_asks_for(name, &followed, &decision, |other| {
                    matches!(other, Decision::RaiseMemoryLimit { .. })
                })?;
            }
            Decision::AddSwap {
                missing, pending, ..
            } => {
                prop_assert!(*missing > Bytes(0), "{decision:?}");
                if pending.is_some() {
                    prop_assert!(machine.apply(&Step::Restart).is_ok(), "{decision:?}");
                }
                if let Ok(usage) = &mut followed.state.usage {
                    let more = |bytes: u64| bytes.saturating_add(missing.0);
                    usage.swap_total = usage.swap_total.map(more);
                    usage.swap_free = usage.swap_free.map(more);
                    usage.commit_limit = usage.commit_limit.map(more);
                }
                still_asks_for(name, &followed, &decision, |other| {
                    matches!(other, Decision::AddSwap { .. })
                })?;
            }
            Decision::AllocateOnNodes { size, lacking, .. } => {
                prop_assert!(*lacking > Pages(0), "{decision:?}");
                allocate_on_nodes(&mut followed, *size, *lacking);
                still_asks_for(name, &followed, &decision, |other| {
                    matches!(other, Decision::AllocateOnNodes { .. })
                })?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds pages to the nodes that the server is allowed to use. A write to the file of a node makes
/// its surplus pages persistent first.
fn allocate_on_nodes(machine: &mut Machine, size: PageSize, lacking: Pages) {
    let mut parts = machine.allowed_parts.iter_mut();
    let part = parts.find(|part| part.size == size);
    let part = part.expect("the nodes are known");
    let kept = part.surplus.min(lacking);
    let new = lacking - kept;
    part.surplus = part.surplus - kept;
    part.total = part.total + new;
    part.free = part.free + new;
    let mut pools = machine.state.pools.iter_mut().flatten();
    let pool = pools.find(|pool| pool.page_bytes == size.0);
    let pool = pool.expect("a pool");
    pool.total += new.0;
    pool.free += new.0;
    pool.surplus -= kept.0;
}

/// A plan for one setting that takes effect at the next start.
fn plan_of(name: &str, value: &str, next: Server) -> Planned {
    let setting = PlannedSetting {
        name: name.to_owned(),
        value: value.to_owned(),
        source: SettingSource::Default,
        pending: Pending::Restart,
        next: Ok(next.clone()),
    };
    Planned {
        settings: vec![setting],
        is_about_request: matches!(name, "huge_pages" | "shared_memory_type"),
        pending: Pending::Nothing,
        next,
    }
}

/// Lowers `shared_buffers` of another server on small pages by this many bytes.
fn lower_other(machine: &mut Machine, name: Name, by: u64) {
    let mut servers = machine.state.other_servers.iter_mut().flatten();
    let server = servers.find(|server| name.is_of(server));
    let server = server.expect("a visible server");
    let segment = server.segment.as_mut().expect("a segment");
    segment.bytes -= by;
    let least = server.rss_shmem_bytes.unwrap_or(0);
    let released = least.saturating_sub(segment.bytes);
    server.rss_shmem_bytes = server.rss_shmem_bytes.map(|bytes| bytes - released);
    free(machine, Bytes(released));
}

/// Frees memory of other programs.
fn free(machine: &mut Machine, bytes: Bytes) {
    if let Ok(usage) = &mut machine.state.usage {
        usage.available = usage.available.map(|now| now.saturating_add(bytes.0));
    }
    for node in Arc::make_mut(&mut machine.facts).nodes.iter_mut().flatten() {
        let available = &mut node.memory.available;
        *available = available.map(|now| now.saturating_add(bytes.0));
    }
}

fn still_asks_for(
    name: &str,
    followed: &Machine,
    decision: &Decision,
    is_same: impl Fn(&Decision) -> bool,
) -> TestCaseResult {
    let mut at = followed.clone();
    // At once, after the runbook that has become possible, after a restart, or after both.
    for _ in 0..2 {
        let again = decisions(&at)
            .into_iter()
            .find(|(of, other)| *of == name && is_same(other));
        // Reserved pages, and those that others could want, keep a pool from shrinking.
        let waits = |(_, other): &(&str, Decision)| {
            matches!(
                other,
                Decision::WaitForReservedPages
                    | Decision::HiddenServers { .. }
                    | Decision::MeantForServer { .. }
            )
        };
        let others_could_want = findings(&at).iter().any(|(id, finding)| {
            *id == CheckId::PoolSize && finding.status == Status::Unknown
                || at.pools().any(|pool| {
                    let size = PageSize(pool.page_bytes);
                    let target = PoolTarget::of(&at, size, &at.next_start());
                    // Pages that a boot file asks for are kept.
                    target.is_some_and(|target| {
                        target.idle_for.is_some() || target.unused_at_boot() > Pages(0)
                    })
                })
                || *id == CheckId::OtherServers && finding.evidence["others_pages"] != 0
        });
        let is_hidden = advice::model::demand::hidden_servers(&at).is_some();
        // Surplus pages stay until their holder stops.
        let has_surplus = at.pools().any(|pool| pool.surplus > 0);
        let can_stay = others_could_want || is_hidden || has_surplus && name == "memory_left";
        if again.is_none() || can_stay || decisions(&at).iter().any(waits) {
            return Ok(());
        }
        at = match at.apply(&Step::Restart) {
            Ok(after) => after,
            Err(Blocked::OnlyAStartShows(_)) => return Ok(()),
            Err(_) => at,
        };
        let steps = steps_of(&runbook_of(&at));
        at = at.apply_all(&steps).unwrap_or(at);
    }
    let again = decisions(&at)
        .into_iter()
        .find(|(of, other)| *of == name && is_same(other));
    prop_assert!(again.is_none(), "{name}: {decision:?}, then {again:?}");
    Ok(())
}

/// Follows a lower `shared_buffers`: the segment gets smaller by as much, and the server starts
/// with it.
fn lowered(name: &str, machine: &Machine, lower: Lower, decision: &Decision) -> TestCaseResult {
    let buffers = machine.facts.shared_buffers_bytes;
    let by = match lower {
        Lower::By(mb) => mb << 20,
        Lower::To(mb) => {
            prop_assert!(mb << 20 < buffers, "{decision:?} of {}", Bytes(buffers));
            buffers - (mb << 20)
        }
        Lower::Pending(_) => return Err(TestCaseError::fail("nothing is pending")),
        Lower::OfOther(server, _) => {
            return Err(TestCaseError::fail(format!("{server} is not the cause")));
        }
    };
    // Files that have to be corrected first hold the value.
    prop_assume!(machine.facts.is_whole && !machine.state.next.files.stop_a_start());
    let mut next = machine.next_start();
    let mut from_files = machine.state.next.from_files.clone();
    let in_files = from_files
        .as_mut()
        .map(|files| &mut files.shared_memory_bytes);
    let places = [Some(&mut next.shared_memory_bytes), in_files].into_iter();
    let larger = places.flatten().filter(|bytes| **bytes > by);
    let larger: Vec<_> = larger.collect();
    prop_assert!(by > 0 && !larger.is_empty(), "{decision:?}: {by}");
    larger.into_iter().for_each(|bytes| *bytes -= by);
    let mut followed = machine.with_next_start(next);
    followed.state.next.from_files = from_files;
    // Something else can prevent the restart that makes it effective.
    let can_restart = followed.apply(&Step::Restart).is_ok();
    // After the move to other pages, something else can be missing.
    still_asks_for(name, &followed, decision, |other| match (decision, other) {
        (
            Decision::FreeMemory {
                or_at_boot: before, ..
            },
            Decision::FreeMemory { or_at_boot, .. },
        ) => or_at_boot == before,
        // Memory that is missing at boot is settled; memory that is missing now remains.
        (Decision::LowerSharedBuffers { .. }, Decision::FreeMemory { or_at_boot, .. })
            if name == "reboot" =>
        {
            !or_at_boot
        }
        (_, Decision::LowerSharedBuffers { lower: None, .. }) => can_restart,
        (_, other) => matches!(
            other,
            Decision::LowerSharedBuffers { .. } | Decision::FreeMemory { .. }
        ),
    })
}

pub fn more_memory_is_never_worse(_: &Spec, machine: &Machine) -> TestCaseResult {
    let nodes = machine.nodes().map(<[_]>::len);
    prop_assume!(nodes == Some(1) && memory::host_ram(machine).is_some());
    // What already happens is a finding of memory_left alone.
    prop_assume!(!machine.is_muted("memory_left"));
    let before = verdict(machine);
    for gb in [1, 16, 1024] {
        let mut larger = machine.clone();
        let more = gb * GB;
        if let Ok(meminfo) = &mut larger.state.meminfo {
            meminfo.total_bytes = meminfo.total_bytes.map(|bytes| bytes + more);
        }
        if let Ok(usage) = &mut larger.state.usage {
            usage.total = usage.total.map(|bytes| bytes + more);
            usage.available = usage.available.map(|bytes| bytes + more);
            usage.commit_limit = usage.commit_limit.map(|bytes| bytes + more / 10);
        }
        for node in Arc::make_mut(&mut larger.facts).nodes.iter_mut().flatten() {
            node.memory.total = node.memory.total.map(|bytes| bytes + more);
            node.memory.available = node.memory.available.map(|bytes| bytes + more);
        }
        let after = verdict(&larger);
        prop_assert!(
            after.status <= before.status,
            "{gb} GB more: {before:?}, then {after:?}"
        );
    }
    Ok(())
}

pub fn boot_line_is_never_withheld(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let codes = ["too_few_at_boot", "not_set_at_boot", "no_effect_at_boot"];
    let code = answer::finding(machine, CheckId::Reboot).code;
    prop_assume!(codes.contains(&code) && !machine.is_muted("reboot"));
    let all = checks(machine);
    let reboot = all.iter().find(|check| check.name() == "reboot");
    let reboot = reboot.expect("a check of that name");
    let asks_about_size =
        |(_, decision): &(&str, Decision)| matches!(decision, Decision::UseOtherSize { .. });
    prop_assume!(!decisions(machine).iter().any(asks_about_size));
    let key = |key: &str| {
        reboot
            .finding
            .evidence
            .get(key)
            .and_then(|value| value.as_u64())
    };
    let (pages, size) = (key("required_pages"), key("page_size_bytes"));
    let (pages, size) = (
        Pages(pages.expect("pages")),
        PageSize(size.expect("a size")),
    );
    let boot = machine.next_boot();
    let change = boot.and_then(|boot| boot.change(size.0, pages.0));
    let is_limited =
        !spec.limits.is_empty() || !spec.memory_limits.is_empty() || spec.told_limit.is_some();
    let demands = Demands::at_boot(machine, size, &machine.next_start());
    let is_held = demands
        .as_ref()
        .is_some_and(|demands| next_boot::blocked(machine, demands, pages).is_none());
    let fits = !is_limited && is_held;
    // The number of pages is that of the files.
    let files = &machine.state.next.files;
    let is_file_unknown = files.hide_pending_settings() || files.stop_a_start();
    let is_bound = machine.is_bound_to_nodes();
    // Settings are corrected first: a size that the kernel does not have, and `on` with sysv, with
    // which a start fails, however many pages there are.
    let next = machine.size_to_map(&machine.next_start());
    let has_size = next.is_none_or(|size| machine.pool(size).is_some());
    let fails = machine.next_start().shared_memory_type == SharedMemoryType::Sysv
        && machine.next_start().huge_pages == HugePages::On;
    prop_assume!(change.is_some() && fits && !is_file_unknown && !is_bound && has_size && !fails);
    if let Some((Change::Words(words), _)) = change {
        let remedy = match &reboot.remedy {
            Remedy::As(id) => {
                let earlier = all.iter().find(|check| check.id == *id);
                &earlier.expect("a check of that name").remedy
            }
            remedy => remedy,
        };
        let decisions = match remedy {
            Remedy::Steps(plan) => plan.remaining.as_slice(),
            Remedy::NeedsDecision(decision) => std::slice::from_ref(decision),
            Remedy::As(_) | Remedy::Nothing => &[],
        };
        prop_assert!(
            decisions.contains(&Decision::SetOnCommandLine(words)),
            "{decisions:?}"
        );
        return Ok(());
    }
    let rows = runbook_of(machine);
    let line = |steps: &[Step]| {
        let mut steps = steps.iter();
        steps.any(|step| matches!(step, Step::SetPoolAtBoot { .. }))
    };
    prop_assert!(line(&steps_of(&rows)), "runbook: {:?}", reboot.remedy);
    // An earlier check can have it.
    let has_line = all.iter().any(|check| line(steps(&check.remedy)));
    prop_assert!(has_line, "{:?}", reboot.remedy);
    Ok(())
}

pub fn remedies_refer_to_rows_that_are_shown(_: &Spec, machine: &Machine) -> TestCaseResult {
    let unmuted: Vec<_> = checks(machine)
        .into_iter()
        .filter(|check| !check.is_muted)
        .collect();
    let is_chosen = |id: CheckId| id.name().len().is_multiple_of(2);
    for shown in [unmuted, Answer::of(machine).chosen(is_chosen)] {
        for check in &shown {
            if let Remedy::As(id) = check.remedy {
                let other = shown.iter().find(|other| other.id == id);
                let has_remedy =
                    |other: &CheckResult| !matches!(other.remedy, Remedy::As(_) | Remedy::Nothing);
                prop_assert!(other.is_some_and(has_remedy), "{}", check.name());
            }
        }
    }
    Ok(())
}

pub fn server_that_would_not_start_gets_help(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(matches!(start::outcome(machine), StartOutcome::Fails(..)));
    prop_assume!(machine.state.next_start().huge_pages == HugePages::On);
    let all = checks(machine);
    let restart = all.iter().find(|check| check.name() == "restart");
    let restart = restart.expect("a check of that name");
    prop_assert_eq!(restart.finding.status, Status::Critical);
    let remedy = match &restart.remedy {
        Remedy::As(id) => {
            let earlier = all.iter().find(|check| check.id == *id);
            &earlier.expect("an earlier row").remedy
        }
        remedy => remedy,
    };
    let is_help = match remedy {
        Remedy::Steps(plan) => !plan.steps.is_empty(),
        Remedy::NeedsDecision(Decision::Text(text)) => {
            let ways = [
                "find out why",
                "lower shared_buffers",
                "correct the settings in the files",
                "undo the pending change",
                "use a smaller huge_page_size",
                "only a reboot corrects the counter",
            ];
            ways.iter().any(|way| text.contains(way))
        }
        Remedy::NeedsDecision(Decision::WouldNotStart(_)) => false,
        Remedy::NeedsDecision(_) => true,
        Remedy::As(_) | Remedy::Nothing => false,
    };
    prop_assert!(is_help, "{}: {remedy:?}", restart.finding.text);
    Ok(())
}

/// Commands are never wrapped, and neither are names and quotations.
pub fn text_fits_on_a_terminal(_: &Spec, machine: &Machine) -> TestCaseResult {
    const COLUMNS: usize = 80;
    const LABELS: usize = 18;
    for line in text::lines(machine, &Answer::of(machine)) {
        let has_name = line.text.split_whitespace().any(|word| {
            word.chars().count() > COLUMNS - LABELS
                || word.trim_start_matches('(').starts_with(['/', '\'', '"'])
        });
        let is_exempt = line.kind == text::Kind::Command || has_name;
        prop_assert!(
            is_exempt || line.text.chars().count() <= COLUMNS,
            "{}",
            line.text
        );
    }
    Ok(())
}

pub fn everything_can_be_rendered(_: &Spec, machine: &Machine) -> TestCaseResult {
    for check in checks(machine) {
        prop_assert!(!check.finding.text.is_empty());
        let text = render::remedy(machine, &check.remedy);
        prop_assert_eq!(text.is_none(), check.remedy == Remedy::Nothing);
        if let Some(text) = text {
            prop_assert!(!text.trim().is_empty(), "{:?}", check.remedy);
        }
    }
    for row in runbook_of(machine) {
        prop_assert!(
            row.command.is_some() != row.instruction.is_some(),
            "{row:?}"
        );
        prop_assert!(!row.why.is_empty());
    }
    let _ = verdict(machine);
    let _ = render::remedy(machine, &Answer::of(machine).remedy());
    let _ = Forecast::for_each_pool(machine);
    for pool in machine.pools() {
        let _ = render::remedy(machine, &how_to_set(machine, PageSize(pool.page_bytes)));
    }
    Ok(())
}

/// 1,024 nodes and 10,000 processes.
/// The answer does not grow with the nodes and the processes of the host, apart from the nodes that
/// the server is bound to, which it names with their figures.
pub fn large_machines() {
    for is_bound in [false, true] {
        let mut spec = Spec::usual();
        spec.host.nodes_gb = vec![4; 1024];
        spec.server.processes = 10_000;
        spec.server.bound = if is_bound { (0..512).collect() } else { vec![] };
        spec.pools[0].is_on_first_node = true;
        spec.pools[0].persistent.percent = 50;
        spec.server.is_on_huge_pages = false;
        let machine = spec.machine().expect("a machine");
        let rows = runbook_of(&machine);
        let text = text::text(&machine, &Answer::of(&machine));
        assert!(rows.len() <= 10, "{rows:#?}");
        let most = 8000 + 100 * spec.server.bound.len();
        assert!(text.len() <= most, "{} bytes: {text}", text.len());
    }
}

/// After the boot lines of the runbook, the next boot leaves enough memory.
pub fn boot_lines_leave_memory(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let steps: Vec<_> = steps_of(&runbook_of(machine))
        .into_iter()
        .filter(|step| matches!(step, Step::SetPoolAtBoot { .. }))
        .collect();
    prop_assume!(!steps.is_empty());
    let after = machine.apply_all(&steps);
    prop_assume!(after.is_ok());
    let after = after.expect("assumed");
    // A line that is lowered takes no memory, even if a decision about other lines remains.
    let asked = |machine: &Machine| memory::in_pools_at_boot(machine, None);
    let is_decided = runbook_of(machine).iter().any(|row| row.step.is_none());
    prop_assume!(asked(&after) > asked(machine) || !is_decided);
    leaves_memory_at_boot(spec, machine, after.next_boot(), &steps)
}

/// If nothing is wrong with the present lines, the next boot leaves enough memory, and the server
/// gets its pages.
pub fn boot_that_is_ok_starts_the_server(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let reboot = answer::finding(machine, CheckId::Reboot);
    prop_assume!(["set_at_boot", "does_not_ask"].contains(&reboot.code));
    leaves_memory_at_boot(spec, machine, machine.next_boot(), &[])?;
    let next = machine.next_start();
    // PostgreSQL rounds up to this size.
    let is_even = (next.huge_page_size_bytes).is_none_or(u64::is_power_of_two);
    // The sentence names pages that other servers could take first.
    let is_ok = reboot.code == "set_at_boot" && !reboot.text.contains("start first");
    prop_assume!(!machine.is_muted("other_servers"));
    match machine.size_to_map(&next) {
        Some(size) if is_ok && is_even => {
            starts_after_a_boot(machine, size, |server| size_at_boot(machine, server))
        }
        _ => Ok(()),
    }
}

/// After the runbook and a boot, this server gets its pages, even if the other servers start first.
pub fn healthy_after_a_boot_with_the_others_first(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.muted.is_empty() && !machine.is_bound_to_nodes());
    let rows = runbook_of(machine);
    prop_assume!(!rows.is_empty() && rows.iter().all(|row| row.step.is_some()));
    let after = machine.apply_all(&steps_of(&rows));
    prop_assume!(after.is_ok());
    let after = after.expect("it was assumed").at_next_start();
    let size = after.size_to_map(&after.next_start());
    prop_assume!(size.is_some_and(|size| after.pool(size).is_some()));
    let size = size.expect("it was assumed");
    // PostgreSQL rounds up to this size.
    let setting = after.next_start().huge_page_size_bytes;
    prop_assume!(setting.is_none_or(u64::is_power_of_two));
    let demands = Demands::at_boot(&after, size, &after.next_start());
    let all = Demands::with_all(&after, size, &after.next_start());
    prop_assume!(demands.is_some() && all.is_some());
    // Memory is enough for all of them. Otherwise, one that does not count could be faster.
    let asked = [demands, all].map(|demands| demands.map(|demands| demands.asked_by_others()));
    prop_assume!(asked[0] == asked[1]);
    starts_after_a_boot(&after, size, |server| size_at_boot(&after, server))
}

/// The size of the pages that another server takes at boot: those that it has now, or requests.
fn size_at_boot(machine: &Machine, server: &Instance) -> Option<u64> {
    let asked = match &server.huge_pages {
        RequestedPages::Known(HugePages::Try | HugePages::On, Some(bytes)) => machine
            .state
            .huge_page_of_setting(Some(*bytes).filter(|bytes| *bytes > 0)),
        _ => None,
    };
    let segment = server.segment.as_ref()?;
    let is_mmap = server.shared_memory_type == Some(SharedMemoryType::Mmap);
    let has = segment
        .page_bytes
        .filter(|bytes| *bytes > machine.state.base_page_bytes);
    has.or(asked).filter(|_| is_mmap)
}

/// The pages that no visible server holds, and the part of them for which the boot line that was
/// read is large enough in addition to the rest of the pool.
fn held_and_explained(machine: &Machine, size: PageSize) -> Option<(Pages, Pages)> {
    let all = Demands::with_all(machine, size, &machine.next_start())?;
    let held = all.sum(|who| *who == demand::Who::OtherPrograms);
    let state = &machine.facts.state;
    let line = state.next_boot.as_ref().ok()?.pages(size.0)?;
    let mut pools = state.pools.iter().flatten();
    let pool = pools.find(|pool| pool.page_bytes == size.0)?;
    let others = Pages(pool.total) - held;
    Some((held, held.min(Pages(line.pages) - others)))
}

/// Lines for the next boot have the pages that the present line explains, and no others that no
/// visible server holds.
pub fn boot_lines_have_pages_that_are_explained(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole);
    // A line that systemd does not read can have been meant for more.
    let boot = machine.next_boot();
    prop_assume!(boot.is_some_and(|boot| boot.ineffective.is_none()));
    let rows = runbook_of(machine);
    let after = machine.apply_all(&steps_of(&rows));
    prop_assume!(after.is_ok());
    let after = after.expect("it was assumed");
    let next = after.next_start();
    // PostgreSQL rounds up to this size.
    prop_assume!(next.huge_page_size_bytes.is_none_or(u64::is_power_of_two));
    for step in steps_of(&rows) {
        let Step::SetPoolAtBoot { size, pages, .. } = step else {
            continue;
        };
        let Some((held, explained)) = held_and_explained(&after, size) else {
            continue;
        };
        let boot = machine.next_boot();
        let line = boot.and_then(|boot| boot.pages(size.0));
        let line = Pages(line.map_or(0, |line| line.pages));
        // Lines are those of the wanted settings, even if a person has to decide about these.
        let all = Demands::with_all(&after, size, &after.next_start_on_huge_pages());
        let all = all.map_or(Pages(0), |all| all.total() - held);
        let own = demand::pages_of_next_start(&after, size, &next);
        if pages <= line {
            continue;
        }
        prop_assert!(
            pages >= own + explained && pages <= all + explained,
            "{pages} of {line} at boot, {own} own, {explained} of {held}: {rows:#?}"
        );
    }
    Ok(())
}

/// If nothing is wrong with the lines after the runbook, they are enough for a start without the
/// options of the command line, too.
pub fn boot_lines_serve_a_start_from_the_files(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.muted.is_empty() && !machine.is_bound_to_nodes());
    // No step adds options of a command line.
    prop_assume!(machine.next_start_from_files().is_some());
    let after = machine.apply_all(&steps_of(&runbook_of(machine)));
    prop_assume!(after.is_ok());
    let after = after.expect("it was assumed").at_next_start();
    let reboot = answer::finding(&after, CheckId::Reboot);
    // The sentence names pages that other servers could take first, and those that do not fit.
    let is_all = !reboot.text.contains("start first") && !reboot.text.contains("memory is too");
    prop_assume!(reboot.code == "set_at_boot" && is_all);
    let from_files = after.next_start_from_files();
    prop_assume!(from_files.is_some());
    let from_files = from_files.expect("it was assumed");
    let next = from_files.next_start();
    // Options that keep huge pages off, or set their size, could be permanent.
    let own = after.size_to_map(&after.next_start());
    let has_same_size = own.is_some() && own == from_files.size_to_map(&next);
    let counts = has_same_size || next.huge_pages == HugePages::On;
    // PostgreSQL rounds up to this size.
    prop_assume!(counts && next.huge_page_size_bytes.is_none_or(u64::is_power_of_two));
    // Memory is too small for pages of another size in addition to those of the next start. A limit
    // that is too low for the files alone is not raised.
    let is_left_out = |size| {
        let demands = Demands::at_boot(&after, size, &after.next_start());
        let pages = demand::pages_of_next_start(&from_files, size, &next);
        own != Some(size) && demands.is_some_and(|demands| demands.of_this_server() == Pages(0))
            || !limits::to_raise(&from_files, size, pages).is_empty()
            || memory::missing_for_huge_pages(&from_files, pages * size).is_some()
    };
    match from_files.size_to_map(&next) {
        Some(size) if from_files.pool(size).is_some() && !is_left_out(size) => {
            starts_after_a_boot(&from_files, size, |server| {
                size_at_boot(&from_files, server)
            })
        }
        _ => Ok(()),
    }
}

/// No step makes a start from the files alone fail. A plan for other settings can, and says so.
pub fn steps_keep_a_start_from_the_files(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.next_start_from_files().is_some() && machine.facts.is_whole);
    let starts = |at: &Machine| {
        let from_files = at.next_start_from_files();
        from_files.is_none_or(|from_files| start::succeeds(&from_files))
    };
    for (name, of, steps) in all_steps(machine) {
        // In between, pages for another server can be idle.
        let mut before = starts(&of);
        for (step, after) in way(&of, &steps) {
            let is_there = starts(&after);
            // How much of the segment a restart releases is known only within bounds.
            let is_start = step.is_disruptive() || *step == Step::Start;
            prop_assert!(
                is_there || !before || is_start,
                "{name}: {step:?} of {steps:#?}"
            );
            before &= is_there;
        }
    }
    for (name, rows) in plans_for_other_pages(machine) {
        if machine.setting_place(name, None) == SettingPlace::CommandLine {
            continue;
        }
        // Less than the reserve is left, which is not critical.
        let runs = |at: &Machine| {
            let from_files = at.next_start_from_files();
            from_files.is_none_or(|from_files| {
                answer::finding(&from_files, CheckId::Restart).status < Status::Critical
            })
        };
        let after = machine.apply_all(&steps_of(&rows));
        let is_kept = after.map_or(true, |after| runs(&after) || !runs(machine));
        let is_said = rows.iter().any(|row| {
            let text = row.instruction.as_deref().unwrap_or_default();
            text.contains("without the options of the command line")
        });
        prop_assert!(is_kept || is_said, "{name}: {rows:#?}");
    }
    Ok(())
}

/// After a boot, programs that are not visible take the pages that the line explains. Other servers
/// start first, each on pages of the size that `size_of` returns. They fall back if the pool is too
/// small. Then this server starts on huge pages.
fn starts_after_a_boot(
    machine: &Machine,
    size: PageSize,
    size_of: impl Fn(&Instance) -> Option<u64>,
) -> TestCaseResult {
    let boot = machine.next_boot();
    let is_known = |pool: &Pool| boot.is_some_and(|boot| !boot.is_unknown(pool.page_bytes));
    prop_assume!(machine.pools().all(is_known));
    let mut booted = machine.clone();
    for pool in booted.state.pools.iter_mut().flatten() {
        let line = boot.and_then(|boot| boot.pages(pool.page_bytes));
        pool.total = line.map_or(0, |line| line.pages);
        let held = held_and_explained(machine, PageSize(pool.page_bytes));
        let Pages(held) = held.map_or(Pages(0), |(_, explained)| explained);
        pool.free = pool.total.saturating_sub(held);
        (pool.reserved, pool.surplus) = (0, 0);
    }
    for server in memory::other_servers(machine) {
        let bytes = server.segment.as_ref().map_or(0, |segment| segment.bytes);
        let of_server = size_of(server);
        let mut pools = booted.state.pools.iter_mut().flatten();
        let pool = pools.find(|pool| Some(pool.page_bytes) == of_server);
        if let Some(pool) = pool {
            let Pages(pages) = Bytes(bytes).in_pages(PageSize(pool.page_bytes));
            pool.free = pool.free.checked_sub(pages).unwrap_or(pool.free);
        }
    }
    let pool = booted.pool(size).cloned();
    if let Ok(segment) = &mut booted.state.segment {
        segment.bytes = 0;
        segment.page_bytes = Some(booted.state.base_page_bytes);
    }
    let booted = booted.with_next_start(machine.next_start());
    let outcome = start::outcome(&booted);
    let is_limited = matches!(
        outcome,
        StartOutcome::SmallPages(Reason::Limits(_), _)
            | StartOutcome::Fails(Reason::Limits(_), _)
            | StartOutcome::Unknown(_)
    );
    prop_assert!(
        is_limited || outcome == StartOutcome::HugePages(size),
        "{outcome:?} with {pool:?}"
    );
    Ok(())
}

/// Pools of the next boot and memory in use now fit into RAM, and committed memory into the strict
/// commit limit.
fn leaves_memory_at_boot(
    spec: &Spec,
    machine: &Machine,
    boot: Option<&NextBoot>,
    steps: &[Step],
) -> TestCaseResult {
    prop_assume!(boot.is_some());
    let boot = boot.expect("assumed");
    prop_assume!(
        machine
            .pools()
            .all(|pool| !boot.is_unknown(pool.page_bytes))
    );
    let asked = |size: u64| Pages(boot.pages(size).map_or(0, |request| request.pages));
    let then: Bytes = machine
        .pools()
        .map(|pool| asked(pool.page_bytes) * PageSize(pool.page_bytes))
        .sum();
    let (Some(ram), Some(available)) = (
        memory::host_ram(machine),
        machine.usage().and_then(|usage| usage.available),
    ) else {
        return Ok(());
    };
    let used = ram - Bytes(available) - memory::in_pools(machine);
    // Small pages that become huge pages.
    let mut moved = Bytes(0);
    let mut moved_segments = Bytes(0);
    if memory::segment_on_small_pages(machine) > Bytes(0)
        && machine
            .size_to_map(&machine.next_start_on_huge_pages())
            .is_some()
    {
        moved = moved + machine.faulted_in.least;
        moved_segments = memory::segment_on_small_pages(machine);
    }
    for other in memory::other_servers(machine) {
        let Some(segment) = other.segment.as_ref() else {
            continue;
        };
        if segment
            .page_bytes
            .is_some_and(|bytes| bytes > machine.state.base_page_bytes)
        {
            continue;
        }
        let name = other.pid;
        let moves = machine.pools().any(|pool| {
            let size = PageSize(pool.page_bytes);
            let Some(all) = Demands::with_all(machine, size, &machine.next_start()) else {
                return false;
            };
            let is_asking = all
                .all
                .iter()
                .any(|demand| matches!(demand.who, demand::Who::Asking(who, _) if who.pid == name));
            // A start from the files alone does not count if memory is too small for it.
            let is_known = |who: &demand::Who| {
                !matches!(who, demand::Who::OtherPrograms | demand::Who::FromFiles)
            };
            let known = all.sum(is_known);
            is_asking && asked(pool.page_bytes) >= known
        });
        if moves {
            moved = moved + Bytes(other.rss_shmem_bytes.unwrap_or(0));
            moved_segments = moved_segments + Bytes(segment.bytes);
        }
    }
    // No finding is about a limit that is unknown, and no step.
    let is_limit_known = memory::CommitLimit::unknown(machine).is_none();
    if then > memory::in_pools(machine) && (is_limit_known || !steps.is_empty()) {
        let committed = machine.usage().and_then(|usage| usage.committed);
        let committed = Bytes(committed.unwrap_or(0)) - moved_segments;
        let missing = missing_to_commit(spec, then, committed);
        prop_assert!(
            missing.is_none_or(|missing| missing == Bytes(0)),
            "{missing:?} are missing to commit, {committed} without {moved_segments} that move: {steps:#?}"
        );
    }
    let reserve = match then > memory::in_pools(machine) {
        true => ram.percent(2).max(Bytes(256 << 20)),
        // No memory is taken.
        false => Bytes(0),
    };
    // Swap holds small pages.
    let small = memory::segments_on_small_pages(machine, |_| true) - moved_segments;
    let swap = machine.usage().and_then(|usage| usage.swap_free);
    let swapped = small.min(Bytes(swap.unwrap_or(0)));
    prop_assert!(
        then + used - moved - swapped + reserve <= ram,
        "{then} in pools + {used} in use - {moved} moved + {reserve} > {ram}: {steps:#?}"
    );
    Ok(())
}

/// What segments on small pages have faulted in at most: all shared memory, in RAM or swapped out.
fn shared(machine: &Machine) -> Option<Bytes> {
    let usage = machine.usage()?;
    Some(Bytes(usage.shmem?) + (Bytes(usage.swap_total?) - Bytes(usage.swap_free?)))
}

/// Memory and swap that are available.
fn available(machine: &Machine) -> Option<Bytes> {
    memory::host_ram(machine)?;
    let usage = machine.usage()?;
    Some(Bytes(usage.available?) + Bytes(usage.swap_free?))
}

/// A start on small pages that takes more than is available is critical. A running server that has
/// yet to take more than is available is critical, too.
pub fn small_pages_fit_what_is_available(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole);
    let figures = shared(machine).zip(available(machine));
    prop_assume!(figures.is_some());
    let (shared, available) = figures.expect("assumed");
    let is_critical = |id| answer::finding(machine, id).status == Status::Critical;
    let is_known = answer::finding(machine, CheckId::MemoryLeft).status != Status::Unknown;
    prop_assume!(is_known && machine.segment().is_some());
    let on_small_pages = memory::segment_on_small_pages(machine);
    prop_assert!(
        on_small_pages - shared <= available || is_critical(CheckId::MemoryLeft),
        "{on_small_pages} on small pages, {shared} is shared, {available} is available"
    );
    if let StartOutcome::SmallPages(..) = start::outcome(machine) {
        let segment = Bytes(machine.next_start().shared_memory_bytes);
        let surplus = machine.pools().map(|pool| pool.surplus * pool.page_bytes);
        let released = match on_small_pages {
            Bytes(0) => Bytes(surplus.sum()),
            _ => shared,
        };
        prop_assert!(
            segment <= available + released
                || is_critical(CheckId::Restart)
                || is_critical(CheckId::MemoryLeft),
            "{segment} on small pages, {released} is released, {available} is available"
        );
    }
    Ok(())
}

/// More swap is never worse. Enough of it ends "run out of memory", apart from cgroups.
pub fn more_swap_is_never_worse(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(memory::host_ram(machine).is_some() && machine.usage().is_some());
    // Otherwise, memory_left does not judge what already happens.
    prop_assume!(machine.facts.is_whole && memory::left(machine).is_some());
    let with = |bytes: u64| {
        let mut larger = machine.clone();
        let usage = larger.state.usage.as_mut().expect("meminfo");
        for counter in [
            &mut usage.swap_total,
            &mut usage.swap_free,
            &mut usage.commit_limit,
        ] {
            *counter = counter.map(|now| now.saturating_add(bytes));
        }
        larger
    };
    // What already happens is a finding of memory_left alone.
    let found = |machine: &Machine| {
        let checks = [CheckId::Restart, CheckId::MemoryLeft];
        checks.map(|id| answer::finding(machine, id))
    };
    let worst = |found: &[Finding]| found.iter().map(|found| found.status).max();
    let before = found(machine);
    // The last is more than a wrong Committed_AS of the largest host.
    for gb in [1, 16, 1 << 32] {
        let after = found(&with(gb * GB));
        prop_assert!(
            worst(&after) <= worst(&before),
            "{gb} GB more: {before:?}, then {after:?}"
        );
        let runs_out = |found: &Finding| {
            found.code.ends_with("run_out_of_memory") && !found.text.contains("cgroup")
        };
        prop_assert!(gb < 1 << 32 || !after.iter().any(runs_out), "{after:?}");
    }
    Ok(())
}

/// No step but a restart of a server that is on small pages anyway leaves less than the reserve.
pub fn running_server_keeps_the_reserve(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, machine, steps) in all_steps(machine) {
        let mut before = machine.clone();
        for (step, state) in way(&machine, &steps) {
            let segment = |machine: &Machine| memory::segment_on_small_pages(machine);
            let is_start = matches!(step, Step::Start | Step::Restart);
            let takes = segment(&state) > segment(&before).max(before.faulted_in.most);
            if is_start && takes && memory::other_servers(&state).is_empty() {
                let kept = available(&state).zip(memory::host_ram(&state));
                let keeps = kept.is_none_or(|(available, ram)| {
                    let most = state.faulted_in.most;
                    let reserve = ram.percent(2).max(Bytes(256 << 20));
                    available + most >= segment(&state) + reserve
                });
                prop_assert!(keeps, "{name}: {step:?} takes {}", segment(&state));
            }
            before = state;
        }
    }
    Ok(())
}

/// Where a restart gets its pages, `hugeinfo ensure` adds none.
pub fn ensure_needs_nothing_where_a_restart_fits(spec: &Spec, machine: &Machine) -> TestCaseResult {
    // The use of a limit that remains, and the surplus pages that stay, are known within bounds.
    prop_assume!(spec.limits.is_empty() && spec.told_limit.is_none());
    prop_assume!(machine.pools().all(|pool| pool.surplus == 0));
    // PostgreSQL rounds up to this size.
    let setting = machine.next_start().huge_page_size_bytes;
    prop_assume!(setting.is_none_or(u64::is_power_of_two));
    prop_assume!(matches!(
        start::outcome(machine),
        StartOutcome::HugePages(_)
    ));
    let stopped = machine.apply(&Step::Stop);
    prop_assume!(stopped.is_ok());
    let stopped = stopped.expect("assumed");
    let steps = ensure::steps(&stopped);
    prop_assert_eq!(steps, Ok(Vec::new()));
    Ok(())
}

/// The part of a remedy about backends, without the one about the postmaster, makes the postmaster
/// no likelier victim than its children (mm/oom_kill.c `oom_badness`).
pub fn scores_of_backends_alone_do_no_harm(_: &Spec, machine: &Machine) -> TestCaseResult {
    let check = checks(machine)
        .into_iter()
        .find(|check| check.id == CheckId::OomProtection);
    let names_score = |check: &CheckResult| {
        let remedy = render::remedy(machine, &check.remedy);
        let score = format!("PG_OOM_ADJUST_VALUE={}", machine.oom_score_of_backends());
        remedy.is_some_and(|remedy| remedy.contains(&score))
    };
    prop_assume!(check.as_ref().is_some_and(names_score));
    let postmaster = machine.state.oom_score_adj.as_ref().copied();
    let before = machine.state.processes.iter();
    let before = before.filter(|process| !process.is_postmaster);
    let before = before.filter_map(|process| process.oom_score_adj).min();
    prop_assume!(postmaster.is_ok() && before.is_some());
    let (postmaster, before) = (postmaster.expect("assumed"), before.expect("assumed"));
    let after = machine.oom_score_of_backends();
    prop_assert!(
        after - postmaster >= before - postmaster && after >= postmaster,
        "postmaster {postmaster}, children {before}, then {after}"
    );
    Ok(())
}

/// A limit that is not visible cannot be raised by a command.
pub fn refused_pages_need_a_decision(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let check = checks(machine)
        .into_iter()
        .find(|check| check.id == CheckId::CgroupFaultLimit);
    let is_refused = check
        .as_ref()
        .is_some_and(|check| check.finding.code == "limit_above");
    let is_explained = !spec.limits.is_empty() || spec.told_limit.is_some();
    prop_assert!(!is_refused || spec.refused > 0);
    if is_refused {
        let remedy = check.map(|check| check.remedy);
        prop_assert!(
            matches!(remedy, Some(Remedy::NeedsDecision(_) | Remedy::As(_))),
            "{remedy:?}"
        );
    } else if spec.refused > 0 && !is_explained && machine.whole().is_some() {
        // Other facts that are absent make the answer unknown.
        let is_on = machine.is_on_huge_pages() == Some(true) && spec.absent.is_empty();
        prop_assert!(!is_on, "{check:?}");
    }
    Ok(())
}

/// Pages for another server come with its restart.
pub fn row_names_the_restart_of_other_servers(_: &Spec, machine: &Machine) -> TestCaseResult {
    let steps = steps_of(&runbook_of(machine));
    let mut at = machine.clone();
    for step in &steps {
        if let Step::SetPool { size, pages } = step
            && at
                .pool(*size)
                .is_some_and(|pool| *pages > Pages(pool.persistent()))
            && let Some(demands) = Demands::of(&at, *size, &at.next_start(), When::AfterRestart)
            && demands.total() == *pages
        {
            for (name, _) in demands.asking() {
                let is_named = steps.iter().any(
                    |step| matches!(step, Step::RestartOther { server, .. } if *server == name),
                );
                prop_assert!(is_named, "{name} is not named: {steps:#?}");
            }
        }
        at = at.apply(step).unwrap_or(at);
    }
    Ok(())
}

/// A demand that shrinks lowers its pool and the line that was made for it. So does "lower
/// shared_buffers", which ends: nothing of it is left behind.
pub fn smaller_demand_leaves_nothing_behind(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && machine.muted.is_empty());
    prop_assume!(machine.state.next.files == Files::Valid && machine.state.next.server.is_none());
    let held = machine.pools().find_map(|pool| {
        let size = PageSize(pool.page_bytes);
        let pages = machine.pages_held(size).filter(|pages| *pages > Pages(1))?;
        Some((size, pages))
    });
    prop_assume!(held.is_some() && !machine.is_bound_to_nodes());
    let (size, held) = held.expect("it was assumed");
    let line = machine.next_boot().and_then(|boot| boot.pages(size.0));
    prop_assume!(
        machine
            .next_boot()
            .is_some_and(|boot| boot.ineffective.is_none())
    );
    let mut next = machine.next_start();
    next.shared_memory_bytes /= 2;
    let then = machine.with_next_start(next.clone());
    // Pages that other programs could need stay, and so do lines that were made for more.
    let target = PoolTarget::of(&then, size, &next);
    prop_assume!(
        target
            .as_ref()
            .is_some_and(|target| target.idle_for.is_none())
    );
    let target = target.expect("it was assumed");
    let (now, shrunk) = (
        target.now.total(),
        target.now.total() - target.after.total(),
    );
    let half = Pages(shrunk.0 / 2);
    prop_assume!(line.is_some_and(|line| (now - half..now + half).contains(&Pages(line.pages))));
    let planned = Planned {
        settings: Vec::new(),
        is_about_request: true,
        pending: Pending::Restart,
        next,
    };
    let rows = runbook::for_settings(machine, &planned);
    prop_assume!(rows.iter().all(|row| row.step.is_some()));
    let Ok(after) = then.apply_all(&steps_of(&rows)) else {
        return Ok(());
    };
    let after_target = PoolTarget::of(&after, size, &after.next_start());
    let after_target = after_target.expect("the pools are known");
    prop_assume!(after_target.idle_for.is_none());
    let wanted = after_target.now.total();
    let before = Pages(machine.pool(size).map_or(0, |pool| pool.persistent()));
    let freed = (held.min(before) - wanted) * size;
    let is_much = freed > (wanted * size).percent(10)
        && machine.ram().is_some_and(|ram| freed > ram.percent(1));
    prop_assume!(is_much);
    let has = Pages(after.pool(size).map_or(0, |pool| pool.persistent()));
    // Pages of the line beyond the demands stay.
    prop_assert!(
        has <= wanted.max(before - shrunk),
        "{has} of {before} for {wanted}: {rows:#?}"
    );
    let asks = after.next_boot().and_then(|boot| boot.pages(size.0));
    let asks = Pages(asks.map_or(0, |line| line.pages));
    let asked = Pages(line.map_or(0, |line| line.pages));
    prop_assert!(
        (asks < asked || asked <= wanted) && asks >= asked - shrunk,
        "{asks} of {asked} at boot for {wanted}: {rows:#?}"
    );
    Ok(())
}

/// A plan that turns huge pages off lowers the pool and the line that were made for this server,
/// even if it fell back, or names the pages that stay. If the change is pending, the question names
/// this plan.
pub fn huge_pages_turned_off_leave_nothing_behind(_: &Spec, machine: &Machine) -> TestCaseResult {
    let running = &machine.state.server;
    let size = machine.size_to_map(running);
    prop_assume!(machine.facts.is_whole && machine.muted.is_empty());
    prop_assume!(machine.state.next.files == Files::Valid && machine.state.next.server.is_none());
    prop_assume!(running.asks_for_huge_pages() && size.is_some());
    let size = size.expect("it was assumed");
    let off = Server {
        huge_pages: HugePages::Off,
        ..running.clone()
    };
    let mut pending = machine.with_next_start(off.clone());
    pending.state.next.pending = vec!["huge_pages".to_owned()];
    let target = PoolTarget::of(&pending, size, &off);
    prop_assume!(target.is_some() && machine.pool(size).is_some());
    let target = target.expect("it was assumed");
    let asked = machine.pages_mapped(running, size);
    let others = target.after.total();
    let line = target.at_boot.as_ref().map_or(Pages(0), |line| line.0);
    let (present, half) = (others + asked, Pages(asked.0 / 2));
    let is_for_them = (present - half..present + half).contains(&line);
    let idle = target.persistent.min(line) - others.max(line - asked);
    let is_much = idle * size > (others * size).percent(10)
        && machine
            .ram()
            .is_some_and(|ram| idle * size > ram.percent(1));
    prop_assume!(target.idle_for.is_none() && is_for_them && is_much);
    let planned = plan_of("huge_pages", "off", off);
    let rows = runbook::for_settings(machine, &planned);
    // Other decisions come first.
    let ours = ["for the next boot", " at boot", "release up to "];
    let is_other = |row: &runbook::Row| {
        let text = row.instruction.as_deref().unwrap_or_default();
        row.step.is_none() && !ours.iter().any(|words| text.contains(words))
    };
    let is_first_a_step = rows.first().is_some_and(|row| row.step.is_some());
    prop_assume!(is_first_a_step && !rows.iter().any(is_other));
    let says = |rows: &[runbook::Row], words: &str| {
        let mut texts = rows.iter().filter_map(|row| row.instruction.as_deref());
        texts.any(|text| text.contains(words))
    };
    if machine.is_bound_to_nodes() {
        prop_assert!(says(&rows, "release up to "), "{rows:#?}");
    } else if let Ok(after) = machine.apply_all(&steps_of(&rows)) {
        let has = Pages(after.pool(size).map_or(0, |pool| pool.persistent()));
        prop_assert!(has < target.persistent, "{has} pages: {rows:#?}");
        let asks = after.next_boot().and_then(|boot| boot.pages(size.0));
        let asks = Pages(asks.map_or(0, |line| line.pages));
        let by_hand = ["for the next boot", " at boot, except ", " at boot by hand"];
        let is_by_hand = by_hand.iter().any(|words| says(&rows, words));
        prop_assert!(asks < line || is_by_hand, "{asks} at boot: {rows:#?}");
    }
    let asks_question = says(&runbook_of(&pending), "if huge_pages = off is intended");
    if asks_question {
        let names_plan = says(&runbook_of(&pending), "hugeinfo_runbook('huge_pages=off')");
        prop_assert!(names_plan, "{:#?}", runbook_of(&pending));
    }
    Ok(())
}

/// If idle pages stay after all rows, the last status announces them.
pub fn idle_pages_that_stay_are_announced(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(!machine.is_muted("pool_size"));
    let rows = runbook_of(machine);
    prop_assume!(!rows.is_empty() && rows.iter().all(|row| row.step.is_some()));
    let after = machine.apply_all(&steps_of(&rows));
    prop_assume!(after.is_ok());
    let after = after.expect("it was assumed").at_next_start();
    let finding = advice::answer::finding(&after, CheckId::PoolSize);
    if finding.status != Status::Warning {
        return Ok(());
    }
    let last = rows.iter().rev().find_map(|row| row.expected.as_deref());
    let is_announced = last.is_some_and(|last| last.contains(" idle"));
    prop_assert!(is_announced, "{finding:?} after {rows:#?}");
    Ok(())
}

/// A decision about memory that stays has the figure of the machine after the steps that need no
/// condition.
pub fn decisions_are_about_the_machine_after_the_steps(
    _: &Spec,
    machine: &Machine,
) -> TestCaseResult {
    // Otherwise, the memory that a stop releases is known only within bounds.
    prop_assume!(machine.faulted_in.least == machine.faulted_in.most);
    let about_memory = |machine: &Machine| {
        let all = decisions(machine).into_iter();
        let mut figures = all.filter_map(|(name, decision)| match decision {
            Decision::LowerSharedBuffers { missing, .. } if name == "memory_left" => Some(missing),
            _ => None,
        });
        figures.next()
    };
    let Some(missing) = about_memory(machine) else {
        return Ok(());
    };
    let rows = runbook_of(machine);
    let has_condition = |row: &&runbook::Row| {
        let text = row.instruction.as_deref().unwrap_or_default();
        text.starts_with("if no other program needs")
    };
    let safe: Vec<_> = rows
        .iter()
        .take_while(|row| !has_condition(row))
        .cloned()
        .collect();
    let after = machine.apply_all(&steps_of(&safe));
    prop_assume!(after.is_ok());
    let then = about_memory(&after.expect("it was assumed").at_next_start());
    prop_assert!(
        then.is_none_or(|then| then == missing),
        "{missing}, then {then:?}: {rows:#?}"
    );
    Ok(())
}

/// Idle pages are released while the server runs: a stop is for pages that it has.
pub fn idle_pages_are_released_without_a_stop(_: &Spec, machine: &Machine) -> TestCaseResult {
    for (name, machine, steps) in all_steps(machine) {
        let stop = steps.iter().position(|step| *step == Step::Stop);
        let start = steps.iter().position(|step| *step == Step::Start);
        let (Some(stop), Some(start)) = (stop, start) else {
            continue;
        };
        for step in &steps[stop..start] {
            if let Step::SetPool { size, pages } = step
                && machine
                    .pool(*size)
                    .is_some_and(|pool| *pages < Pages(pool.persistent()))
            {
                prop_assert!(
                    machine.pages_held(*size) > Some(Pages(0)),
                    "{name}: {steps:#?}"
                );
            }
        }
    }
    Ok(())
}

/// No command releases or takes idle pages of an unknown owner without its condition, in no text.
pub fn pages_of_unknown_owner_have_a_condition(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole);
    let is_condition = |text: &str| text.contains("if no other program needs");
    // The pages that no demand and no boot line explains.
    let unexplained = |size: PageSize, needed: Pages| {
        let pool = machine.pool(size)?;
        let line = machine.next_boot().and_then(|boot| boot.pages(size.0));
        let line = Pages(line.map_or(0, |line| line.pages));
        let has = Pages(pool.persistent());
        let used = Pages(pool.committed().unwrap_or(pool.total));
        let idle = has - used.max(line);
        // Pages that remain for demands and for the line.
        Some((idle, needed.max(line.min(has)) + idle))
    };
    let takes = |at: &Machine, step: &Step| match step {
        Step::SetPool { size, pages } => {
            let next = at.next_start();
            let needed = Demands::of(at, *size, &next, When::AfterRestart);
            let needed = needed.map_or(Pages(0), |demands| demands.total());
            let (idle, all) = unexplained(*size, needed).unwrap_or_default();
            idle > Pages(0) && *pages < all
        }
        Step::Demote { from, .. } => unexplained(*from, Pages(0)).unwrap_or_default().0 > Pages(0),
        _ => false,
    };
    for (name, of, steps) in all_steps(machine) {
        let mut at = of.clone();
        for (index, step) in steps.iter().enumerate() {
            if takes(&at, step) {
                let alone = Remedy::Steps(Plan {
                    steps: steps[..=index].to_vec(),
                    remaining: Vec::new(),
                });
                let text = render::remedy(&of, &alone).expect("steps");
                let command = render::command(&at, step).unwrap_or_default();
                let line = text.lines().find(|line| line.ends_with(&command));
                prop_assert!(
                    line.is_some_and(|line| line.starts_with('#') && is_condition(line)),
                    "{name}: {text}"
                );
            }
            at = at.apply(step).unwrap_or(at);
        }
    }
    let mut at = machine.clone();
    for row in runbook_of(machine) {
        let Some(step) = &row.step else { continue };
        if takes(&at, step) {
            prop_assert!(
                row.instruction.as_deref().is_some_and(is_condition),
                "{row:?}"
            );
        }
        at = at.apply(step).unwrap_or(at);
    }
    Ok(())
}

/// Plans that turn huge pages off, or ask for another size.
fn plans_for_other_pages(machine: &Machine) -> Vec<(&'static str, Vec<runbook::Row>)> {
    type Change = (&'static str, &'static str, fn(&mut Server));
    const CHANGES: [Change; 4] = [
        ("huge_pages", "off", |next| next.huge_pages = HugePages::Off),
        ("shared_memory_type", "sysv", |next| {
            next.shared_memory_type = SharedMemoryType::Sysv;
        }),
        ("huge_page_size", "1GB", |next| {
            next.huge_page_size_bytes = Some(GB);
        }),
        ("huge_page_size", "3MB", |next| {
            next.huge_page_size_bytes = Some(3 << 20);
        }),
    ];
    let plan = |(name, value, change): Change| {
        let mut next = machine.next_start();
        change(&mut next);
        let is_new = next != machine.next_start();
        let planned = plan_of(name, value, next);
        is_new.then(|| (name, runbook::for_settings(machine, &planned)))
    };
    CHANGES.into_iter().filter_map(plan).collect()
}

/// A plan changes a setting to the planned value, and not back, nor does the runbook after it.
pub fn plan_does_not_undo_its_settings(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && machine.state.next.files == Files::Valid);
    for (planned, rows) in plans_for_other_pages(machine) {
        let steps = steps_of(&rows);
        let changes = steps
            .iter()
            .filter(|step| matches!(step, Step::ChangeSetting(change) if change.name == planned));
        prop_assert!(changes.count() <= 1, "{planned}: {steps:#?}");
        // Afterwards, huge pages stay off, unless page tables are large without them.
        let is_off = planned == "huge_pages" || planned == "shared_memory_type";
        let is_complete = rows.iter().all(|row| row.step.is_some());
        let after = machine.apply_all(&steps);
        let Some(after) = after.ok().filter(|_| is_off && is_complete) else {
            continue;
        };
        let after = after.at_next_start();
        let page_tables = answer::finding(&after, CheckId::PageTables);
        let again = steps_of(&runbook_of(&after));
        let is_undone =
            |step: &Step| matches!(step, Step::ChangeSetting(change) if change.name == planned);
        prop_assert!(
            page_tables.status.needs_attention() || !again.iter().any(is_undone),
            "{planned}: {again:#?} after {steps:#?}"
        );
    }
    Ok(())
}

/// The commands of a plan leave the idle pages whose owner is unknown.
pub fn plans_keep_pages_of_unknown_owner(_: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && machine.state.next.files == Files::Valid);
    for (planned, rows) in plans_for_other_pages(machine) {
        for row in rows.iter().filter(|row| row.command.is_some()) {
            let Some(Step::SetPool { size, pages }) = &row.step else {
                continue;
            };
            let Some(pool) = machine.pool(*size) else {
                continue;
            };
            let by_line = machine.next_boot().and_then(|boot| boot.pages(size.0));
            let by_line = by_line.map_or(0, |line| line.pages);
            let used = pool.committed().unwrap_or(pool.total).max(by_line);
            let unknown = pool.persistent().saturating_sub(used);
            prop_assert!(
                pages.0 >= unknown,
                "{planned}: {pages} of {unknown}: {rows:#?}"
            );
        }
    }
    Ok(())
}

/// Idle pages of another size are used before a second pool grows, or the server stops for it: the
/// answer is a question with that size. It is not asked if a person has set `huge_page_size`, if the
/// server has pages of one of both sizes, or if a limit could keep it from the other pages.
pub fn idle_pages_of_another_size_come_first(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && machine.state.next.files == Files::Valid);
    let has_limits = !spec.limits.is_empty()
        || !spec.memory_limits.is_empty()
        || spec.told_limit.is_some()
        || !spec.server.bound.is_empty();
    let next = machine.next_start();
    prop_assume!(!has_limits && next.huge_page_size_bytes.is_none() && spec.absent.is_empty());
    let asked = machine.size_to_map(&next).filter(|size| {
        let pool = machine.pool(*size);
        let idle = pool.map_or(0, |pool| pool.free - pool.reserved + pool.overcommit);
        Bytes(next.shared_memory_bytes).in_pages(*size) > Pages(idle)
    });
    let held = |size: u64| machine.pages_held(PageSize(size)) != Some(Pages(0));
    prop_assume!(asked.is_some_and(|size| !held(size.0)));
    let asked = asked.expect("it was assumed");
    let is_enough = |pool: &&Pool| {
        let size = PageSize(pool.page_bytes);
        let by_others = Demands::with_all(machine, size, &next);
        let by_others = by_others.map_or(Pages(0), |demands| demands.asked_by_others());
        let idle = Pages(
            pool.persistent()
                .saturating_sub(pool.total - pool.free + pool.reserved),
        );
        size != asked
            && !held(size.0)
            && idle >= by_others + Bytes(next.shared_memory_bytes).in_pages(size)
    };
    let enough: Vec<_> = machine.pools().filter(is_enough).collect();
    prop_assume!(!enough.is_empty());
    let rows = runbook_of(machine);
    for step in steps_of(&rows) {
        let grows = match &step {
            Step::SetPool { size, pages } => {
                is_of(&step, asked) && *pages > Pages(machine.pool(*size).map_or(0, |p| p.total))
            }
            Step::Stop => true,
            _ => false,
        };
        prop_assert!(!grows, "{step:?} in spite of {enough:?}: {rows:#?}");
    }
    prop_assume!(machine.muted.is_empty());
    let is_named = decisions(machine).iter().any(|(_, decision)| {
        matches!(decision, Decision::UseOtherSize { idle: (_, size), .. }
            if enough.iter().any(|pool| pool.page_bytes == size.0))
    });
    prop_assert!(is_named, "{enough:?} are not used: {rows:#?}");
    Ok(())
}

/// What the commit limit lacks if the pools have this many bytes and this much is committed: it has
/// to hold what is committed, what the kernel reserves, and what stays available.
fn missing_to_commit(spec: &Spec, in_pools: Bytes, committed: Bytes) -> Option<Bytes> {
    let ram = spec.host.nodes_gb.iter().sum::<u64>() * spec.unit();
    let strict = spec.host.strict.filter(|_| spec.host.shown_gb.is_none())?;
    // Pools take nothing of a limit in kilobytes.
    let Strict::Ratio(ratio) = strict else {
        return None;
    };
    let limit = (Bytes(ram) - in_pools).percent(ratio) + Bytes(spec.host.swap_gb * GB);
    let (admin, user) = spec.host.reserves_mb;
    let kept = Bytes((admin + user) * MB) + Bytes(ram / 50).max(Bytes(256 * MB));
    Some(committed + kept - limit)
}

/// Segments on small pages, which are committed. Those of System V are counted like the others.
fn committed_segments(machine: &Machine) -> Bytes {
    let state = &machine.state;
    let own = state.segment.iter();
    let others = state.other_servers.iter().flatten();
    let others = others.filter_map(|other| other.segment.as_ref());
    let small = |segment: &&Segment| segment.page_bytes == Some(state.base_page_bytes);
    own.chain(others)
        .filter(small)
        .map(|segment| Bytes(segment.bytes))
        .sum()
}

/// With strict overcommit, a step that takes memory for a pool leaves room to commit, and so do the
/// pools of the next boot.
pub fn growing_pools_leave_room_to_commit(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(spec.host.strict.is_some() && machine.facts.is_whole && spec.absent.is_empty());
    let committed = machine.usage().and_then(|usage| usage.committed);
    let apart = Bytes(committed.unwrap_or(0)) - committed_segments(machine);
    let in_pools = |machine: &Machine| -> Bytes {
        machine
            .pools()
            .map(|pool| Bytes(pool.total * pool.page_bytes))
            .sum()
    };
    for (name, machine, steps) in all_steps(machine) {
        let mut before = in_pools(&machine);
        for (step, state) in way(&machine, &steps) {
            let now = in_pools(&state);
            if now > before {
                let missing = missing_to_commit(spec, now, apart + committed_segments(&state));
                prop_assert!(
                    missing.is_none_or(|missing| missing == Bytes(0)),
                    "{name}: {missing:?} are missing to commit after {step:?}: {steps:#?}"
                );
            }
            before = now;
        }
    }
    Ok(())
}

/// A server of others with `huge_pages = off` on small pages is no demand: the numbers of pages are
/// those without it.
pub fn servers_that_are_off_are_no_demand(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let is_off = |other: &Instance| {
        matches!(other.huge_pages, RequestedPages::Known(HugePages::Off, _))
            && other
                .segment
                .as_ref()
                .is_some_and(|segment| segment.page_bytes == Some(machine.state.base_page_bytes))
    };
    let with = |change: &dyn Fn(&mut State)| {
        let mut facts = Facts::clone(&machine.facts);
        change(&mut facts.state);
        Machine {
            muted: machine.muted.clone(),
            ..Machine::new(facts)
        }
    };
    let all = machine.state.other_servers.as_deref().unwrap_or_default();
    prop_assume!(all.iter().any(is_off));
    // Only the demands differ: it has faulted in all of its segment, which `Shmem` includes.
    let bytes_of = |other: &Instance| other.segment.as_ref().map_or(0, |segment| segment.bytes);
    let of_all: u64 = all.iter().filter(|other| is_off(other)).map(bytes_of).sum();
    let with_it = with(&|state| {
        for other in state.other_servers.iter_mut().flatten() {
            if is_off(other) {
                other.rss_shmem_bytes = Some(bytes_of(other));
            }
        }
        if let Ok(usage) = &mut state.usage {
            usage.shmem = usage.shmem.map(|bytes| bytes + of_all);
        }
    });
    let without = with(&|state| {
        if let Ok(others) = &mut state.other_servers {
            others.retain(|other| !is_off(other));
        }
    });
    let is_exact = |machine: &Machine| machine.faulted_in.least == machine.faulted_in.most;
    prop_assume!(is_exact(&with_it) && is_exact(&without));
    let numbers = |machine: &Machine| {
        let numbers = |step| match step {
            Step::SetPool { size, pages } | Step::SetPoolAtBoot { size, pages, .. } => {
                Some((size, pages))
            }
            _ => None,
        };
        let all = all_steps(machine).into_iter();
        let all = all.map(|(name, _, steps)| (name, steps.into_iter().filter_map(numbers)));
        let all = all.map(|(name, steps)| (name, steps.collect::<Vec<_>>()));
        all.collect::<Vec<_>>()
    };
    prop_assert_eq!(numbers(&with_it), numbers(&without), "{:?}", spec.others);
    // Nor do they change if the check that counts the demands of others is muted.
    if all.iter().all(is_off) {
        let mut muted = machine.clone();
        muted.muted.insert("other_servers");
        prop_assert_eq!(numbers(machine), numbers(&muted), "{:?}", spec.others);
    }
    Ok(())
}

/// A server with `huge_pages = off` asks for no pages: a pool grows for others only.
pub fn server_that_is_off_asks_for_no_pages(spec: &Spec, machine: &Machine) -> TestCaseResult {
    let next = machine.next_start();
    prop_assume!(next.huge_pages == HugePages::Off && !machine.state.asks_for_huge_pages());
    let steps = steps_of(&runbook_of(machine));
    let is_change = |step: &Step| matches!(step, Step::ChangeSetting(_));
    prop_assume!(!steps.iter().any(is_change));
    for step in &steps {
        let (Step::SetPool { size, pages } | Step::SetPoolAtBoot { size, pages, .. }) = step else {
            continue;
        };
        let pool = machine.pool(*size);
        let total = pool.map_or(0, |pool| pool.total);
        let line = machine.next_boot().and_then(|boot| boot.pages(size.0));
        let line = line.map_or(0, |line| line.pages);
        // A line that systemd does not read is moved.
        let boot = machine.next_boot();
        let meant = boot.and_then(|boot| Some(boot.ineffective.as_ref()?.request.pages));
        let line = line.max(meant.unwrap_or(0));
        let others = machine.state.other_servers.iter().flatten();
        let asking = others
            .filter(|other| !matches!(other.huge_pages, RequestedPages::Known(HugePages::Off, _)));
        let asking = asking.filter_map(|other| other.segment.as_ref());
        let asking = asking
            .map(|segment| segment.bytes.div_ceil(size.0))
            .sum::<u64>();
        // Only the command line keeps them off.
        let files = machine.state.next.from_files.as_ref();
        let insists = files.filter(|files| files.huge_pages == HugePages::On);
        let insists = insists.map_or(0, |files| files.pages(size.0));
        prop_assert!(
            pages.0 <= total.max(line) + asking + insists,
            "{step:?}, {total} are there, {line} in the line, {asking} for others: {steps:#?}, {spec:?}"
        );
    }
    Ok(())
}

/// Whether a cgroup has less than 5% of its limit left, and less than the host.
pub fn has_cgroup_near_its_limit(machine: &Machine) -> bool {
    let limits = machine.state.memory_limits.iter().flatten();
    let available = machine.usage().and_then(|usage| usage.available);
    limits.chain(&machine.facts.memory_high).any(|limit| {
        let kept = limit.use_bytes - limit.file_bytes.unwrap_or(0);
        kept > limit.limit_bytes / 100 * 95 && Some(limit.limit_bytes - kept) < available
    })
}

/// What a cgroup uses decides against the RAM that the host has left.
pub fn cgroup_near_its_limit_is_reported(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && spec.absent.is_empty());
    let is_near = has_cgroup_near_its_limit(machine);
    let finding = answer::finding(machine, CheckId::MemoryLeft);
    prop_assert!(!is_near || finding.status.needs_attention(), "{finding:?}");
    prop_assert!(
        is_near || finding.code != "near_cgroup_limit",
        "{finding:?}"
    );
    Ok(())
}

/// More committed memory than the kernel allows, and twice what there is, while half of RAM is
/// available, is a wrong counter: no text gives advice to add swap or to raise the limit for it.
pub fn wrong_commit_counter_is_no_shortage(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(spec.host.strict.is_some() && spec.host.is_commit_wrong);
    prop_assume!(machine.facts.is_whole && spec.absent.is_empty());
    let figures = memory::host_ram(machine).zip(machine.usage());
    prop_assume!(figures.is_some());
    let (ram, usage) = figures.expect("assumed");
    prop_assume!(usage.available >= Some(ram.0.div_ceil(2)));
    let finding = answer::finding(machine, CheckId::Overcommit);
    prop_assert_eq!(finding.code, "wrong_commit_counter");
    for (name, decision) in decisions(machine) {
        let is_wrong = matches!(decision, Decision::AddSwap { .. });
        prop_assert!(!is_wrong, "{name}: {decision}");
    }
    for text in texts(machine) {
        let wrong = ["set vm.overcommit_ratio", "raise vm.overcommit_kbytes"];
        prop_assert!(!wrong.iter().any(|wrong| text.contains(wrong)), "{text}");
    }
    Ok(())
}

/// The node that has three times its share of the segment and no free memory, while others have.
fn full_node(machine: &Machine) -> Option<u32> {
    let nodes = machine.facts.nodes.as_deref().ok()?;
    let of_segment = machine.state.segment_nodes.as_ref()?;
    let all: u64 = of_segment.values().sum();
    let is_usable = |node: &&Node| {
        let allowed = machine.facts.allowed_nodes.allows(node.number);
        node.memory.total > Some(0) && allowed != Some(false)
    };
    let usable = u64::try_from(nodes.iter().filter(is_usable).count()).ok()?;
    let free = |node: &Node| {
        node.memory
            .free?
            .saturating_mul(100)
            .checked_div(node.memory.total?)
    };
    let full = nodes.iter().find(|node| {
        let pages = of_segment.get(&node.number).copied().unwrap_or(0);
        pages * usable >= 3 * all && free(node) == Some(0)
    })?;
    let mut others = nodes.iter().filter(|node| node.number != full.number);
    let is_used = all * machine.state.page_bytes()? >= GB;
    (is_used && usable > 1 && others.any(|node| free(node) >= Some(10))).then_some(full.number)
}

pub fn has_full_node(machine: &Machine) -> bool {
    full_node(machine).is_some()
}

/// A full node is named, although the segment is on most nodes.
pub fn full_node_is_named(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && spec.absent.is_empty());
    let finding = answer::finding(machine, CheckId::NumaSegment);
    // It can be one of several: "NUMA nodes 0, 1, out of 4 nodes".
    let named = finding.text.split("NUMA node").nth(1).unwrap_or_default();
    let named = named.trim_start_matches('s').split([' ', ',']);
    let mut named = named
        .filter(|word| !word.is_empty())
        .map_while(|word| word.parse().ok());
    match full_node(machine) {
        Some(node) => prop_assert!(
            finding.status == Status::Warning && named.any(|named: u32| named == node),
            "{finding:?} in spite of node {node}"
        ),
        None => prop_assert!(finding.code != "on_full_node", "{finding:?}"),
    }
    Ok(())
}

/// Free swap on zram holds nothing: no answer is less severe, and no pool larger, than without this
/// swap. A cgroup does not pay for it, and a commit limit includes it.
pub fn swap_on_zram_holds_nothing(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && memory::host_ram(machine).is_some());
    prop_assume!(spec.memory_limits.is_empty() && spec.host.strict.is_none());
    // Unknown is neither more nor less severe.
    prop_assume!(spec.absent.is_empty());
    let free = machine
        .usage()
        .and_then(|usage| usage.swap_free)
        .unwrap_or(0);
    prop_assume!(free > 0);
    let with = |free_swap: u64| {
        let mut facts = Facts::clone(&machine.facts);
        facts.free_zram_bytes = free_swap;
        if let Ok(usage) = &mut facts.state.usage {
            usage.swap_free = Some(free_swap);
            usage.swap_total = usage.swap_total.map(|all| all - free + free_swap);
        }
        Machine {
            muted: machine.muted.clone(),
            ..Machine::new(facts)
        }
    };
    let (on_zram, without) = (with(free), with(0));
    // What already happens is a finding of memory_left alone.
    let worst = |machine: &Machine| {
        let checks = [CheckId::Restart, CheckId::MemoryLeft];
        checks
            .map(|id| answer::finding(machine, id).status)
            .into_iter()
            .max()
    };
    prop_assert!(
        worst(&on_zram) >= worst(&without),
        "{:?} on zram, {:?} without",
        worst(&on_zram),
        worst(&without)
    );
    let in_pools = |machine: &Machine| {
        let steps = steps_of(&runbook_of(machine));
        machine
            .apply_all(&steps)
            .map_or(Bytes(0), |after| memory::in_pools(&after))
    };
    prop_assert!(
        in_pools(&on_zram) <= in_pools(&without),
        "{} in pools with swap on zram, {} without",
        in_pools(&on_zram),
        in_pools(&without)
    );
    Ok(())
}

/// `vm.panic_on_oom` is reported if it applies (mm/oom_kill.c `check_panic_on_oom`).
pub fn panic_is_reported(spec: &Spec, machine: &Machine) -> TestCaseResult {
    prop_assume!(machine.facts.is_whole && spec.absent.is_empty());
    let is_limited = !spec.memory_limits.is_empty()
        || matches!(machine.facts.allowed_nodes, AllowedNodes::Only(_));
    let panics = spec.host.panic_on_oom == 2 || spec.host.panic_on_oom == 1 && !is_limited;
    // The kill of the whole cgroup comes first, if the postmaster is not exempt.
    let is_group = spec.server.oom_policy == Some(OomPolicy::Kill) && spec.server.oom.0 > -1000;
    let finding = answer::finding(machine, CheckId::OomProtection);
    prop_assert_eq!(finding.code == "panic_on_oom", panics && !is_group);
    prop_assert_eq!(finding.code == "oom_group", is_group);
    Ok(())
}

/// The highest score of a process whose kill ends the server, and by how much the postmaster is
/// preferred to a child as the victim. systemd can stop the server after any kill.
fn danger(machine: &Machine) -> Option<(i32, i32)> {
    let postmaster = machine.state.oom_score_adj.as_ref().ok().copied()?;
    let children = machine.state.processes.iter();
    let children = children.filter(|process| !process.is_postmaster);
    let children: Vec<_> = children
        .filter_map(|process| process.oom_score_adj)
        .collect();
    let unit = machine.state.unit.as_ref();
    let stops = unit.is_some_and(|unit| unit.oom_policy != Ok(OomPolicy::Continue));
    let of_children = children.iter().max().filter(|_| stops).copied();
    let least = children.iter().min()?;
    Some((
        postmaster.max(of_children.unwrap_or(postmaster)),
        postmaster - least,
    ))
}

/// No line of a remedy for `oom_protection`, alone or after the lines before it, makes it likelier
/// that a kill ends the server as a whole.
pub fn oom_remedies_do_not_endanger_the_server(_: &Spec, machine: &Machine) -> TestCaseResult {
    let all = checks(machine);
    let check = all.iter().find(|check| check.id == CheckId::OomProtection);
    let steps = check.map_or(&[][..], |check| steps(&check.remedy));
    let before = danger(machine);
    for (index, step) in steps.iter().enumerate() {
        for lines in [&steps[..=index], &steps[index..=index]] {
            let lines = lines.iter().chain([&Step::Restart]);
            let Ok(after) = machine.apply_all(lines) else {
                continue;
            };
            let pairs = before.zip(danger(&after));
            prop_assert!(
                pairs.is_none_or(|(before, after)| after.0 <= before.0 && after.1 <= before.1),
                "{pairs:?} after {step:?} of {steps:?}"
            );
        }
    }
    Ok(())
}
