//! Whether a restart with the present settings would get huge pages.

use super::{
    Check, Status,
    obstacle::{self, Obstacle},
};
use crate::facts::{Facts, HugePages};

pub(super) fn check(facts: &Facts) -> Check {
    let in_use = matches!(facts.huge_page_in_use(), Some(Some(_)));
    let obstacle = obstacle::find(facts);
    let remedy = obstacle
        .as_ref()
        .and_then(|obstacle| obstacle.remedy(facts));
    let (status, finding) = match obstacle {
        None if in_use => (Status::Ok, "a restart would get them again".to_owned()),
        None => (Status::Ok, "a restart would get huge pages".to_owned()),
        Some(obstacle @ (Obstacle::Off | Obstacle::Sysv)) => (
            Status::Ok,
            format!("a restart would not ask for huge pages: {obstacle}"),
        ),
        Some(obstacle @ (Obstacle::Untold(_) | Obstacle::PageSizeUntold)) => (
            Status::Unknown,
            format!("whether a restart would get huge pages cannot be told: {obstacle}"),
        ),
        Some(obstacle) if facts.next_start().huge_pages == HugePages::On => (
            Status::Critical,
            format!("a restart would fail, since huge_pages = on: {obstacle}"),
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
    let remedy = remedy.filter(|_| status != Status::Ok);
    Check {
        name: "restart",
        status,
        finding,
        remedy,
    }
}
