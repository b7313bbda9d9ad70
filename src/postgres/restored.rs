//! What a start of this server brings back, and the settings that give it room.

use std::{
    ffi::{CStr, CString},
    io,
};

use hugeinfo::server::restored::{LikePrimary, Recovery, Restored, Room, WalLevel};
use pgrx::{Spi, pg_sys};

use super::{
    places,
    settings::setting,
    values::{switch, whole_number},
};
use crate::error::Error;

/// PostgreSQL's major version.
const MAJOR: u32 = pg_sys::PG_VERSION_NUM / 10_000;

/// The settings that give room, written as in a configuration file.
pub(crate) fn room(setting: impl Fn(&'static CStr) -> String) -> Result<Room, Error> {
    let unknown = |name: &'static CStr| Error::Setting(name.to_str().unwrap_or_default());
    let number = |name| whole_number(&setting(name), 0).ok_or_else(|| unknown(name));
    Ok(Room {
        like_primary: LikePrimary {
            max_connections: number(c"max_connections")?,
            max_worker_processes: number(c"max_worker_processes")?,
            max_wal_senders: number(c"max_wal_senders")?,
            max_prepared_transactions: number(c"max_prepared_transactions")?,
            max_locks_per_transaction: number(c"max_locks_per_transaction")?,
        },
        max_replication_slots: number(c"max_replication_slots")?,
        max_origins: number(if MAJOR < 18 {
            c"max_replication_slots"
        } else {
            c"max_active_replication_origins"
        })?,
        wal_level: WalLevel::parse(&setting(c"wal_level")).ok_or_else(|| unknown(c"wal_level"))?,
        hot_standby: CString::new(setting(c"hot_standby"))
            .ok()
            .and_then(|value| switch(&value))
            .ok_or_else(|| unknown(c"hot_standby"))?,
    })
}

/// All of it, by some queries.
pub(crate) fn restored() -> Result<Restored, Error> {
    let (slots, prepared_transactions, origins) = (
        "pg_catalog.pg_get_replication_slots()",
        "pg_catalog.pg_prepared_xact()",
        "pg_catalog.pg_show_replication_origin_status()",
    );
    // A temporary slot ends with its session.
    let of_kind = |kind: &str| {
        format!("NOT temporary AND slot_type OPERATOR(pg_catalog.=) '{kind}'::pg_catalog.text")
    };
    Ok(Restored {
        physical_slots: count(slots, &of_kind("physical")),
        logical_slots: count(slots, &of_kind("logical")),
        // In recovery, PostgreSQL shows none of them.
        prepared_transactions: if is_in_recovery() {
            None
        } else {
            count(prepared_transactions, "true")
        },
        origins: count(origins, "true"),
        ..of_primary()?
    })
}

/// Settings that must be at least as high in recovery as on the primary, which can raise them while
/// this server runs. Counts nothing.
pub(crate) fn of_primary() -> Result<Restored, Error> {
    Ok(Restored {
        major: MAJOR,
        now: room(setting)?,
        recovery: recovery()?,
        physical_slots: None,
        logical_slots: None,
        prepared_transactions: None,
        origins: None,
    })
}

/// Whether this server is in recovery now.
pub(crate) fn is_in_recovery() -> bool {
    // SAFETY: looks at shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// As in access/transam/xlogrecovery.c `readRecoverySignalFile`.
fn recovery() -> Result<Option<Recovery>, Error> {
    let is_there = |name: &str| places::data_directory().join(name).exists();
    let is_standby = is_there("standby.signal");
    if !is_standby && !is_there("recovery.signal") {
        return Ok(None);
    }
    let primary = settings_in_control_file()?;
    Ok(Some(Recovery {
        is_standby,
        primary,
    }))
}

/// The settings of the primary according to the WAL.
fn settings_in_control_file() -> Result<LikePrimary, Error> {
    /// It is written every now and then, and read without a lock.
    const ATTEMPTS: usize = 100;
    let at_least_none = |number: i32| u64::try_from(number).unwrap_or_default();
    for _ in 0..ATTEMPTS {
        let mut is_whole = false;
        // SAFETY: reads the file into memory that is ours, or raises PostgreSQL's own error; the
        // name of the directory is set before the server starts its first process.
        unsafe {
            let control = pg_sys::get_controlfile(pg_sys::DataDir, &raw mut is_whole);
            let settings = LikePrimary {
                max_connections: at_least_none((*control).MaxConnections),
                max_worker_processes: at_least_none((*control).max_worker_processes),
                max_wal_senders: at_least_none((*control).max_wal_senders),
                max_prepared_transactions: at_least_none((*control).max_prepared_xacts),
                max_locks_per_transaction: at_least_none((*control).max_locks_per_xact),
            };
            pg_sys::pfree(control.cast());
            if is_whole {
                return Ok(settings);
            }
        }
    }
    let path = places::data_directory().join("global/pg_control");
    let error = io::Error::from(io::ErrorKind::InvalidData);
    Err(Error::file("read", &path, error))
}

/// How many rows of a function without arguments meet a condition. `None`: the caller may not
/// execute it. Does not use the caller's `search_path`.
fn count(function: &str, condition: &str) -> Option<u64> {
    let may = format!(
        "SELECT pg_catalog.has_function_privilege('{function}'::pg_catalog.text, \
         'EXECUTE'::pg_catalog.text)"
    );
    let rows = format!("SELECT pg_catalog.count(*) FROM {function} WHERE {condition}");
    // Read only, unlike `Spi::get_one`: a standby cannot assign a transaction ID.
    let counted: Option<i64> = Spi::connect(|client| {
        let may: Option<bool> = client.select(&may, Some(1), &[])?.first().get_one()?;
        if may != Some(true) {
            return Ok(None);
        }
        client.select(&rows, Some(1), &[])?.first().get_one()
    })
    .ok()
    .flatten();
    counted.and_then(|count| u64::try_from(count).ok())
}
