//! Whether the kernel has the huge pages that the server asks for.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status},
        words::{human, list},
    },
    model::machine::Machine,
    server::facts::HugePages,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let pools = facts.pools.as_ref()?;
    let known: Vec<u64> = pools.iter().map(|pool| pool.page_bytes).collect();
    let asked = facts
        .huge_page_asked_for()
        .ok_or("the kernel reports no default huge page size")?;
    let finding = if known.contains(&asked) {
        Finding::ok(format!("the kernel has huge pages of {}", human(asked)))
    } else {
        let status = match facts.next_start().huge_pages {
            _ if !facts.asks_for_huge_pages() => Status::Ok,
            HugePages::On => Status::Critical,
            HugePages::Off | HugePages::Try => Status::Warning,
        };
        Finding::new(
            status,
            format!(
                "huge_page_size asks for huge pages of {}, but the kernel has {}",
                human(asked),
                list(&known)
            ),
        )
    };
    Ok(finding.with(json!({
        "huge_page_size_bytes": asked,
        "known_sizes_bytes": known,
    })))
}
