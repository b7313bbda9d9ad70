//! What the configuration files, as they are on disk now, mean for the next start.

use hugeinfo::surroundings::Files;
use pgrx::{Spi, pg_sys::panic::ErrorReport};

use crate::{
    error::Error,
    plan,
    postgres::{self, Jsonb},
};

/// The caller may execute `hugeinfo_plan(jsonb)`, which is in the same schema as all of this extension. Neither an operator of the caller's
/// `search_path` nor a function of the caller's with that name is taken for it.
const MAY_PLAN: &str = "
    SELECT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
    FROM pg_catalog.pg_extension AS e, pg_catalog.pg_proc AS p
    WHERE e.extname OPERATOR(pg_catalog.=) 'pg_hugeinfo'
        AND p.pronamespace OPERATOR(pg_catalog.=) e.extnamespace
        AND p.proname OPERATOR(pg_catalog.=) 'hugeinfo_plan'
        AND pg_catalog.oidvectortypes(p.proargtypes) OPERATOR(pg_catalog.=) 'jsonb'";

/// The caller may read the view of [`WAITS`].
const MAY_LOOK: &str = "
    SELECT pg_catalog.has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE')
        AND pg_catalog.has_table_privilege('pg_catalog.pg_file_settings', 'SELECT')";

/// What cannot be applied to the running server: a setting that is changed, removed or wrong.
const WAITS: &str =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_file_settings WHERE error IS NOT NULL)";

/// A plan costs a child process. It is made only where something waits, and for those who may plan.
pub(crate) fn files() -> Files {
    if postgres::subject().postmaster.is_none() {
        return Files::Unseen("there is no postmaster".to_owned());
    }
    if !is_true(MAY_PLAN) {
        let why = "only a role that may execute hugeinfo_plan(jsonb) is told";
        return Files::Unseen(why.to_owned());
    }
    if is_true(MAY_LOOK) && !is_true(WAITS) {
        return Files::NothingWaits;
    }
    match plan::next_start(Jsonb(Some(Vec::new()))) {
        Ok(server) => Files::Planned(server),
        Err(Error::Refused { refusal, .. }) => Files::Refused(refusal.into_sentence()),
        Err(error) => Files::Unseen(ErrorReport::from(error).message().to_owned()),
    }
}

/// No row counts as false. What PostgreSQL complains of it raises itself.
///
/// Read only, unlike `Spi::get_one`, which takes a transaction number: a standby and a parallel query have none to give.
fn is_true(query: &str) -> bool {
    Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one())
        .ok()
        .flatten()
        .unwrap_or(false)
}
