//! Transparent huge pages for private memory (`enabled`). They are unrelated to the huge pages of
//! the segment.

use serde_json::json;

use super::{
    definition::{Check, Cure},
    thp::{self, File},
};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::{machine::Machine, step::Step},
};
use host::{linux::transparent_hugepage::Modes, units::Bytes};

pub(super) const CHECK: Check = Check {
    name: "thp_private",
    judge,
    cure: Cure::Steps(steps),
    needs_running_server: false,
    counts_for_server: |_| false,
    docs: "\
Looks at `/sys/kernel/mm/transparent_hugepage/enabled`, which applies to private memory. Since Linux
6.8 each size has its own mode. It does not affect the huge pages of the segment.

| code | status | meaning |
|---|---|---|
| `thp_on_request`, `no_thp` | ok | only programs that request them with `madvise()` get transparent huge pages, or the kernel has none |
| `thp_always` | warning | processes grow by whole huge pages and can wait while the kernel compacts memory |

**What to do.** Run the remedy, which sets `madvise` until the next boot. To keep the mode, add the
parameter `transparent_hugepage=madvise` to the kernel command line, or write a line such as
`w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise` into a file in `/etc/tmpfiles.d`.
",
};

fn judge(machine: &Machine) -> Judgment {
    let Some(modes) = thp::modes(machine)? else {
        return Ok(Finding::ok("no_thp", thp::NONE));
    };
    whole(machine)?;
    let of_host = machine.usage().and_then(|usage| usage.anon_huge_pages);
    let used = of_host.map_or_else(String::new, |bytes| {
        format!(" The host has {} of memory on them.", Bytes(bytes))
    });
    let mode = modes.enabled.as_deref().ok_or("enabled cannot be read")?;
    let unasked = unasked(modes);
    let finding = if unasked.is_empty() {
        Finding::ok(
            "thp_on_request",
            format!(
                "Private memory gets no transparent huge pages without a request (enabled = {mode}).{used}"
            ),
        )
    } else {
        Finding::warning(
            "thp_always",
            format!(
                "Private memory gets transparent huge pages without a request ({}). Processes grow by whole huge pages and can wait for compaction.{used}",
                thp::named(&unasked)
            ),
        )
    };
    Ok(finding.with(json!({
        "enabled": modes.enabled,
        "defrag": modes.defrag,
        "anon_huge_pages_of_host_bytes": of_host,
    })))
}

/// The files that give private memory huge pages without a request. Since Linux 6.8 each size has
/// its own mode, and the general one counts only for sizes with `inherit`.
fn unasked(modes: &Modes) -> Vec<File> {
    let is_always = |mode: &Option<String>| mode.as_deref() == Some("always");
    let inherits = |mode: &Option<String>| mode.as_deref() == Some("inherit");
    let own: Vec<_> = modes
        .sizes
        .iter()
        .filter(|size| size.enabled.is_some())
        .collect();
    let always = own.iter().filter(|size| is_always(&size.enabled));
    let mut files: Vec<File> = always
        .map(|size| {
            let file = format!("hugepages-{}kB/enabled", size.page_bytes >> 10);
            (file, "always".to_owned())
        })
        .collect();
    let is_inherited = own.is_empty() || own.iter().any(|size| inherits(&size.enabled));
    if is_always(&modes.enabled) && is_inherited {
        files.push(("enabled".to_owned(), "always".to_owned()));
    }
    files
}

fn steps(machine: &Machine) -> Result<Vec<Step>, Decision> {
    let modes = thp::modes(machine).ok().flatten();
    Ok(thp::set(modes.map(unasked).unwrap_or_default(), "madvise"))
}
