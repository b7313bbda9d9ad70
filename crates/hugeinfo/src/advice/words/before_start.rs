//! In words: what to do if the kernel finds fewer pages than it was asked for, before the server
//! starts.

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

/// What to look at before the server starts, after these steps. A server that was stopped for its
/// pool gets back what it had; one that insists on huge pages is better not restarted without
/// them. `None`: nothing.
pub(crate) fn before(machine: &Machine, steps: &[Step], start: &Step) -> Option<String> {
    match start {
        Step::Start => way_back(machine, steps),
        Step::Restart => hold(machine, steps),
        _ => None,
    }
}

/// Nobody knows before how many pages the kernel finds: with too few a server that insists on them
/// would be down.
fn hold(machine: &Machine, before_restart: &[Step]) -> Option<String> {
    let larger = larger(machine, before_restart);
    if larger.is_empty() {
        return None;
    }
    let at_start = at_start(machine, before_restart);
    insists(&at_start).then(|| {
        let enough = enough_of(&at_start, &larger);
        format!("if nr_hugepages reads less than {enough}, do not restart")
    })
}

/// What undoes the pools that were made larger while the server is down; those that were made
/// smaller stay so, since it needs their memory. Nobody knows before how many pages the kernel
/// finds, and `sysctl -w` shows what was asked for: a server that falls back beside a pool that
/// took the memory for nothing may find too little, and one that insists on huge pages does not
/// start. `None`: none were.
fn way_back(machine: &Machine, before_start: &[Step]) -> Option<String> {
    let stop = before_start.iter().rposition(|step| *step == Step::Stop)?;
    let larger = larger(machine, &before_start[stop..]);
    if larger.is_empty() {
        return None;
    }
    let at_start = at_start(machine, before_start);
    let enough = enough_of(&at_start, &larger);
    let back: Vec<String> = larger
        .iter()
        .map(|(_, step)| command(machine, step))
        .collect();
    let mut back = back.join(" && ");
    if insists(&at_start) {
        back = format!("{back}, and {}", change("huge_pages", "try", &by(machine)));
    }
    Some(format!(
        "if nr_hugepages reads less than {enough}, first set it back: {back}"
    ))
}

/// What is written to pools that are made larger, and what undoes it, the last first.
fn larger(machine: &Machine, steps: &[Step]) -> Vec<(u64, Step)> {
    let steps = steps.iter().rev();
    steps.filter_map(|step| back(machine, step)).collect()
}

fn at_start(machine: &Machine, steps: &[Step]) -> Machine {
    steps
        .iter()
        .fold(machine.clone(), |at, step| take(&at, step).0)
}

fn insists(at_start: &Machine) -> bool {
    let next = at_start.on_command_line.as_ref();
    let next = next.unwrap_or(at_start.facts.next_start());
    next.huge_pages == HugePages::On
}

fn enough_of(at_start: &Machine, larger: &[(u64, Step)]) -> String {
    let enough = match larger {
        [(asked, step)] => enough(at_start, step).map(|pages| pages.min(*asked)),
        _ => None,
    };
    enough.map_or("was written".to_owned(), |pages| pages.to_string())
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
