//! Transparent huge pages for shared memory (`shmem_enabled`), and the part of the segment that is
//! on them.

use serde_json::json;

use super::{
    definition::{Check, Cure},
    thp::{self, File},
};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::machine::Machine,
};
use host::{
    linux::{error::Fact, transparent_hugepage::Modes},
    server::state::{Backing, State},
    units::Bytes,
};

pub(super) const CHECK: Check = Check {
    name: "thp_shared",
    judge,
    cure: Cure::Core(decision),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at `shmem_enabled`, which applies to shared memory, and at the part of the segment on
transparent huge pages (`ShmemPmdMapped`), which can be there with any mode if a program has
requested them. It does not affect huge pages of a pool.

| code | status | meaning |
|---|---|---|
| `on_huge_pages`, `thp_on_request`, `no_thp` | ok | transparent huge pages do not affect the segment |
| `transparent` | warning | the kernel can put the segment on transparent huge pages, but no pool guarantees them |

**What to do.** Set up a pool, as in the remedy.
",
};

/// Whether the segment can be on transparent huge pages: without a request, or because a program
/// has requested them, which the counter of the host shows whatever the modes are.
pub fn may_be_used(state: &State) -> bool {
    let is_mapped = state
        .usage
        .as_ref()
        .ok()
        .and_then(|usage| usage.shmem_pmd_mapped);
    let is_unasked = state
        .thp
        .as_ref()
        .is_ok_and(|modes| !unasked(modes).is_empty());
    state.backing() == Backing::SmallPages
        && (is_unasked || is_mapped.is_some_and(|bytes| bytes > 0))
}

/// The files that allow it. `deny` and `force` hold for all sizes (mm/shmem.c
/// `shmem_allowable_huge_orders`). Since Linux 6.11 each size has its own mode, and the general one
/// counts only for sizes with `inherit`.
fn unasked(modes: &Modes) -> Vec<File> {
    let general = modes.shmem_enabled.as_deref();
    match general {
        Some("deny") => return Vec::new(),
        Some("force") => return vec![("shmem_enabled".to_owned(), "force".to_owned())],
        _ => {}
    }
    let gives = |mode: Option<&str>| matches!(mode, Some("always" | "within_size"));
    let own: Vec<_> = modes
        .sizes
        .iter()
        .filter_map(|size| Some((size.page_bytes, size.shmem_enabled.as_deref()?)))
        .collect();
    let giving = own.iter().filter(|(_, mode)| gives(Some(mode)));
    let mut files: Vec<File> = giving
        .map(|(page_bytes, mode)| {
            let file = format!("hugepages-{}kB/shmem_enabled", page_bytes >> 10);
            (file, (*mode).to_owned())
        })
        .collect();
    let is_inherited = own.is_empty() || own.iter().any(|(_, mode)| *mode == "inherit");
    if gives(general) && is_inherited {
        files.push((
            "shmem_enabled".to_owned(),
            general.unwrap_or_default().to_owned(),
        ));
    }
    files
}

fn judge(machine: &Machine) -> Judgment {
    let Some(modes) = thp::modes(machine)? else {
        return Ok(Finding::ok("no_thp", thp::NONE));
    };
    let facts = whole(machine)?;
    let got = machine.state.segment_thp_bytes.as_ref();
    let bytes = got.and_then(|got| got.as_ref().ok().copied());
    let mode = modes.shmem_enabled.as_deref().unwrap_or("missing");
    let is_on_huge_pages = machine.is_on_huge_pages();
    let is_on_huge_pages = is_on_huge_pages.ok_or("the pages of the segment are unknown")?;
    let unasked = unasked(modes);
    let finding = if is_on_huge_pages {
        Finding::ok(
            "on_huge_pages",
            format!(
                "The segment is on huge pages of a pool; transparent huge pages do not affect it (shmem_enabled = {mode})."
            ),
        )
    } else if unasked.is_empty() {
        let part = match got {
            None | Some(Ok(0)) => String::new(),
            Some(_) => format!(" {}", part(got)),
        };
        Finding::ok(
            "thp_on_request",
            format!(
                "Shared memory gets no transparent huge pages without a request (shmem_enabled = {mode}).{part}"
            ),
        )
    } else {
        let part = part(got);
        let aligned = match facts.is_segment_aligned {
            Some(false) => " The segment is not aligned to them.",
            Some(true) | None => "",
        };
        Finding::warning(
            "transparent",
            format!(
                "Shared memory gets transparent huge pages without a request ({}), if the kernel finds free blocks. {part}{aligned}",
                thp::named(&unasked)
            ),
        )
    };
    Ok(finding.with(json!({
        "shmem_enabled": modes.shmem_enabled,
        "segment_thp_bytes": bytes,
        "segment_bytes": machine.segment().map(|segment| segment.bytes),
        "is_aligned": facts.is_segment_aligned,
    })))
}

/// The part of the segment on transparent huge pages, as a sentence.
fn part(got: Option<&Fact<u64>>) -> String {
    match got {
        Some(Ok(bytes)) => format!("One process has {} of the segment on them.", Bytes(*bytes)),
        Some(Err(absent)) => format!("The part of the segment on them is unknown ({absent})."),
        None => "The part of the segment on them is unknown.".to_owned(),
    }
}

/// A server that is turned off gets no pages of a pool.
fn decision(machine: &Machine) -> Option<Decision> {
    machine.is_turned_off().then(|| {
        Decision::Text(
            "turn huge_pages on, or write advise into the named files below /sys/kernel/mm/transparent_hugepage"
                .to_owned(),
        )
    })
}
