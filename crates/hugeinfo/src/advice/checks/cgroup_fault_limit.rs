//! A control group that limits the huge pages that may be touched, but not those that may be
//! reserved: `mmap` succeeds, the server looks healthy, and breaks once enough of its memory is
//! used, by SIGBUS or by reads that come back short.

use serde_json::{Value, json};

use crate::{
    advice::{
        check::{Answer, Finding, Untold},
        words::human,
    },
    escape,
    model::{
        landing::{self, Landing},
        limits::{LowLimit, fault_refusals},
        machine::Machine,
        touched::Bounds,
    },
    server::facts::Facts,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    if let Some(page_bytes) = facts.lies_on().huge_page_bytes() {
        // What waits in the files is not mapped yet.
        let running = facts.planned.is_some().then(|| Facts {
            planned: None,
            ..facts.clone()
        });
        let running = running.as_ref().unwrap_or(facts);
        if let Some(nearest) = refusals(running, page_bytes)?.first() {
            let finding = Finding::critical(format!(
                "{} are mapped: the server crashes (SIGBUS, or short reads) when it touches that memory",
                allows(nearest, page_bytes)
            ));
            return Ok(finding.with(evidence(nearest, page_bytes)));
        }
    }
    of_next_start(machine)
}

/// Whether the next start would be on huge pages that it may map, and not touch.
pub(super) fn of_next_start(machine: &Machine) -> Answer {
    let facts = &machine.facts;
    let Some(page_bytes) = facts.huge_page_asked_for() else {
        facts.meminfo.as_ref()?;
        return Ok(Finding::ok(
            "this kernel has no huge pages that a control group could limit",
        ));
    };
    let refusals = refusals(facts, page_bytes)?;
    let Some(nearest) = refusals.first() else {
        return Ok(Finding::ok(format!(
            "no control group keeps the server from huge pages of {}",
            human(page_bytes)
        ))
        .with(json!({ "page_size_bytes": page_bytes })));
    };
    let allows = allows(nearest, page_bytes);
    let finding = if landing::of_next_start(machine) == Landing::HugePages {
        Finding::warning(format!(
            "{allows} would be mapped: after a restart the server would crash (SIGBUS, or short reads) when it touches that memory"
        ))
    } else {
        Finding::ok(format!(
            "{allows} would be mapped; a restart would not get huge pages anyway"
        ))
    };
    Ok(finding.with(evidence(nearest, page_bytes)))
}

fn refusals(facts: &Facts, page_bytes: u64) -> Result<Vec<LowLimit<'_>>, Untold> {
    facts.hugetlb.as_ref()?;
    let refusals =
        fault_refusals(facts, page_bytes).ok_or(Untold::from("the main segment cannot be seen"))?;
    // Nearest first.
    let (certain, perhaps): (Vec<_>, Vec<_>) = refusals.into_iter().partition(LowLimit::is_certain);
    if let (None, Some(nearest)) = (certain.first(), perhaps.first()) {
        return Err(Untold(format!(
            "{}, and up to {} may be needed: this kernel does not tell how much others have there",
            group_allows(nearest, page_bytes),
            human(nearest.wanted.most)
        )));
    }
    let mut misread = facts.misread_limits.iter();
    match misread.find(|misread| misread.page_bytes == page_bytes) {
        Some(misread) if certain.is_empty() => Err(Untold(format!(
            "the server's environment variable {} is not a number of bytes: \"{}\"",
            misread.variable, misread.value
        ))),
        _ => Ok(certain),
    }
}

fn allows(nearest: &LowLimit<'_>, page_bytes: u64) -> String {
    let Bounds { least, most } = nearest.wanted;
    let at_least = if least < most { "at least " } else { "" };
    format!(
        "{}, and {at_least}{}",
        group_allows(nearest, page_bytes),
        human(least)
    )
}

fn group_allows(nearest: &LowLimit<'_>, page_bytes: u64) -> String {
    let name = escape::name(&nearest.group.directory);
    let group = if nearest.group.is_told {
        format!("the pod's limit (environment variable {name})")
    } else {
        format!("control group {name}")
    };
    format!(
        "{group} allows {} of {} pages",
        human(nearest.limit),
        human(page_bytes)
    )
}

fn evidence(nearest: &LowLimit<'_>, page_bytes: u64) -> Value {
    let name = escape::name(&nearest.group.directory);
    let is_told = nearest.group.is_told;
    json!({
        "page_size_bytes": page_bytes,
        "cgroup": (!is_told).then_some(&name),
        "environment_variable": is_told.then_some(&name),
        "cgroup_limit_bytes": nearest.limit,
        "wanted_bytes": nearest.wanted.least,
    })
}
