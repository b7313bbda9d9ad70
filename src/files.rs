//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::{
    linux::process::segment::Segment,
    server::{
        facts::{Facts, Server},
        surroundings::Files,
    },
};
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
        Ok(next) if is_same(facts, &next) => Files::NothingWaits,
        Ok(next) => Files::Planned(next),
        Err(Error::Refused { refusal, .. }) if refusal.is_of_configuration => {
            Files::Refused(refusal.into_sentence())
        }
        Err(Error::Refused { refusal, .. }) => Files::Unseen(refusal.into_sentence()),
        Err(error) => Files::Unseen(ErrorReport::from(error).message().to_owned()),
    }
}

/// Whether the next start takes as many pages as the server has now, of the same kind. Where the
/// kernel doesn't tell how many it has, PostgreSQL does, in whole MB, rounded up.
fn is_same(facts: &Facts, next: &Server) -> bool {
    let now = &facts.server;
    let same_size = match &facts.segment {
        Ok(Segment {
            bytes,
            page_bytes: Some(page),
            ..
        }) => next.shared_memory_bytes.div_ceil(*page) == bytes.div_ceil(*page),
        _ => next.shared_memory_bytes.div_ceil(1 << 20) == now.shared_memory_bytes >> 20,
    };
    let same_settings = Server {
        shared_memory_bytes: now.shared_memory_bytes,
        ..next.clone()
    } == *now;
    same_size && same_settings
}
