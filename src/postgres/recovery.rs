//! Recovery: whether this server is in it, and the settings of its primary.

use std::{
    ffi::{CStr, CString},
    io,
};

use host::server::patroni::PrimarySettings;
use pgrx::pg_sys;

use super::{places, settings::with_setting, values::Value};
use crate::error::Error;

/// [`OF_PRIMARY`](host::server::patroni::OF_PRIMARY).
const NAMES: [&CStr; 5] = [
    c"max_connections",
    c"max_locks_per_transaction",
    c"max_prepared_transactions",
    c"max_wal_senders",
    c"max_worker_processes",
];

/// Reads the settings with `setting`, which returns them as written in a configuration file.
pub(crate) fn settings(
    setting: impl Fn(&'static CStr) -> String,
) -> Result<PrimarySettings, Error> {
    let read = |name: &'static CStr| {
        let text = CString::new(setting(name)).ok();
        let value = text.and_then(|text| with_setting(name, |record| Value::of(record, &text))?);
        let name = name.to_str().unwrap_or_default();
        match value {
            Some(Value::Whole(value)) => Ok((name, value)),
            _ => Err(Error::setting(name)),
        }
    };
    NAMES.into_iter().map(read).collect()
}

/// Whether this server is in recovery now.
pub(crate) fn is_in_recovery() -> bool {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Settings of the primary in `pg_control`. `None`: the next start is not in recovery
/// (access/transam/xlogrecovery.c `readRecoverySignalFile`).
pub(crate) fn of_primary() -> Result<Option<PrimarySettings>, Error> {
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
fn in_control_file() -> Option<PrimarySettings> {
    let mut is_intact = false;
    // SAFETY: reads the file into memory that we own, or raises PostgreSQL's own error. The server
    // sets the name of the directory before it starts its first process.
    unsafe {
        let control = pg_sys::get_controlfile(pg_sys::DataDir, &raw mut is_intact);
        let settings = PrimarySettings::from([
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
