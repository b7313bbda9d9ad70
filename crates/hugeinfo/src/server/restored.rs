//! What a start of PostgreSQL brings back, and the settings that have to give it room. They are
//! compared when the server starts in earnest: its program's `-C` says nothing of it.

use std::fmt;

/// What a start brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// PostgreSQL's major version: what it compares depends on it.
    pub major: u32,
    /// What the server runs with: all that there is has room in it.
    pub now: Room,
    /// `None`: the start has nothing to follow.
    pub recovery: Option<Recovery>,
    /// Physical replication slots that outlive a session. `None`, here and below: the caller may
    /// not ask, or the server doesn't tell.
    pub physical_slots: Option<u64>,
    /// Logical ones.
    pub logical_slots: Option<u64>,
    /// Prepared transactions. A standby doesn't tell.
    pub prepared_transactions: Option<u64>,
    /// Replication origins whose progress is kept.
    pub origins: Option<u64>,
}

/// A start that follows a primary, or replays its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it is told so by `standby.signal`, not by `recovery.signal`.
    pub is_standby: bool,
    /// What the primary had, as of the WAL that has been replayed (`pg_control`).
    pub primary: LikePrimary,
}

/// The settings that give room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Those of which a hot standby has to have as much as its primary.
    pub like_primary: LikePrimary,
    /// `max_replication_slots`.
    pub max_replication_slots: u64,
    /// `max_active_replication_origins`; before PostgreSQL 18 that is `max_replication_slots`.
    pub max_origins: u64,
    /// `wal_level`.
    pub wal_level: WalLevel,
    /// `hot_standby`.
    pub hot_standby: bool,
}

/// Settings of which a hot standby has to have as much as its primary (access/transam/xlog.c
/// `CheckRequiredParameterValues`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePrimary {
    /// `max_connections`.
    pub max_connections: u64,
    /// `max_worker_processes`.
    pub max_worker_processes: u64,
    /// `max_wal_senders`.
    pub max_wal_senders: u64,
    /// `max_prepared_transactions`.
    pub max_prepared_transactions: u64,
    /// `max_locks_per_transaction`.
    pub max_locks_per_transaction: u64,
}

impl LikePrimary {
    /// Names and values.
    pub fn each(&self) -> [(&'static str, u64); 5] {
        [
            ("max_connections", self.max_connections),
            ("max_worker_processes", self.max_worker_processes),
            ("max_wal_senders", self.max_wal_senders),
            ("max_prepared_transactions", self.max_prepared_transactions),
            ("max_locks_per_transaction", self.max_locks_per_transaction),
        ]
    }
}

/// The setting `wal_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WalLevel {
    /// What a crash needs.
    Minimal,
    /// What a standby or an archive needs.
    Replica,
    /// What logical decoding needs.
    Logical,
}

impl WalLevel {
    /// As the setting is written, the names before PostgreSQL 9.6 too.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "minimal" => Self::Minimal,
            "replica" | "archive" | "hot_standby" => Self::Replica,
            "logical" => Self::Logical,
            _ => return None,
        })
    }

    /// As the setting is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Replica => "replica",
            Self::Logical => "logical",
        }
    }
}

/// A setting with which a start is refused, or may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLow {
    /// Its name.
    pub setting: &'static str,
    /// What it would be. `None`: that is not for the caller to know.
    pub value: Option<Value>,
    /// The least that will do for certain.
    pub least: Value,
    /// What has to have room in it.
    pub because: Because,
}

impl TooLow {
    /// Whether a start with it is refused, beyond doubt.
    pub fn is_certain(&self) -> bool {
        !matches!(self.because, Because::Untold(_))
    }
}

/// What a setting has to give room to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// What the primary could have.
    Primary,
    /// So many of these.
    Exist(Kept, u64),
    /// Nobody can tell how many of these.
    Untold(Kept),
}

/// What outlives a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Replication slots, of both kinds.
    Slots,
    /// Physical replication slots.
    PhysicalSlots,
    /// Logical replication slots.
    LogicalSlots,
    /// Prepared transactions.
    PreparedTransactions,
    /// Replication origins.
    Origins,
}

/// The value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A number.
    Number(u64),
    /// `wal_level`.
    WalLevel(WalLevel),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::WalLevel(level) => level.as_str().fmt(f),
            Self::Switch(is_on) => (if *is_on { "on" } else { "off" }).fmt(f),
        }
    }
}
