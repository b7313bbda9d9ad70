//! Whether memory and cgroups hold the segments on small pages once all of them are in use.

use serde_json::{Value, json};

use super::{
    definition::{Check, Cure},
    memory_in_use, pool_size, restart,
};
use crate::{
    decision::{self, Decision},
    finding::{Finding, Judgment, Status, whole},
    model::{
        demand::Name,
        machine::Machine,
        memory::{self, CgroupMemory, Shortage},
        start::{self, Fit, StartOutcome},
    },
};
use host::{
    escape,
    units::{Bytes, capitalized},
};

pub(super) const CHECK: Check = Check {
    name: "memory_left",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at the memory that is available, and at the memory limits of the server's cgroups
(`memory.max`, v1 `memory.limit_in_bytes`), with their use. Over time, servers use their whole
segments. Parts of segments on 4 kB pages that are not in use yet still count as available memory.
Once they are in use, [the reserve](advice.md#the-reserve) should still be available. If a cgroup
uses more than `memory.high`, the kernel throttles its processes and reclaims their memory. The
memory of ZFS (`arcstats`) is named if it is more than 10% of RAM, because no other figure includes
it.

| code | status | meaning |
|---|---|---|
| `enough_left` | ok | memory holds all segments, and the reserve stays available |
| `little_left` | warning | the reserve does not stay available, or only other servers need more than is available |
| `will_swap` | warning | the segment exceeds the memory limit of a cgroup, and the rest will swap |
| `will_run_out_of_memory` | critical | the segment on 4 kB pages still needs more than memory and swap can hold |
| `would_run_out_of_memory` | critical | after a restart, the segment on 4 kB pages takes more than memory and swap, or a cgroup, can hold |
| `near_cgroup_limit` | warning | a cgroup uses more than 95% of its memory limit, or of `memory.high`, without the file cache |
| `cgroup_out_of_memory` | critical | the segment exceeds the memory limit of a cgroup, and the OOM killer will kill a process |

Huge pages count toward the memory limit of a cgroup only if cgroup2 is mounted with
`memory_hugetlb_accounting`. With `vm.swappiness = 0` (in cgroup v1, `memory.swappiness` of the
cgroup), a cgroup at its limit does not swap. The check is `unknown` if the answer depends on how
much of the segment is in use, which is known only within bounds.

**What to do.** Lower `shared_buffers` to the value in the remedy, release idle pages, add swap, or
raise the limit.
",
};

fn judge(machine: &Machine) -> Judgment {
    let finding = of_pools_and_cgroups(machine);
    let severity = finding
        .as_ref()
        .map_or(Status::Unknown, |finding| finding.status);
    let evidence = |finding: Judgment| finding.map_or(Value::Null, |finding| finding.evidence);
    let mut finding = match memory_in_use::of_cgroup(machine) {
        Some((true, text)) if !severity.needs_attention() => {
            Finding::warning("near_cgroup_limit", text).with(evidence(finding))
        }
        Some((false, text)) if severity == Status::Ok => Finding { text, ..finding? },
        _ => finding?,
    };
    finding.text.extend(memory_in_use::of_zfs(machine));
    Ok(finding)
}

fn of_pools_and_cgroups(machine: &Machine) -> Judgment {
    match (of_pools(machine), of_cgroups(machine)) {
        (Ok(of_pools), Some(of_cgroups)) if of_cgroups.status > of_pools.status => {
            Ok(of_cgroups.with(of_pools.evidence))
        }
        (Err(_), Some(of_cgroups)) if of_cgroups.status.needs_attention() => Ok(of_cgroups),
        (of_pools, _) => of_pools,
    }
}

fn of_pools(machine: &Machine) -> Judgment {
    whole(machine)?;
    let unknown = "/proc/meminfo or the pools are unknown, or not those of the host";
    let left = memory::left(machine).ok_or(unknown)?;
    let ram = memory::host_ram(machine).ok_or(unknown)?;
    let pools = memory::in_pools(machine);
    let text = format!("The pools hold {pools} and leave {left} of {ram} RAM.");
    // A shortage of the running server is reported before one after a restart.
    let present = start::present_misfit(machine);
    let next = start::coming_misfit(machine);
    let finding = match (present, next, Shortage::now(machine)) {
        (Some(Fit::BeyondMemory(shortage)), ..) => Finding::critical(
            "will_run_out_of_memory",
            format!("The segment on small pages still needs {}", shortage),
        ),
        (_, Some(fit), _) if fit.is_certain() => Finding::critical(
            "would_run_out_of_memory",
            format!("After a restart, memory would run out. {}", fit),
        ),
        (.., Some(shortage)) => Finding::warning(
            "little_left",
            match shortage.taken + shortage.others {
                Bytes(0) => format!(
                    "{text} {} is available, and {} should stay available.",
                    shortage.available, shortage.reserve
                ),
                untouched => format!(
                    "{text} {}; {}",
                    who_needs(machine, &shortage, untouched),
                    shortage.is_available()
                ),
            },
        ),
        (_, Some(fit), _) => Finding::warning(
            "little_left",
            format!("After a restart, little memory would be left. {}", fit),
        ),
        _ => Finding::ok("enough_left", text),
    };
    let private = machine
        .state
        .processes
        .iter()
        .filter_map(|process| process.rss_anon);
    Ok(finding.with(json!({
        "memory_total_bytes": ram.0,
        "memory_available_bytes": machine.usage().and_then(|usage| usage.available),
        "pools_bytes": pools.0,
        "left_bytes": left.0,
        "private_bytes_of_server": private.reduce(u64::saturating_add),
    })))
}

/// The servers that have yet to fault in this much memory.
fn who_needs(machine: &Machine, shortage: &Shortage, untouched: Bytes) -> String {
    let much = format!("{}{untouched}", memory::at_least(shortage.is_least));
    let servers: Vec<_> = memory::yet_to_fault_in(machine).collect();
    match servers.as_slice() {
        [(server, _)] if shortage.is_by_others() => {
            let name = capitalized(&Name::of(machine, server).to_string());
            format!("{name} still needs {much} for its segment on small pages")
        }
        _ if shortage.is_by_others() => {
            format!("Other servers still need {much} for their segments on small pages")
        }
        _ => format!("Segments on small pages still need {much}"),
    }
}

/// Judges the memory limits of the server's cgroups, now and after a restart. `None`: they hold the
/// segment.
fn of_cgroups(machine: &Machine) -> Option<Finding> {
    if let Some(Err(absent)) = machine.whole_state().map(|state| &state.memory_limits) {
        return Some(Finding::unknown(format!(
            "The memory limits of the cgroups are unknown: {absent}."
        )));
    }
    let is_next_huge = match start::outcome(machine) {
        StartOutcome::HugePages(_) => Some(true),
        StartOutcome::SmallPages(..) => Some(false),
        StartOutcome::Fails(..) | StartOutcome::Unknown(_) => None,
    };
    let next = is_next_huge.and_then(|is_huge| {
        let needed = Bytes(machine.state.needed_bytes());
        of_cgroup(
            memory::in_cgroups(machine, needed, is_huge),
            "After a restart, cgroup",
            is_huge,
        )
    });
    let now = machine.segment().zip(machine.is_on_huge_pages());
    let now = now.and_then(|(segment, is_huge)| {
        let held = memory::in_cgroups(machine, Bytes(segment.bytes), is_huge);
        of_cgroup(held, "Cgroup", is_huge)
    });
    // Prefers the present finding if both are equally severe.
    [next, now]
        .into_iter()
        .flatten()
        .max_by_key(|finding| finding.status)
}

fn of_cgroup(fits: CgroupMemory<'_>, which: &str, is_huge: bool) -> Option<Finding> {
    let (limit, excess) = match fits {
        CgroupMemory::Fits => return None,
        CgroupMemory::Unknown(limit) => (limit, None),
        CgroupMemory::Exceeds(excess) => (excess.limit, Some(excess)),
    };
    let name = escape::name(&limit.directory);
    let allows = format!(
        "{which} {name} has a memory limit of {}",
        Bytes(limit.limit_bytes)
    );
    let Some(excess) = excess else {
        return Some(Finding::unknown(format!(
            "{allows}. It is unknown whether the segment fits, because its use is known only within bounds."
        )));
    };
    let text = format!(
        "{allows} and needs {}{} once the whole segment is in use.",
        memory::at_least(excess.is_least),
        excess.needed
    );
    Some(match (excess.can_swap, is_huge) {
        (true, _) => Finding::warning("will_swap", format!("{text} It will swap.")),
        (false, false) => Finding::critical(
            "cgroup_out_of_memory",
            format!("{text} The OOM killer will kill a process."),
        ),
        (false, true) => Finding::critical(
            "cgroup_out_of_memory",
            format!(
                "{text} Huge pages count toward the limit, and a process that uses more is killed."
            ),
        ),
    })
}

/// The decision about memory that is too small.
fn decision(machine: &Machine) -> Option<Decision> {
    about_segment(machine).or_else(|| memory_in_use::decision(machine))
}

fn about_segment(machine: &Machine) -> Option<Decision> {
    let present_fit = start::present_misfit(machine);
    let fit = match &present_fit {
        Some(Fit::BeyondMemory(_)) => None,
        Some(fit) => Some(fit.clone()),
        // A present shortage is reported before a start that leaves too little.
        None => start::misfit(machine)
            .filter(|fit| fit.is_certain() || Shortage::now(machine).is_none()),
    };
    // The plan has the decision.
    let is_undone = || restart::undo_pending(machine).is_some();
    let of_pools = of_pools(machine).map_or(Status::Unknown, |finding| finding.status);
    let of_cgroups = of_cgroups(machine).map_or(Status::Ok, |finding| finding.status);
    // A higher limit of the cgroup does not help if RAM is too small.
    if matches!(fit, Some(Fit::BeyondCgroup { .. })) || of_cgroups > of_pools {
        let segment = Bytes(machine.state.needed_bytes());
        let is_huge = matches!(start::outcome(machine), StartOutcome::HugePages(_));
        let present = machine
            .segment()
            .map_or(segment, |segment| Bytes(segment.bytes));
        let is_huge_now = machine.is_on_huge_pages().unwrap_or(is_huge);
        let to_raise = [(segment, is_huge), (present, is_huge_now)]
            .into_iter()
            .filter_map(
                |(bytes, is_huge)| match memory::in_cgroups(machine, bytes, is_huge) {
                    CgroupMemory::Exceeds(excess) => Some(excess.to_raise),
                    CgroupMemory::Fits | CgroupMemory::Unknown(_) => None,
                },
            );
        if let Some(by) = to_raise.max() {
            let is_plan = present_fit.is_none() && is_undone();
            return (!is_plan).then_some(Decision::RaiseMemoryLimit { by });
        }
    }
    // A commit limit that keeps the pool from growing is decided first.
    let is_about_pool = |fit: &Fit| {
        matches!(fit, Fit::BeyondCommitLimit { .. }) && machine.state.asks_for_huge_pages()
    };
    if let Some(fit) = fit.filter(|fit| !is_about_pool(fit)) {
        return (!is_undone()).then(|| decision::for_misfit(machine, fit));
    }
    let shortage = Shortage::now(machine)?;
    let of_memory = || decision::short_now(machine, &shortage);
    Some(pool_size::decision(machine).unwrap_or_else(of_memory))
}
