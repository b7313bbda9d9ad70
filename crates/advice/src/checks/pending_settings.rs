//! The effect of the configuration files, as they are on disk, on the next start.

use serde_json::json;

use super::{cgroup_fault_limit, restart};
use crate::{
    check::{Finding, Judgment, Status, Unknown, whole},
    decision::Decision,
    model::machine::Machine,
};
use host::server::state::Files;

pub(super) fn judge(machine: &Machine) -> Judgment {
    whole(machine)?;
    Ok(match &machine.state.files {
        Files::NothingPending => Finding::ok(
            "nothing_pending",
            "No pending setting changes the number or size of huge pages.",
        )
        .with(json!({ "waiting": false })),
        Files::Planned(_) => {
            let limited = cgroup_fault_limit::of_next_start(machine).ok();
            let finding = match limited.filter(|found| found.status != Status::Ok) {
                Some(limited) => limited,
                None => restart::judge(machine)?,
            };
            let names = &machine.state.pending_settings;
            let which = match names.as_slice() {
                [] => String::new(),
                names => format!(" ({})", names.join(", ")),
            };
            let mut evidence = finding.evidence;
            evidence["waiting_settings"] = json!(names);
            Finding {
                text: format!("Settings are pending a restart{which}. {}", finding.text),
                evidence,
                ..finding
            }
        }
        Files::Refused(message) => Finding::critical(
            "would_not_start",
            format!(
                "The next start would fail because of the configuration files: {}.",
                message.trim_end().trim_end_matches('.')
            ),
        )
        .with(json!({ "waiting": true })),
        Files::Unknown(why) => return Err(Unknown(why.clone())),
        Files::NotNamed(command) => {
            return Err(Unknown(format!(
                "its files have changed since it started, or only PostgreSQL can evaluate them, \
                 and root runs PostgreSQL only for servers that are named ({command})"
            )));
        }
    })
}

/// The decision about files that have to be corrected.
pub(super) fn decision(machine: &Machine) -> Option<Decision> {
    match &machine.whole_state()?.files {
        Files::Refused(why) => Some(Decision::CorrectFiles(why.clone())),
        Files::NothingPending | Files::Planned(_) | Files::Unknown(_) | Files::NotNamed(_) => None,
    }
}
