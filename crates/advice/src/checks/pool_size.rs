//! Idle huge pages: memory that the kernel can use for nothing else.

use serde_json::{Value, json};

use super::definition::{Check, Cure};
use crate::{
    decision::{self, Decision},
    finding::{Finding, Judgment, Status},
    model::{
        demand::{IdleFor, PoolTarget},
        forecast,
        machine::Machine,
        start::{self, Reason, StartOutcome},
    },
};
use host::{
    linux::hugepages::Pool,
    units::{Bytes, PageSize, Pages, huge_pages},
};

pub(super) const CHECK: Check = Check {
    name: "pool_size",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: false,
    counts_for_server: |_| true,
    docs: "\
Looks at huge pages that are idle: they are neither in use nor reserved, and no known demand needs
them. The kernel cannot use them for anything else.

| code | status | meaning |
|---|---|---|
| `no_idle_pages`, `few_idle_pages` | ok | no idle pages, or less than 10% of the demands or less than 1% of RAM |
| `idle_by_configuration` | ok | pages are idle, but the boot configuration asks for them |
| `idle_after_restart` | ok | pages are idle now, and more will be after the next restart |
| `no_huge_pages` | ok | this kernel or processor has no huge pages |
| `unused_pages` | warning | idle pages: more than 10% of the demands and more than 1% of RAM, or any if memory is short ([memory_left](#memory_left)) |

The check is `unknown` if servers might be hidden that could need the idle pages, if another server
on 4 kB pages could be meant to use them, if it is unknown whether the boot configuration asks for
them, or if the demands of pending settings are unknown. Then no remedy releases the pages.

**What to do.** If no other program needs the pages, set the pool to the number in the remedy. No
restart is needed. PostgreSQL needs none of them, but a person or another program could have
allocated them, for example for virtual machines that are off now. Therefore the command is part of
a comment. A stopped server is not visible and does not count.
",
};

/// The targets of the pools whose counters are known.
fn targets(machine: &Machine) -> Option<Vec<PoolTarget>> {
    let next = machine.next_start();
    let known = machine.pools().filter(|pool| pool.bad_counter().is_none());
    known
        .map(|pool| PoolTarget::of(machine, PageSize(pool.page_bytes), &next))
        .collect()
}

fn is_large(machine: &Machine, target: &PoolTarget) -> bool {
    forecast::is_much_idle(machine, target.idle(), target.now.total(), target.now.size)
}

/// The page size of the pool with the most idle memory that is worth releasing.
pub(crate) fn largest_idle_size(machine: &Machine) -> Option<PageSize> {
    Some(largest_idle(machine)?.now.size)
}

/// Status of a pool with many idle pages. Idle pages alone are no reason for a restart
/// that releases more of them.
fn status(target: &PoolTarget) -> Status {
    match &target.idle_for {
        Some(_) => Status::Unknown,
        None if target.now.total() > target.after.total() => Status::Ok,
        None => Status::Warning,
    }
}

/// The pool with the most idle memory that is worth releasing, and should be released first.
fn largest_idle(machine: &Machine) -> Option<PoolTarget> {
    let targets = targets(machine)?.into_iter();
    let large = targets.filter(|target| is_large(machine, target));
    large.max_by_key(|target| (status(target), target.idle() * target.now.size))
}

fn judge(machine: &Machine) -> Judgment {
    if let StartOutcome::SmallPages(Reason::NoHugePages, _) = start::outcome(machine) {
        return Ok(Finding::ok(
            "no_huge_pages",
            Reason::NoHugePages.to_string(),
        ));
    }
    machine.state.pools.as_ref()?;
    machine.state.segment.as_ref()?;
    let targets = targets(machine).ok_or("the page size of the segment is unknown")?;
    machine.state.meminfo.as_ref()?;
    machine.ram().ok_or("/proc/meminfo has no MemTotal")?;
    let Some(large) = largest_idle(machine) else {
        let unused =
            |target: &&PoolTarget| (target.idle() + target.unused_at_boot()) * target.now.size;
        // A counter of a pool that the server does not use makes only that pool unknown.
        let next = machine.size_to_map(&machine.next_start());
        let sizes = [machine.state.page_bytes(), next.map(|size| size.0)];
        let mut own = machine
            .pools()
            .filter(|pool| sizes.contains(&Some(pool.page_bytes)));
        if let Some(absent) = own.find_map(Pool::bad_counter) {
            return Err(absent.into());
        }
        let bad = machine.pools().find_map(Pool::bad_counter);
        let unjudged = bad.map_or_else(String::new, |absent| {
            format!(" One pool cannot be judged: {absent}.")
        });
        let most = targets.iter().max_by_key(unused);
        let most = most.filter(|target| unused(target) > Bytes(0));
        return Ok(match most {
            None if unjudged.is_empty() => {
                Finding::ok("no_idle_pages", "No pool holds idle pages.")
            }
            None => Finding::ok(
                "no_idle_pages",
                format!("No idle pages are known.{unjudged}"),
            ),
            Some(target) => {
                let code = match target.unused_at_boot() {
                    Pages(0) => "few_idle_pages",
                    _ => "idle_by_configuration",
                };
                let text = format!("{}{unjudged}", sentence(target));
                Finding::ok(code, text).with(evidence(target))
            }
        });
    };
    let text = sentence(&large);
    let finding = match &large.idle_for {
        Some(IdleFor::Hidden(hidden)) => {
            Finding::unknown(format!("{text} Other servers could need them: {hidden}."))
        }
        Some(IdleFor::Server(server)) => {
            Finding::unknown(format!("{text} They could be meant for {server}."))
        }
        Some(IdleFor::PendingSettings(why)) => {
            let why = why.trim_end_matches('.');
            Finding::unknown(format!("{text} Pending settings could need them ({why})."))
        }
        Some(IdleFor::NotNamed(command)) => Finding::unknown(format!(
            "{text} The next start could need them ({command})."
        )),
        Some(IdleFor::UnknownBoot(why)) => Finding::unknown(format!(
            "{text} The boot configuration could ask for them: {why}."
        )),
        Some(IdleFor::Files(needed)) => Finding::unknown(format!(
            "{text} A start without the options of the command line needs {needed}."
        )),
        // Two numbers in a row would confuse.
        None if status(&large) == Status::Ok => {
            let later = large.now.total() - large.after.total();
            Finding::ok(
                "idle_after_restart",
                format!("{text} {later} more will be idle after the next restart."),
            )
        }
        None => Finding::warning("unused_pages", text),
    };
    Ok(finding.with(evidence(&large)))
}

fn sentence(target: &PoolTarget) -> String {
    let size = target.now.size;
    let count = |pages: Pages| {
        format!(
            "{} ({}) {}",
            huge_pages(pages, size),
            pages * size,
            pages.verb("is", "are")
        )
    };
    match (&target.at_boot, target.unused_at_boot()) {
        (Some((asked, place)), unused) if unused > Pages(0) && target.idle() > Pages(0) => format!(
            "{} idle, although {place} asks for {asked} at boot; {}.",
            count(target.idle()),
            target.now
        ),
        (Some((_, place)), unused) if unused > Pages(0) => format!(
            "{} not used now, but {place} asks for them at boot; {}.",
            count(unused),
            target.now
        ),
        // No known program needs them.
        _ if target.idle_for.is_none() => {
            let needed = match target.now.total() {
                Pages(0) => String::new(),
                _ => format!("; {}", target.now),
            };
            let idle = count(target.idle());
            format!("{idle} idle: PostgreSQL needs none of them{needed}.")
        }
        _ => format!("{} idle; {}.", count(target.idle()), target.now),
    }
}

fn evidence(target: &PoolTarget) -> Value {
    let size = target.now.size;
    json!({
        "page_size_bytes": size.0,
        "persistent_pages": target.persistent.0,
        "needed_pages": target.now.total().0,
        "idle_bytes": (target.idle() * size).0,
    })
}

/// The decision about idle pages.
pub(super) fn decision(machine: &Machine) -> Option<Decision> {
    if machine.is_muted(CHECK.name) {
        return Some(Decision::Text(
            "remove pool_size from pg_hugeinfo.muted_checks: while it is muted, no remedy releases idle pages"
                .to_owned(),
        ));
    }
    let target = largest_idle(machine)?;
    decision::about_idle(&target).or_else(|| {
        let kept = target.now.of_this_server();
        let release = || decision::release_by_node(machine, target.now.size, target.idle(), kept);
        machine
            .is_bound_to_nodes()
            .then(|| Decision::Text(release()))
    })
}
