//! A cgroup that limits pages faulted in, but not reservations: `mmap` succeeds, and the server
//! crashes by SIGBUS, or reads come back short, once enough of its memory is in use.

use serde_json::{Value, json};

use super::restart;
use crate::{
    check::{Finding, Judgment, Unknown},
    model::{
        demand,
        limits::{Breach, breaches},
        machine::Machine,
        start::{self, Reason, StartOutcome},
        step::Counts,
    },
    render,
};
use host::{
    escape,
    server::state::Backing,
    units::{PageSize, capitalized},
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    if let Backing::HugePages(size) = machine.backing() {
        let held = machine.pages_held(size).unwrap_or_default();
        if let Some(breach) = nearest(machine, size, held)? {
            let text = format!(
                "{}, but {} is mapped. The server crashes (SIGBUS, or short reads) when it uses more than the limit.",
                capitalized(&allows(&breach, size)),
                breach.least,
            );
            return Ok(Finding::critical("cgroup_bomb", text).with(evidence(&breach, size)));
        }
    }
    of_next_start(machine)
}

/// Judges the pages that the next start would map.
pub(super) fn of_next_start(machine: &Machine) -> Judgment {
    let next = machine.next_start();
    let Some(size) = machine.size_asked_for(&next) else {
        machine.state.meminfo.as_ref()?;
        return Ok(Finding::ok(
            "no_huge_pages",
            "This kernel has no huge pages to limit.",
        ));
    };
    machine.state.hugetlb.as_ref()?;
    let pages = demand::of_next_start(machine, size, &next);
    let Some(breach) = nearest(machine, size, pages)? else {
        let text = format!("No cgroup limits {size} pages for this server.");
        return Ok(Finding::ok("not_limited", text).with(json!({ "page_size_bytes": size.0 })));
    };
    let allows = allows(&breach, size);
    let mapped = format!(
        "{}, but {} would be mapped.",
        capitalized(&allows),
        breach.least
    );
    let start = restart::name_of_start(machine);
    let crashes =
        "the server would crash (SIGBUS, or short reads) when it uses more than the limit";
    let finding = match start::outcome(machine) {
        StartOutcome::HugePages(_) => Finding::warning(
            "cgroup_bomb_at_restart",
            format!("{mapped} After {start}, {crashes}."),
        ),
        // The limit is on pages faulted in: the start can reserve pages that it cannot use.
        StartOutcome::Unknown(Reason::Overcommit { .. }) => Finding::warning(
            "cgroup_bomb_at_restart",
            format!("{mapped} If {start} gets surplus huge pages, {crashes}."),
        ),
        StartOutcome::Unknown(reason) => {
            return Err(Unknown(format!(
                "{allows}. Only a start shows whether {} would be mapped. {}",
                breach.least,
                render::reason(&reason)
            )));
        }
        StartOutcome::SmallPages(..) | StartOutcome::Fails(..) => Finding::ok(
            "limited",
            format!("{mapped} {} would not get huge pages.", capitalized(start)),
        ),
    };
    Ok(finding.with(evidence(&breach, size)))
}

/// The nearest limit that is too low for certain.
fn nearest(
    machine: &Machine,
    size: PageSize,
    pages: host::units::Pages,
) -> Result<Option<Breach<'_>>, Unknown> {
    machine.state.hugetlb.as_ref()?;
    let breaches = breaches(machine, size, pages, Counts::Faults);
    let breaches = breaches.ok_or(Unknown::from(
        "the main shared memory segment cannot be read",
    ))?;
    let (certain, possible): (Vec<_>, Vec<_>) = breaches.into_iter().partition(Breach::is_certain);
    if let Some(nearest) = certain.into_iter().next() {
        return Ok(Some(nearest));
    }
    if let Some(nearest) = possible.first() {
        return Err(Unknown(format!(
            "{}, and up to {} might be needed: this kernel does not report the use by others",
            allows(nearest, size),
            nearest.most
        )));
    }
    let mut misread = machine.facts.misread_limits.iter();
    match misread.find(|misread| misread.page_bytes == size.0) {
        Some(misread) => Err(Unknown(format!(
            "the server's environment variable {} is not a number of bytes: \"{}\"",
            misread.variable, misread.value
        ))),
        None => Ok(None),
    }
}

fn allows(breach: &Breach<'_>, size: PageSize) -> String {
    let name = escape::name(&breach.group.directory);
    let whose = if breach.group.is_told {
        format!("the pod's limit (environment variable {name})")
    } else {
        format!("cgroup {name}")
    };
    format!("{whose} allows {} of {size} pages", breach.limit)
}

fn evidence(breach: &Breach<'_>, size: PageSize) -> Value {
    let name = escape::name(&breach.group.directory);
    let is_told = breach.group.is_told;
    json!({
        "page_size_bytes": size.0,
        "cgroup": (!is_told).then_some(&name),
        "environment_variable": is_told.then_some(&name),
        "cgroup_limit_bytes": breach.limit.0,
        "wanted_bytes": breach.least.0,
    })
}
