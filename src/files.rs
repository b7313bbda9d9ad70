//! The effect of the configuration files on disk on the next start.

use host::server::{
    facts::Facts,
    state::{Files, NextSettings},
};
use pgrx::pg_sys::panic::ErrorReport;

use crate::{
    error::Error,
    plan::{
        next_start::{NextStart, from_files, next_start},
        settings::Planned,
    },
    postgres::{catalog::may_plan, reload::something_may_wait, server::subject},
};

/// Computes the settings of the next start from the files on disk.
///
/// Errors: as for [`next_start`]. Only roles that can plan see contents of the files.
pub(crate) fn planned() -> Result<NextStart, Error> {
    next_start(&Planned::default()).map_err(readable_by_caller)
}

/// Removes contents of the files from an error, for a role that cannot plan.
pub(crate) fn readable_by_caller(error: Error) -> Error {
    match error {
        Error::Refused { refusal, .. } if !may_plan() => Error::RefusedForOthers {
            is_of_configuration: refusal.is_of_configuration,
        },
        error => error,
    }
}

/// Computes the settings of the next start from the files on disk, in a child process.
/// If `without_command_line` is true, also computes those of a start from the files alone, which
/// can need another child process.
pub(crate) fn next_settings(facts: &Facts, without_command_line: bool) -> NextSettings {
    let files = match subject().postmaster.map(|_| planned()) {
        None => unknown("there is no postmaster".to_owned()),
        Some(Ok(next)) => {
            let pending = next.pending_settings();
            let is_changed = !facts.state.is_as_now(&next.server);
            let start = without_command_line.then(|| from_files(&Planned::default(), &next));
            let start = start.flatten().and_then(|start| match start {
                Ok(server) => Some(Ok(server)),
                Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
                    Some(Err(refusal.into_sentence()))
                }
                Err(_) => None,
            });
            return NextSettings {
                server: is_changed.then_some(next.server),
                pending,
                ..NextSettings::default()
            }
            .with_start_from_files(start);
        }
        Some(Err(Error::Refused { refusal, .. })) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence())
        }
        Some(Err(Error::Refused { refusal, .. })) => unknown(refusal.into_sentence()),
        Some(Err(Error::RefusedForOthers {
            is_of_configuration: true,
        })) => {
            let where_to_look =
                "a superuser can see the reason in hugeinfo_checks or pg_file_settings";
            Files::Refused(where_to_look.to_owned())
        }
        Some(Err(error)) => unknown(sentence(error)),
    };
    NextSettings {
        files,
        ..NextSettings::default()
    }
}

fn unknown(why: String) -> Files {
    Files::Unknown {
        why,
        is_pending: something_may_wait(),
    }
}

fn sentence(error: Error) -> String {
    ErrorReport::from(error).message().to_owned()
}
