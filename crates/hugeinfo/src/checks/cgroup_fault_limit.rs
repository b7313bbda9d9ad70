//! A control group that limits the huge pages that may be touched, but not those that may be reserved: `mmap` succeeds, the server
//! looks healthy, and breaks once enough of its memory is used, by SIGBUS or by reads that come back short.

use super::{Check, Status, obstacle};
use crate::{facts::Facts, forecast::fault_refusals, sizing::human};

pub(super) fn check(facts: &Facts) -> Check {
    let in_use = facts.huge_page_in_use().flatten();
    let (status, finding, remedy) = match in_use.or_else(|| facts.huge_page_asked_for()) {
        Some(page_bytes) => on_pages_of(facts, page_bytes, in_use.is_some()),
        None => match &facts.meminfo {
            Ok(_) => (
                Status::Ok,
                "there are no huge pages for a control group to limit".to_owned(),
                None,
            ),
            Err(absent) => (
                Status::Unknown,
                format!("the huge page size cannot be told: {absent}"),
                None,
            ),
        },
    };
    Check {
        name: "cgroup_fault_limit",
        status,
        finding,
        remedy,
    }
}

fn on_pages_of(facts: &Facts, page_bytes: u64, in_use: bool) -> (Status, String, Option<String>) {
    let size = human(page_bytes);
    if let Err(absent) = &facts.hugetlb {
        let finding = format!("limits of the control group on huge pages cannot be seen: {absent}");
        return (Status::Unknown, finding, None);
    }
    let Some(refusals) = fault_refusals(facts, page_bytes) else {
        let finding = "what a control group's limit on huge pages means cannot be told without seeing the main segment";
        return (Status::Unknown, finding.to_owned(), None);
    };
    let Some(refusal) = refusals.first() else {
        let finding = format!("no control group keeps the server from using huge pages of {size}");
        return (Status::Ok, finding, None);
    };
    let directory = refusal.group.directory.display();
    let (limit, wanted) = (human(refusal.limit), human(refusal.wanted));
    let allows =
        format!("control group {directory} lets {limit} of {size} pages be touched, and {wanted}");
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
    let remedy = (status != Status::Ok).then(|| {
        let raise: Vec<_> = refusals
            .iter()
            .map(|refusal| refusal.how_to_raise())
            .collect();
        raise.join("; ")
    });
    (status, finding, remedy)
}
