//! Whether huge pages back the main segment, and why not.

use super::{Check, Status, obstacle};
use crate::{
    error::Absent,
    facts::{Facts, HugePages},
    segment::Segment,
    sizing::human,
};

pub(super) fn check(facts: &Facts) -> Check {
    let (status, finding, remedy) = match (&facts.segment, facts.huge_page_in_use()) {
        (Err(absent), _) => unseen(absent),
        (Ok(segment), None) => (
            Status::Unknown,
            format!(
                "page size of the main segment of {} cannot be told: the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps",
                human(segment.bytes)
            ),
            None,
        ),
        (Ok(segment), Some(Some(page_bytes))) => (
            Status::Ok,
            format!(
                "main segment of {} lies on {} huge pages of {}",
                human(segment.bytes),
                segment.bytes / page_bytes,
                human(page_bytes)
            ),
            None,
        ),
        (Ok(segment), Some(None)) => on_small_pages(facts, segment),
    };
    Check {
        name: "huge_pages",
        status,
        finding,
        remedy,
    }
}

fn unseen(absent: &Absent) -> (Status, String, Option<String>) {
    (
        Status::Unknown,
        format!("main segment cannot be seen: {absent}"),
        None,
    )
}

fn on_small_pages(facts: &Facts, segment: &Segment) -> (Status, String, Option<String>) {
    let fell_back = match facts.server.huge_pages {
        HugePages::Try => "huge_pages = try fell back: ",
        HugePages::On | HugePages::Off => "",
    };
    let (why, remedy) = match obstacle::find(facts) {
        Some(obstacle) => (obstacle.explain(facts), obstacle.remedy(facts)),
        None => (
            "there were too few huge pages when the server started, now it would get them"
                .to_owned(),
            Some("restart PostgreSQL".to_owned()),
        ),
    };
    let finding = format!(
        "{fell_back}main segment of {} lies on {} pages: {why}",
        human(segment.bytes),
        human(facts.base_page_bytes)
    );
    (Status::Warning, finding, remedy)
}
