//! Whether the kernel has the huge pages that the server asks for.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    obstacle,
};
use crate::{
    advice::words::{human, list},
    server::facts::{Facts, HugePages},
};

const NAME: &str = "huge_page_size";

pub(super) fn check(facts: &Facts) -> Check {
    let pools = match &facts.pools {
        Ok(pools) => pools,
        Err(absent) => {
            let finding = format!("which huge pages the kernel has cannot be told: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let known: Vec<u64> = pools.iter().map(|pool| pool.page_bytes).collect();
    let asks = facts.asks_for_huge_pages();
    let check = match facts.huge_page_asked_for() {
        Some(asked) if known.contains(&asked) => Check::new(
            NAME,
            Status::Ok,
            format!("the kernel has huge pages of {}", human(asked)),
        ),
        Some(asked) => {
            let finding = format!(
                "huge_page_size asks for huge pages of {}, and the kernel has {}",
                human(asked),
                list(&known)
            );
            let status = match facts.next_start().huge_pages {
                _ if !asks => Status::Ok,
                HugePages::On => Status::Critical,
                HugePages::Off | HugePages::Try => Status::Warning,
            };
            let remedy = obstacle::find(facts).filter(|_| asks);
            Check::new(NAME, status, finding)
                .with_remedy(remedy.and_then(|obstacle| obstacle.remedy(facts)))
        }
        None => Check::new(
            NAME,
            Status::Unknown,
            "the kernel names no default huge page size",
        ),
    };
    check.with_evidence(json!({
        "huge_page_size_bytes": facts.huge_page_asked_for(),
        "known_sizes_bytes": known,
    }))
}
