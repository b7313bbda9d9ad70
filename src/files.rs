//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::{
    advice::render,
    model::recovery::too_low,
    server::{
        environment::Files,
        facts::Facts,
        restored::{Restored, Room, TooLow},
    },
};
use pgrx::pg_sys::panic::ErrorReport;

use crate::{
    error::Error,
    plan::{
        next_start::{NextStart, next_start},
        settings::Planned,
    },
    postgres::{
        catalogue::may_plan,
        restored::{is_in_recovery, of_primary, restored},
        server::subject,
    },
};

/// What the files mean, and which of their settings wait for a restart.
pub(crate) struct Waiting {
    pub(crate) files: Files,
    /// By name.
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

/// What the next start will use with the files as they are.
///
/// Errors: as [`next_start`]. Only roles that may plan see what the files say.
pub(crate) fn planned() -> Result<NextStart, Error> {
    next_start(&Planned::default()).map_err(|error| match error {
        Error::Refused { refusal, .. } if !may_plan() => Error::RefusedForOthers {
            is_of_configuration: refusal.is_of_configuration,
        },
        error => error,
    })
}

/// Costs a child process.
pub(crate) fn waiting(facts: &Facts) -> Waiting {
    if subject().postmaster.is_none() {
        return Files::Unseen("there is no postmaster".to_owned()).into();
    }
    match planned() {
        Ok(next) => {
            let settings = next.waiting_settings();
            let files = of_start(facts, next);
            Waiting { files, settings }
        }
        Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence()).into()
        }
        Err(Error::Refused { refusal, .. }) => Files::Unseen(refusal.into_sentence()).into(),
        Err(Error::RefusedForOthers {
            is_of_configuration: true,
        }) => {
            let where_to_look = "a superuser sees why in hugeinfo_checks or pg_file_settings";
            Files::Refused(where_to_look.to_owned()).into()
        }
        Err(error) => Files::Unseen(sentence(error)).into(),
    }
}

/// The same if nothing waits. The server has room for everything it has itself, but the settings of
/// its primary may have grown since it started.
pub(crate) fn nothing_waiting() -> Files {
    if !is_in_recovery() {
        return Files::NothingWaits;
    }
    match of_primary() {
        Ok(restored) => refused(&restored, &restored.now).unwrap_or(Files::NothingWaits),
        Err(error) => Files::Unseen(sentence(error)),
    }
}

fn of_start(facts: &Facts, next: NextStart) -> Files {
    let restored = match restored() {
        Ok(restored) => restored,
        Err(error) => return Files::Unseen(sentence(error)),
    };
    if let Some(refused) = refused(&restored, &next.room) {
        refused
    } else if facts.is_as_now(&next.server) {
        Files::NothingWaits
    } else {
        Files::Planned(next.server)
    }
}

/// `None`: a start has room for what it brings back. Only roles that may plan see values from the
/// files.
fn refused(restored: &Restored, next: &Room) -> Option<Files> {
    let mut too_low = too_low(restored, next);
    if *next != restored.now && !may_plan() {
        for one in &mut too_low {
            one.value = None;
        }
    }
    if too_low.iter().any(TooLow::is_certain) {
        Some(Files::TooLow(too_low))
    } else if too_low.is_empty() {
        None
    } else {
        Some(Files::Unseen(render::too_low(&too_low)))
    }
}

fn sentence(error: Error) -> String {
    ErrorReport::from(error).message().to_owned()
}
