//! Whether a restart with the present settings would get huge pages.

use serde_json::{Value, json};

use crate::advice::{
    check::{Check, Status},
    obstacle::{self, Obstacle},
};
use crate::{
    model::forecast::Forecast,
    server::facts::{Facts, HugePages},
};

const NAME: &str = "restart";

pub(super) fn check(facts: &Facts) -> Check {
    let in_use = matches!(facts.huge_page_in_use(), Some(Some(_)));
    let obstacle = obstacle::find(facts);
    let remedy = obstacle
        .as_ref()
        .and_then(|obstacle| obstacle.remedy(facts));
    let (status, finding) = match obstacle {
        None if in_use => (Status::Ok, "a restart would get them again".to_owned()),
        None => (Status::Ok, "a restart would get huge pages".to_owned()),
        Some(obstacle @ (Obstacle::Untold(_) | Obstacle::PageSizeUntold)) => (
            Status::Unknown,
            format!("whether a restart would get huge pages cannot be told: {obstacle}"),
        ),
        Some(obstacle) if facts.next_start().huge_pages == HugePages::On => (
            Status::Critical,
            format!("a restart would fail, since huge_pages = on: {obstacle}"),
        ),
        Some(obstacle @ (Obstacle::Off | Obstacle::Sysv)) => (
            Status::Ok,
            format!("a restart would not ask for huge pages: {obstacle}"),
        ),
        Some(obstacle) if in_use => (
            Status::Warning,
            format!("a restart would lose huge pages: {obstacle}"),
        ),
        Some(obstacle) => (
            Status::Warning,
            format!("a restart would not get huge pages: {obstacle}"),
        ),
    };
    Check::new(NAME, status, finding)
        .with_remedy(remedy.filter(|_| status != Status::Ok))
        .with_evidence(evidence(facts))
}

/// The figures of the pool that the next start asks for.
pub(super) fn evidence(facts: &Facts) -> Value {
    let target = Forecast::of_target(facts);
    let target = target.as_ref();
    json!({
        "huge_pages": facts.next_start().huge_pages.as_str(),
        "needed_bytes": facts.needed_bytes(),
        "page_size_bytes": facts.huge_page_asked_for(),
        "required_pages": target.map(|target| target.required),
        "pool_total_pages": target.map(|target| target.pool.total),
        "own_pages": target.and_then(|target| target.own),
        "others_pages": target.and_then(|target| target.others),
        "shortfall_pages": target.and_then(|target| target.shortfall),
        "recommended_nr_hugepages": target.and_then(|target| target.recommended),
    })
}
