//! Privileges of the caller, from the catalog.

use pgrx::Spi;

/// True if the caller can execute `hugeinfo_plan(text)`: the function of this extension, not
/// another one with the same name.
pub(crate) fn may_plan() -> bool {
    is_true(MAY_PLAN)
}

/// Does not use the caller's `search_path`; 25 is `text`.
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
        AND p.proargtypes[0] OPERATOR(pg_catalog.=) '25'::pg_catalog.oid";

/// No row counts as false. PostgreSQL raises its own errors.
///
/// Read only, unlike `Spi::get_one`, which needs a transaction ID: a standby and a parallel query
/// cannot assign one.
fn is_true(query: &str) -> bool {
    Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one())
        .ok()
        .flatten()
        .unwrap_or(false)
}
