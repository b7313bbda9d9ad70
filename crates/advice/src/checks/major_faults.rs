//! Page faults of this server that read from disk: swapped memory, or program and library pages
//! that were dropped.

use serde_json::json;

use crate::{
    check::{Finding, Judgment, whole},
    model::machine::Machine,
    thresholds::{MAJOR_FAULTS_AFTER_SECONDS, MAJOR_FAULTS_PER_SECOND},
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    let processes = &machine.state.processes;
    let ages = processes.iter().filter_map(|process| process.age_seconds);
    // The postmaster is the oldest: over its life, the present processes had these faults.
    let seconds = ages
        .max()
        .ok_or("/proc/uptime or the processes of the server cannot be read")?;
    let faults = processes.iter().map(|process| process.major_faults);
    let faults = faults.fold(0, u64::saturating_add);
    let text = format!("The current processes have had {faults} major faults in {seconds} s.");
    let is_frequent =
        seconds >= MAJOR_FAULTS_AFTER_SECONDS && faults / seconds >= MAJOR_FAULTS_PER_SECOND;
    let finding = if is_frequent {
        Finding::warning("many_major_faults", text)
    } else {
        Finding::ok("few_major_faults", text)
    };
    Ok(finding.with(json!({ "major_faults": faults, "seconds": seconds })))
}
