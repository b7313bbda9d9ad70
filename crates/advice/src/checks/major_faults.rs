//! Page faults of this server that read from disk: swapped memory, or program and library pages
//! that were dropped.

use serde_json::json;

use super::definition::{Check, Cure};
use crate::{
    decision::Decision,
    finding::{Finding, Judgment, whole},
    model::machine::Machine,
    thresholds::{MAJOR_FAULTS_AFTER_SECONDS, MAJOR_FAULTS_PER_SECOND},
};

pub(super) const CHECK: Check = Check {
    name: "major_faults",
    judge,
    cure: Cure::Decision(|_| Decision::LookForFaults),
    needs_running_server: true,
    counts_for_server: |_| false,
    docs: "\
Looks at page faults of the current processes that read from disk, over the life of the server.

| code | status | meaning |
|---|---|---|
| `few_major_faults` | ok | less than 10 per second, or the server is younger than 10 minutes |
| `many_major_faults` | warning | at least 10 per second: memory is swapped in, or program pages are read again |

**What to do.** Check the current rate with `hugeinfo_fault_rates()`, then free memory.
",
};

fn judge(machine: &Machine) -> Judgment {
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
