//! Page faults of this server that had to read from disk: swapped memory, or program and library
//! pages that were dropped.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::{MAJOR_FAULTS_AFTER_SECONDS, MAJOR_FAULTS_PER_SECOND},
};
use crate::server::surroundings::Surroundings;

const NAME: &str = "major_faults";

pub(super) fn check(around: &Surroundings) -> Check {
    let ages = around
        .processes
        .iter()
        .filter_map(|process| process.age_seconds);
    // The eldest is the postmaster: over its life, those that are there had these.
    let Some(seconds) = ages.max() else {
        let finding = "how often this server waits for its own pages cannot be told: /proc/uptime or its processes cannot be seen";
        return Check::new(NAME, Status::Unknown, finding);
    };
    let faults = around
        .processes
        .iter()
        .map(|process| process.major_faults)
        .fold(0, u64::saturating_add);
    let is_often =
        seconds >= MAJOR_FAULTS_AFTER_SECONDS && faults / seconds >= MAJOR_FAULTS_PER_SECOND;
    let finding = format!("{faults} major faults of the present processes in {seconds} seconds");
    let check = if is_often {
        Check::new(NAME, Status::Warning, finding).with_remedy(
            "look at the rate now: SELECT * FROM hugeinfo_fault_rates(); then free memory, as for swap".to_owned(),
        )
    } else {
        Check::new(NAME, Status::Ok, finding)
    };
    check.with_evidence(json!({ "major_faults": faults, "seconds": seconds }))
}
