//! The effect of the configuration files on disk on the next start.

use host::server::{facts::Facts, state::Files};
use pgrx::pg_sys::panic::ErrorReport;

use crate::{
    error::Error,
    plan::{
        next_start::{NextStart, next_start},
        settings::Planned,
    },
    postgres::{catalog::may_plan, server::subject},
};

/// The effect of the files on the next start.
pub(crate) struct Waiting {
    pub(crate) files: Files,
    /// Names of settings that are pending a restart.
    pub(crate) settings: Vec<String>,
}

impl From<Files> for Waiting {
    fn from(files: Files) -> Self {
        Self {
            files,
            settings: Vec::new(),
        }
    }
}

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

/// Computes the effect of the files on the next start, in a child process.
pub(crate) fn waiting(facts: &Facts) -> Waiting {
    if subject().postmaster.is_none() {
        return Files::Unknown("there is no postmaster".to_owned()).into();
    }
    match planned() {
        Ok(next) => {
            let settings = next.pending_settings();
            let files = of_start(facts, next);
            Waiting { files, settings }
        }
        Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence()).into()
        }
        Err(Error::Refused { refusal, .. }) => Files::Unknown(refusal.into_sentence()).into(),
        Err(Error::RefusedForOthers {
            is_of_configuration: true,
        }) => {
            let where_to_look =
                "a superuser can see the reason in hugeinfo_checks or pg_file_settings";
            Files::Refused(where_to_look.to_owned()).into()
        }
        Err(error) => Files::Unknown(sentence(error)).into(),
    }
}

fn of_start(facts: &Facts, next: NextStart) -> Files {
    match facts.state.is_as_now(&next.server) {
        true => Files::NothingPending,
        false => Files::Planned(next.server),
    }
}

fn sentence(error: Error) -> String {
    ErrorReport::from(error).message().to_owned()
}
