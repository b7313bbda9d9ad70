//! Whether the pools have the pages that this boot requested, as far as they are needed. The kernel
//! allocates the pages that it finds and reports no error.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    finding::{Finding, Judgment, whole},
    model::{demand::PoolTarget, machine::Machine},
};
use host::units::{PageSize, Pages, huge_pages};

pub(super) const CHECK: Check = Check {
    name: "pool_filled",
    judge,
    cure: Cure::Core(|_| None),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at whether the pools have the pages that this boot asked for. Missing pages that are not
needed are ignored. The kernel allocates as many pages as it finds and reports no error: `sysctl -w
vm.nr_hugepages=1000` exits with 0 even if the kernel allocated 700.

| code | status | meaning |
|---|---|---|
| `filled`, `not_asked` | ok | the needed pages are there, or the boot configuration asks for none |
| `not_filled` | warning | needed pages are missing: memory was fragmented, a node had too little memory, or the pool was made smaller |

The check is `unknown` if the number of pages at boot is unknown, as in `reboot`.

**What to do.** Compact memory and set the pool again, as in the remedy, then compare
`HugePages_Total`.
",
};

fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    machine.state.next_boot.as_ref()?;
    let boot = machine.this_boot().ok_or("it was not read")?;
    let pools = machine.state.pools.as_ref()?;
    let next = machine.next_start();
    let mut evidence = Vec::new();
    let (mut worst, mut unknown) = (None, None);
    for pool in pools {
        let size = PageSize(pool.page_bytes);
        let target = match PoolTarget::of(machine, size, &next) {
            Some(target) => target,
            // Nothing asked for its pages.
            None if boot.pages(size.0).is_none() && !boot.is_unknown(size.0) => continue,
            None => return Err(machine.why_use_is_unknown(size).into()),
        };
        if target.after.total() > Pages(0) {
            unknown = unknown.or(boot.unknown_of(size.0).next());
        }
        let Some(request) = boot.pages(size.0) else {
            continue;
        };
        let (asked, has) = (Pages(request.pages), Pages(pool.persistent()));
        evidence.push(json!({
            "page_size_bytes": size.0,
            "asked_pages": asked.0,
            "persistent_pages": has.0,
            "source": request.place.to_string(),
        }));
        // The running server keeps the pages that it has.
        let missing = asked.min(target.after.total()) - has;
        if missing > Pages(0) {
            let text = format!(
                "{} asked for {}, and the pool has {has}; {}. Memory was fragmented, a node had too little memory, the pool was made smaller later, or the line is newer than this boot.",
                request.place,
                huge_pages(asked, size),
                target.after,
            );
            worst = worst.max(Some((missing * size, text)));
        }
    }
    let finding = match (worst, unknown) {
        (Some((_, text)), _) => Finding::warning("not_filled", text),
        (None, Some(unknown)) => Finding::unknown(format!(
            "{unknown}, so the number of pages that this boot asked for is unknown."
        )),
        (None, None) if evidence.is_empty() => Finding::ok(
            "not_asked",
            "The boot configuration asks for no huge pages.",
        ),
        (None, None) => Finding::ok(
            "filled",
            "The pools hold all needed pages that this boot asked for.",
        ),
    };
    Ok(finding.with(json!({ "pools": evidence })))
}
