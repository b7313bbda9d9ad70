//! What the pools leave of RAM: enough huge pages, and not too many.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status},
        words::human,
    },
    escape,
    linux::cgroup::memory::MemoryLimit,
    model::{
        headroom::Headroom,
        landing::{self, Fit, Landing},
        machine::Machine,
        memory_limit::{self, Holds},
        need::Need,
    },
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let of_pools = of_pools(machine);
    match (of_pools, of_limits(machine)) {
        (Ok(of_pools), Some(of_limits)) if of_limits.status > of_pools.status => {
            Ok(of_limits.with(of_pools.evidence))
        }
        (Err(_), Some(of_limits)) if of_limits.status >= Status::Warning => Ok(of_limits),
        (of_pools, _) => of_pools,
    }
}

/// What the control groups of the server say to its main segment, now and after a restart, once all
/// of it has been used. `None`: they hold it.
fn of_limits(machine: &Machine) -> Option<Finding> {
    if let Some(Err(absent)) = machine.around.as_ref().map(|around| &around.memory_limits) {
        let text = format!("cannot determine the memory limits of the control groups: {absent}");
        return Some(Finding::new(Status::Unknown, text));
    }
    let is_next_huge = match landing::of_next_start(machine) {
        Landing::HugePages => Some(true),
        Landing::SmallPages(..) => Some(false),
        Landing::Fails(..) | Landing::Untold(_) => None,
    };
    let next = is_next_huge.and_then(|is_huge| {
        let holds = memory_limit::hold(machine, machine.facts.needed_bytes(), is_huge);
        of_limit(holds, "after a restart ", is_huge)
    });
    let segment = machine.facts.segment.as_ref().ok();
    let now = segment.zip(machine.is_on_huge_pages());
    let now = now.and_then(|(segment, is_huge)| {
        let holds = memory_limit::hold(machine, segment.bytes, is_huge);
        of_limit(holds, "", is_huge)
    });
    // Of two alike that of now.
    [next, now]
        .into_iter()
        .flatten()
        .max_by_key(|finding| finding.status)
}

fn of_limit(holds: Holds<'_>, when: &str, is_huge: bool) -> Option<Finding> {
    let group = |limit: &MemoryLimit| {
        format!(
            "{when}control group {} has a memory limit of {}",
            escape::name(&limit.directory),
            human(limit.limit_bytes)
        )
    };
    let excess = match holds {
        Holds::All => return None,
        Holds::Untold(limit) => {
            let text = format!(
                "{}, and the whole main segment may not fit: how much of it is in use now is known only within bounds",
                group(limit)
            );
            return Some(Finding::new(Status::Unknown, text));
        }
        Holds::Beyond(excess) => excess,
    };
    let text = format!(
        "{}, and needs {} once the whole main segment is in use",
        group(excess.limit),
        human(excess.wanted_bytes)
    );
    Some(match (excess.can_swap, is_huge) {
        (true, _) => Finding::warning(format!("{text}: it will swap")),
        (false, false) => Finding::critical(format!("{text}: the OOM killer will end a process")),
        (false, true) => Finding::critical(format!(
            "{text}; huge pages count towards it, and a process that touches more is killed"
        )),
    })
}

fn of_pools(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let around = machine.around()?;
    let now = Headroom::now(machine)
        .ok_or("/proc/meminfo or the pools cannot be seen, or are not of one host")?;
    // Setting the number that is needed would take more only where the pool has less.
    let then = facts
        .target_pool()
        .filter(|_| facts.asks_for_huge_pages())
        .and_then(|pool| {
            let pages = Need::of(machine, pool)?.now();
            let is_more = pages > pool.total;
            is_more.then(|| Headroom::with(machine, pool.page_bytes, pages))?
        });
    let describe = |headroom: &Headroom, hold: &str| {
        format!(
            "the pools {hold} {} and leave {} of {} RAM for processes and the file cache",
            human(headroom.pools_bytes),
            human(headroom.left_bytes()),
            human(headroom.ram_bytes),
        )
    };
    let finding = match then {
        _ if !now.is_enough() => Finding::warning(describe(&now, "hold")),
        Some(then) if !then.is_enough() => Finding::warning(format!(
            "{}: the segment is too large for this host",
            describe(&then, "would hold")
        )),
        Some(then) => Finding::ok(describe(&then, "would hold")),
        None => Finding::ok(describe(&now, "hold")),
    };
    // Beside a full pool, a segment that falls back has to fit into the rest.
    let finding = match landing::of_next_start(machine) {
        Landing::SmallPages(
            _,
            fit @ (Fit::BeyondMemory { .. } | Fit::BeyondMemoryLimit { .. }),
        )
        | Landing::Fails(_, Some(fit @ Fit::BeyondCommitLimit { .. })) => {
            Finding::critical(format!("after a restart {fit}"))
        }
        _ => finding,
    };
    let private: Option<u64> = around
        .processes
        .iter()
        .filter_map(|process| process.rss_anon)
        .reduce(u64::saturating_add);
    Ok(finding.with(json!({
        "memory_total_bytes": now.ram_bytes,
        "memory_available_bytes": machine.available_bytes(),
        "pools_bytes": now.pools_bytes,
        "left_bytes": now.left_bytes(),
        "left_with_recommended_bytes": then.map(|then| then.left_bytes()),
        "private_bytes_of_server": private,
    })))
}
