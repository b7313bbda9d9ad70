//! The client of each process of the server, as `pg_stat_activity` shows it to the caller.

use std::{
    collections::HashMap,
    ffi::{CStr, OsStr},
    os::unix::ffi::OsStrExt,
};

use pgrx::Spi;

use super::encoding::shown;
use crate::error::Error;

/// The columns of `pg_stat_activity` for one process.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) backend_type: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) application: Option<String>,
}

/// Selects C strings, because names of databases can be invalid in the encoding of this
/// database. Uses no name from the caller's `search_path`.
const ACTIVITY: &str = "
    SELECT pid,
        pg_catalog.textout(backend_type),
        pg_catalog.nameout(datname),
        pg_catalog.textout(application_name)
    FROM pg_catalog.pg_stat_activity
    WHERE pid IS NOT NULL";

/// Returns the activity by PID. PostgreSQL raises its own errors.
pub(crate) fn activity() -> Result<HashMap<u32, Activity>, Error> {
    let mut all = HashMap::new();
    let text = |string: &CStr| shown(OsStr::from_bytes(string.to_bytes()));
    Spi::connect(|client| {
        let Ok(rows) = client.select(ACTIVITY, None, &[]) else {
            return Ok(());
        };
        for row in rows {
            let string = |ordinal| row.get::<&CStr>(ordinal).ok().flatten().map(text);
            let pid = row.get::<i32>(1).ok().flatten();
            let Some(pid) = pid.and_then(|pid| u32::try_from(pid).ok()) else {
                continue;
            };
            all.try_reserve(1)?;
            all.insert(
                pid,
                Activity {
                    backend_type: string(2),
                    database: string(3),
                    application: string(4),
                },
            );
        }
        Ok::<_, Error>(())
    })?;
    Ok(all)
}
