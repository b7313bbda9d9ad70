//! Memory of this server that is swapped out.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::machine::Machine,
    thresholds::SWAP_BYTES,
};
use host::units::Bytes;

pub(super) const CHECK: Check = Check {
    name: "swap",
    judge,
    cure: Cure::Decision(|_| Decision::LookForSwap),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at private memory of the server that is swapped out. Huge pages are never swapped.

| code | status | meaning |
|---|---|---|
| `not_swapped_out` | ok | at most 64 MB |
| `swapped_out` | warning | more than 64 MB; reading it again delays queries |

**What to do.** Find out what uses the memory (`hugeinfo_footprint`, `hugeinfo_host`). Lower
`work_mem` or `shared_buffers`, or add memory.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let each = machine
        .state
        .processes
        .iter()
        .filter_map(|process| process.swap);
    // A fork counts the pages that its parent has swapped out once more
    // (mm/memory.c copy_nonpresent_pte).
    let postmaster = machine
        .state
        .processes
        .iter()
        .find(|process| process.is_postmaster);
    let of_postmaster = Bytes(postmaster.and_then(|process| process.swap).unwrap_or(0));
    let swapped = each
        .map(|bytes| Bytes(bytes) - of_postmaster)
        .reduce(|all, one| all + one)
        .ok_or("the kernel reports it for no process")?
        + of_postmaster;
    let of_host = machine
        .usage()
        .and_then(|usage| usage.swap_total?.checked_sub(usage.swap_free?));
    let swapped = of_host.map_or(swapped, |of_host| swapped.min(Bytes(of_host)));
    let text = format!("{swapped} of this server's private memory is swapped out.");
    let finding = if swapped > Bytes(SWAP_BYTES) {
        Finding::warning("swapped_out", text)
    } else {
        Finding::ok("not_swapped_out", text)
    };
    Ok(finding.with(json!({
        "swap_bytes": swapped.0,
        "swap_of_host_bytes": of_host,
        "swappiness": machine.state.vm.swappiness,
    })))
}
