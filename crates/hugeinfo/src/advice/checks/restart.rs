//! Whether the next start of the server would get huge pages, with the settings that it will have
//! as far as these are known.

use serde_json::{Value, json};

use crate::{
    advice::{
        check::{Answer, Finding, Status, Untold},
        words::explain,
    },
    model::{
        forecast::Forecast,
        landing::{self, Fit, Landing},
        machine::Machine,
        obstacle::Obstacle,
    },
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let is_in_use = machine.is_on_huge_pages() == Some(true);
    let (status, text) = match landing::of_next_start(machine) {
        Landing::HugePages if is_in_use => {
            (Status::Ok, "a restart would get them again".to_owned())
        }
        Landing::HugePages => (Status::Ok, "a restart would get huge pages".to_owned()),
        Landing::Untold(obstacle) => return Err(Untold(obstacle.to_string())),
        Landing::Fails(obstacle, Some(fit)) => (
            Status::Critical,
            format!("a restart would fail: {obstacle}; {fit}"),
        ),
        Landing::Fails(obstacle, None) => (
            Status::Critical,
            format!("a restart would fail, since huge_pages = on: {obstacle}"),
        ),
        Landing::SmallPages(
            obstacle,
            fit @ (Fit::BeyondMemory { .. } | Fit::BeyondMemoryLimit { .. }),
        ) => (
            Status::Critical,
            format!("a restart would need more memory than there is: {obstacle}; {fit}"),
        ),
        Landing::SmallPages(obstacle @ (Obstacle::Off | Obstacle::Sysv), _) if !is_in_use => (
            Status::Ok,
            format!("a restart would not ask for huge pages: {obstacle}"),
        ),
        Landing::SmallPages(obstacle @ Obstacle::Overcommit { .. }, _) => (
            Status::Warning,
            format!("a restart may not get huge pages: {obstacle}"),
        ),
        Landing::SmallPages(obstacle, _) if is_in_use => (
            Status::Warning,
            format!(
                "a restart would lose huge pages: {}",
                explain(machine, &obstacle)
            ),
        ),
        Landing::SmallPages(obstacle, _) => (
            Status::Warning,
            format!("a restart would not get huge pages: {obstacle}"),
        ),
    };
    Ok(Finding::new(status, text).with(evidence(machine)))
}

/// The figures of the pool that the next start asks for.
pub(super) fn evidence(machine: &Machine) -> Value {
    let target = Forecast::of_target(machine);
    let target = target.as_ref();
    json!({
        "huge_pages": machine.facts.next_start().huge_pages.as_str(),
        "needed_bytes": machine.facts.needed_bytes(),
        "page_size_bytes": machine.facts.huge_page_asked_for(),
        "required_pages": target.map(|target| target.required),
        "pool_total_pages": target.map(|target| target.pool.total),
        "own_pages": target.and_then(|target| target.own),
        "others_pages": target.and_then(|target| target.others),
        "shortfall_pages": target.and_then(|target| target.shortfall),
        "recommended_nr_hugepages": target.and_then(|target| target.recommended_for_all),
    })
}
