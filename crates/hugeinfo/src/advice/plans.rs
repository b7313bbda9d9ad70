//! Plans that may cure: what a remedy is chosen from, the least disruptive first.

use crate::{
    advice::{
        planned::{self, Planned},
        shortest::shortest,
        thresholds::COMMITTED_PERCENT,
    },
    linux::hugepages::Pool,
    model::{
        forecast::Forecast,
        headroom::Headroom,
        limits,
        machine::Machine,
        memory_limit::{self, Holds},
        need::{Need, unseen},
        next_boot, shares,
        step::{self, By, Decision, Setting, Step, Waits},
        take::{Harm, Trouble, take, take_all},
    },
    server::{
        facts::{HugePages, Server, SharedMemoryType},
        setting::SettingSource,
        surroundings::Files,
    },
};

/// What gets the server onto huge pages and keeps it there.
pub(crate) fn pools(machine: &Machine) -> Vec<Vec<Step>> {
    let mut plans = Vec::new();
    if let Some(parts) = Parts::of(machine, machine.aim()) {
        let on_nodes = parts.on_nodes(machine);
        // Nothing that changes the machine as it runs.
        plans.push(parts.at_boot.clone());
        let ways = [Parts::while_it_runs, Parts::with_restart, Parts::with_stop];
        for way in ways {
            plans.push(way(&parts));
            plans.extend(on_nodes.as_ref().map(way));
        }
    }
    // Another size, of which there are enough pages already.
    for aim in other_sizes(machine) {
        if let Some(parts) = Parts::of(machine, aim) {
            plans.push(parts.onto_another_size());
        }
    }
    plans
}

/// These steps alone, with free memory in larger blocks, or on the way of a plan that makes their
/// restart safe.
pub(crate) fn with(machine: &Machine, own: Vec<Step>) -> Vec<Vec<Step>> {
    let mut plans = vec![own.clone()];
    let compacted = std::iter::once(Step::Compact).chain(own.iter().cloned());
    if own.iter().any(|step| matches!(step, Step::SetPool { .. })) {
        plans.push(compacted.collect());
    }
    if own.contains(&Step::Restart) {
        let restarts = |step: &Step| matches!(step, Step::Restart | Step::Start);
        let before: Vec<Step> = own.into_iter().filter(|step| !restarts(step)).collect();
        for mut plan in pools(machine) {
            if !plan.iter().any(restarts) {
                plan.push(Step::Restart);
            }
            plans.push(before.iter().cloned().chain(plan).collect());
        }
    }
    plans
}

/// What changes the settings as planned.
pub(crate) fn changes_of(machine: &Machine, planned: &Planned) -> Vec<Step> {
    let change = |setting: &planned::Setting| {
        Step::Plan(step::Planned {
            name: setting.name.clone(),
            value: setting.value.clone(),
            by: by(machine, Some(&setting.source)),
            waits: setting.waits,
            next: setting.next.clone(),
        })
    };
    planned.settings.iter().map(change).collect()
}

/// From here to a planned configuration, without harm.
///
/// Errors: what a person has to decide first.
pub(crate) fn to(machine: &Machine, plan: &Planned) -> Result<Vec<Step>, Decision> {
    let next = &plan.next;
    let changes = changes_of(machine, plan);
    match plan.waits() {
        Waits::ForNothing => return Ok(changes),
        Waits::ForReload => return Ok(changes.into_iter().chain([Step::Reload]).collect()),
        Waits::ForStart => {}
    }
    let planned = machine.planning(next.clone());
    let asks = planned.facts.asks_for_huge_pages() && planned.facts.target_pool().is_some();
    let parts = Parts::of(&planned, next.clone()).filter(|_| asks);
    let Some(parts) = parts else {
        let steps: Vec<Step> = changes.into_iter().chain([Step::Restart]).collect();
        return match take_all(machine, &steps) {
            Ok(_) => Ok(steps),
            Err(trouble) => Err(why_not(&planned, Some(trouble), Decision::CorrectTheFiles)),
        };
    };
    let on_the_way = |steps: Vec<Step>| {
        // The settings last while the server runs: should it come down before, it comes up as it
        // was.
        let at = steps
            .iter()
            .position(|step| matches!(step, Step::Restart | Step::Stop))
            .unwrap_or(steps.len());
        let mut steps = steps;
        steps.splice(at..at, changes.iter().cloned());
        steps
    };
    let is_there = |after: &Machine| {
        after.facts.planned.is_none()
            && after.waits == Waits::ForNothing
            && after.facts.is_as_now(next)
            && after.is_on_huge_pages() == Some(true)
    };
    let ends_there = |steps: &[Step]| {
        changes.iter().all(|change| steps.contains(change))
            && take_all(machine, steps).is_ok_and(|after| is_there(&after))
    };
    let on_nodes = parts.on_nodes(&planned);
    let mut candidates = Vec::new();
    for way in [Parts::with_restart, Parts::with_stop] {
        candidates.push(on_the_way(way(&parts)));
        candidates.extend(on_nodes.as_ref().map(|parts| on_the_way(way(parts))));
    }
    let found = candidates
        .iter()
        .find_map(|steps| shortest(steps.clone(), ends_there));
    found.ok_or_else(|| {
        why_not(
            &planned,
            last_trouble(machine, &candidates),
            Decision::Reboot,
        )
    })
}

/// The pieces of a plan.
#[derive(Clone)]
struct Parts {
    page_bytes: u64,
    changes: Vec<Step>,
    limits: Vec<Step>,
    commit_limit: Vec<Step>,
    /// What other pools of the kernel hold too much of.
    shrunk: Vec<Step>,
    compact: Option<Step>,
    /// The pool that is asked for. Where the server holds more than its next start will, the pool
    /// is made smaller after that.
    set: Vec<Step>,
    /// What others lack in pools that this server does not ask for.
    filled: Vec<Step>,
    /// What the running server holds, and its next start will not.
    left: Vec<Step>,
    at_boot: Vec<Step>,
}

impl Parts {
    fn of(machine: &Machine, aim: Server) -> Option<Self> {
        let aimed = machine.planning(aim.clone());
        let target = aimed.facts.target_pool()?;
        let mut parts = Self {
            page_bytes: target.page_bytes,
            changes: changes(machine, &aim),
            limits: limits::raise(&aimed.facts, target.page_bytes),
            commit_limit: Vec::new(),
            shrunk: Vec::new(),
            compact: None,
            set: Vec::new(),
            filled: Vec::new(),
            left: Vec::new(),
            at_boot: Vec::new(),
        };
        for pool in aimed.facts.pools.iter().flatten() {
            let need = Need::of(&aimed, pool)?;
            let (now, pages) = (need.now(), need.after_restart());
            let is_target = pool.page_bytes == target.page_bytes;
            if pool.persistent() > pages && unseen(machine).is_some() {
                // Somebody may want them.
                continue;
            }
            let set = Step::SetPool {
                page_bytes: pool.page_bytes,
                node: None,
                pages,
            };
            let steps = match pool.persistent() {
                has if has == pages => None,
                has if has > pages && now > pages => Some(&mut parts.left),
                _ if is_target => Some(&mut parts.set),
                has if has > pages => Some(&mut parts.shrunk),
                _ => Some(&mut parts.filled),
            };
            if let Some(steps) = steps {
                steps.push(set);
            }
            if is_target && pool.persistent() < pages {
                parts.compact = Some(Step::Compact);
                parts.commit_limit = commit_limit_for(machine, pool, pages.max(now));
            }
            let at_boot = next_boot::set(&aimed, pool.page_bytes, pages);
            parts.at_boot.extend(at_boot);
        }
        Some(parts)
    }

    /// The same pool, with a share for each node that the server may use. `None`: there is one.
    fn on_nodes(&self, machine: &Machine) -> Option<Self> {
        let set = shares::of_need(machine, self.page_bytes)?;
        let steps = set.into_iter().map(|share| Step::SetPool {
            page_bytes: self.page_bytes,
            node: Some(share.node),
            pages: share.fair,
        });
        Some(Self {
            set: steps.collect(),
            compact: Some(Step::Compact),
            ..self.clone()
        })
    }

    fn all<const N: usize>(parts: [&Vec<Step>; N]) -> Vec<Step> {
        parts.into_iter().flatten().cloned().collect()
    }

    fn grow(&self) -> Vec<Step> {
        let compact = self.compact.iter().cloned().collect();
        let parts = [&self.limits, &self.shrunk, &self.commit_limit];
        Self::all([&Self::all(parts), &compact, &self.set, &self.filled])
    }

    /// Nothing that needs a restart.
    fn while_it_runs(&self) -> Vec<Step> {
        Self::all([&self.grow(), &self.at_boot])
    }

    fn with_restart(&self) -> Vec<Step> {
        let restart = vec![Step::Restart];
        Self::all([
            &self.changes,
            &self.grow(),
            &restart,
            &self.left,
            &self.at_boot,
        ])
    }

    /// What is there suffices: no pool is touched.
    fn onto_another_size(&self) -> Vec<Step> {
        let restart = vec![Step::Restart];
        Self::all([&self.changes, &self.limits, &restart])
    }

    /// Where memory does not hold the pool beside the running server.
    fn with_stop(&self) -> Vec<Step> {
        let (stop, start) = (vec![Step::Stop], vec![Step::Start]);
        Self::all([
            &self.changes,
            &stop,
            &self.left,
            &self.grow(),
            &start,
            &self.at_boot,
        ])
    }
}

/// What turns the settings of the next start into these.
fn changes(machine: &Machine, aim: &Server) -> Vec<Step> {
    let next = machine.facts.next_start();
    let mut settings = Vec::new();
    if next.huge_pages == HugePages::Off && aim.huge_pages != HugePages::Off {
        settings.push(Setting::HugePagesTry);
    }
    if next.shared_memory_type != aim.shared_memory_type
        && aim.shared_memory_type == SharedMemoryType::Mmap
    {
        settings.push(Setting::SharedMemoryMmap);
    }
    if next.huge_page_size_bytes != aim.huge_page_size_bytes {
        let bytes = aim.huge_page_size_bytes.unwrap_or(0);
        settings.push(Setting::HugePageSize(bytes));
    }
    settings
        .into_iter()
        .map(|setting| Step::Change {
            by: by(machine, source_of(machine, setting)),
            setting,
        })
        .collect()
}

fn source_of(machine: &Machine, setting: Setting) -> Option<&SettingSource> {
    let around = machine.around.as_ref()?;
    let setting = around.settings.get(setting.name())?;
    Some(&setting.source)
}

/// Where a setting can be changed that comes from there.
fn by(machine: &Machine, source: Option<&SettingSource>) -> By {
    let around = machine.around.as_ref();
    match source {
        Some(SettingSource::CommandLine) => By::CommandLine,
        _ if around.is_none_or(|around| around.allows_alter_system) => By::AlterSystem,
        Some(SettingSource::File(Some(line))) => By::File(Some(line.path.clone())),
        _ => By::File(None),
    }
}

fn other_sizes(machine: &Machine) -> Vec<Server> {
    let asked = machine.planning(machine.aim()).facts.huge_page_asked_for();
    let forecasts = Forecast::of_each_pool(machine).into_iter().flatten();
    forecasts
        .filter(|other| Some(other.pool.page_bytes) != asked)
        .filter(|other| other.fits_after_restart == Some(true))
        .map(|other| Server {
            huge_page_size_bytes: Some(other.pool.page_bytes),
            ..machine.aim()
        })
        .collect()
}

/// The share of RAM that `CommitLimit` has to be, so that it stays above what is promised beside
/// that pool.
fn commit_limit_for(machine: &Machine, pool: &Pool, pages: u64) -> Vec<Step> {
    let Some(headroom) = Headroom::with(machine, pool.page_bytes, pages) else {
        return Vec::new();
    };
    raise_commit_limit(machine, headroom.left_bytes()).unwrap_or_default()
}

/// What makes `CommitLimit` large enough again.
pub(crate) fn commit_limit(machine: &Machine) -> Vec<Step> {
    let left = Headroom::now(machine).map(|headroom| headroom.left_bytes());
    left.and_then(|left| raise_commit_limit(machine, left))
        .unwrap_or_else(|| vec![Step::Decide(Decision::RaiseCommitLimit)])
}

/// `None`: not even all of RAM would do.
fn raise_commit_limit(machine: &Machine, left_bytes: u64) -> Option<Vec<Step>> {
    let host = &machine.around.as_ref()?.host;
    if host.vm.overcommit_memory != Some(2) || left_bytes == 0 {
        return None;
    }
    let usage = host.usage.as_ref().ok()?;
    let wanted = usage.committed? / COMMITTED_PERCENT * 100 + (1 << 20) * 100;
    let of_ram = wanted.saturating_sub(usage.swap_total?);
    if host.vm.overcommit_bytes.is_some_and(|bytes| bytes > 0) {
        return (of_ram <= left_bytes)
            .then(|| vec![set_vm(machine, "overcommit_kbytes", of_ram / 1024)]);
    }
    let percent = of_ram.div_ceil((left_bytes / 100).max(1));
    (percent <= 100).then(|| vec![set_vm(machine, "overcommit_ratio", percent)])
}

fn set_vm(machine: &Machine, name: &'static str, value: u64) -> Step {
    Step::SetVm {
        name,
        value,
        at_boot: next_boot::set_vm(machine, name, value),
    }
}

/// Each node's share of the pool that there is.
pub(crate) fn on_nodes(machine: &Machine) -> Vec<Step> {
    let in_use = machine.facts.lies_on().huge_page_bytes();
    let Some(page_bytes) = in_use.or_else(|| machine.facts.huge_page_asked_for()) else {
        return Vec::new();
    };
    let total = machine.pool(page_bytes).map_or(0, Pool::persistent);
    let mut shares = shares::of_nodes(machine, page_bytes, total);
    let given: u64 = shares.iter().map(|share| share.fair).sum();
    // What division leaves is less than a page for each.
    let rest = usize::try_from(total.saturating_sub(given)).unwrap_or(usize::MAX);
    for share in shares.iter_mut().rev().take(rest) {
        share.fair = share.fair.saturating_add(1);
    }
    // What grows first, so that the pool is never smaller than it was.
    shares.sort_by_key(|share| share.has >= share.fair);
    shares
        .iter()
        .filter(|share| share.has != share.fair)
        .map(|share| Step::SetPool {
            page_bytes,
            node: Some(share.node),
            pages: share.fair,
        })
        .collect()
}

/// What a person has to decide where none of these plans is safe.
pub(crate) fn decision(machine: &Machine, check: &str, tried: &[Vec<Step>]) -> Vec<Step> {
    let files = machine.around.as_ref().map(|around| &around.files);
    let is_refused = files.is_some_and(Files::stop_a_start);
    let aimed = machine.planning(machine.aim());
    if aimed.facts.target_pool().is_none() && !is_refused {
        // There are no huge pages, or they cannot be seen: the finding says so.
        return Vec::new();
    }
    if check == "memory_left"
        && let Some(bytes) = beyond_limit(machine)
    {
        return vec![Step::Decide(Decision::RaiseMemoryLimit { bytes })];
    }
    let to_correct = || match files {
        Some(Files::TooLow(settings)) => Decision::RaiseSettings(settings.clone()),
        _ => Decision::CorrectTheFiles,
    };
    let decision = match check {
        "restart_with_files" if is_refused => to_correct(),
        "page_tables" if machine.is_on_huge_pages() == Some(true) => Decision::FewerConnections,
        "reboot" => why_not(machine, None, Decision::LookAtBootFiles),
        // Whatever needs a start has to wait for that.
        _ if is_refused => why_not(machine, None, to_correct()),
        _ => why_not(machine, last_trouble(machine, tried), Decision::Reboot),
    };
    vec![Step::Decide(decision)]
}

/// What is in the way of the last of these plans, which takes the least memory.
fn last_trouble(machine: &Machine, plans: &[Vec<Step>]) -> Option<Trouble> {
    let mut troubles = plans.iter().rev();
    troubles.find_map(|steps| take_all(machine, steps).err())
}

fn why_not(machine: &Machine, trouble: Option<Trouble>, else_: Decision) -> Decision {
    let aimed = machine.planning(machine.aim());
    let page_bytes = aimed.facts.target_pool().map(|pool| pool.page_bytes);
    if page_bytes.is_some_and(|page_bytes| limits::is_set_outside(&aimed.facts, page_bytes)) {
        return Decision::RaiseLimitOutside;
    }
    let others_hold = || {
        let pool = aimed.facts.target_pool()?;
        let need = Need::of(&aimed, pool)?;
        (need.others > 0 && pool.total < need.now()).then_some(())
    };
    if !machine.sees_memory_of_host && others_hold().is_some() {
        // A container's own memory says nothing of what the host could give beside them.
        return Decision::OthersHoldThePools;
    }
    if let Some(decision) = too_large(machine) {
        return decision;
    }
    match trouble {
        Some(Trouble::Harm(Harm::OutOfMemory { bytes })) => Decision::FreeMemory { bytes },
        Some(Trouble::Harm(Harm::MemoryLimit { bytes })) => Decision::RaiseMemoryLimit { bytes },
        Some(Trouble::Harm(Harm::CommitLimit)) => Decision::RaiseCommitLimit,
        _ => idle(machine).unwrap_or(else_),
    }
}

/// What the memory limit of a control group lacks for the main segment as it is.
fn beyond_limit(machine: &Machine) -> Option<u64> {
    let segment = machine.facts.segment.as_ref().ok()?;
    let holds = memory_limit::hold(machine, segment.bytes, machine.is_on_huge_pages()?);
    match holds {
        Holds::Beyond(excess) => Some(excess.bytes()),
        Holds::All | Holds::Untold(_) => None,
    }
}

/// The most memory in pages that nobody needs who can be seen, where somebody cannot.
fn idle(machine: &Machine) -> Option<Decision> {
    unseen(machine)?;
    let pools = machine.facts.pools.iter().flatten();
    let idle = pools.filter_map(|pool| {
        let pages = pool
            .persistent()
            .checked_sub(Need::of(machine, pool)?.now())?;
        Some((pages, pool.page_bytes)).filter(|&(pages, _)| pages > 0)
    });
    let (pages, page_bytes) = idle.max_by_key(|(pages, size)| pages.saturating_mul(*size))?;
    Some(Decision::LookForHiddenServers { pages, page_bytes })
}

/// Why the pool that is needed cannot be had. `None`: that is not the reason.
fn too_large(machine: &Machine) -> Option<Decision> {
    let aimed = machine.planning(machine.aim());
    let pool = aimed.facts.target_pool()?;
    let page_bytes = pool.page_bytes;
    let all = Need::of_all(&aimed, pool)?;
    let need = Need::of(&aimed, pool)?;
    let pages = need.after_restart();
    if let Some(decision) = too_large_for(&aimed, pool, pages, need.others) {
        return Some(decision);
    }
    if all.neighbours > need.neighbours {
        return Some(Decision::FewerServers {
            pages: all.after_restart(),
            page_bytes,
        });
    }
    missing_memory(&aimed, page_bytes, pages)
}

/// What the pool lacks to grow to so many pages, with what the server gives back while it is
/// stopped, as the plan that takes the least memory does.
fn missing_memory(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Decision> {
    let (stopped, _) = take(machine, &Step::Stop);
    let grown = pages.checked_sub(stopped.pool(page_bytes)?.total)?;
    if grown == 0 {
        return None;
    }
    let spare = stopped.ram_bytes()? / 50;
    let wanted = grown.saturating_mul(page_bytes).saturating_add(spare);
    let bytes = wanted.saturating_sub(stopped.available_bytes()?);
    (bytes > 0).then_some(Decision::FreeMemory { bytes })
}

/// Why the host cannot spare so many pages of that pool, of which others hold some. `None`: it can,
/// as far as is known.
pub(crate) fn too_large_for(
    machine: &Machine,
    pool: &Pool,
    pages: u64,
    others: u64,
) -> Option<Decision> {
    let page_bytes = pool.page_bytes;
    let with = Headroom::with(machine, page_bytes, pages)?;
    if with.is_enough() {
        return None;
    }
    let own = pages.saturating_sub(others);
    let alone = Headroom {
        pools_bytes: own.saturating_mul(page_bytes),
        ..with
    };
    if alone.is_enough() {
        return Some(Decision::OthersHoldThePools);
    }
    let room_bytes = Headroom::with(machine, page_bytes, others)?.room_bytes();
    let fits = room_bytes / page_bytes * page_bytes;
    let too_much = machine.facts.needed_bytes().saturating_sub(fits);
    let shared_buffers = machine.around.as_ref()?.shared_buffers_bytes;
    let to_bytes = shared_buffers
        .checked_sub(too_much)
        .map(|bytes| bytes >> 20 << 20)
        .filter(|&bytes| bytes > 0);
    Some(Decision::LowerSharedBuffers {
        to_bytes,
        pages,
        page_bytes,
    })
}
