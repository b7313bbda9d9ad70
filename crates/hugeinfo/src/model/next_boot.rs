//! The pools of this machine after its next boot, and what sets them.

use std::collections::BTreeMap;

use crate::{
    linux::{
        boot::{Asked, Edit, NextBoot, Phase, Place, What, Why},
        error::Absent,
    },
    model::{
        boot::{self, NodeMemory, PoolAtBoot},
        machine::Machine,
        step::Step,
    },
};

/// By page size. Empty: not read.
///
/// Errors: absent if neither the command line nor any file can be seen.
pub fn pools(machine: &Machine) -> Result<BTreeMap<u64, PoolAtBoot>, &Absent> {
    let Some(around) = &machine.around else {
        return Ok(BTreeMap::new());
    };
    let next = around.asked_at_boot.as_ref()?;
    // Without memory for the list there is no answer either.
    let pools = boot::pools(next, &node_memory(machine)).unwrap_or_default();
    Ok(pools
        .into_iter()
        .map(|pool| (pool.page_bytes, pool))
        .collect())
}

fn node_memory(machine: &Machine) -> NodeMemory {
    let nodes = machine.around.iter().flat_map(|around| &around.nodes);
    let nodes = nodes.flatten();
    NodeMemory {
        nodes: nodes.map(|node| (node.number, node.memory.total)).collect(),
    }
}

/// What sets this many pages of that size at the next boot. `None`: it does so already, or no file
/// can say so and be heard.
pub fn set(machine: &Machine, page_bytes: u64, pages: u64) -> Option<Step> {
    let next = machine.around.as_ref()?.asked_at_boot.as_ref().ok()?;
    let edit = edit(next, &node_memory(machine), page_bytes, pages)?;
    Some(Step::SetPoolAtBoot {
        page_bytes,
        pages,
        edit,
    })
}

/// The first edit after which the next boot asks for so many, for sure, and for no more and no less
/// of anything else.
pub fn edit(next: &NextBoot, memory: &NodeMemory, page_bytes: u64, pages: u64) -> Option<Edit> {
    let before = boot::pools(next, memory).ok()?;
    let was = |page_bytes| {
        let mut pools = before.iter();
        pools.find(|pool| pool.page_bytes == page_bytes)
    };
    if was(page_bytes).map_or(0, |pool| pool.asked) == pages {
        return None;
    }
    let is_as_wanted = |pool: &PoolAtBoot| {
        let was = was(pool.page_bytes);
        let same = |of: fn(&PoolAtBoot) -> u64| was.map_or(0, of) == of(pool);
        let is_asked = if pool.page_bytes == page_bytes {
            pool.asked == pages && pool.doubt_of_pages().is_none()
        } else {
            same(|pool| pool.asked)
        };
        is_asked && same(|pool| pool.overcommit)
    };
    let edits = kinds(next, page_bytes).iter().flat_map(|kind| match kind {
        Phase::Sysctl => next.edits_of_default_pool(pages),
        Phase::Tmpfiles => next.edits_of_tmpfiles(page_bytes, pages),
        Phase::CommandLine | Phase::Arguments => next.edits_of_command_line(page_bytes, pages),
    });
    edits.into_iter().find(|edit| {
        let after = next.with(edit);
        let after = after.and_then(|next| boot::pools(&next, memory));
        after.is_ok_and(|after| after.iter().all(is_as_wanted))
    })
}

/// What keeps that part of `CommitLimit` over the next boot. `None`: as [`set`].
pub(crate) fn set_vm(machine: &Machine, name: &'static str, value: u64) -> Option<Edit> {
    let next = machine.around.as_ref()?.asked_at_boot.as_ref().ok()?;
    let set = next.commit_limit().ok()?;
    let is_last = |next: &NextBoot| {
        let set = next.commit_limit().unwrap_or_default();
        let is_it = |(last, set, place): &(&str, u64, Place)| {
            (*last, *set) == (name, value) && next.is_read_to_the_end_after(&place.file)
        };
        set.last().is_some_and(is_it)
    };
    if is_last(next) {
        return None;
    }
    let now = set.iter().map(|(_, _, place)| place);
    let edits = next.edits_of_sysctl(name, value, now);
    let wins = |edit: &Edit| next.with(edit).is_ok_and(|after| is_last(&after));
    edits.into_iter().find(wins)
}

/// What is best changed, first.
fn kinds(next: &NextBoot, page_bytes: u64) -> &'static [Phase] {
    let is_default = next.default_size() == page_bytes;
    let is_set_by = |phase| {
        let is_it = |asked: &Asked| {
            let bytes = asked.page_bytes.unwrap_or(next.default_size());
            asked.phase == phase && asked.what != What::Overcommit && bytes == page_bytes
        };
        next.asked.iter().any(is_it)
    };
    let is_left_to_cma = next
        .dropped
        .iter()
        .any(|word| word.page_bytes == Some(page_bytes) && word.why == Why::Cma);
    if is_set_by(Phase::Tmpfiles) {
        &[Phase::Tmpfiles]
    } else if is_default && (is_set_by(Phase::Sysctl) || is_set_by(Phase::Arguments)) {
        &[Phase::Sysctl]
    } else if is_left_to_cma {
        // With hugetlb_cma= the kernel makes none before it has started, and finds them afterwards.
        &[Phase::Tmpfiles]
    } else if next.sources.kernel.is_gigantic(page_bytes) {
        // A running machine may not find them, not even one that has just been started.
        &[Phase::CommandLine]
    } else if is_default {
        &[Phase::Sysctl, Phase::Tmpfiles, Phase::CommandLine]
    } else {
        &[Phase::Tmpfiles, Phase::CommandLine]
    }
}
