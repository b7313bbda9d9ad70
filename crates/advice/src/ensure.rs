//! Pages for the next start of a server that does not run, in addition to the demands of the host.

use super::decision::{self, Decision, Lower};
use crate::model::{
    apply::ready_pages,
    demand,
    forecast::Forecast,
    machine::Machine,
    start::{self, Reason, StartOutcome},
    step::Step,
};
use host::{
    linux::process::segment::Segment,
    server::{configuration::RequestedPages, instances::Instance, state::HugePages},
    units::{Bytes, PageSize, Pages},
};

/// The steps with which the next start gets the huge pages that it requests. They only add pages.
/// Empty if it gets them now, or requests none.
///
/// Errors: the reason why adding pages does not help, or does harm.
pub fn steps(machine: &Machine) -> Result<Vec<Step>, Decision> {
    let reason = match start::outcome(machine) {
        StartOutcome::HugePages(_) | StartOutcome::SmallPages(Reason::Off | Reason::Sysv, _) => {
            return Ok(Vec::new());
        }
        StartOutcome::SmallPages(reason, _)
        | StartOutcome::Fails(reason, _)
        | StartOutcome::Unknown(reason) => reason,
    };
    let target = Forecast::for_target(machine).ok_or_else(|| decision::for_next_start(machine))?;
    let size = PageSize(target.pool.page_bytes);
    let steps = match reason {
        Reason::PoolShort { .. } | Reason::Overcommit { .. } => {
            // Persistent pages, because the kernel might not find surplus pages during the start.
            let pages = target.required + target.others.unwrap_or_default();
            let growth = pages - Pages(target.pool.total);
            let compact = (growth > ready_pages(machine, size)).then_some(Step::Compact);
            let grow = Step::SetPool { size, pages };
            compact.into_iter().chain([grow]).collect()
        }
        Reason::NodesShort { .. } => {
            return Err(decision::about_nodes(machine, size, Pages(0)));
        }
        Reason::Limits(limits) => {
            let raise = decision::raise_limit(machine, size, target.required);
            let beyond = limits.iter().map(|limit| limit.needed - limit.limit).max();
            let fewer = beyond.unwrap_or_default().in_pages(size);
            let lower = Lower::by_pages(machine, size, target.required, fewer);
            let lower = lower.map_or_else(String::new, |lower| format!(", or {lower}"));
            return Err(Decision::Text(format!("{raise}{lower}")));
        }
        _ => Vec::new(),
    };
    let blocked = |blocked| decision::for_blocked(machine, size, target.required, blocked);
    let after = machine.apply_all(&steps).map_err(blocked)?;
    match start::outcome(&after) {
        StartOutcome::HugePages(_) if only_grows(machine, &steps) => Ok(steps),
        _ => Err(decision::for_next_start(machine)),
    }
}

/// The advice to stop a running server for which [`steps`] fails, because it then releases its
/// memory. `None`: a stop does not help.
pub fn while_stopped(machine: &Machine) -> Option<&'static str> {
    let stopped = machine.apply(&Step::Stop).ok()?;
    steps(&stopped).ok()?;
    Some(
        "The pages can be added while the server is stopped: stop it, run hugeinfo ensure again, and start it.",
    )
}

/// The idle pages that the next start would use and that no known boot configuration sets. A person
/// or the service of another program could have added them for another purpose.
pub fn of_unknown_owner(machine: &Machine) -> Pages {
    let next = machine.next_start();
    let target = || {
        let size = machine.size_to_map(&next)?;
        let pool = machine.pool(size)?;
        let idle = Pages(pool.persistent()) - Pages(pool.committed()?);
        let needed = machine.pages_mapped(&next, size) - machine.pages_held(size)?;
        let unknown = demand::idle_of_unknown_owner(machine, size);
        Some(unknown.min(needed - (idle - unknown)))
    };
    target().unwrap_or_default()
}

/// Forgets servers of other users than `owner` that could keep this one down without using any
/// memory: any user can run a program that looks like a server. Root reads the memory of all
/// processes, so an examined server without a known segment has none. With `huge_pages = on`,
/// memory that servers of other users have yet to fault in does not count either, nor do those that
/// were not examined in time, which any user can bring about.
pub fn distrust_other_users(machine: &mut Machine, owner: u32) {
    let is_needed = machine.next_start().huge_pages == HugePages::On;
    let base_page_bytes = machine.state.base_page_bytes;
    let counts = |server: &Instance| match &server.segment {
        None => !is_needed && !server.is_examined,
        Some(segment) => {
            !is_needed
                || segment
                    .page_bytes
                    .is_some_and(|bytes| bytes > base_page_bytes)
        }
    };
    if let Ok(servers) = &mut machine.state.other_servers {
        servers.retain(|server| server.owner_uid == Some(owner) || counts(server));
    }
}

/// Counts shared memory of servers that start later, perhaps on small pages. Not for a server with
/// `huge_pages = on`: its pages come first, because it would be down without them.
pub fn count_later(machine: &mut Machine, bytes: Bytes) {
    if bytes == Bytes(0) || machine.next_start().huge_pages == HugePages::On {
        return;
    }
    let base_page_bytes = machine.state.base_page_bytes;
    if let Ok(servers) = &mut machine.state.other_servers {
        servers.push(Instance {
            segment: Some(Segment {
                bytes: bytes.0,
                page_bytes: Some(base_page_bytes),
                mappings: 1,
            }),
            huge_pages: RequestedPages::Known(HugePages::Off, None),
            ..Instance::default()
        });
    }
}

/// A stopped server that the next boot starts, as another server that could want idle pages. `None`
/// if it does not. `stopped`: `None` if its next start is unknown.
pub fn starting_later(stopped: Option<&Machine>) -> Option<Instance> {
    let next = stopped.map(Machine::next_start);
    if next
        .as_ref()
        .is_some_and(|next| next.huge_pages == HugePages::Off)
    {
        return None;
    }
    Some(Instance {
        segment: Some(Segment {
            bytes: next.as_ref().map_or(0, |next| next.shared_memory_bytes),
            page_bytes: stopped.map(|stopped| stopped.state.base_page_bytes),
            mappings: 1,
        }),
        shared_memory_type: next.map(|next| next.shared_memory_type),
        is_stopped: true,
        is_examined: true,
        ..Instance::default()
    })
}

fn only_grows(machine: &Machine, steps: &[Step]) -> bool {
    steps.iter().all(|step| match step {
        Step::SetPool { size, pages, .. } => machine
            .pool(*size)
            .is_some_and(|pool| *pages >= Pages(pool.persistent())),
        _ => true,
    })
}
