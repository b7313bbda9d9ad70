//! Transparent huge pages for private memory (`enabled`): another thing than huge pages of the main
//! segment.

use serde_json::json;

use super::thp;
use crate::advice::check::{Check, Status};
use crate::{advice::words::human, server::surroundings::Surroundings};

const NAME: &str = "thp_private";

pub(super) fn check(around: &Surroundings) -> Check {
    let modes = match thp::modes(around, NAME) {
        Ok(modes) => modes,
        Err(answer) => return answer,
    };
    let of_host = around
        .host
        .usage
        .as_ref()
        .ok()
        .and_then(|usage| usage.anon_huge_pages);
    let used = of_host.map_or_else(String::new, |bytes| {
        format!("; the host has {} on them", human(bytes))
    });
    let check = match modes.enabled.as_deref() {
        Some("always") => Check::new(
            NAME,
            Status::Warning,
            format!("private memory gets transparent huge pages unasked (enabled = always): processes grow by whole huge pages and wait while the kernel compacts memory{used}"),
        )
        .with_remedy("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; for the next boot, on the kernel command line: transparent_hugepage=madvise".to_owned()),
        Some(mode) => Check::new(
            NAME,
            Status::Ok,
            format!("private memory gets no transparent huge pages unasked (enabled = {mode}){used}"),
        ),
        None => Check::new(
            NAME,
            Status::Unknown,
            "the mode of transparent huge pages for private memory cannot be read",
        ),
    };
    check.with_evidence(json!({
        "enabled": modes.enabled,
        "defrag": modes.defrag,
        "anon_huge_pages_of_host_bytes": of_host,
    }))
}
