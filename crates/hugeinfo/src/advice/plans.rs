//! Plans that may cure: what a remedy is chosen from, the least disruptive first.

use crate::{
    advice::{
        decisions,
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
        need::{Need, unseen},
        next_boot,
        shares::{self, Share},
        step::{self, By, Decision, Setting, Step, Waits},
        take::{Trouble, take_all},
    },
    server::{
        facts::{AllowedNodes, HugePages, Server, SharedMemoryType},
        setting::SettingSource,
    },
};

/// What gets the server onto huge pages and keeps it there.
pub(crate) fn pools(machine: &Machine) -> Vec<Vec<Step>> {
    let mut plans = Vec::new();
    if let Some(parts) = Parts::of(machine, machine.aim()) {
        let on_nodes = parts.on_nodes(machine);
        // Nothing that changes the machine as it runs.
        plans.push(parts.at_boot.clone());
        // New pages on other nodes are of no use to the server.
        let is_bound = matches!(machine.facts.allowed_nodes, AllowedNodes::Only(_));
        let on_all =
            Some(&parts).filter(|all| !is_bound || all.compact.is_none() || on_nodes.is_none());
        let ways = [Parts::while_it_runs, Parts::with_restart, Parts::with_stop];
        for way in ways {
            plans.extend(on_all.into_iter().chain(&on_nodes).map(way));
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
    if let Some(decision) = decisions::of_large_plan(machine, next) {
        return Err(decision);
    }
    let planned = machine.planning(next.clone());
    let asks = planned.facts.asks_for_huge_pages() && planned.facts.target_pool().is_some();
    let parts = Parts::of(&planned, next.clone()).filter(|_| asks);
    let Some(parts) = parts else {
        return off_huge_pages(machine, &planned, changes)
            .map_err(|troubles| decisions::of_plan(machine, next, &troubles));
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
    // What the pool has besides may have to stay.
    let found = found.or_else(|| shortest(on_the_way(vec![Step::Restart]), ends_there));
    found.ok_or_else(|| {
        let troubles = candidates
            .iter()
            .map(|steps| take_all(machine, steps).err());
        let troubles: Vec<_> = troubles.flatten().collect();
        decisions::of_plan(machine, next, &troubles)
    })
}

/// To a configuration that asks for none: by a restart, or with what the pool gives back meanwhile
/// where memory does not hold both.
fn off_huge_pages(
    machine: &Machine,
    planned: &Machine,
    changes: Vec<Step>,
) -> Result<Vec<Step>, Vec<Trouble>> {
    let way = |steps: Vec<Step>| changes.iter().cloned().chain(steps).collect::<Vec<_>>();
    let mut ways = vec![way(vec![Step::Restart])];
    let in_use = machine.facts.lies_on().huge_page_bytes();
    let pool = in_use.and_then(|page_bytes| machine.pool(page_bytes));
    if let Some(pool) = pool.filter(|_| unseen(machine).is_none())
        && let Some(need) = Need::with(planned, pool, 0)
    {
        let give_back = Step::SetPool {
            page_bytes: pool.page_bytes,
            node: None,
            pages: need.after_restart(),
        };
        ways.push(way(vec![Step::Stop, give_back, Step::Start]));
    }
    first_safe(machine, ways)
}

/// The first of these ways on which nothing goes wrong.
///
/// Errors: what does, on each.
pub(crate) fn first_safe(
    machine: &Machine,
    ways: Vec<Vec<Step>>,
) -> Result<Vec<Step>, Vec<Trouble>> {
    let mut troubles = Vec::new();
    for steps in ways {
        match take_all(machine, &steps) {
            Ok(_) => return Ok(steps),
            Err(trouble) => troubles.push(trouble),
        }
    }
    Err(troubles)
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
        let shares = shares::of_need(machine, self.page_bytes)?;
        // What the running server has stays until its restart, on each node.
        let is_in_use = machine.facts.lies_on().huge_page_bytes() == Some(self.page_bytes);
        let has_to_wait = |share: &Share| is_in_use && share.shrinks();
        let (later, now): (Vec<Share>, Vec<Share>) = shares.into_iter().partition(has_to_wait);
        let is_whole_pool = |step: &&Step| matches!(step, Step::SetPool { page_bytes, .. } if *page_bytes == self.page_bytes);
        let others = self.left.iter().filter(|step| !is_whole_pool(step));
        Some(Self {
            set: set_on_nodes(machine, self.page_bytes, now),
            left: others
                .cloned()
                .chain(set_on_nodes(machine, self.page_bytes, later))
                .collect(),
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
        Some(SettingSource::AutoConf) => By::File(Some("postgresql.auto.conf".into())),
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
    let mut shares = shares::of_existing(machine, page_bytes).unwrap_or_default();
    shares.sort_by_key(Share::turn);
    let shares = shares.into_iter().filter(|share| share.has != share.fair);
    set_on_nodes(machine, page_bytes, shares)
}

/// What gives each node its share. No node has to give what servers may want that cannot be seen.
pub(crate) fn set_on_nodes(
    machine: &Machine,
    page_bytes: u64,
    shares: impl IntoIterator<Item = Share>,
) -> Vec<Step> {
    let may_shrink = unseen(machine).is_none();
    let shares = shares.into_iter();
    let shares = shares.filter(|share| may_shrink || !share.shrinks());
    let set = |share: Share| Step::SetPool {
        page_bytes,
        node: Some(share.node),
        pages: share.fair,
    };
    shares.map(set).collect()
}
