//! Transparent huge pages for private memory (`enabled`): another thing than huge pages of the main
//! segment.

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

pub(super) fn judge(machine: &Machine) -> Answer {
    let Some(modes) = thp::modes(machine)? else {
        return Ok(Finding::ok(thp::NONE));
    };
    let usage = machine.around()?.host.usage.as_ref().ok();
    let of_host = usage.and_then(|usage| usage.anon_huge_pages);
    let used = of_host.map_or_else(String::new, |bytes| {
        format!("; the host has {} on them", human(bytes))
    });
    let mode = modes.enabled.as_deref().ok_or("enabled cannot be read")?;
    let unasked: Vec<_> = unasked(modes)
        .iter()
        .map(|(file, mode)| format!("{file} = {mode}"))
        .collect();
    let finding = if unasked.is_empty() {
        Finding::ok(format!(
            "private memory gets transparent huge pages only on request (enabled = {mode}){used}"
        ))
    } else {
        Finding::warning(format!(
            "private memory gets transparent huge pages without a request ({}): processes grow by whole huge pages and wait while the kernel compacts memory{used}",
            unasked.join(", ")
        ))
    };
    Ok(finding.with(json!({
        "enabled": modes.enabled,
        "defrag": modes.defrag,
        "anon_huge_pages_of_host_bytes": of_host,
    })))
}

/// The files that give private memory huge pages without being asked. Since Linux 6.8 each size has
/// its own word, and the general one counts only where that says `inherit`.
pub(super) fn unasked(modes: &Modes) -> Vec<File> {
    let is_always = |mode: &Option<String>| mode.as_deref() == Some("always");
    let own = modes.sizes.iter().filter(|size| size.enabled.is_some());
    let inherits = |mode: &Option<String>| mode.as_deref() == Some("inherit");
    let has_own = own.clone().next().is_some();
    let mut files: Vec<File> = own
        .clone()
        .filter(|size| is_always(&size.enabled))
        .map(|size| {
            let file = format!("hugepages-{}kB/enabled", size.page_bytes >> 10);
            (file, "always".to_owned())
        })
        .collect();
    let is_inherited = !has_own || own.clone().any(|size| inherits(&size.enabled));
    if is_always(&modes.enabled) && is_inherited {
        files.push(("enabled".to_owned(), "always".to_owned()));
    }
    files
}
