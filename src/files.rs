//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::server::{facts::Facts, surroundings::Files};
use pgrx::pg_sys::panic::ErrorReport;

use crate::{
    error::Error,
    plan::{next_start::next_start, settings::Planned},
    postgres::{catalogue::may_plan, server::subject},
};

/// A plan costs a child process. It is made only for those who may plan.
pub(crate) fn waiting(facts: &Facts) -> Files {
    if subject().postmaster.is_none() {
        return Files::Unseen("there is no postmaster".to_owned());
    }
    if !may_plan() {
        let why = "only a role that may execute hugeinfo_plan(jsonb) is told";
        return Files::Unseen(why.to_owned());
    }
    match next_start(&Planned::default()) {
        Ok(next) if facts.is_as_now(&next) => Files::NothingWaits,
        Ok(next) => Files::Planned(next),
        Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence())
        }
        Err(Error::Refused { refusal, .. }) => Files::Unseen(refusal.into_sentence()),
        Err(error) => Files::Unseen(ErrorReport::from(error).message().to_owned()),
    }
}
