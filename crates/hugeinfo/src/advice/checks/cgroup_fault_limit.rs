//! A control group that limits the huge pages that may be touched, but not those that may be
//! reserved: `mmap` succeeds, the server looks healthy, and breaks once enough of its memory is
//! used, by SIGBUS or by reads that come back short.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    obstacle,
};
use crate::{
    advice::words::human,
    model::forecast::{Refusal, fault_refusals},
    server::facts::Facts,
};

const NAME: &str = "cgroup_fault_limit";

pub(super) fn check(facts: &Facts) -> Check {
    let in_use = facts.huge_page_in_use().flatten();
    match in_use.or_else(|| facts.huge_page_asked_for()) {
        Some(page_bytes) => on_pages_of(facts, page_bytes, in_use.is_some()),
        None => match &facts.meminfo {
            Ok(_) => Check::new(
                NAME,
                Status::Ok,
                "there are no huge pages for a control group to limit",
            ),
            Err(absent) => Check::new(
                NAME,
                Status::Unknown,
                format!("the huge page size cannot be told: {absent}"),
            ),
        },
    }
}

/// What the next start, which gets huge pages, would arm; `None`: nothing, or that can't be told.
pub(super) fn armed_by_restart(facts: &Facts) -> Option<Check> {
    let page_bytes = facts.huge_page_asked_for()?;
    let refusals = fault_refusals(facts, page_bytes)?;
    let check = refused(facts, page_bytes, false, refusals.first()?, &refusals);
    (check.status != Status::Ok).then_some(check)
}

fn on_pages_of(facts: &Facts, page_bytes: u64, in_use: bool) -> Check {
    if let Err(absent) = &facts.hugetlb {
        let finding = format!("limits of the control group on huge pages cannot be seen: {absent}");
        return Check::new(NAME, Status::Unknown, finding);
    }
    let Some(refusals) = fault_refusals(facts, page_bytes) else {
        let finding = "what a control group's limit on huge pages means cannot be told without seeing the main segment";
        return Check::new(NAME, Status::Unknown, finding);
    };
    match refusals.first() {
        Some(nearest) => refused(facts, page_bytes, in_use, nearest, &refusals),
        None => Check::new(
            NAME,
            Status::Ok,
            format!(
                "no control group keeps the server from using huge pages of {}",
                human(page_bytes)
            ),
        )
        .with_evidence(json!({ "page_size_bytes": page_bytes })),
    }
}

fn refused(
    facts: &Facts,
    page_bytes: u64,
    in_use: bool,
    nearest: &Refusal<'_>,
    refusals: &[Refusal<'_>],
) -> Check {
    let directory = nearest.group.directory.display();
    let allows = format!(
        "control group {directory} lets {} of {} pages be touched, and {}",
        human(nearest.limit),
        human(page_bytes),
        human(nearest.wanted)
    );
    let (status, finding) = if in_use {
        (
            Status::Critical,
            format!(
                "{allows} are mapped: the server will break (SIGBUS, or reads that come back short) when the memory is touched"
            ),
        )
    } else if obstacle::find(facts).is_none() {
        (
            Status::Warning,
            format!(
                "{allows} would be mapped: after a restart the server would break (SIGBUS, or reads that come back short) when the memory is touched"
            ),
        )
    } else {
        (
            Status::Ok,
            format!("{allows} would be mapped, which a restart would not get"),
        )
    };
    let raise = || Refusal::how_to_raise(refusals).join("; ");
    Check::new(NAME, status, finding)
        .with_remedy((status != Status::Ok).then(raise))
        .with_evidence(json!({
            "page_size_bytes": page_bytes,
            "cgroup": directory.to_string(),
            "cgroup_limit_bytes": nearest.limit,
            "wanted_bytes": nearest.wanted,
        }))
}
