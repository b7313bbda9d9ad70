//! A control group that limits the huge pages that may be touched, but not those that may be reserved: `mmap` succeeds, the server
//! looks healthy, and breaks once enough of its memory is used, by SIGBUS or by reads that come back short.

use super::{Check, Status, obstacle};
use crate::{facts::Facts, forecast::fault_refusal, sizing::human};

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
    let hugetlb = match &facts.hugetlb {
        Ok(hugetlb) => hugetlb,
        Err(absent) => {
            let finding =
                format!("limits of the control group on huge pages cannot be seen: {absent}");
            return (Status::Unknown, finding, None);
        }
    };
    let refusal = match fault_refusal(facts, page_bytes) {
        Some(Some(refusal)) => refusal,
        Some(None) => {
            let finding =
                format!("no control group keeps the server from using huge pages of {size}");
            return (Status::Ok, finding, None);
        }
        None => {
            let finding = "what a control group's limit on huge pages means cannot be told without seeing the main segment";
            return (Status::Unknown, finding.to_owned(), None);
        }
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
    let file = hugetlb.version.fault_limit_file(page_bytes);
    let remedy = (status != Status::Ok).then(|| {
        format!(
            "echo {} > {directory}/{file} (in Kubernetes: raise the pod's limit on huge pages)",
            refusal.wanted
        )
    });
    (status, finding, remedy)
}
