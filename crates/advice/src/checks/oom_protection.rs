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
    units::{Bytes, PageSize, Pages},
};

pub(super) const CHECK: Check = Check {
    name: "oom_protection",
    judge,
    cure: Cure::Steps(steps),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at `oom_score_adj` of the postmaster and of its children, and at the memory limits of its
cgroups. If the OOM killer kills the postmaster, all sessions end, and the next server cannot start
before the last child has exited.

| code | status | meaning |
|---|---|---|
| `protected` | ok | the OOM killer prefers other processes |
| `strict_overcommit` | ok | the postmaster is not protected, but strict overcommit makes the OOM killer unlikely |
| `not_protected` | warning | the OOM killer can kill the postmaster like any other process |
| `not_protected_in_cgroup` | warning | the memory limit of a cgroup applies, and the postmaster has the same score as its children |
| `backends_exempt` | warning | the backends are also exempt, so that the OOM killer can kill none of them |
| `oom_group` | warning | `memory.oom.group` is set: all processes of the cgroup are killed together |

**What to do.** Set `OOMScoreAdjust=-900` in the systemd unit, and `PG_OOM_ADJUST_FILE` and
`PG_OOM_ADJUST_VALUE`, so that backends do not inherit the score. It takes effect at the next
restart. In a container, follow the remedy.
",
};

/// The OOM killer never chooses such a process.
const EXEMPT: i32 = -1000;

/// The lowest score of the other processes.
fn least_of_others(machine: &Machine) -> Option<i32> {
    let others = machine
        .state
        .processes
        .iter()
        .filter(|process| !process.is_postmaster);
    others.filter_map(|process| process.oom_score_adj).min()
}

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

fn judge(machine: &Machine) -> Judgment {
    let facts = whole(machine)?;
    let postmaster = *machine.state.oom_score_adj.as_ref()?;
    let least = least_of_others(machine);
    let is_strict = commit_limit_protects(machine);
    let kills = facts.cgroup_oom_kills.unwrap_or(0);
    let in_cgroup = match kills {
        0 => String::new(),
        1 => " The OOM killer has killed a process of this cgroup.".to_owned(),
        kills => format!(" The OOM killer has killed {kills} processes of this cgroup."),
    };
    let is_preferred = least.is_none_or(|least| least > postmaster);
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
    } else if least == Some(EXEMPT) {
        Finding::warning(
            "backends_exempt",
            "The OOM killer also spares the backends (oom_score_adj = -1000), however large they are.",
        )
    } else if has_memory_limit(machine) && !is_preferred {
        Finding::warning(
            "not_protected_in_cgroup",
            format!(
                "A cgroup limits memory, and the OOM killer does not prefer the children of the postmaster (oom_score_adj: postmaster {postmaster}, children {}). It can kill the postmaster, which ends all sessions.{in_cgroup}",
                least.unwrap_or_default()
            ),
        )
    } else if postmaster >= 0 && is_strict && !has_memory_limit(machine) && kills == 0 {
        Finding::ok(
            "strict_overcommit",
            format!(
                "The postmaster is not protected (oom_score_adj = {postmaster}); with strict overcommit the OOM killer is rarely needed."
            ),
        )
    } else if postmaster >= 0 && is_preferred && least.is_some() && has_memory_limit(machine) {
        Finding::ok(
            "protected",
            format!(
                "The OOM killer prefers the children to the postmaster (oom_score_adj = {postmaster})."
            ),
        )
    } else if postmaster >= 0 {
        Finding::warning(
            "not_protected",
            format!(
                "The OOM killer can kill the postmaster (oom_score_adj = {postmaster}), which ends all sessions.{in_cgroup}"
            ),
        )
    } else {
        Finding::ok(
            "protected",
            format!(
                "The OOM killer prefers other processes to the postmaster (oom_score_adj = {postmaster})."
            ),
        )
    };
    Ok(finding.with(json!({
        "oom_score_adj_of_postmaster": postmaster,
        "least_oom_score_adj_of_others": least,
        "cgroup_oom_kills": facts.cgroup_oom_kills,
    })))
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
    if postmaster < 0 {
        return Ok(vec![Step::ChangeService(ServiceChange::ExposeBackends)]);
    }
    if is_container && has_memory_limit(machine) {
        return text(
            "set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE to a value above that of the postmaster in the container's environment: raising a score needs no privilege",
        );
    }
    if is_container || !can_lower {
        let why = if can_lower {
            ""
        } else {
            " (here CAP_SYS_RESOURCE is missing)"
        };
        return text(&format!(
            "lower the OOM score of the postmaster to -900 from outside{why}; set PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the environment of the server",
        ));
    }
    Ok(vec![Step::ChangeService(ServiceChange::ProtectPostmaster)])
}
