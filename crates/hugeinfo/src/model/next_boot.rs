//! The pools of this machine after its next boot, and what sets them.

use std::collections::BTreeMap;

use crate::{
    linux::{
        boot::{Asked, NextBoot, Phase, Place, Put, What, Why},
        error::Absent,
    },
    model::{
        boot::{self, NodeMemory, PoolAtBoot},
        machine::Machine,
        step::{BootPlace, Step},
    },
};

/// By page size. Empty where nobody has looked.
///
/// Errors: absent where neither the command line nor any file can be seen.
pub fn pools(machine: &Machine) -> Result<BTreeMap<u64, PoolAtBoot>, &Absent> {
    let Some(around) = &machine.around else {
        return Ok(BTreeMap::new());
    };
    let next = around.asked_at_boot.as_ref()?;
    let nodes = around.nodes.iter().flatten();
    let memory = NodeMemory {
        nodes: nodes.map(|node| (node.number, node.memory.total)).collect(),
    };
    // Without memory for the list there is no answer either.
    let pools = boot::pools(next, &memory).unwrap_or_default();
    Ok(pools
        .into_iter()
        .map(|pool| (pool.page_bytes, pool))
        .collect())
}

/// What sets so many pages of that size at the next boot. `None`: no file can say so and be heard.
pub fn set(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Step> {
    let next = machine.around.as_ref()?.asked_at_boot.as_ref().ok()?;
    let place = place(next, page_bytes)?;
    Some(Step::SetPoolAtBoot {
        page_bytes,
        pages,
        place,
    })
}

fn is_of(next: &NextBoot, asked: &Asked, page_bytes: u64) -> bool {
    asked.page_bytes.unwrap_or(next.default_size()) == page_bytes && asked.what != What::Overcommit
}

fn place(next: &NextBoot, page_bytes: u64) -> Option<BootPlace> {
    let is_set_by = |phase| {
        let mut asked = next.asked.iter();
        asked.any(|asked| asked.phase == phase && is_of(next, asked, page_bytes))
    };
    let file = |put| match put {
        Put::Edit(place) => Some(place.file),
        Put::New(path) => Some(path),
        Put::Nowhere => None,
    };
    let by_tmpfiles = || {
        let put = next.put_tmpfiles(page_bytes)?;
        Some(BootPlace::Tmpfiles(file(put)?.into()))
    };
    let by_sysctl = || Some(BootPlace::Sysctl(file(next.put_sysctl())?.into()));
    let is_default = next.default_size() == page_bytes;
    if is_set_by(Phase::Tmpfiles) {
        by_tmpfiles()
    } else if is_default && is_set_by(Phase::Sysctl) {
        by_sysctl()
    } else if next
        .dropped
        .iter()
        .any(|word| word.page_bytes == Some(page_bytes) && word.why == Why::Cma)
    {
        // With hugetlb_cma= the kernel makes none before it has started, and finds them afterwards.
        by_tmpfiles()
    } else if next.kernel.is_gigantic(page_bytes) {
        // A running machine may not find them, not even one that has just been started.
        Some(BootPlace::CommandLine)
    } else if is_default {
        by_sysctl()
    } else {
        by_tmpfiles().or(Some(BootPlace::CommandLine))
    }
}

/// The next boot once that has been written.
pub fn write(next: &mut NextBoot, page_bytes: u64, pages: u64, place: &BootPlace) {
    let (phase, file) = match place {
        BootPlace::Sysctl(file) => (Phase::Sysctl, file.display().to_string()),
        BootPlace::Tmpfiles(file) => (Phase::Tmpfiles, file.display().to_string()),
        BootPlace::CommandLine => (Phase::CommandLine, "/proc/cmdline".to_owned()),
    };
    let default = next.default_size();
    let is_it = |asked: &Asked| {
        asked.page_bytes.unwrap_or(default) == page_bytes && asked.what != What::Overcommit
    };
    // What came before it is edited, or overridden.
    next.asked.retain(|asked| !is_it(asked));
    next.doubts.retain(|doubt| doubt.phase > phase);
    next.asked.push(Asked {
        page_bytes: Some(page_bytes),
        what: What::Pages,
        pages,
        phase,
        place: Place {
            file,
            line: 1,
            text: String::new(),
        },
    });
}
