//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::{
    advice::words,
    model::restored::too_low,
    server::{
        facts::Facts,
        restored::{Restored, Room, TooLow},
        surroundings::Files,
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
        reload::something_may_wait,
        restored::{is_in_recovery, of_primary, restored},
        server::subject,
    },
};

/// A plan costs a child process. It is made only for those who may plan.
pub(crate) fn waiting(facts: &Facts) -> Files {
    if subject().postmaster.is_none() {
        return Files::Unseen("there is no postmaster".to_owned());
    }
    if !may_plan() {
        if !something_may_wait()
            && let behind @ Files::TooLow(_) = nothing_waiting()
        {
            return behind;
        }
        let why = "only a role that may execute hugeinfo_plan(jsonb) is told";
        return Files::Unseen(why.to_owned());
    }
    match next_start(&Planned::default()) {
        Ok(next) => of_start(facts, next),
        Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence())
        }
        Err(Error::Refused { refusal, .. }) => Files::Unseen(refusal.into_sentence()),
        Err(error) => unseen(error),
    }
}

/// The same where nothing waits. The server has room for all that there is, but what its primary
/// has may have grown since it started.
pub(crate) fn nothing_waiting() -> Files {
    if !is_in_recovery() {
        return Files::NothingWaits;
    }
    match of_primary() {
        Ok(restored) => refused(&restored, &restored.now).unwrap_or(Files::NothingWaits),
        Err(error) => unseen(error),
    }
}

fn of_start(facts: &Facts, next: NextStart) -> Files {
    let restored = match restored() {
        Ok(restored) => restored,
        Err(error) => return unseen(error),
    };
    if let Some(refused) = refused(&restored, &next.room) {
        refused
    } else if facts.is_as_now(&next.server) {
        Files::NothingWaits
    } else {
        Files::Planned(next.server)
    }
}

/// `None`: a start has room for what it brings back.
fn refused(restored: &Restored, next: &Room) -> Option<Files> {
    let too_low = too_low(restored, next);
    if too_low.iter().any(TooLow::is_certain) {
        Some(Files::TooLow(too_low))
    } else if too_low.is_empty() {
        None
    } else {
        Some(Files::Unseen(words::too_low(&too_low)))
    }
}

fn unseen(error: Error) -> Files {
    Files::Unseen(ErrorReport::from(error).message().to_owned())
}
