//! Whether a start has room for what it brings back.

use crate::server::restored::{Because, Kept, Restored, Room, TooLow, Value, WalLevel};

/// The settings that keep a start with these settings from succeeding, and those of which nobody
/// can tell because what they give room to cannot be counted. None: it has room.
///
/// What the running server has room for has room in as much again, so that only what is lower than
/// now has to be counted.
pub fn too_low(restored: &Restored, next: &Room) -> Vec<TooLow> {
    let mut found = lower_than_primary(restored, next);
    let others = [
        slots(restored, next),
        origins(restored, next),
        prepared_transactions(restored, next),
        wal_level(restored, next),
        hot_standby(restored, next),
    ];
    for other in others.into_iter().flatten() {
        // Once for each setting: what is certain, and the largest value.
        let rank = |one: &TooLow| (one.is_certain(), one.least);
        match found.iter_mut().find(|one| one.setting == other.setting) {
            Some(one) if rank(one) < rank(&other) => *one = other,
            Some(_) => {}
            None => found.push(other),
        }
    }
    found
}

/// access/transam/xlog.c `CheckRequiredParameterValues`.
fn lower_than_primary(restored: &Restored, next: &Room) -> Vec<TooLow> {
    let Some(recovery) = restored.recovery.as_ref().filter(|_| next.hot_standby) else {
        return Vec::new();
    };
    let both = next.like_primary.each().into_iter();
    both.zip(recovery.primary.each())
        .filter(|((_, value), (_, least))| value < least)
        .map(|((setting, value), (_, least))| TooLow {
            setting,
            value: Some(Value::Number(value)),
            least: Value::Number(least),
            because: Because::Primary,
        })
        .collect()
}

/// `sure` is as much as there can be.
fn number(
    setting: &'static str,
    value: u64,
    sure: u64,
    kept: Kept,
    count: Option<u64>,
) -> Option<TooLow> {
    let (least, because) = match count {
        Some(count) => (count, Because::Exist(kept, count)),
        None => (sure, Because::Untold(kept)),
    };
    (value < sure && value < least).then_some(TooLow {
        setting,
        value: Some(Value::Number(value)),
        least: Value::Number(least),
        because,
    })
}

/// replication/slot.c `RestoreSlotFromDisk`.
fn slots(restored: &Restored, next: &Room) -> Option<TooLow> {
    let both = restored.physical_slots.zip(restored.logical_slots);
    number(
        "max_replication_slots",
        next.max_replication_slots,
        restored.now.max_replication_slots,
        Kept::Slots,
        both.map(|(physical, logical)| physical + logical),
    )
}

/// replication/logical/origin.c `StartupReplicationOrigin`, which with 0 brings back none.
fn origins(restored: &Restored, next: &Room) -> Option<TooLow> {
    let setting = if restored.major < 18 {
        "max_replication_slots"
    } else {
        "max_active_replication_origins"
    };
    let sure = restored.now.max_origins;
    let found = number(
        setting,
        next.max_origins,
        sure,
        Kept::Origins,
        restored.origins,
    );
    found.filter(|_| next.max_origins > 0)
}

/// access/transam/twophase.c `PrepareRedoAdd`. A standby has those of its primary.
fn prepared_transactions(restored: &Restored, next: &Room) -> Option<TooLow> {
    let now = restored.now.like_primary.max_prepared_transactions;
    let of_primary = restored.recovery.as_ref();
    let of_primary = of_primary.map(|recovery| recovery.primary.max_prepared_transactions);
    number(
        "max_prepared_transactions",
        next.like_primary.max_prepared_transactions,
        of_primary.map_or(now, |of_primary| of_primary.min(now)),
        Kept::PreparedTransactions,
        restored.prepared_transactions,
    )
}

/// replication/slot.c `RestoreSlotFromDisk`. PostgreSQL 19 turns logical decoding on by itself from
/// `replica` on.
fn wal_level(restored: &Restored, next: &Room) -> Option<TooLow> {
    let for_logical = if restored.major < 19 {
        WalLevel::Logical
    } else {
        WalLevel::Replica
    };
    let level = next.wal_level;
    if level >= restored.now.wal_level {
        return None;
    }
    let of = |least: WalLevel, kept: Kept, count: Option<u64>| {
        let because = match count {
            Some(0) => return None,
            Some(count) => Because::Exist(kept, count),
            None => Because::Untold(kept),
        };
        (level < least).then_some(TooLow {
            setting: "wal_level",
            value: Some(Value::WalLevel(level)),
            least: Value::WalLevel(least),
            because,
        })
    };
    of(for_logical, Kept::LogicalSlots, restored.logical_slots).or_else(|| {
        of(
            WalLevel::Replica,
            Kept::PhysicalSlots,
            restored.physical_slots,
        )
    })
}

/// replication/slot.c `RestoreSlotFromDisk`, since a standby can have logical slots.
fn hot_standby(restored: &Restored, next: &Room) -> Option<TooLow> {
    let is_standby = restored.recovery.as_ref().is_some_and(|r| r.is_standby);
    if restored.major < 16 || !is_standby || next.hot_standby {
        return None;
    }
    let because = match restored.logical_slots {
        Some(0) => return None,
        Some(count) => Because::Exist(Kept::LogicalSlots, count),
        None => Because::Untold(Kept::LogicalSlots),
    };
    Some(TooLow {
        setting: "hot_standby",
        value: Some(Value::Switch(false)),
        least: Value::Switch(true),
        because,
    })
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
