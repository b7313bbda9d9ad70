//! The changes that lead to a planned configuration.

use std::ffi::CStr;

use advice::{
    model::step::Pending,
    planned::{Planned, PlannedSetting},
};
use host::server::{setting::SettingSource, state::Server};

use super::{
    next_start::{NextStart, server_at_next_start},
    on_disk::OnDisk,
    settings,
};
use crate::{
    error::Error,
    postgres::planned_value::{PlannedValue, planned_value},
};

/// Computes the changes from the files, the command line and the server as they are now. `next` has
/// the settings of the next start with all of them.
///
/// Errors: as for [`next_start`](super::next_start::next_start).
pub(crate) fn changes(planned: &settings::Planned, next: NextStart) -> Result<Planned, Error> {
    let NextStart {
        server: next,
        on_disk,
        ..
    } = next;
    let mut pending = Pending::Nothing;
    let mut missing = Vec::new();
    for (name, value, planned_value) in planned_values(planned, &on_disk) {
        let until = match planned_value {
            PlannedValue {
                is_in_effect: true, ..
            } => Pending::Nothing,
            PlannedValue {
                needs_start: true, ..
            }
            // A reload does not read the command line.
            | PlannedValue {
                source: SettingSource::CommandLine,
                ..
            } => Pending::Restart,
            _ => Pending::Reload,
        };
        if planned_value.is_set {
            pending = pending.max(until);
        } else {
            missing.push((name, value, planned_value.source, until));
        }
    }
    // The next command line is unknown, so these changes come last.
    missing.sort_by_key(|(_, _, source, _)| *source == SettingSource::CommandLine);
    let names: Vec<&CStr> = missing.iter().map(|(name, ..)| *name).collect();
    let mut settings = Vec::new();
    for (at, (name, value, source, pending)) in missing.into_iter().enumerate() {
        let is_last = at + 1 == names.len();
        settings.push(PlannedSetting {
            name: name.to_string_lossy().into_owned(),
            value: value.to_string_lossy().into_owned(),
            source,
            pending,
            next: if is_last {
                Ok(next.clone())
            } else {
                after_some(&planned.only(&names[..=at]), &on_disk)?
            },
        });
    }
    let decides = |name: &CStr| matches!(name.to_bytes(), b"huge_pages" | b"shared_memory_type");
    Ok(Planned {
        settings,
        is_about_request: planned.pairs().any(|(name, _)| decides(name)),
        pending,
        next,
    })
}

/// The settings of the next start with some of the changes, or why it would fail.
fn after_some(
    planned: &settings::Planned,
    on_disk: &OnDisk,
) -> Result<Result<Server, String>, Error> {
    match server_at_next_start(planned, on_disk) {
        Ok(next) => Ok(Ok(next)),
        Err(Error::Refused { refusal, .. }) => Ok(Err(refusal.into_sentence())),
        Err(error) => Err(error),
    }
}

fn planned_values<'a>(
    planned: &'a settings::Planned,
    on_disk: &OnDisk,
) -> Vec<(&'static CStr, &'a CStr, PlannedValue)> {
    let stands = |(name, value)| {
        let on_disk = on_disk.get(name).map(|text| text.as_c_str());
        Some((name, value, planned_value(name, value, on_disk)?))
    };
    planned.pairs().filter_map(stands).collect()
}
