//! The state that the machine should be in, computed once. Every number shown to users comes from
//! here or from the demands behind it.

use super::{
    decision::{self, Decision},
    planned::Planned,
};
use crate::model::{
    apply::Blocked,
    demand::{self, Demands, Name, PoolTarget},
    forecast, limits,
    machine::Machine,
    memory, next_boot, numa, page_tables,
    start::{self, StartOutcome},
    step::{LimitChange, Pending, SettingChange, Step},
};
use host::{
    linux::boot::{Change, Kernel, NextBoot},
    server::state::{Backing, Files, HugePages, Server, SharedMemoryType},
    units::{GIGANTIC, PageSize, Pages, huge_pages},
};

/// The desired state, as far as it differs from the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    /// The settings of the next start.
    pub(crate) next: Server,
    /// The page size that it asks for. `None`: it asks for none.
    pub(crate) size: Option<PageSize>,
    /// Changes of settings that lead to `next`.
    pub(crate) settings: Vec<SettingChange>,
    /// Limits of cgroups to raise.
    pub(crate) limits: Vec<LimitChange>,
    pub(crate) pools: Vec<PoolChange>,
    /// Pools whose line in the boot configuration was made for a demand that shrinks, with the
    /// lower number.
    pub(crate) lines: Vec<(PageSize, Pages)>,
    /// Whether the server has to read its files. A restart also does so.
    pub(crate) reload: bool,
    /// Whether the server has to be restarted now.
    pub(crate) restart: bool,
}

/// A pool whose number of persistent pages has to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolChange {
    pub(crate) size: PageSize,
    /// Persistent pages now.
    pub(crate) before: Pages,
    /// Persistent pages afterwards.
    pub(crate) pages: Pages,
    /// The other servers that get some of `pages` when they restart.
    pub(crate) others: Vec<(Name, Pages)>,
}

impl Desired {
    /// The desired state of a machine. `pending`: when settings that have been changed take effect.
    ///
    /// Errors: the decision about an unknown fact or an impossible state.
    pub(crate) fn of(machine: &Machine, pending: Pending) -> Result<Self, Decision> {
        let next = wanted_settings(machine)?;
        let settings = settings_towards(machine, &next);
        let is_on_small_pages = machine.backing() == Backing::SmallPages;
        let has_huge_pages = machine.default_size().is_some() || machine.state.meminfo.is_err();
        let lacks_size = |size| machine.state.pools.is_ok() && machine.pool(size).is_none();
        // If huge_pages is muted, somebody wants the server to stay on small pages.
        let moves = is_on_small_pages
            && !machine.is_muted("huge_pages")
            && next.asks_for_huge_pages()
            && !has_bad_counter(machine)
            && machine.segment().is_some()
            && has_huge_pages
            && !machine.size_to_map(&next).is_some_and(lacks_size);
        let restart = moves || pending == Pending::Restart;
        Ok(Self {
            reload: pending == Pending::Reload && !restart,
            ..Self::with(machine, next, settings, restart)?
        })
    }

    /// The desired state of one pool.
    pub(crate) fn for_pool(
        machine: &Machine,
        size: PageSize,
        next: Server,
        restart: bool,
    ) -> Result<Self, Decision> {
        unless_files_decide(machine)?;
        let mut desired = Self::with(machine, next, Vec::new(), restart)?;
        desired.pools.retain(|change| change.size == size);
        desired.lines.retain(|(of, _)| *of == size);
        Ok(desired)
    }

    fn with(
        machine: &Machine,
        next: Server,
        settings: Vec<SettingChange>,
        restart: bool,
    ) -> Result<Self, Decision> {
        let machine = &machine.with_next_start(next.clone());
        let size = machine.size_to_map(&next);
        let required = size.map_or(Pages(0), |size| {
            demand::pages_of_next_start(machine, size, &next)
        });
        let mut limits = size.map_or(Vec::new(), |size| limits::to_raise(machine, size, required));
        // The running server needs a limit on its own pages until it restarts on others.
        if let Some(now) = machine.backing().huge_page()
            && size.is_some_and(|size| size != now)
            && !restart
            && !machine.is_muted("cgroup_fault_limit")
        {
            let changes = limits::to_raise(machine, now, Pages(0)).into_iter();
            limits.extend(changes.filter(|change| !limits::is_set_outside(machine, change)));
        }
        let mut desired = Self {
            size,
            settings,
            limits,
            pools: Vec::new(),
            lines: Vec::new(),
            reload: false,
            restart,
            next,
        };
        let targets: Vec<_> = PoolTarget::each(machine, &desired.next).collect();
        for target in targets {
            let size = target.now.size;
            // Whether pending settings are meant to turn huge pages off is decided first.
            let line = forecast::lower_line(machine, &target);
            let line = line.filter(|_| restart || desired.size.is_some());
            desired.lines.extend(line.map(|pages| (size, pages)));
            let target = match restart {
                true => target,
                false => target.until_restart(),
            };
            desired.pools.extend(desired.pool_change(machine, &target));
        }
        Ok(desired)
    }

    fn pool_change(&self, machine: &Machine, target: &PoolTarget) -> Option<PoolChange> {
        let size = target.now.size;
        let before = target.persistent;
        let needed = target.recommended();
        // Ignores surplus pages of other processes in a pool that no server requests.
        let grows = before < needed
            && (self.size == Some(size) || target.after.asked_by_others() > Pages(0));
        // A running server keeps its pages until a restart, and idle pages alone are no reason for
        // one.
        let will_release = target.now.total() > target.after.total();
        let releases = before > needed
            && (self.restart || !will_release)
            && forecast::is_worth_releasing(machine, target);
        let mut pages = if grows || releases { needed } else { before };
        if machine.is_bound_to_nodes() {
            let required = demand::pages_of_next_start(machine, size, &self.next);
            let lacking = numa::lacking_on_allowed(machine, size, required).unwrap_or_default();
            if lacking > Pages(0)
                && let Some(pool) = machine.pool(size)
            {
                // Pages for other servers can be on other nodes.
                pages = Pages(pool.total) + lacking;
            }
        }
        (pages != before).then(|| PoolChange {
            size,
            before,
            pages,
            others: target.after.asking().collect(),
        })
    }
}

/// Changes that the boot configuration needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Boot {
    /// Lines to add or to change.
    pub(crate) lines: Vec<Step>,
    /// Why it cannot be changed from here, for each pool.
    pub(crate) decisions: Vec<Decision>,
}

impl Boot {
    /// Changes for the pool that these settings request, and for pools that grow for other servers,
    /// once limits have been raised.
    pub(crate) fn of(machine: &Machine, next: &Server, desired: Option<&Desired>) -> Self {
        let mut boot = Self::default();
        if machine.is_muted("reboot") {
            return boot;
        }
        // A change of the files changes a start from them, too.
        let changes = desired.iter().flat_map(|desired| &desired.settings);
        let changes: Vec<_> = changes.cloned().map(Step::ChangeSetting).collect();
        let changed = machine.apply_all(&changes);
        let machine = changed.as_ref().unwrap_or(machine);
        let own = demand::sizes_at_boot(machine, next);
        let pools = desired.map_or(&[][..], |desired| &desired.pools);
        let grown = pools.iter().filter(|change| change.pages > change.before);
        let others = grown.map(|change| change.size);
        let others = others.filter(|size| !own.contains(size));
        let mut at = machine.with_next_start(next.clone());
        for limit in desired.iter().flat_map(|desired| &desired.limits) {
            at = at.apply(&Step::RaiseLimit(limit.clone())).unwrap_or(at);
        }
        // Lines for demands that shrink make room for new ones.
        let (mut lowered, mut with_lowered) = (Self::default(), at.clone());
        // As if a person had lowered those on the kernel command line, too.
        let mut by_hand = Vec::new();
        for &(size, pages) in desired.iter().flat_map(|desired| &desired.lines) {
            let change = at.next_boot().map(|boot| line(boot, size, pages));
            if let Some(Err(Decision::SetOnCommandLine(_))) = &change {
                by_hand.push((size, pages));
            }
            lowered.add(&mut with_lowered, change.transpose());
        }
        let sizes: Vec<_> = own.iter().copied().chain(others).collect();
        boot.set(&mut with_lowered, &sizes, next);
        let is_by_hand = |decision: &Decision| matches!(decision, Decision::SetOnCommandLine(_));
        let is_set = boot.decisions.iter().all(is_by_hand);
        let is_possible = !is_set && possible_after(with_lowered.clone(), &by_hand, &sizes, next);
        // A server that needs no pages at boot does not wait for those of others.
        if is_set || own.is_empty() && !is_possible {
            at = with_lowered;
            boot.lines.extend(lowered.lines);
            for decision in lowered.decisions {
                boot.decide(decision);
            }
        } else {
            // As long as the new pages are not known to be possible, the present lines stay.
            boot = Self::default();
            boot.set(&mut at, &sizes, next);
            if is_possible {
                boot.decisions = lowered.decisions;
                boot.decide(Decision::Text(
                    "change the boot configuration first, and query again: the pages of the next start are not set at boot yet".to_owned(),
                ));
            }
        }
        let present = || present_line(&at, at.size_asked_for(next)?, next);
        if boot.decisions.is_empty() {
            boot.decisions.extend(present());
        }
        boot
    }

    /// Adds the lines for pools of these sizes.
    fn set(&mut self, at: &mut Machine, sizes: &[PageSize], next: &Server) {
        for size in sizes {
            let change = at_boot(at, *size, next);
            self.add(at, change);
        }
    }

    /// Adds a change, and applies it to the machine.
    fn add(&mut self, at: &mut Machine, change: Result<Option<Step>, Decision>) {
        match change {
            Ok(Some(line)) => {
                *at = at.apply(&line).unwrap_or_else(|_| at.clone());
                self.lines.push(line);
            }
            Ok(None) => {}
            Err(decision) => self.decide(decision),
        }
    }

    fn decide(&mut self, decision: Decision) {
        let mut others = self.decisions.iter_mut();
        if !others.any(|other| other.absorb(&decision)) {
            self.decisions.push(decision);
        }
    }
}

/// Whether lines for pools of these sizes are possible once a person has set others by hand.
fn possible_after(
    mut machine: Machine,
    by_hand: &[(PageSize, Pages)],
    sizes: &[PageSize],
    next: &Server,
) -> bool {
    if let Ok(boot) = &mut machine.state.next_boot {
        for (size, pages) in by_hand {
            let requests = boot.requests.iter_mut();
            let of_size = requests.filter(|request| request.page_bytes == Some(size.0));
            of_size.for_each(|request| request.pages = pages.0);
        }
    }
    let mut boot = Boot::default();
    boot.set(&mut machine, sizes, next);
    !by_hand.is_empty() && boot.decisions.is_empty() && !boot.lines.is_empty()
}

/// The change of the boot configuration, if it asks for fewer pages of that size than are needed.
/// Errors: why it cannot be changed from here.
fn at_boot(machine: &Machine, size: PageSize, next: &Server) -> Result<Option<Step>, Decision> {
    if machine.whole().is_none() {
        return on_new_host(machine, size, next);
    }
    let Some(demands) = Demands::at_boot(machine, size, next) else {
        return Ok(None);
    };
    let pages = demands.total();
    let boot = match &machine.state.next_boot {
        Ok(boot) => boot,
        Err(absent) if *absent == host::linux::error::Absent::not_looked_at() => return Ok(None),
        Err(absent) => {
            return Err(Decision::SetAtBootElsewhere {
                size,
                pages,
                why: absent.to_string(),
            });
        }
    };
    if boot.is_unknown(size.0) {
        let files = boot.unknown_of(size.0).map(ToString::to_string);
        return Err(Decision::LookAtBootFiles(files.collect()));
    }
    let request = boot.pages(size.0);
    let asked = request.map_or(Pages(0), |request| Pages(request.pages));
    let own = demands.of_this_server();
    if asked >= pages {
        return Ok(None);
    }
    if let Some(decision) = unless_start_is_safe(machine, size, own) {
        return Err(decision);
    }
    if let Some(blocked) = next_boot::blocked(machine, &demands, pages) {
        return Err(decision::for_boot(machine, &demands, blocked));
    }
    if machine.is_bound_to_nodes() && own > Pages(0) {
        return Err(Decision::Text(format!(
            "allocate {} at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs {own} on {}",
            huge_pages(pages, size),
            numa::named_nodes(&numa::allowed_numbers(machine))
        )));
    }
    // A line that systemd does not read could also be meant for others.
    let line_of = boot.ineffective.as_ref().map(|line| &line.request);
    let meant = line_of.filter(|request| request.page_bytes == Some(size.0));
    let meant = meant.map_or(Pages(0), |request| Pages(request.pages));
    let pages = match next_boot::blocked(machine, &demands, meant) {
        Some(_) => pages,
        None => pages.max(meant),
    };
    line(boot, size, pages).map(Some)
}

/// The change of the boot configuration to this number. Errors: why it cannot be made from here.
fn line(boot: &NextBoot, size: PageSize, pages: Pages) -> Result<Step, Decision> {
    match boot.change(size.0, pages.0) {
        Some((Change::Edit(edit), _)) => Ok(Step::SetPoolAtBoot { size, pages, edit }),
        Some((Change::Words(words), _)) => Err(Decision::SetOnCommandLine(words)),
        None => Err(Decision::SetAtBootElsewhere {
            size,
            pages,
            why: match boot.pages(size.0) {
                Some(request) => format!("no command can change {}", request.place),
                None => "no command can change the boot configuration".to_owned(),
            },
        }),
    }
}

/// The decision about a line that sets all pages that are needed, and more than the host can hold.
fn present_line(machine: &Machine, size: PageSize, next: &Server) -> Option<Decision> {
    let demands = Demands::at_boot(machine, size, next)?;
    let request = machine.next_boot()?.pages(size.0)?;
    let asked = Pages(request.pages);
    let blocked = next_boot::blocked(machine, &demands, asked)?;
    let is_too_large = matches!(blocked, Blocked::Memory { .. } | Blocked::CommitLimit(_));
    (asked >= demands.total() && is_too_large)
        .then(|| decision::for_boot(machine, &demands, blocked))
}

/// Why a server that starts on that many pages after the next boot would be killed. The limits of
/// its cgroups are set again at boot by whoever set them. `None`: it would not, as far as known.
fn unless_start_is_safe(machine: &Machine, size: PageSize, own: Pages) -> Option<Decision> {
    if own == Pages(0) {
        return None;
    }
    let low = limits::to_raise(machine, size, own);
    if !low.is_empty() {
        return Some(decision::raise_limit(machine, size, own));
    }
    let by = memory::missing_for_huge_pages(machine, own * size)?;
    Some(Decision::RaiseMemoryLimit { by })
}

/// The line for a host about which nothing is known, as if its boot configuration set no pool.
/// Errors: words for the kernel command line.
fn on_new_host(machine: &Machine, size: PageSize, next: &Server) -> Result<Option<Step>, Decision> {
    let Some(default) = machine.default_size() else {
        return Ok(None);
    };
    let kernel = Kernel {
        sizes: Some(machine.pools().map(|pool| pool.page_bytes).collect()),
        // A size that is given for another host is not always its default.
        default_bytes: Some(default)
            .filter(|size| *size < GIGANTIC)
            .map(|size| size.0),
    };
    let boot = NextBoot::parse("", &[("/etc/sysctl.d/README", "")], true, kernel);
    let pages = demand::pages_of_next_start(machine, size, next);
    match boot.change(size.0, pages.0) {
        Some((Change::Edit(edit), _)) => Ok(Some(Step::SetPoolAtBoot { size, pages, edit })),
        Some((Change::Words(words), _)) => Err(Decision::SetOnCommandLine(words)),
        None => Ok(None),
    }
}

/// The settings of the next start that advice recommends. A pending or planned change that turns
/// huge pages off is kept. Huge pages that have been off stay off, and `sysv` is kept, unless page
/// tables are large and huge pages make them small. Errors: the configuration files have to be
/// corrected or seen first.
pub(crate) fn wanted_settings(machine: &Machine) -> Result<Server, Decision> {
    unless_files_decide(machine)?;
    let has_no_huge_pages = machine.state.pools.is_err()
        || has_bad_counter(machine)
        || machine.default_size().is_none();
    let next = machine.state.next_start();
    let is_sysv = next.shared_memory_type == SharedMemoryType::Sysv;
    // The plan sets it against a pending change.
    let is_planned = machine.state.next.gives_up_huge_pages
        && !next.asks_alike(machine.facts.state.next_start());
    let stays_off = machine.is_kept_off() && (is_planned || !page_tables::need_huge_pages(machine));
    let stays_sysv = is_sysv && machine.backing() == Backing::Unknown;
    Ok(
        if has_no_huge_pages || machine.will_turn_off() || stays_off || stays_sysv {
            machine.next_start()
        } else {
            machine.next_start_on_huge_pages()
        },
    )
}

/// Whether a counter of the pool that the server would use is below zero, so that no change of it
/// can be computed.
fn has_bad_counter(machine: &Machine) -> bool {
    let pool = machine.state.target_pool();
    pool.is_some_and(|pool| pool.bad_counter().is_some())
}

/// The changes that a planned configuration needs.
pub(crate) fn planned_changes(machine: &Machine, planned: &Planned) -> Vec<Step> {
    let changes = planned.settings.iter().map(|setting| {
        Step::ChangeSetting(SettingChange {
            name: setting.name.clone(),
            value: setting.value.clone(),
            place: machine.setting_place(&setting.name, Some(&setting.source)),
            pending: setting.pending,
            next: setting.next.clone(),
        })
    });
    changes.collect()
}

/// The decision about planned settings that [`wanted_settings`] would undo, because they do not
/// work: sysv with `huge_pages = on`, or a page size that the kernel does not have.
pub(crate) fn undone(machine: &Machine, planned: &Machine) -> Option<Decision> {
    let (before, after) = (machine.next_start(), planned.next_start());
    let wanted = wanted_settings(planned).ok()?;
    let is_undone = before.shared_memory_type != after.shared_memory_type
        && after.shared_memory_type != wanted.shared_memory_type
        || before.huge_page_size_bytes != after.huge_page_size_bytes
            && after.huge_page_size_bytes != wanted.huge_page_size_bytes;
    let why = match start::outcome(planned) {
        StartOutcome::Fails(reason, None) => {
            format!("with huge_pages = on, the server would not start. {reason}")
        }
        StartOutcome::Fails(reason, _) | StartOutcome::SmallPages(reason, _) => {
            format!("the server would not get huge pages. {reason}")
        }
        StartOutcome::HugePages(_) | StartOutcome::Unknown(_) => return None,
    };
    is_undone.then(|| Decision::Text(format!("plan other settings: {why}")))
}

/// The changes that lead from the settings of the next start to these.
fn settings_towards(machine: &Machine, wanted: &Server) -> Vec<SettingChange> {
    let mut at = machine.next_start();
    let mut changes = Vec::new();
    let mut change = |name: &str, value: &str, next: &Server| {
        changes.push(SettingChange {
            name: name.to_owned(),
            value: value.to_owned(),
            place: machine.setting_place(name, None),
            pending: Pending::Restart,
            next: Ok(next.clone()),
        });
    };
    if at.huge_pages != wanted.huge_pages {
        at.huge_pages = wanted.huge_pages;
        change("huge_pages", wanted.huge_pages.as_str(), &at);
    }
    if at.shared_memory_type != wanted.shared_memory_type {
        at.shared_memory_type = wanted.shared_memory_type;
        change("shared_memory_type", "mmap", &at);
    }
    if at.huge_page_size_bytes != wanted.huge_page_size_bytes {
        at.huge_page_size_bytes = wanted.huge_page_size_bytes;
        change("huge_page_size", "0", &at);
    }
    changes
}

/// The step that sets huge_pages = try, for a server that would then start on small pages.
pub(crate) fn fall_back_to_try(machine: &Machine) -> Option<Step> {
    let next = machine.next_start();
    let with_try = Server {
        huge_pages: HugePages::Try,
        ..next.clone()
    };
    let fits = || decision::next_start_fits(&machine.with_next_start(with_try.clone()));
    if machine.state.next.files.stop_a_start() || next.huge_pages != HugePages::On || !fits() {
        return None;
    }
    Some(Step::ChangeSetting(SettingChange {
        name: "huge_pages".to_owned(),
        value: "try".to_owned(),
        place: machine.setting_place("huge_pages", None),
        pending: Pending::Restart,
        next: Ok(with_try),
    }))
}

/// No advice on pools and restarts while the configuration files are unknown or keep the server
/// from starting.
fn unless_files_decide(machine: &Machine) -> Result<(), Decision> {
    match &machine.state.next.files {
        Files::Refused(why) => Err(Decision::CorrectFiles(why.clone())),
        Files::Unknown {
            why,
            is_pending: true,
        } => Err(Decision::AskAsSuperuser(why.clone())),
        Files::NotNamed(command) => Err(decision::about_unnamed(command)),
        Files::Valid | Files::Unknown { .. } => Ok(()),
    }
}
