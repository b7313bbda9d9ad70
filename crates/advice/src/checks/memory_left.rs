//! The RAM outside of the pools, and whether the segment fits into the rest and into its cgroups.

use serde_json::json;

use super::{
    definition::{Check, Cure},
    pool_size,
};
use crate::{
    decision::{self, Decision, Lacks, Lower},
    finding::{Finding, Judgment, Status, whole},
    model::{
        machine::Machine,
        memory::{self, CgroupMemory},
        start::{self, Fit, StartOutcome},
    },
    thresholds::LEFT_PERCENT,
};
use host::{escape, units::Bytes};

pub(super) const CHECK: Check = Check {
    name: "memory_left",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at the RAM that the pools leave, and at the memory limits of the server's cgroups
(`memory.max`, v1 `memory.limit_in_bytes`). Over time, the server uses the whole segment. Backends
need private memory, and reads beyond shared buffers need the file cache.

| code | status | meaning |
|---|---|---|
| `enough_left` | ok | the pools leave at least 10% of RAM, and the segment fits |
| `little_left` | warning | the pools leave less than 10% of RAM |
| `will_swap` | warning | the segment exceeds the memory limit of a cgroup, and the rest will swap |
| `will_run_out_of_memory` | critical | the segment on 4 kB pages needs more memory than the pools leave |
| `would_run_out_of_memory` | critical | the same after a restart |
| `cgroup_out_of_memory` | critical | the segment exceeds the memory limit of a cgroup, and the OOM killer will kill a process |

Huge pages count toward the memory limit of a cgroup only if cgroup2 is mounted with
`memory_hugetlb_accounting`. With `vm.swappiness = 0` (in cgroup v1, `memory.swappiness` of the
cgroup), a cgroup at its limit does not swap. The check is `unknown` if the answer depends on how
much of the segment is in use, which is known only within bounds.

**What to do.** Lower `shared_buffers` to the value in the remedy, release idle pages, or raise the
limit.
",
};

fn judge(machine: &Machine) -> Judgment {
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
    let small = memory::segment_on_small_pages(machine);
    let others = memory::segments_of_others(machine);
    let finding = if let Some(fit) = start::misfit(machine) {
        Finding::critical(
            "would_run_out_of_memory",
            format!("After a restart, memory would run out. {fit}"),
        )
    } else if small > Bytes(0) && small + others > left {
        let others = match others {
            Bytes(0) => String::new(),
            others => format!(", and other servers take {others}"),
        };
        Finding::critical(
            "will_run_out_of_memory",
            format!(
                "{text} The segment takes {small} on small pages once all of it is in use{others}."
            ),
        )
    } else if others > left {
        Finding::warning(
            "little_left",
            format!(
                "{text} Other servers take {others} on small pages once all of their segments are in use."
            ),
        )
    } else if left < ram.percent(LEFT_PERCENT) {
        Finding::warning("little_left", text)
    } else {
        Finding::ok("enough_left", text)
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
            "{allows}. Whether the segment fits is unknown, because only bounds of its use are known."
        )));
    };
    let text = format!(
        "{allows} and needs {} once the whole segment is in use.",
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
    let fit = start::misfit(machine);
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
            return Some(Decision::RaiseMemoryLimit { by });
        }
    }
    // A commit limit that keeps the pool from growing is decided first.
    let is_about_pool = |fit: &Fit| {
        matches!(fit, Fit::BeyondCommitLimit { .. }) && machine.state.asks_for_huge_pages()
    };
    if let Some(fit) = fit.filter(|fit| !is_about_pool(fit)) {
        return Some(decision::for_misfit(machine, fit));
    }
    let idle = pool_size::decision(machine);
    let (left, ram) = (memory::left(machine)?, memory::host_ram(machine)?);
    let least = ram.percent(LEFT_PERCENT);
    let missing = memory::missing_outside_pools(machine)?;
    // A tenth of what is added also has to stay outside of the pools.
    let added = Bytes((least - left).0 / (100 - LEFT_PERCENT) * 100);
    let lacks = if missing > added {
        Lacks::SmallPages
    } else {
        Lacks::Reserve
    };
    let next = machine.next_start();
    let size = machine.size_to_map(&next);
    let lower = match size {
        // Idle pages of a bound server are released by node.
        Some(_) if machine.is_bound_to_nodes() => None,
        _ if lacks == Lacks::SmallPages => Lower::by_bytes(machine, missing),
        Some(size) => {
            let required = machine.pages_mapped(&next, size);
            Lower::by_pages(machine, size, required, missing.in_pages(size))
        }
        // Smaller shared buffers do not make the pools smaller.
        None => None,
    };
    let size = size.or(machine.default_size());
    let lower = Decision::LowerSharedBuffers {
        lower,
        missing,
        lacks,
        others: size.and_then(|size| decision::held_by_others(machine, size)),
        release: None,
    };
    (missing > Bytes(0)).then(|| idle.unwrap_or(lower))
}
