//! Page faults of this server that had to read from disk: swapped memory, or program and library
//! pages that were dropped.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding, Status},
        thresholds::{MAJOR_FAULTS_AFTER_SECONDS, MAJOR_FAULTS_PER_SECOND},
    },
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let processes = &machine.around()?.processes;
    let ages = processes.iter().filter_map(|process| process.age_seconds);
    // The eldest is the postmaster: over its life, those that are there had these.
    let seconds = ages
        .max()
        .ok_or("/proc/uptime or the server's processes cannot be read")?;
    let faults = processes
        .iter()
        .map(|process| process.major_faults)
        .fold(0, u64::saturating_add);
    let is_often =
        seconds >= MAJOR_FAULTS_AFTER_SECONDS && faults / seconds >= MAJOR_FAULTS_PER_SECOND;
    let status = if is_often {
        Status::Warning
    } else {
        Status::Ok
    };
    Ok(Finding::new(
        status,
        format!("{faults} major faults in {seconds} s, by the processes that run now"),
    )
    .with(json!({ "major_faults": faults, "seconds": seconds })))
}
