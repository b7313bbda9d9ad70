//! Whether the kernel has the huge page size that the server asks for.

use serde_json::json;

use crate::{
    check::{Finding, Judgment, Status},
    model::machine::Machine,
};
use host::{server::state::HugePages, units::PageSize};

pub(super) fn judge(machine: &Machine) -> Judgment {
    let pools = machine.state.pools.as_ref()?;
    let known: Vec<_> = pools.iter().map(|pool| PageSize(pool.page_bytes)).collect();
    let asked = machine.size_asked_for(machine.state.next_start());
    let asked = asked.ok_or("the kernel reports no default huge page size")?;
    let finding = if known.contains(&asked) {
        Finding::ok("known_size", format!("The kernel has {asked} pages."))
    } else {
        let status = match machine.state.next_start().huge_pages {
            _ if !machine.state.asks_for_huge_pages() => Status::Ok,
            HugePages::On => Status::Critical,
            HugePages::Off | HugePages::Try => Status::Warning,
        };
        let known: Vec<_> = known.iter().map(ToString::to_string).collect();
        let known = known.join(", ");
        Finding::new(
            status,
            "no_such_size",
            format!("huge_page_size asks for {asked} pages; the kernel has {known}."),
        )
    };
    Ok(finding.with(json!({
        "huge_page_size_bytes": asked.0,
        "known_sizes_bytes": known.iter().map(|size| size.0).collect::<Vec<_>>(),
    })))
}
