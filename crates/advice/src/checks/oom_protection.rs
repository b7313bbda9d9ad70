//! Whether the OOM killer would spare the postmaster. Its end is the end of all sessions.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::Decision,
    desired,
    finding::{Finding, Judgment, whole},
    model::{
        demand::PoolTarget,
        machine::Machine,
        memory::{self, CommitLimit},
        step::{ServiceChange, Step},
    },
};
use host::{
    escape,
    server::unit::{OomPolicy, Unit},
    units::{Bytes, PageSize, Pages},
};

pub(super) const CHECK: Check = Check {
    name: "oom_protection",
    judge,
    cure: Cure::Steps(steps),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at `oom_score_adj` of the postmaster and of its children, at the memory limits of its cgroups,
at `vm.panic_on_oom`, and at `OOMPolicy` in the files of its systemd unit. If the OOM killer kills
the postmaster, all sessions end, and the next server cannot start before the last child has exited.
Scores are compared by the kernel's formula: `oom_score_adj` in thousandths of the memory that has
run out, and the memory of the postmaster.

| code | status | meaning |
|---|---|---|
| `protected` | ok | the OOM killer prefers all children to the postmaster |
| `strict_overcommit` | ok | the postmaster is not protected, but strict overcommit makes the OOM killer unlikely |
| `not_protected` | warning | the OOM killer can kill the postmaster like any other process |
| `not_protected_in_cgroup` | warning | the memory limit of a cgroup applies, and the postmaster has the same score as its children |
| `backends_exempt` | warning | the backends have the low score of the postmaster, so that the OOM killer spares them, too |
| `oom_group` | warning | `memory.oom.group` is set: all processes of the cgroup are killed together |
| `panic_on_oom` | warning | `vm.panic_on_oom` is set: the kernel panics instead of killing a process |
| `unit_stops` | warning | the OOM killer prefers the backends, but systemd stops the server when it has killed one (`OOMPolicy=stop`, the default) |

**What to do.** Set `OOMScoreAdjust=-900` and `OOMPolicy=continue` in the systemd unit, and
`PG_OOM_ADJUST_FILE` and `PG_OOM_ADJUST_VALUE`, so that backends do not inherit the score. The
scores take effect at the next restart. In a container, follow the remedy.
",
};

/// The OOM killer never chooses such a process.
const EXEMPT: i32 = -1000;

/// Whether a cgroup limits the server's memory: its OOM killer acts whatever the overcommit mode
/// is, and chooses among the processes of the cgroup.
fn has_memory_limit(machine: &Machine) -> bool {
    machine
        .state
        .memory_limits
        .as_ref()
        .is_ok_and(|limits| !limits.is_empty())
}

/// Whether strict overcommit keeps the OOM killer from acting: the commit limit is not above memory
/// and swap, also after the pools have grown as recommended.
fn commit_limit_protects(machine: &Machine) -> bool {
    let Some((limit, left)) = CommitLimit::of(machine).zip(memory::left(machine)) else {
        return false;
    };
    let next = desired::wanted_settings(machine).unwrap_or_else(|_| machine.next_start());
    let growth = machine.pools().filter_map(|pool| {
        let target = PoolTarget::of(machine, PageSize(pool.page_bytes), &next)?;
        Some((target.recommended() - Pages(pool.total)) * target.now.size)
    });
    let growth: Bytes = growth.sum();
    let swap = machine.usage().and_then(|usage| usage.swap_total);
    let limit_then = limit.limit - growth.percent(limit.ratio.unwrap_or(0));
    limit_then <= left - growth + Bytes(swap.unwrap_or(0))
}

/// Whether all children, however small, have a higher score than the postmaster. The OOM killer
/// chooses the process with the highest score, which is `oom_score_adj` in thousandths of the
/// memory that has run out, and the memory of the process (mm/oom_kill.c `oom_badness`). `None`:
/// the children are unknown.
fn prefers_children(machine: &Machine, postmaster: i32) -> Option<bool> {
    let least = machine.least_oom_score_of_children()?;
    if postmaster == EXEMPT || least == EXEMPT {
        return Some(least > postmaster);
    }
    let usage = machine.usage();
    let swap = usage.and_then(|usage| usage.swap_total).unwrap_or(0);
    let limits = machine.state.memory_limits.iter().flatten();
    let limits = limits.map(|limit| limit.limit_bytes);
    let host = machine.ram().map(|ram| (ram + Bytes(swap)).0);
    let total = limits.chain(host).min();
    let mut processes = machine.state.processes.iter();
    let figures = processes.find(|process| process.is_postmaster);
    let used = figures.map_or(Bytes(0), |figures| {
        let parts = [
            figures.rss_anon,
            figures.rss_file,
            figures.rss_shmem,
            figures.swap,
            figures.page_tables,
        ];
        parts.into_iter().flatten().map(Bytes).sum()
    });
    let thousandths = u64::try_from(least - postmaster).unwrap_or(0);
    Some(match total {
        Some(total) => Bytes((total / 1000).saturating_mul(thousandths)) > used,
        None => thousandths > 0,
    })
}

/// `vm.panic_on_oom`, if the kernel panics instead of killing a process of this server
/// (mm/oom_kill.c `check_panic_on_oom`: 1 does not apply to a limit of a cgroup or of nodes).
fn panics(machine: &Machine) -> Option<i64> {
    let is_limited = has_memory_limit(machine) || machine.is_bound_to_nodes();
    let mode = machine.state.vm.panic_on_oom?;
    (mode >= 2 || mode == 1 && !is_limited).then_some(mode)
}

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    let postmaster = *machine.state.oom_score_adj.as_ref()?;
    let least = machine.least_oom_score_of_children();
    let kills = facts.cgroup_oom_kills.unwrap_or(0);
    let has_limit = has_memory_limit(machine);
    let is_rare = commit_limit_protects(machine) && !has_limit && kills == 0;
    let in_cgroup = kills_in_cgroup(machine);
    let prefers_children = prefers_children(machine, postmaster);
    let finding = if let Some(group) = &facts.memory_oom_group
        && postmaster > EXEMPT
    {
        Finding::warning(
            "oom_group",
            format!(
                "If a process exceeds the memory limit of cgroup {}, all of its processes are killed together (memory.oom.group = 1).{in_cgroup}",
                escape::name(group)
            ),
        )
    } else if let Some(mode) = panics(machine) {
        Finding::warning(
            "panic_on_oom",
            format!(
                "If memory runs out, the kernel panics and kills no process (vm.panic_on_oom = {mode})."
            ),
        )
    } else if prefers_children != Some(true) && least == Some(EXEMPT) {
        exempt(EXEMPT)
    } else if prefers_children == Some(false) && has_limit {
        Finding::warning(
            "not_protected_in_cgroup",
            format!(
                "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster {postmaster}, children {}). It can kill the postmaster, which ends all sessions.{in_cgroup}",
                least.unwrap_or_default()
            ),
        )
    } else if prefers_children == Some(false) && postmaster < 0 {
        exempt(least.unwrap_or_default())
    } else if postmaster >= 0 && is_rare {
        Finding::ok(
            "strict_overcommit",
            format!(
                "The postmaster is not protected (oom_score_adj = {postmaster}); with strict overcommit the OOM killer is rarely needed."
            ),
        )
    } else if postmaster >= 0 && prefers_children != Some(true) {
        Finding::warning(
            "not_protected",
            format!(
                "The OOM killer can kill the postmaster (oom_score_adj = {postmaster}), which ends all sessions.{in_cgroup}"
            ),
        )
    } else if let Some(Unit { name, oom_policy }) = &machine.state.unit
        && !is_rare
        && *oom_policy.as_ref()? == OomPolicy::Stop
    {
        Finding::warning(
            "unit_stops",
            format!(
                "If the OOM killer kills one backend, systemd stops the whole server (OOMPolicy=stop applies to {name}).{in_cgroup}"
            ),
        )
    } else {
        let preferred = match postmaster {
            ..0 => "other processes",
            0.. => "the children",
        };
        Finding::ok(
            "protected",
            format!(
                "The OOM killer prefers {preferred} to the postmaster (oom_score_adj = {postmaster})."
            ),
        )
    };
    Ok(finding.with(json!({
        "oom_score_adj_of_postmaster": postmaster,
        "least_oom_score_adj_of_others": least,
        "cgroup_oom_kills": facts.cgroup_oom_kills,
    })))
}

fn exempt(of_backends: i32) -> Finding {
    Finding::warning(
        "backends_exempt",
        format!(
            "The OOM killer also spares the backends (oom_score_adj = {of_backends}), however large they are."
        ),
    )
}

/// The kills in the server's cgroup, as a sentence with a leading space.
pub(super) fn kills_in_cgroup(machine: &Machine) -> String {
    let kills = machine.whole().and_then(|facts| facts.cgroup_oom_kills);
    match kills.unwrap_or(0) {
        0 => String::new(),
        1 => " The OOM killer has killed a process of this cgroup.".to_owned(),
        kills => format!(" The OOM killer has killed {kills} processes of this cgroup."),
    }
}

/// Changes of the service, as far as they can be made here.
fn steps(machine: &Machine) -> Result<Vec<Step>, Decision> {
    let text = |text: &str| Err(Decision::Text(text.to_owned()));
    let Some(facts) = machine.whole() else {
        return Ok(Vec::new());
    };
    let postmaster = machine.state.oom_score_adj.as_ref().copied().unwrap_or(0);
    let can_lower = facts.can_lower_oom_score != Some(false);
    let is_container = facts.is_container == Some(true);
    if facts.memory_oom_group.is_some() {
        return text(if is_container {
            "let the container runtime set memory.oom.group to 0 (kubelet: singleProcessOOMKill: true), or raise the memory limit"
        } else {
            "set memory.oom.group to 0 (OOMPolicy=continue in a systemd unit), or raise the memory limit"
        });
    }
    if panics(machine).is_some() {
        return text(
            "set vm.panic_on_oom to 0, now and in /etc/sysctl.d, unless you want the machine to reboot when memory runs out",
        );
    }
    let prefers_children = prefers_children(machine, postmaster);
    if postmaster < 0 || prefers_children == Some(true) {
        let change = match prefers_children {
            Some(true) => machine
                .stops_after_kill()
                .then_some(ServiceChange::ContinueAfterKill),
            _ => Some(ServiceChange::ExposeBackends),
        };
        return Ok(change.map(Step::ChangeService).into_iter().collect());
    }
    if is_container && has_memory_limit(machine) {
        return text(
            "set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege",
        );
    }
    if is_container || !can_lower {
        // Outside of containers, there is no command because the capability is missing.
        let how = if is_container {
            "from outside the container"
        } else {
            "with CAP_SYS_RESOURCE, which root lacks here"
        };
        return text(&format!(
            "lower the OOM score of the postmaster to -900 {how}; set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE={} in the environment of the server",
            machine.oom_score_of_backends(),
        ));
    }
    Ok(vec![Step::ChangeService(ServiceChange::ProtectPostmaster)])
}
