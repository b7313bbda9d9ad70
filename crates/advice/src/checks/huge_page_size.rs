//! Whether the kernel has the huge page size that the server asks for.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    finding::{Finding, Judgment, Status},
    model::machine::Machine,
};
use host::{server::state::HugePages, units::PageSize};

pub(super) const CHECK: Check = Check {
    name: "huge_page_size",
    judge,
    cure: Cure::Core(|_| None),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at the page sizes of the kernel in `/sys/kernel/mm/hugepages`, and at the setting
`huge_page_size`.

| code | status | meaning |
|---|---|---|
| `known_size` | ok | the kernel has the size |
| `no_such_size` | ok, warning, critical | it does not: `ok` if the server does not ask for huge pages, `critical` with `huge_pages = on`, because the server would not start |

**What to do.** Set `huge_page_size` to 0, which is the default size of the kernel.
",
};

fn judge(machine: &Machine) -> Judgment {
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
