//! The rules, each from what the kernel does, and not from how advice is made.

use std::collections::BTreeMap;

use hugeinfo::{
    advice::{
        check::{Check, Status},
        diagnosis::{self, statuses},
        planned, runbook, steps_to_set, words,
    },
    linux::{
        cgroup::memory::MemoryLimit,
        error::Absent,
        hugepages::Pool,
        numa::node::{Node, NodeCounters},
    },
    model::{
        forecast::Forecast,
        machine::Machine,
        step::{Decision, Step, Waits},
        take::{take, take_all},
    },
    server::{
        facts::{AllowedNodes, HugePages, SharedMemoryType},
        setting::SettingSource,
        sight::Sight,
        surroundings::{Files, ProcessFigures},
    },
};

use super::draft::{Next, absent};

type Judged = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($said:tt)*) => {
        if !$holds {
            return Err(format!($($said)*));
        }
    };
}

pub fn all(machine: &Machine, next: Option<Next>) -> Judged {
    let before = statuses(machine);
    ensure!(
        statuses(&machine.summed_up()) == before,
        "the sum of all processes is judged otherwise"
    );
    let checks = diagnosis::checks(machine);
    let mut tried = Tried::default();
    for (at, check) in checks.iter().enumerate() {
        cure(machine, &before, check, &mut tried)?;
        if checks[..at].iter().all(|other| other.steps != check.steps) {
            harmless(machine, check.name, &check.steps)?;
        }
        nothing_too_much(machine, &before, check, &mut tried)?;
    }
    let rows = runbook::of(machine, None);
    let runbook: Vec<Step> = rows.into_iter().map(|row| row.step).collect();
    one_voice(machine, &checks, &runbook)?;
    status_says_the_same(machine, &checks)?;
    for forecast in Forecast::of_each_pool(machine).into_iter().flatten() {
        if let Some(steps) = steps_to_set(machine, &forecast.pool) {
            harmless(machine, "how_to_set", &steps)?;
        }
    }
    healed(machine, &before, &checks, &runbook)?;
    muted(machine, &before, &checks)?;
    if let Some(next) = next {
        planned(machine, next)?;
    }
    as_sure_as_the_facts(machine, &before)
}

fn is_decision(step: &Step) -> bool {
    matches!(step, Step::Decide(_))
}

fn is_worse(after: &[(&str, Status)], before: &[(&str, Status)]) -> Option<String> {
    let pairs = after.iter().zip(before);
    let mut worse = pairs.filter(|(after, before)| after.1 > before.1);
    worse.next().map(|(after, before)| {
        format!(
            "{} is {}, and was {}",
            after.0,
            after.1.as_str(),
            before.1.as_str()
        )
    })
}

/// What has been tried on one machine: checks share their plans.
#[derive(Default)]
struct Tried(Vec<(Vec<Step>, Outcome)>);

type Outcome = Result<Vec<(&'static str, Status)>, String>;

impl Tried {
    fn outcome(&mut self, machine: &Machine, steps: &[Step]) -> Outcome {
        let known = self.0.iter().find(|(tried, _)| tried == steps);
        if let Some((_, outcome)) = known {
            return outcome.clone();
        }
        let outcome = take_all(machine, steps)
            .map(|after| statuses(&after))
            .map_err(|trouble| format!("cannot be taken: {trouble:?}"));
        self.0.push((steps.to_vec(), outcome.clone()));
        outcome
    }
}

fn is_cured(after: Outcome, before: &[(&str, Status)], name: &str) -> Result<(), String> {
    let after = after?;
    let status = after.iter().find(|(one, _)| *one == name).map(|one| one.1);
    // Unknown where others are hidden: no step shows them.
    ensure!(status < Some(Status::Warning), "it is {status:?}");
    is_worse(&after, before).map_or(Ok(()), Err)
}

/// Rule 1.
fn cure(machine: &Machine, before: &[(&str, Status)], check: &Check, tried: &mut Tried) -> Judged {
    let name = check.name;
    if check.status < Status::Warning {
        ensure!(
            check.steps.is_empty(),
            "{name} is well and has steps: {:?}",
            check.steps
        );
        return Ok(());
    }
    ensure!(
        !check.steps.is_empty(),
        "{name} is ill and says nothing: {}",
        check.finding
    );
    if check.steps.iter().any(is_decision) {
        ensure!(
            check.steps.len() == 1,
            "{name} decides and claims: {:?}",
            check.steps
        );
        if let [Step::Decide(Decision::LowerSharedBuffers { pages, .. })] = check.steps.as_slice() {
            ensure!(
                *pages > 0,
                "{name} decides without figures: {:?}",
                check.steps
            );
        }
        return Ok(());
    }
    is_cured(tried.outcome(machine, &check.steps), before, name).map_err(|why| {
        format!(
            "{name} is not cured: {why}: {:?}; {}",
            check.steps, check.finding
        )
    })?;
    let after = take_all(machine, &check.steps).expect("it does no harm");
    for pool in machine.facts.pools.iter().flatten() {
        let needed = needed(machine, pool).min(pool.total - pool.surplus);
        let left = after.pool(pool.page_bytes).expect("a pool");
        ensure!(
            left.total - left.surplus >= needed,
            "{name} takes what is needed: {left:?} of {pool:?}, {needed}: {:?}",
            check.steps
        );
    }
    Ok(())
}

/// Pages that others have or were promised, and what the next start of a server takes that is on
/// pages of that size.
fn needed(machine: &Machine, pool: &Pool) -> u64 {
    let own = own_pages(machine, pool.page_bytes);
    let others = (pool.total - pool.free + pool.reserved).saturating_sub(own);
    let next = machine.facts.next_start();
    let stays = own > 0 && machine.facts.target_pool() == Some(pool);
    others
        + if stays {
            next.pages(pool.page_bytes)
        } else {
            0
        }
}

fn pools_bytes(machine: &Machine) -> u64 {
    let pools = machine.facts.pools.iter().flatten();
    pools.map(|pool| pool.total * pool.page_bytes).sum()
}

/// `CommitLimit` by the kernel's formula, and what is promised, under strict overcommit.
fn commit(machine: &Machine) -> Option<(u64, u64)> {
    let host = &machine.around.as_ref()?.host;
    let usage = host.usage.as_ref().ok()?;
    if host.vm.overcommit_memory != Some(2) {
        return None;
    }
    let base = machine.facts.base_page_bytes;
    // A container's MemTotal says nothing of the host's limit.
    let nodes = machine.around.as_ref()?.nodes.as_ref().ok()?;
    let ram: u64 = nodes.iter().filter_map(|node| node.memory.total).sum();
    let kilobytes = u64::try_from(host.vm.overcommit_bytes?).ok()?;
    let ratio = u64::try_from(host.vm.overcommit_ratio?).ok()?;
    let allowed = if kilobytes > 0 {
        kilobytes / base
    } else {
        (ram / base).saturating_sub(pools_bytes(machine) / base) * ratio / 100
    };
    Some((
        (allowed + usage.swap_total? / base) * base,
        usage.committed?,
    ))
}

/// Pages of that size that the server has mapped.
fn own_pages(machine: &Machine, page_bytes: u64) -> u64 {
    match &machine.facts.segment {
        Ok(segment) if segment.page_bytes == Some(page_bytes) => segment.bytes / page_bytes,
        _ => 0,
    }
}

/// Bytes that others have in a group of that place, at the start: at least, and at most.
fn of_others(machine: &Machine, group: usize) -> (u64, u64) {
    let groups = machine.facts.hugetlb.iter().flat_map(|all| &all.groups);
    let Some(limits) = groups.map(|group| &group.limits[0]).nth(group) else {
        return (0, 0);
    };
    let own = own_pages(machine, limits.page_bytes);
    let pool = machine.pool(limits.page_bytes).expect("a pool");
    let without = |used: Option<u64>, own: u64| {
        let own = own * limits.page_bytes;
        used.unwrap_or(0).saturating_sub(own)
    };
    match limits.reservation_use {
        used @ Some(_) => (without(used, own), without(used, own)),
        None => (
            without(limits.fault_use, own.min(pool.total - pool.free)),
            without(limits.fault_use, own.saturating_sub(pool.reserved)),
        ),
    }
}

fn memory_limits(machine: &Machine) -> impl Iterator<Item = &MemoryLimit> {
    let around = machine.around.iter();
    around.flat_map(|around| &around.memory_limits).flatten()
}

/// Idle pages stay where a server that cannot be seen may want them: on their node, too. What this
/// server gives back was never anybody else's.
fn spares_the_unseen(machine: &Machine, name: &str, steps: &[Step]) -> Judged {
    let Some(around) = &machine.around else {
        return Ok(());
    };
    let is_hidden = around.sight != Sight::Host
        || !around
            .neighbours
            .as_ref()
            .is_ok_and(|servers| servers.iter().all(|server| server.segment.is_some()));
    if !is_hidden {
        return Ok(());
    }
    for step in steps {
        let Step::SetPool {
            page_bytes,
            node,
            pages,
        } = step
        else {
            continue;
        };
        let has = match node {
            None => machine
                .pool(*page_bytes)
                .map(|pool| pool.total - pool.surplus),
            Some(number) => nodes(machine)
                .find(|node| node.number == *number)
                .map(|node| counters(node, *page_bytes))
                .map(|counters| counters.total - counters.surplus),
        };
        let kept = has
            .unwrap_or(0)
            .saturating_sub(own_pages(machine, *page_bytes));
        ensure!(
            *pages >= kept,
            "{name} takes what a server may want that nobody sees: {step:?}, and {kept} were there: {steps:?}"
        );
    }
    Ok(())
}

fn nodes(machine: &Machine) -> impl Iterator<Item = &Node> {
    let around = machine.around.iter();
    around.flat_map(|around| &around.nodes).flatten()
}

fn counters(node: &Node, page_bytes: u64) -> NodeCounters {
    let part = node.part(page_bytes);
    let counters = part.and_then(|part| part.counters);
    counters.expect("each node has memory")
}

/// Pages that a start of the server can have for certain: what others leave, on its nodes. What it
/// gives back may be surplus pages, which cease to exist.
fn for_server(machine: &Machine, page_bytes: u64) -> u64 {
    let pool = machine.pool(page_bytes).expect("a pool");
    let own = own_pages(machine, page_bytes);
    let others = (pool.total - pool.free + pool.reserved).saturating_sub(own);
    let left = pool.total - pool.surplus.min(own);
    let of_pool = left.saturating_sub(others);
    let AllowedNodes::Only(allowed) = &machine.facts.allowed_nodes else {
        return of_pool;
    };
    let touched = own.saturating_sub(pool.reserved);
    let allowed = allowed.iter().map(|node| counters(node, page_bytes));
    let (free, surplus) = allowed.fold((0, 0), |(free, surplus), node| {
        (free + node.free, surplus + node.surplus)
    });
    let of_nodes = (free + touched).saturating_sub(surplus.min(own));
    of_nodes.min(of_pool)
}

/// Rule 2: no harm at any step.
fn harmless(machine: &Machine, name: &str, steps: &[Step]) -> Judged {
    spares_the_unseen(machine, name, steps)?;
    let had_huge_pages = machine.is_on_huge_pages() == Some(true);
    let files = machine.around.as_ref().map(|around| &around.files);
    let mut may_not_start = files.is_some_and(Files::stop_a_start);
    let mut at = machine.clone();
    for step in steps {
        if is_decision(step) {
            continue;
        }
        let alters = words::place(step) == words::Place::Sql;
        ensure!(
            at.is_running || !alters,
            "{name} asks a server that is down: {steps:?}"
        );
        may_not_start &= !matches!(step, Step::Plan { .. });
        let stops = matches!(step, Step::Restart | Step::Stop | Step::Start);
        ensure!(
            !(stops && may_not_start),
            "{name} stops what would not start again: {steps:?}"
        );
        let (after, trouble) = take(&at, step);
        ensure!(
            trouble.is_none(),
            "{name} harms: {trouble:?} by {step:?} of {steps:?}"
        );
        // Memory.
        let grown = pools_bytes(&after).saturating_sub(pools_bytes(&at));
        if matches!(step, Step::SetPool { .. })
            && let Some(available) = at.available_bytes()
        {
            ensure!(
                grown <= available,
                "{name} takes memory: {grown} of {available}: {steps:?}"
            );
        }
        if let Step::SetPool { page_bytes, .. } = step {
            // A server that ends by itself starts again with the settings that it has.
            let had = at.pool(*page_bytes).expect("a pool");
            let own = own_pages(&at, *page_bytes);
            let least = own.max(at.facts.server.pages(*page_bytes));
            let is_safe = at.is_running && own > 0 && for_server(machine, *page_bytes) >= least;
            ensure!(
                !is_safe || had.overcommit > 0 || for_server(&after, *page_bytes) >= least,
                "{name} leaves surplus pages to the running server: {step:?} of {steps:?}"
            );
            // What others reserved they may have to find on one node.
            let pool = at.pool(*page_bytes).expect("a pool");
            let promised = pool.reserved.saturating_sub(own_pages(&at, *page_bytes));
            let has_several = nodes(&at).count() > 1;
            for (before, after) in nodes(&at).zip(nodes(&after)) {
                let had = counters(before, *page_bytes);
                let has = counters(after, *page_bytes);
                let (free, least) = (has.free, had.free.min(promised));
                ensure!(
                    !has_several || free >= least,
                    "{name} takes promised pages of node {}: {free} of {least} are left: {steps:?}",
                    after.number
                );
                let grown = has.total.saturating_sub(had.total) * page_bytes;
                let available = before.memory.available.unwrap_or(u64::MAX);
                ensure!(
                    grown <= available,
                    "{name} takes memory of node {}: {grown} of {available}: {steps:?}",
                    after.number
                );
            }
        }
        if let (Some((limit, committed)), Some((limit_before, _))) = (commit(&after), commit(&at)) {
            let is_beyond = committed > limit && limit < limit_before;
            ensure!(
                !is_beyond,
                "{name} breaks CommitLimit: {limit} of {limit_before} for {committed}: {steps:?}"
            );
            let starts = matches!(step, Step::Start | Step::Restart);
            ensure!(
                !starts || committed <= limit.max(commit(machine).map_or(0, |(_, c)| c)),
                "{name} starts beyond CommitLimit: {steps:?}"
            );
        }
        // A start.
        if matches!(step, Step::Start | Step::Restart) {
            ensure!(after.is_running, "{name} starts nothing: {steps:?}");
            let segment = after.facts.segment.as_ref().expect("a segment");
            let is_huge = after.is_on_huge_pages() == Some(true);
            if is_huge {
                let groups = after.facts.hugetlb.iter().flat_map(|all| &all.groups);
                for (place, group) in groups.enumerate() {
                    for limits in group
                        .limits
                        .iter()
                        .filter(|l| Some(l.page_bytes) == segment.page_bytes)
                    {
                        // Who maps no more than before is in no more danger than before.
                        let (least, most) = of_others(machine, place);
                        let had = own_pages(machine, limits.page_bytes) * limits.page_bytes;
                        let maps_more = segment.bytes > had;
                        let wanted = segment.bytes + if maps_more { most } else { least };
                        let is_armed = limits.fault_limit.is_some_and(|limit| limit < wanted);
                        ensure!(
                            !is_armed,
                            "{name} arms the server: {limits:?} for {wanted}: {steps:?}"
                        );
                        let is_refused =
                            limits.reservation_limit.is_some_and(|limit| limit < wanted);
                        ensure!(
                            !is_refused,
                            "{name} starts what is refused: {limits:?}: {steps:?}"
                        );
                    }
                }
                let mut limits = memory_limits(&after);
                if let Some(limit) = limits.find(|limit| limit.counts_hugetlb) {
                    ensure!(
                        segment.bytes <= limit.limit_bytes,
                        "{name} starts beyond the memory limit: {steps:?}"
                    );
                }
            } else {
                let around = after.around.as_ref().expect("surroundings");
                let swap = around.host.usage.as_ref().ok().and_then(|u| u.swap_free);
                for limit in memory_limits(&after) {
                    ensure!(
                        segment.bytes <= limit.limit_bytes + swap.unwrap_or(0),
                        "{name} falls back beyond the memory limit: {steps:?}"
                    );
                }
                let ram = after.ram_bytes().unwrap_or(u64::MAX);
                let left = ram.saturating_sub(pools_bytes(&after));
                let nodes = machine.around.iter().flat_map(|a| &a.nodes).flatten();
                let is_container = ram < nodes.filter_map(|node| node.memory.total).sum();
                ensure!(
                    is_container || segment.bytes <= left,
                    "{name} falls back beyond RAM: {steps:?}"
                );
            }
        }
        if had_huge_pages && after.is_running {
            ensure!(
                after.is_on_huge_pages() == Some(true),
                "{name} loses huge pages by {step:?}: {steps:?}"
            );
        }
        for pool in after.facts.pools.iter().flatten() {
            let is_sound =
                pool.free <= pool.total && pool.reserved <= pool.free && pool.surplus <= pool.total;
            ensure!(
                is_sound,
                "{name} leads to what cannot be: {pool:?} by {step:?}"
            );
            let nodes = after.around.iter().flat_map(|a| &a.nodes).flatten();
            let on_nodes: u64 = nodes
                .flat_map(|n| &n.pools)
                .filter(|p| p.page_bytes == pool.page_bytes)
                .filter_map(|p| p.counters)
                .map(|c| c.total)
                .sum();
            let is_seen = after.around.as_ref().is_some_and(|a| a.nodes.is_ok());
            ensure!(
                !is_seen || on_nodes == pool.total,
                "{name} leads to nodes of {on_nodes}: {pool:?} by {step:?}"
            );
        }
        at = after;
    }
    ensure!(at.is_running, "{name} leaves the server down: {steps:?}");
    Ok(())
}

/// Rule 4.
fn nothing_too_much(
    machine: &Machine,
    before: &[(&str, Status)],
    check: &Check,
    tried: &mut Tried,
) -> Judged {
    let name = check.name;
    if check.status < Status::Warning || check.steps.iter().any(is_decision) {
        return Ok(());
    }
    let with_all = take_all(machine, &check.steps).expect("it does no harm");
    let mut does = |fewer: &[Step]| {
        is_cured(tried.outcome(machine, fewer), before, name).is_ok()
            && take_all(machine, fewer).is_ok_and(|after| holds_as_much(&after, &with_all))
    };
    for left_out in 0..check.steps.len() {
        let mut fewer = check.steps.clone();
        let step = fewer.remove(left_out);
        ensure!(
            !does(&fewer),
            "{name} has too much: {step:?} of {:?}",
            check.steps
        );
    }
    let stops = |step: &Step| matches!(step, Step::Restart | Step::Stop | Step::Start);
    if check.steps.iter().any(stops) {
        let mut without = check.steps.clone();
        without.retain(|step| !stops(step));
        ensure!(
            !does(&without),
            "{name} stops without need: {:?}",
            check.steps
        );
    }
    if check.steps.contains(&Step::Stop) {
        let without = check.steps.iter().filter(|step| **step != Step::Stop);
        let restarted = without.map(|step| match step {
            Step::Start => Step::Restart,
            step => step.clone(),
        });
        let restarted: Vec<Step> = restarted.collect();
        ensure!(
            !does(&restarted),
            "{name} is down while a pool is made: {:?}",
            check.steps
        );
    }
    Ok(())
}

/// Whether no pool has become smaller by what was left out.
fn holds_as_much(machine: &Machine, other: &Machine) -> bool {
    let persistent = |machine: &Machine| -> Vec<u64> {
        let pools = machine.facts.pools.iter().flatten();
        pools.map(|pool| pool.total - pool.surplus).collect()
    };
    let both = persistent(machine).into_iter().zip(persistent(other));
    both.into_iter().all(|(has, least)| has >= least)
}

/// What a plan sets each pool to in the end, now and at boot.
fn numbers(steps: &[Step]) -> BTreeMap<u64, (Option<u64>, Option<u64>)> {
    let mut all: BTreeMap<u64, (Option<u64>, Option<u64>)> = BTreeMap::new();
    for step in steps {
        match step {
            Step::SetPool {
                page_bytes,
                node: None,
                pages,
            } => {
                all.entry(*page_bytes).or_default().0 = Some(*pages);
            }
            Step::SetPoolAtBoot {
                page_bytes, pages, ..
            } => {
                all.entry(*page_bytes).or_default().1 = Some(*pages);
            }
            _ => {}
        }
    }
    all
}

/// Whether the steps lead to another configuration than the one that is aimed at.
fn turns_away(machine: &Machine, steps: &[Step]) -> bool {
    let Ok(after) = take_all(machine, steps) else {
        return false;
    };
    after.planning(after.aim()).facts.huge_page_asked_for()
        != machine.planning(machine.aim()).facts.huge_page_asked_for()
}

/// Rule 3.
fn one_voice(machine: &Machine, checks: &[Check], runbook: &[Step]) -> Judged {
    let target = machine.planning(machine.aim()).facts.huge_page_asked_for();
    let forecasts: Vec<Forecast> = Forecast::of_each_pool(machine).unwrap_or_default();
    let mut said: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    for forecast in &forecasts {
        if Some(forecast.pool.page_bytes) == target
            && let Some(pages) = forecast.recommended
        {
            said.insert(forecast.pool.page_bytes, (pages, "recommended".to_owned()));
        }
    }
    let mut plans: Vec<(&str, Vec<Step>)> = checks
        .iter()
        .map(|check| (check.name, check.steps.clone()))
        .collect();
    plans.push(("the runbook", runbook.to_vec()));
    for forecast in &forecasts {
        if Some(forecast.pool.page_bytes) == target
            && let Some(steps) = steps_to_set(machine, &forecast.pool)
        {
            plans.push(("how_to_set", steps));
        }
    }
    for (name, steps) in plans {
        if turns_away(machine, &steps) {
            continue;
        }
        for (page_bytes, (now, at_boot)) in numbers(&steps) {
            for pages in [now, at_boot].into_iter().flatten() {
                let (other, by) = said.entry(page_bytes).or_insert((pages, name.to_owned()));
                ensure!(
                    *other == pages,
                    "two voices: {name} says {pages} of {page_bytes}, and {by} {other}: {steps:?}"
                );
            }
        }
    }
    Ok(())
}

/// With what the extension reads for the remedy of `hugeinfo_status`, whatever it is.
fn as_status_reads_it(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if let Some(around) = &mut machine.around {
        around.vmstat = Err(Absent::not_looked_at());
        around.segment_nodes = None;
        around.oom_score_adj = Err(Absent::not_looked_at());
        around.locked_memory = Err(Absent::not_looked_at());
        around.uses_io_uring = false;
        let few = around.processes.iter().take(8);
        around.processes = few
            .map(|process| ProcessFigures {
                rss_shmem: process.rss_shmem,
                is_postmaster: process.is_postmaster,
                ..ProcessFigures::default()
            })
            .collect();
    }
    machine
}

fn status_says_the_same(machine: &Machine, checks: &[Check]) -> Judged {
    let verdict = diagnosis::verdict(machine);
    let mut at_a_glance = machine.clone();
    if let Some(around) = &mut at_a_glance.around {
        around.free_blocks = Err(Absent::not_looked_at());
        around.asked_at_boot = Err(Absent::not_looked_at());
        around.vmstat = Err(Absent::not_looked_at());
        around.settings.clear();
    }
    ensure!(
        verdict == diagnosis::verdict(&at_a_glance),
        "status depends on what only a remedy looks at: {verdict:?}"
    );
    let same = checks.iter().find(|check| check.finding == verdict.reason);
    if let Some(check) = same {
        let steps = diagnosis::remedy(&as_status_reads_it(machine));
        ensure!(
            check.steps == steps,
            "status and {} differ: {steps:?} and {:?}",
            check.name,
            check.steps
        );
    }
    Ok(())
}

/// The runbook: all that can be cured, nothing on a machine that is well.
fn healed(
    machine: &Machine,
    before: &[(&str, Status)],
    checks: &[Check],
    steps: &[Step],
) -> Judged {
    let is_muted = |name: &str| machine.muted.contains(name);
    let is_well = before
        .iter()
        .all(|(name, status)| *status < Status::Warning || is_muted(name));
    ensure!(
        !is_well || steps.is_empty(),
        "the runbook has steps for nothing: {steps:?}"
    );
    harmless(machine, "the runbook", steps)?;
    let taken: Vec<Step> = steps
        .iter()
        .filter(|step| !is_decision(step))
        .cloned()
        .collect();
    let after = take_all(machine, &taken)
        .map_err(|trouble| format!("the runbook fails: {trouble:?}: {steps:?}"))?;
    let then = statuses(&after);
    if let Some(worse) = is_worse(&then, before) {
        return Err(format!("the runbook makes worse: {worse}: {steps:?}"));
    }
    let decides = steps.iter().any(is_decision);
    for ((name, status), check) in then.iter().zip(checks) {
        let is_open = *status >= Status::Warning && !check.steps.is_empty() && !decides;
        ensure!(
            !is_open || is_muted(name),
            "the runbook leaves {name} {}: {steps:?}",
            status.as_str()
        );
    }
    let wanted: Vec<_> = then
        .iter()
        .zip(before)
        .map(|(then, before)| *if is_muted(then.0) { before } else { then })
        .collect();
    for left_out in 0..taken.len() {
        let mut fewer = taken.clone();
        let step = fewer.remove(left_out);
        if let Ok(other) = take_all(machine, &fewer) {
            let does =
                is_worse(&statuses(&other), &wanted).is_none() && holds_as_much(&other, &after);
            ensure!(!does, "the runbook has too much: {step:?} of {steps:?}");
        }
    }
    Ok(())
}

/// What is muted is judged as before, and alerts nobody.
fn muted(machine: &Machine, before: &[(&'static str, Status)], checks: &[Check]) -> Judged {
    let ill: Vec<_> = before
        .iter()
        .filter(|(_, status)| *status >= Status::Warning)
        .map(|(name, _)| *name)
        .collect();
    let muting = |names: &[&'static str]| Machine {
        muted: names.iter().copied().collect(),
        ..machine.clone()
    };
    let quiet = muting(&ill);
    ensure!(
        statuses(&quiet) == before,
        "what is muted is judged otherwise"
    );
    let verdict = diagnosis::verdict(&quiet);
    ensure!(
        verdict.status < Status::Warning,
        "all is muted, and status is not: {verdict:?}"
    );
    let steps = diagnosis::remedy(&quiet);
    ensure!(steps.is_empty(), "all is muted but the remedy: {steps:?}");
    let rows = runbook::of(&quiet, None);
    ensure!(rows.is_empty(), "all is muted but the runbook: {rows:?}");
    let [first, _, ..] = ill[..] else {
        return Ok(());
    };
    let quiet = muting(&[first]);
    let verdict = diagnosis::verdict(&quiet);
    // The first four are those that cost little; the fifth says where files stop the next start.
    let files = machine.around.as_ref().map(|around| &around.files);
    let counted = 4 + usize::from(files.is_some_and(Files::stop_a_start));
    let cheap = before[..counted].iter().filter(|(name, _)| *name != first);
    let worst = cheap.map(|(_, status)| *status).max();
    ensure!(
        Some(verdict.status) == worst,
        "status counts what is muted, {first}: {verdict:?}"
    );
    let rows = runbook::of(&quiet, None);
    let runbook: Vec<Step> = rows.into_iter().map(|row| row.step).collect();
    healed(&quiet, before, checks, &runbook).map_err(|why| format!("{why}; {first} is muted"))
}

/// From here to what is planned.
fn planned(machine: &Machine, next: Next) -> Judged {
    let next = next.server();
    // Any of the ways in which settings come to be so.
    let way = next.shared_memory_bytes / 8192;
    let setting = |name: &str, source, next| planned::Setting {
        name: name.to_owned(),
        value: "1".to_owned(),
        source,
        waits: Waits::ForStart,
        next,
    };
    let mut settings = Vec::new();
    if way.is_multiple_of(3) {
        let source = SettingSource::Default;
        settings.push(setting(
            "max_wal_senders",
            source,
            Err("too many".to_owned()),
        ));
    }
    if !way.is_multiple_of(7) {
        let source = if way.is_multiple_of(5) {
            SettingSource::CommandLine
        } else {
            SettingSource::AutoConf
        };
        settings.push(setting("shared_buffers", source, Ok(next.clone())));
    }
    let decide = ["huge_pages", "shared_memory_type", "huge_page_size"];
    let plan = planned::Planned {
        names: decide.map(str::to_owned).to_vec(),
        settings,
        waits: Waits::ForStart,
        next: next.clone(),
    };
    if plan.settings.last().is_none_or(|last| last.next.is_err()) {
        // The files have all of it.
        let facts = &machine.facts;
        if facts.planned.as_ref() != Some(&next) {
            return Ok(());
        }
    }
    let rows = runbook::of(machine, Some(&plan));
    let steps: Vec<Step> = rows.into_iter().map(|row| row.step).collect();
    if let [Step::Decide(decision)] = steps.as_slice() {
        return fits_what_is_said_to(machine, &plan, decision);
    }
    let asks =
        next.huge_pages != HugePages::Off && next.shared_memory_type == SharedMemoryType::Mmap;
    let gives_up = machine.is_on_huge_pages() == Some(true) && !asks;
    if !gives_up {
        harmless(machine, "the plan", &steps)?;
    }
    let taken: Vec<Step> = steps
        .iter()
        .filter(|step| !is_decision(step))
        .cloned()
        .collect();
    let mut asked = machine.clone();
    // Whoever plans what waits already wants it.
    asked.is_given_up |= gives_up && plan.settings.is_empty();
    let after = take_all(&asked, &taken)
        .map_err(|trouble| format!("the plan fails: {trouble:?}: {steps:?}"))?;
    let typed = steps.iter().filter(|step| matches!(step, Step::Plan(_)));
    ensure!(
        typed.count() == plan.settings.len(),
        "the plan is typed in part: {steps:?}"
    );
    ensure!(
        after.facts.planned.is_none() && after.facts.is_as_now(&next),
        "the plan ends elsewhere: {steps:?}"
    );
    if asks {
        ensure!(
            after.is_on_huge_pages() == Some(true),
            "the plan ends on small pages: {steps:?}"
        );
    }
    Ok(())
}

/// A plan of the size that is said to fit is not too large again.
fn fits_what_is_said_to(machine: &Machine, plan: &planned::Planned, decision: &Decision) -> Judged {
    let Decision::PlanLess {
        bytes,
        to_bytes: Some(fits),
    } = decision
    else {
        return Ok(());
    };
    ensure!(fits < bytes, "{fits} are no less than {bytes}");
    let mut less = plan.clone();
    less.next.shared_memory_bytes = fits / 8192 * 8192;
    if let Some(last) = less.settings.last_mut() {
        last.next = Ok(less.next.clone());
    }
    let rows = runbook::of(machine, Some(&less));
    for row in rows {
        ensure!(
            !matches!(row.step, Step::Decide(Decision::PlanLess { .. })),
            "what is said to fit does not: {decision:?}, and then {:?}",
            row.step
        );
    }
    Ok(())
}

/// Rule 6: what is not seen is never well.
fn as_sure_as_the_facts(machine: &Machine, before: &[(&str, Status)]) -> Judged {
    type Blind = fn(&mut Machine);
    let blind: [(&str, Blind); 11] = [
        ("segment", |m| m.facts.segment = Err(absent("/proc/1/maps"))),
        ("page size", |m| {
            if let Ok(segment) = &mut m.facts.segment {
                segment.page_bytes = None;
            }
        }),
        ("meminfo", |m| {
            m.facts.meminfo = Err(absent("/proc/meminfo"))
        }),
        ("pools", |m| {
            m.facts.pools = Err(absent("/sys/kernel/mm/hugepages"))
        }),
        ("hugetlb", |m| {
            m.facts.hugetlb = Err(absent("/sys/fs/cgroup"))
        }),
        ("usage", |m| {
            around(m).host.usage = Err(absent("/proc/meminfo"))
        }),
        ("blocks", |m| {
            around(m).free_blocks = Err(absent("/proc/buddyinfo"))
        }),
        ("boot", |m| {
            around(m).asked_at_boot = Err(absent("/proc/cmdline"))
        }),
        ("nodes", |m| {
            around(m).nodes = Err(absent("/sys/devices/system/node"))
        }),
        ("neighbours", |m| {
            around(m).neighbours = Err(absent("/proc"))
        }),
        ("thp", |m| {
            around(m).host.thp = Err(absent("/sys/kernel/mm/transparent_hugepage"))
        }),
    ];
    let bytes = machine.facts.needed_bytes() ^ pools_bytes(machine);
    let (source, take_away) = blind[usize::try_from(bytes % 11).expect("small")];
    let mut less = machine.clone();
    take_away(&mut less);
    // Some check says that it cannot tell, where what was ill seems well.
    let after = statuses(&less);
    let is_said = after.iter().any(|(_, status)| *status == Status::Unknown);
    for ((name, status), (_, was)) in after.iter().zip(before) {
        let claims = *status == Status::Ok && *was >= Status::Warning && !is_said;
        ensure!(
            !claims,
            "{name} is ok without {source}, and was {}",
            was.as_str()
        );
    }
    // That takes as long as all the rest.
    if !(bytes / 11).is_multiple_of(4) {
        return Ok(());
    }
    for check in diagnosis::checks(&less) {
        if !check.steps.iter().any(is_decision) && !check.steps.is_empty() {
            take_all(&less, &check.steps)
                .map_err(|trouble| format!("{} fails without {source}: {trouble:?}", check.name))?;
        }
    }
    Ok(())
}

fn around(machine: &mut Machine) -> &mut hugeinfo::server::surroundings::Surroundings {
    machine.around.as_mut().expect("surroundings")
}
