//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::{
    linux::process::segment::Segment,
    server::{
        facts::{Facts, Server},
        surroundings::Files,
    },
};
use pgrx::{Spi, pg_sys::panic::ErrorReport};

use crate::{
    error::Error,
    plan,
    postgres::{self, Jsonb},
};

/// The caller may execute `hugeinfo_plan(jsonb)`: the function that belongs to this extension,
/// whatever else has its name. Nothing here is looked up by the caller's `search_path`; 3802 is
/// `jsonb`.
const MAY_PLAN: &str = "
    SELECT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
    FROM pg_catalog.pg_extension AS e, pg_catalog.pg_depend AS d, pg_catalog.pg_proc AS p
    WHERE e.extname OPERATOR(pg_catalog.=) 'pg_hugeinfo'
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
        AND d.refobjid OPERATOR(pg_catalog.=) e.oid
        AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
        AND d.deptype OPERATOR(pg_catalog.=) 'e'
        AND p.oid OPERATOR(pg_catalog.=) d.objid
        AND p.proname OPERATOR(pg_catalog.=) 'hugeinfo_plan'
        AND p.pronargs OPERATOR(pg_catalog.=) 1
        AND p.proargtypes[0] OPERATOR(pg_catalog.=) '3802'::pg_catalog.oid";

/// A plan costs a child process. It is made only for those who may plan.
pub(crate) fn files(facts: &Facts) -> Files {
    if postgres::subject().postmaster.is_none() {
        return Files::Unseen("there is no postmaster".to_owned());
    }
    if !is_true(MAY_PLAN) {
        let why = "only a role that may execute hugeinfo_plan(jsonb) is told";
        return Files::Unseen(why.to_owned());
    }
    match plan::next_start(Jsonb::Object(Vec::new())) {
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

/// No row counts as false. What PostgreSQL complains of it raises itself.
///
/// Read only, unlike `Spi::get_one`, which takes a transaction number: a standby and a parallel
/// query have none to give.
fn is_true(query: &str) -> bool {
    Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one())
        .ok()
        .flatten()
        .unwrap_or(false)
}
