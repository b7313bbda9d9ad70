//! Whether huge pages back the main segment, and why not.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    obstacle,
};
use crate::{
    advice::words::human,
    linux::process::segment::Segment,
    server::facts::{Facts, HugePages},
};

const NAME: &str = "huge_pages";

pub(super) fn check(facts: &Facts) -> Check {
    let segment = match &facts.segment {
        Ok(segment) => segment,
        Err(absent) => {
            let finding = format!("main segment cannot be seen: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let size = human(segment.bytes);
    let check = match facts.huge_page_in_use() {
        None => Check::new(
            NAME,
            Status::Unknown,
            format!(
                "page size of the main segment of {size} cannot be told: the kernel offers neither PROCMAP_QUERY nor smaps nor numa_maps"
            ),
        ),
        Some(Some(page_bytes)) => Check::new(
            NAME,
            Status::Ok,
            format!(
                "main segment of {size} lies on {} huge pages of {}",
                segment.bytes / page_bytes,
                human(page_bytes)
            ),
        ),
        Some(None) => on_small_pages(facts, segment),
    };
    check.with_evidence(json!({
        "huge_pages": facts.server.huge_pages.as_str(),
        "segment_bytes": segment.bytes,
        "page_size_bytes": segment.page_bytes,
    }))
}

fn on_small_pages(facts: &Facts, segment: &Segment) -> Check {
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
    Check::new(NAME, Status::Warning, finding).with_remedy(remedy)
}
