//! What the configuration files, as they are on disk now, mean for the next start.

use serde_json::{Value, json};

use super::{cgroup_fault_limit, restart};
use crate::{
    advice::{
        check::{Answer, Finding, Status, Untold},
        words,
    },
    model::machine::Machine,
    server::surroundings::Files,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    match &around.files {
        Files::NothingWaits => Ok(Finding::ok(
            "no waiting setting changes the number or size of huge pages",
        )
        .with(json!({ "waiting": false }))),
        Files::Planned(_) => {
            let armed = cgroup_fault_limit::of_next_start(machine).ok();
            let finding = match armed.filter(|found| found.status != Status::Ok) {
                Some(armed) => armed,
                None => restart::judge(machine)?,
            };
            let names = &around.waiting_settings;
            let which = match names.as_slice() {
                [] => String::new(),
                names => format!(" ({})", names.join(", ")),
            };
            let mut evidence = finding.evidence;
            evidence["waiting_settings"] = json!(names);
            Ok(Finding {
                text: format!("settings wait for a restart{which}: {}", finding.text),
                evidence,
                ..finding
            })
        }
        Files::Refused(message) => Ok(Finding::critical(format!(
            "the next start would fail with the configuration files as they are: {message}"
        ))
        .with(json!({ "waiting": true }))),
        Files::TooLow(settings) => Ok(Finding::critical(format!(
            "the next start would fail: {}",
            words::too_low(settings)
        ))
        .with(json!({
            "waiting": machine.may_wait(),
            "too_low": settings
                .iter()
                .map(|one| json!({
                    "setting": one.setting,
                    "value": one.value.map_or(Value::Null, |value| json!(value.to_string())),
                    "least": one.least.to_string(),
                }))
                .collect::<Vec<_>>(),
        }))),
        Files::Unseen(why) => Err(Untold(why.clone())),
    }
}
