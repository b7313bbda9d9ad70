//! Checks that the SQL objects of this database have the version of this library.
//!
//! A package replaces the library for all databases at once; `ALTER EXTENSION` replaces the objects
//! of one database. The library returns rows without column names. With other columns, a result
//! would be wrong, or PostgreSQL would read invalid memory. Therefore, the library serves no other
//! version, not even one with the same columns.

use pgrx::{FromDatum, PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, pg_sys};

use crate::error::Error;

const LIBRARY: &str = env!("CARGO_PKG_VERSION");

/// Errors: the objects have another version than the library.
pub(crate) fn check() -> Result<(), Error> {
    let Some(objects) = of_objects().filter(|objects| objects != LIBRARY) else {
        return Ok(());
    };
    let hint = if objects.ends_with("-dev") {
        format!(
            "A development version cannot be upgraded. Save grants and views, then run DROP EXTENSION pg_hugeinfo CASCADE and CREATE EXTENSION pg_hugeinfo, or install the library of version {objects}."
        )
    } else if order(&objects) > order(LIBRARY) {
        format!(
            "Connect again, because a session keeps the library that it has loaded. If that does not help, install the library of version {objects}."
        )
    } else {
        "Run ALTER EXTENSION pg_hugeinfo UPDATE in this database.".to_owned()
    };
    let message = format!(
        "extension pg_hugeinfo is version {objects} in this database, but its library is version {LIBRARY}"
    );
    Err(Error::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(hint))
}

/// Sorts versions. A `-dev` version comes before its release, and text that is no version first.
fn order(version: &str) -> (Vec<u32>, bool) {
    let numbers = version.trim_end_matches("-dev");
    let is_release = numbers == version;
    let numbers = numbers.split('.').map_while(|number| number.parse().ok());
    (numbers.collect(), is_release)
}

/// The version of the objects. `None`: there is no such extension, as if a function was created by
/// hand.
///
/// Uses the index, because each call of a function runs this query.
#[allow(clippy::cast_possible_truncation)]
fn of_objects() -> Option<String> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: reads the catalog like PostgreSQL (extension.c `get_extension_oid`). The key lives as
    // long as the scan, and the text is copied before the tuple is freed. If PostgreSQL raises an
    // error, the end of the transaction releases lock and scan.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::ExtensionRelationId, LOCK);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_extension_extname as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::F_NAMEEQ.into(),
            pg_sys::Datum::from(c"pg_hugeinfo".as_ptr()),
        );
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::ExtensionNameIndexId.into(),
            true,
            std::ptr::null_mut(),
            1,
            &raw mut key,
        );
        let tuple = pg_sys::systable_getnext(scan);
        let version = if tuple.is_null() {
            None
        } else {
            let mut is_null = false;
            let datum = pg_sys::heap_getattr(
                tuple,
                pg_sys::Anum_pg_extension_extversion.cast_signed(),
                (*relation).rd_att,
                &mut is_null,
            );
            String::from_datum(datum, is_null)
        };
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, LOCK);
        version
    }
}
