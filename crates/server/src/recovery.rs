//! Settings that are too low for what a start recovers. PostgreSQL checks them only during a real
//! start: its program accepts them with `-C`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// Values of the settings that limit what a start recovers, by name. `hot_standby` is 0 (off) or
/// 1 (on). `wal_level` is 0 (minimal), 1 (replica) or 2 (logical).
pub type RecoverySettings = BTreeMap<&'static str, i32>;

/// Settings that `pg_control` has, in which a standby must not be lower than its primary.
pub const LIMITS: [&str; 5] = [
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_wal_senders",
    "max_worker_processes",
];

/// The name of a setting. An alias, because serde would borrow a field of type `&str` from its
/// input.
pub type Name = &'static str;

/// A setting with which the next start would fail, or might fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLow {
    /// The name of the setting. Only [`LIMITS`] can be deserialized.
    #[serde(deserialize_with = "limit")]
    pub setting: Name,
    /// The value at the next start. `None`: hidden from this role.
    pub value: Option<i32>,
    /// A value that is certainly high enough.
    pub least: i32,
    /// True if the start would fail. If false, it fails only if something needs the present value.
    pub is_certain: bool,
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = LIMITS.into_iter().find(|known| *known == name);
    known.ok_or_else(|| D::Error::custom("unknown setting"))
}

/// Returns the settings that are too low, or could be. `primary` has the settings of the primary
/// in `pg_control`, if the next start is in recovery. `major` is PostgreSQL's major version.
///
/// A hot standby needs some settings at least as high as its primary (access/transam/xlog.c
/// `CheckRequiredParameterValues`). Slots, origins and prepared transactions fit the present
/// settings, but perhaps not lower ones (replication/slot.c `RestoreSlotFromDisk`,
/// replication/logical/origin.c `StartupReplicationOrigin`, access/transam/twophase.c
/// `PrepareRedoAdd`). They are not counted: not every role can read them, and a standby does not
/// show its prepared transactions.
pub fn too_low(
    now: &RecoverySettings,
    next: &RecoverySettings,
    primary: Option<&RecoverySettings>,
    major: u32,
) -> Vec<TooLow> {
    let is_hot = next.get("hot_standby") == Some(&1);
    let check = |(&setting, &value): (&&'static str, &i32)| {
        let of_primary = primary.filter(|_| is_hot);
        let (least, is_certain) = match of_primary.and_then(|settings| settings.get(setting)) {
            Some(least) => (*least, true),
            None if could_be_needed(setting, primary.is_some(), major) => {
                (*now.get(setting)?, false)
            }
            None => return None,
        };
        (value < least).then_some(TooLow {
            setting,
            value: Some(value),
            least,
            is_certain,
        })
    };
    next.iter().filter_map(check).collect()
}

/// Whether something that the server keeps could need the present value of a setting.
fn could_be_needed(setting: &str, is_in_recovery: bool, major: u32) -> bool {
    match setting {
        "max_prepared_transactions"
        | "max_replication_slots"
        | "max_active_replication_origins"
        | "wal_level" => true,
        // Since PostgreSQL 16, a standby can have logical slots, which need a hot standby.
        "hot_standby" => is_in_recovery && major >= 16,
        _ => false,
    }
}
