//! Transparent huge pages for shared memory (`shmem_enabled`), and what the main segment really got
//! of them.

use serde_json::json;

use super::thp::{self, File};
use crate::{
    advice::{
        check::{Answer, Finding},
        words::human,
    },
    linux::transparent_hugepage::Modes,
    model::machine::Machine,
};

/// Whether the kernel may put anonymous shared memory on transparent huge pages without being asked
/// by the program.
pub fn may_be_used(modes: &Modes) -> bool {
    !unasked(modes).is_empty()
}

/// The files that say so. `deny` and `force` hold for all sizes (mm/shmem.c
/// `shmem_allowable_huge_orders`); since Linux 6.11 each size has its own word, and the general one
/// counts only where that says `inherit`.
pub(super) fn unasked(modes: &Modes) -> Vec<File> {
    let general = modes.shmem_enabled.as_deref();
    let file = |mode: &str| vec![("shmem_enabled".to_owned(), mode.to_owned())];
    match general {
        Some("deny") => return Vec::new(),
        Some("force") => return file("force"),
        _ => {}
    }
    let gives = |mode: Option<&str>| matches!(mode, Some("always" | "within_size"));
    let own = modes
        .sizes
        .iter()
        .filter(|size| size.shmem_enabled.is_some());
    let has_own = own.clone().next().is_some();
    let mut files: Vec<File> = own
        .clone()
        .filter(|size| gives(size.shmem_enabled.as_deref()))
        .map(|size| {
            let file = format!("hugepages-{}kB/shmem_enabled", size.page_bytes >> 10);
            (file, size.shmem_enabled.clone().unwrap_or_default())
        })
        .collect();
    let inherits = |mode: Option<&str>| mode == Some("inherit");
    let is_inherited = !has_own
        || own
            .clone()
            .any(|size| inherits(size.shmem_enabled.as_deref()));
    if gives(general) && is_inherited {
        files.extend(file(general.unwrap_or_default()));
    }
    files
}

pub(super) fn judge(machine: &Machine) -> Answer {
    let Some(modes) = thp::modes(machine)? else {
        return Ok(Finding::ok(thp::NONE));
    };
    let around = machine.around()?;
    let got = around
        .segment_thp_bytes
        .as_ref()
        .and_then(|got| got.as_ref().ok().copied());
    let mode = modes.shmem_enabled.as_deref().unwrap_or("not there");
    let is_on_huge_pages = machine
        .is_on_huge_pages()
        .ok_or("what backs the main segment cannot be seen")?;
    let unasked: Vec<_> = unasked(modes)
        .iter()
        .map(|(file, mode)| format!("{file} = {mode}"))
        .collect();
    let finding = if is_on_huge_pages {
        Finding::ok(format!(
            "the main segment is on huge pages of the pool; transparent huge pages do not affect it (shmem_enabled = {mode})"
        ))
    } else if unasked.is_empty() {
        Finding::ok(format!(
            "shared memory gets transparent huge pages only on request (shmem_enabled = {mode})"
        ))
    } else {
        let share = match (&around.segment_thp_bytes, got) {
            (_, Some(bytes)) => {
                format!(
                    "{} of the main segment, as one process maps it,",
                    human(bytes)
                )
            }
            (Some(Err(absent)), None) => {
                format!("an unknown part of the main segment ({absent})")
            }
            (_, None) => "an unknown part of the main segment".to_owned(),
        };
        Finding::warning(format!(
            "{share} lie on transparent huge pages ({}): the kernel gives what it happens to have, and no pool holds them ready",
            unasked.join(", ")
        ))
    };
    Ok(finding.with(json!({
        "shmem_enabled": modes.shmem_enabled,
        "segment_thp_bytes": got,
        "segment_bytes": machine.facts.segment.as_ref().ok().map(|segment| segment.bytes),
    })))
}
