//! In words: what to do if the kernel finds fewer pages than it was asked for.

use super::steps::{change, command};
use crate::{
    model::{
        machine::Machine,
        need::Need,
        step::{By, Step},
        take::take,
    },
    server::{facts::HugePages, setting::SettingSource},
};

/// What undoes the pools that were made larger while the server is down; those that were made
/// smaller stay so, since it needs their memory. Nobody knows before how many pages the kernel
/// finds, and `sysctl -w` shows what was asked for: a server that falls back beside a pool that
/// took the memory for nothing may find too little, and one that insists on huge pages does not
/// start. `None`: none were.
pub(crate) fn way_back(machine: &Machine, before_start: &[Step]) -> Option<String> {
    let stop = before_start.iter().rposition(|step| *step == Step::Stop)?;
    let larger = before_start[stop..].iter().rev();
    let larger: Vec<(u64, Step)> = larger.filter_map(|step| back(machine, step)).collect();
    let at_start = before_start
        .iter()
        .fold(machine.clone(), |at, step| take(&at, step).0);
    let enough = match larger.as_slice() {
        [] => return None,
        [(asked, step)] => enough(&at_start, step).map(|pages| pages.min(*asked)),
        _ => None,
    };
    let enough = enough.map_or("was written".to_owned(), |pages| pages.to_string());
    let back: Vec<String> = larger
        .iter()
        .map(|(_, step)| command(machine, step))
        .collect();
    let mut back = back.join(" && ");
    let next = at_start.on_command_line.as_ref();
    let next = next.unwrap_or(at_start.facts.next_start());
    if next.huge_pages == HugePages::On {
        back = format!("{back}, and {}", change("huge_pages", "try", &by(machine)));
    }
    Some(format!(
        "if nr_hugepages reads less than {enough}, first set it back: {back}"
    ))
}

/// What undoes a step that makes a pool larger, and what that step asks for.
fn back(machine: &Machine, step: &Step) -> Option<(u64, Step)> {
    let Step::SetPool {
        page_bytes,
        node,
        pages,
    } = *step
    else {
        return None;
    };
    let had = match node {
        None => machine.pool(page_bytes)?.persistent(),
        Some(number) => {
            let nodes = machine.nodes()?.ok()?;
            let node = nodes.iter().find(|node| node.number == number)?;
            node.part(page_bytes)?.counters?.persistent()
        }
    };
    let back = Step::SetPool {
        page_bytes,
        node,
        pages: had,
    };
    (pages > had).then_some((pages, back))
}

/// With so many pages in the whole pool the server starts. `None`: it takes them from another one,
/// or from single nodes.
fn enough(at_start: &Machine, step: &Step) -> Option<u64> {
    let Step::SetPool {
        page_bytes,
        node: None,
        ..
    } = *step
    else {
        return None;
    };
    let pool = at_start.facts.target_pool()?;
    let need = Need::of(at_start, pool).filter(|_| pool.page_bytes == page_bytes)?;
    Some(need.without_neighbours().after_restart())
}

/// Where a setting is changed while the server is down. PostgreSQL reads that file last.
fn by(machine: &Machine) -> By {
    let around = machine.around.as_ref();
    let setting = around.and_then(|around| around.settings.get("huge_pages"));
    match setting.map(|setting| &setting.source) {
        Some(SettingSource::CommandLine) => By::CommandLine,
        _ => By::File(Some("postgresql.auto.conf".into())),
    }
}
