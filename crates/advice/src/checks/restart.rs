//! Whether the next start would get huge pages, with the settings that it will use.

use serde_json::{Value, json};

use super::{
    cgroup_fault_limit,
    definition::{Check, Cure},
};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, Unknown},
    model::{
        demand::{self, PoolTarget},
        forecast::{self, Forecast},
        limits,
        machine::{Machine, ServerState},
        start::{self, Fit, Reason, StartOutcome},
        step::Step,
    },
    render,
};
use host::{
    server::state::SharedMemoryType,
    units::{Pages, capitalized, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "restart",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| true,
    docs: "\
Looks at what a restart would get, with the settings of the next start: the pool, the limits, the
NUMA nodes, and the memory for a fallback. At shutdown, the pages of this server become available
again.

| code | status | meaning |
|---|---|---|
| `fits` | ok | a restart would get huge pages |
| `does_not_ask` | ok | the next start will not ask for huge pages |
| `no_huge_pages` | ok | this kernel or processor has no huge pages |
| `would_lose_at_restart` | warning | the server is on huge pages, and a restart would lose them |
| `would_not_get` | warning | the server is not on huge pages, and a restart would not get them |
| `only_a_start_shows` | warning | the kernel has to allocate pages during the start (`vm.nr_overcommit_hugepages`) |
| `would_not_start` | critical | with `huge_pages = on`, or with a fallback that `CommitLimit` refuses, the server would not start |
| `would_run_out_of_memory` | critical | the server would fall back to small pages, and need more memory than the pools or a cgroup leave |

**What to do.** Set the pool or the limit **before** the next restart.
",
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    judge_start(machine, name_of_start(machine))
}

/// Judges a start that the texts call `start`, with its article.
pub(super) fn judge_start(machine: &Machine, start: &str) -> Judgment {
    if let Some(command) = machine.unknown_request() {
        return Err(Unknown(format!(
            "whether the server asks for huge pages is unknown ({command})"
        )));
    }
    let has_them = machine.is_on_huge_pages() == Some(true);
    let capital = capitalized(start);
    let finding = match start::outcome(machine) {
        StartOutcome::HugePages(size) => {
            let text = if machine.whole().is_some() && machine.state.next.files.stop_a_start() {
                &format!(
                    "{capital} would get huge pages, but the configuration files prevent the start: see pending_settings."
                )
            } else if has_them && cgroup_fault_limit::is_bomb_after_restart(machine) {
                "A restart would get them again, but the server could not use all of them: see cgroup_fault_limit."
            } else if has_them && machine.pending().is_none() {
                "A restart would get them again."
            } else if has_them {
                let pages = machine.pages_mapped(&machine.next_start(), size);
                &format!("A restart would get {}.", huge_pages(pages, size))
            } else {
                &format!("{capital} would get huge pages.")
            };
            Finding::ok("fits", text)
        }
        StartOutcome::Unknown(reason @ Reason::Overcommit { .. }) => Finding::warning(
            "only_a_start_shows",
            format!("Only a start shows whether the server gets huge pages. {reason}"),
        ),
        StartOutcome::Unknown(reason) => return Err(Unknown(reason.to_string())),
        StartOutcome::Fails(reason, Some(fit)) => Finding::critical(
            "would_not_start",
            format!("{capital} would fail. {reason} {fit}"),
        ),
        StartOutcome::Fails(reason, None) => Finding::critical(
            "would_not_start",
            format!("{capital} would fail, because huge_pages = on. {reason}"),
        ),
        StartOutcome::SmallPages(
            reason,
            fit @ (Fit::BeyondMemory(_) | Fit::BeyondCgroup { .. }),
        ) if fit.is_certain() && start::present_misfit(machine).is_none() => Finding::critical(
            "would_run_out_of_memory",
            format!("After {start}, memory would run out. {reason} {fit}"),
        ),
        StartOutcome::SmallPages(reason @ (Reason::Off | Reason::Sysv), _) if !has_them => {
            Finding::ok("does_not_ask", reason.to_string())
        }
        StartOutcome::SmallPages(reason @ Reason::NoHugePages, _) => {
            Finding::ok("no_huge_pages", reason.to_string())
        }
        StartOutcome::SmallPages(reason, _) if has_them => Finding::warning(
            "would_lose_at_restart",
            format!("A restart would lose huge pages. {reason}"),
        ),
        StartOutcome::SmallPages(reason, _) => Finding::warning(
            "would_not_get",
            format!("{capital} would not get huge pages. {reason}"),
        ),
    };
    Ok(finding.with(evidence(machine)))
}

/// The next start in findings, with its article.
pub(super) fn name_of_start(machine: &Machine) -> &'static str {
    match machine.server_state {
        ServerState::Running => "a restart",
        ServerState::Stopped | ServerState::NotCreated => "a start",
    }
}

/// Huge pages that are turned off on purpose stay off, if the segment fits on small pages. Only the
/// plan for a pending change also lowers the pool and its boot line.
pub(crate) fn decision(machine: &Machine) -> Option<Decision> {
    if start::misfit(machine).is_some() {
        return None;
    }
    let (name, value) = match start::outcome(machine) {
        StartOutcome::SmallPages(Reason::Off, _) => ("huge_pages", "off"),
        StartOutcome::SmallPages(Reason::Sysv, _) => ("shared_memory_type", "sysv"),
        _ => return None,
    };
    let keep = match leaves_pages(machine) {
        true => format!(
            "if {name} = {value} is intended, follow the steps of hugeinfo_runbook('{name}={value}'), because a restart alone leaves huge pages idle"
        ),
        false if cgroup_fault_limit::is_bomb(machine) => {
            format!("restart PostgreSQL (ends all sessions) if {name} = {value} is intended")
        }
        false => format!("do nothing if {name} = {value} is intended"),
    };
    Some(Decision::Text(format!(
        "{keep}; otherwise, for the next start, {}",
        way_back(machine, name)
    )))
}

/// Whether a pending change that turns huge pages off leaves idle pages, which a plan for it
/// releases.
fn leaves_pages(machine: &Machine) -> bool {
    let next = machine.next_start();
    let mut targets = PoolTarget::each(machine, &next);
    machine.will_turn_off() && targets.any(|target| forecast::is_left_over(machine, &target))
}

/// How to undo the pending changes, if they are the only reason why the next start would fail, or
/// memory would be too small for it. `None`: there are none, or they are not the reason.
pub(crate) fn undo_pending(machine: &Machine) -> Option<String> {
    machine.pending()?;
    let running = machine.with_next_start(machine.state.server.clone());
    let kept = match start::succeeds(&running) {
        true => Vec::new(),
        false => to_keep(&running),
    };
    let running = running.apply_all(&kept).ok()?;
    let fails = matches!(start::outcome(machine), StartOutcome::Fails(..));
    let is_prevented = fails || start::coming_misfit(machine).is_some();
    let is_enough =
        !kept.is_empty() && start::succeeds(&running.with_next_start(machine.next_start()));
    if !is_prevented || is_enough || !start::succeeds(&running) {
        return None;
    }
    // One of them alone can be the cause.
    let now = &machine.state.server;
    let without = |name: &&String| {
        let mut next = machine.next_start();
        match name.as_str() {
            "huge_pages" => next.huge_pages = now.huge_pages,
            "huge_page_size" => next.huge_page_size_bytes = now.huge_page_size_bytes,
            "shared_memory_type" => next.shared_memory_type = now.shared_memory_type,
            _ => return false,
        }
        start::succeeds(&running.with_next_start(next))
    };
    let pending = &machine.whole_state()?.next.pending;
    let cause = pending.iter().find(without);
    let pending = pending
        .iter()
        .filter(|name| cause.is_none_or(|cause| cause == *name));
    let back = pending.map(|name| way_back(machine, name));
    let back: Vec<_> = back
        .map(|back| back.trim_end_matches(';').to_owned())
        .collect();
    let kept = kept.iter().map(|step| render::in_sentence(machine, step));
    let is_known = !back.is_empty();
    let back: Vec<_> = back.into_iter().chain(kept).collect();
    is_known.then(|| format!("undo the pending change: {}", back.join(" and ")))
}

/// The steps after which the running server could start again with its huge pages. They take no
/// memory: surplus pages become persistent, and limits are raised.
fn to_keep(machine: &Machine) -> Vec<Step> {
    let Some(size) = machine.backing().huge_page() else {
        return Vec::new();
    };
    let next = machine.next_start();
    let target = PoolTarget::of(machine, size, &next);
    let surplus = target.zip(machine.pool(size)).and_then(|(target, pool)| {
        let pages = target.recommended().min(Pages(pool.total));
        (pages > target.persistent).then_some(Step::SetPool { size, pages })
    });
    let required = demand::pages_of_next_start(machine, size, &next);
    let limits = limits::to_raise(machine, size, required).into_iter();
    surplus
        .into_iter()
        .chain(limits.map(Step::RaiseLimit))
        .collect()
}

/// The change that restores the running value or, if the server runs with sysv, sets mmap. `ALTER
/// SYSTEM RESET` would remove the entry that the running value came from.
fn way_back(machine: &Machine, name: &str) -> String {
    let running = machine.state.server.shared_memory_type;
    if name == "shared_memory_type" && running == SharedMemoryType::Sysv {
        return render::setting(machine, name, "mmap");
    }
    let running = machine
        .whole_state()
        .and_then(|state| state.next.settings.get(name));
    match running {
        Some(setting) => render::setting(machine, name, &setting.value),
        None => format!("set {name} to its running value (SHOW {name})"),
    }
}

/// The figures of the pool that the next start asks for.
pub(super) fn evidence(machine: &Machine) -> Value {
    let next = machine.state.next_start();
    let target = Forecast::for_target(machine);
    let target = target.as_ref();
    json!({
        "huge_pages": next.huge_pages.as_str(),
        "needed_bytes": machine.state.needed_bytes(),
        "page_size_bytes": machine.size_asked_for(next).map(|size| size.0),
        "required_pages": target.map(|target| target.required.0),
        "pool_total_pages": target.map(|target| target.pool.total),
        "own_pages": target.and_then(|target| target.held).map(|pages| pages.0),
        "others_pages": target.and_then(|target| target.others).map(|pages| pages.0),
        "shortfall_pages": target.and_then(|target| target.shortfall).map(|pages| pages.0),
        "recommended_nr_hugepages": target.and_then(Forecast::recommended).map(|pages| pages.0),
    })
}
