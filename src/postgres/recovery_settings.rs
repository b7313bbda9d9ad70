//! Settings that limit what the next start of this server recovers.

use std::{
    ffi::{CStr, CString},
    io,
};

use hugeinfo::server::recovery::{self, RecoverySettings, TooLow};
use pgrx::pg_sys;

use super::{
    places,
    settings::{is_defined, setting, with_setting},
    values::Value,
};
use crate::error::Error;

const NAMES: [&CStr; 9] = [
    c"hot_standby",
    // New in PostgreSQL 18.
    c"max_active_replication_origins",
    c"max_connections",
    c"max_locks_per_transaction",
    c"max_prepared_transactions",
    c"max_replication_slots",
    c"max_wal_senders",
    c"max_worker_processes",
    c"wal_level",
];

/// Reads the settings with `setting`, which returns them as written in a configuration file.
pub(crate) fn recovery_settings(
    setting: impl Fn(&'static CStr) -> String,
) -> Result<RecoverySettings, Error> {
    let read = |name: &'static CStr| {
        let text = CString::new(setting(name)).ok();
        let value = text.and_then(|text| with_setting(name, |record| Value::of(record, &text))?);
        let name = name.to_str().unwrap_or_default();
        match value {
            Some(Value::Whole(value)) => Ok((name, value)),
            _ => Err(Error::setting(name)),
        }
    };
    let defined = NAMES.into_iter().filter(|name| is_defined(name));
    defined.map(read).collect()
}

/// The settings in use.
pub(crate) fn in_use() -> Result<RecoverySettings, Error> {
    recovery_settings(setting)
}

/// The settings of the next start that are too low, or could be.
pub(crate) fn too_low(next: &RecoverySettings) -> Result<Vec<TooLow>, Error> {
    const MAJOR: u32 = pg_sys::PG_VERSION_NUM / 10_000;
    let primary = of_primary()?;
    Ok(recovery::too_low(&in_use()?, next, primary.as_ref(), MAJOR))
}

/// Whether this server is in recovery now.
pub(crate) fn is_in_recovery() -> bool {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Settings of the primary in `pg_control`. `None`: the next start is not in recovery
/// (access/transam/xlogrecovery.c `readRecoverySignalFile`).
pub(crate) fn of_primary() -> Result<Option<RecoverySettings>, Error> {
    /// The server can write the file during a read.
    const ATTEMPTS: usize = 100;
    let directory = places::data_directory();
    let has = |name: &str| directory.join(name).exists();
    if !has("standby.signal") && !has("recovery.signal") {
        return Ok(None);
    }
    let settings = (0..ATTEMPTS).find_map(|_| in_control_file());
    settings.map(Some).ok_or_else(|| {
        let path = directory.join("global/pg_control");
        Error::file("read", &path, io::ErrorKind::InvalidData.into())
    })
}

/// `None`: the checksum is wrong.
fn in_control_file() -> Option<RecoverySettings> {
    let mut is_intact = false;
    // SAFETY: reads the file into memory that we own, or raises PostgreSQL's own error. The server
    // sets the name of the directory before it starts its first process.
    unsafe {
        let control = pg_sys::get_controlfile(pg_sys::DataDir, &raw mut is_intact);
        let settings = RecoverySettings::from([
            ("max_connections", (*control).MaxConnections),
            ("max_worker_processes", (*control).max_worker_processes),
            ("max_wal_senders", (*control).max_wal_senders),
            ("max_prepared_transactions", (*control).max_prepared_xacts),
            ("max_locks_per_transaction", (*control).max_locks_per_xact),
        ]);
        pg_sys::pfree(control.cast());
        is_intact.then_some(settings)
    }
}
