//! Whether a restart would get huge pages with the configuration files as they are on disk now.

use serde_json::json;

use super::{cgroup_fault_limit, restart};
use crate::advice::check::{Check, Status};
use crate::server::{
    facts::Facts,
    surroundings::{Files, Surroundings},
};

const NAME: &str = "restart_with_files";

pub(super) fn check(facts: &Facts, around: &Surroundings) -> Check {
    match &around.files {
        Files::NothingWaits => Check::new(
            NAME,
            Status::Ok,
            "nothing that waits for a restart changes how many pages the main segment takes, or which",
        )
        .with_evidence(json!({ "waiting": false })),
        Files::Planned(next) => {
            let facts = Facts {
                planned: Some(next.clone()),
                ..facts.clone()
            };
            let check = cgroup_fault_limit::armed_by_restart(&facts)
                .unwrap_or_else(|| restart::check(&facts));
            Check {
                name: NAME,
                finding: format!("settings wait for a restart: {}", check.finding),
                ..check
            }
        }
        Files::Refused(message) => Check::new(
            NAME,
            Status::Critical,
            format!(
                "the next start would fail with the configuration files as they are: {message}"
            ),
        )
        .with_remedy("SELECT * FROM pg_file_settings WHERE error IS NOT NULL".to_owned())
        .with_evidence(json!({ "waiting": true })),
        Files::Unseen(why) => {
            let finding = format!(
                "what the configuration files mean for the next start cannot be told: {why}"
            );
            Check::new(NAME, Status::Unknown, finding)
        }
    }
}
