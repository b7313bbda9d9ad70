use super::*;
use crate::server::restored::{LikePrimary, Recovery};

/// A server with PostgreSQL's defaults, `wal_level = logical`, and room for two prepared
/// transactions.
fn room() -> Room {
    Room {
        like_primary: LikePrimary {
            max_connections: 100,
            max_worker_processes: 8,
            max_wal_senders: 10,
            max_prepared_transactions: 2,
            max_locks_per_transaction: 64,
        },
        max_replication_slots: 10,
        max_origins: 10,
        wal_level: WalLevel::Logical,
        hot_standby: true,
    }
}

/// With nothing to bring back.
fn primary(major: u32) -> Restored {
    Restored {
        major,
        now: room(),
        recovery: None,
        physical_slots: Some(0),
        logical_slots: Some(0),
        prepared_transactions: Some(0),
        origins: Some(0),
    }
}

/// One that follows a primary with the same settings.
fn standby(major: u32) -> Restored {
    Restored {
        recovery: Some(Recovery {
            is_standby: true,
            primary: room().like_primary,
        }),
        prepared_transactions: None,
        ..primary(major)
    }
}

type Change = fn(&mut Room);

/// Setting, value and least value of each, with a question mark where that is not certain.
fn says(restored: &Restored, change: Change) -> String {
    let mut next = restored.now.clone();
    change(&mut next);
    let all = too_low(restored, &next);
    let said = all.iter().map(|one| {
        let doubt = if one.is_certain() { "" } else { "?" };
        let value = one
            .value
            .map_or_else(String::new, |value| value.to_string());
        format!("{} {value} < {}{doubt}", one.setting, one.least)
    });
    said.collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(restored: &Restored, cases: &[(Change, &str)]) {
    for (at, (change, expected)) in cases.iter().enumerate() {
        assert_eq!(says(restored, *change), *expected, "case {at}");
    }
}

#[test]
fn nothing_to_bring_back_needs_no_room() {
    for major in 15..=19 {
        let lowest: Change = |next| {
            *next = Room {
                like_primary: LikePrimary {
                    max_connections: 1,
                    max_worker_processes: 0,
                    max_wal_senders: 0,
                    max_prepared_transactions: 0,
                    max_locks_per_transaction: 10,
                },
                max_replication_slots: 0,
                max_origins: 0,
                wal_level: WalLevel::Minimal,
                hot_standby: false,
            };
        };
        check(&primary(major), &[(|_| {}, ""), (lowest, "")]);
    }
}

#[test]
fn a_hot_standby_has_as_much_as_its_primary() {
    let cases: [(Change, &str); 11] = [
        (|_| {}, ""),
        (
            |next| next.like_primary.max_connections = 99,
            "max_connections 99 < 100",
        ),
        (|next| next.like_primary.max_connections = 101, ""),
        (
            |next| next.like_primary.max_worker_processes = 7,
            "max_worker_processes 7 < 8",
        ),
        (
            |next| next.like_primary.max_wal_senders = 9,
            "max_wal_senders 9 < 10",
        ),
        (
            |next| next.like_primary.max_prepared_transactions = 1,
            "max_prepared_transactions 1 < 2",
        ),
        (
            |next| next.like_primary.max_locks_per_transaction = 63,
            "max_locks_per_transaction 63 < 64",
        ),
        (
            |next| {
                next.like_primary.max_connections = 20;
                next.like_primary.max_wal_senders = 0;
            },
            "max_connections 20 < 100, max_wal_senders 0 < 10",
        ),
        (
            |next| {
                next.hot_standby = false;
                next.like_primary.max_connections = 20;
            },
            "",
        ),
        // Its primary's are there, and nobody counts them here.
        (
            |next| {
                next.hot_standby = false;
                next.like_primary.max_prepared_transactions = 1;
            },
            "max_prepared_transactions 1 < 2?",
        ),
        (|next| next.max_replication_slots = 0, ""),
    ];
    for major in 15..=19 {
        check(&standby(major), &cases);
        let mut from_archive = standby(major);
        from_archive
            .recovery
            .as_mut()
            .expect("a recovery")
            .is_standby = false;
        check(&from_archive, &cases);
    }
    // The primary got more, and nothing has been changed here.
    let mut behind = standby(15);
    let primary = &mut behind.recovery.as_mut().expect("a recovery").primary;
    primary.max_connections = 200;
    primary.max_prepared_transactions = 5;
    check(
        &behind,
        &[
            (
                |_| {},
                "max_connections 100 < 200, max_prepared_transactions 2 < 5",
            ),
            (|next| next.hot_standby = false, ""),
            (
                |next| {
                    next.like_primary.max_connections = 200;
                    next.like_primary.max_prepared_transactions = 5;
                },
                "",
            ),
        ],
    );
    // It had more than it has now: that suffices.
    let mut ahead = standby(15);
    let primary = &mut ahead.recovery.as_mut().expect("a recovery").primary;
    primary.max_connections = 50;
    check(
        &ahead,
        &[
            (|next| next.like_primary.max_connections = 50, ""),
            (
                |next| next.like_primary.max_connections = 49,
                "max_connections 49 < 50",
            ),
        ],
    );
}

#[test]
fn slots_have_room() {
    for major in 15..=19 {
        let with_slots = Restored {
            physical_slots: Some(2),
            logical_slots: Some(1),
            ..primary(major)
        };
        let least = if major < 19 { "logical" } else { "replica" };
        let minimal = format!("wal_level minimal < {least}");
        let replica = if major < 19 {
            "wal_level replica < logical"
        } else {
            ""
        };
        let cases: [(Change, &str); 5] = [
            (|next| next.max_replication_slots = 3, ""),
            (
                |next| next.max_replication_slots = 2,
                "max_replication_slots 2 < 3",
            ),
            (
                |next| next.max_replication_slots = 0,
                "max_replication_slots 0 < 3",
            ),
            (|next| next.wal_level = WalLevel::Minimal, &minimal),
            (|next| next.wal_level = WalLevel::Replica, replica),
        ];
        check(&with_slots, &cases);
        let physical = Restored {
            logical_slots: Some(0),
            ..with_slots.clone()
        };
        check(
            &physical,
            &[
                (
                    |next| next.wal_level = WalLevel::Minimal,
                    "wal_level minimal < replica",
                ),
                (|next| next.wal_level = WalLevel::Replica, ""),
            ],
        );
        let untold = Restored {
            physical_slots: None,
            logical_slots: None,
            ..with_slots
        };
        let minimal = format!("wal_level minimal < {least}?");
        check(
            &untold,
            &[
                (|_| {}, ""),
                (|next| next.max_replication_slots = 10, ""),
                (
                    |next| next.max_replication_slots = 9,
                    "max_replication_slots 9 < 10?",
                ),
                (|next| next.wal_level = WalLevel::Minimal, &minimal),
            ],
        );
    }
}

#[test]
fn logical_slots_of_a_standby_want_it_hot() {
    for major in 15..=19 {
        let mut with_slot = standby(major);
        with_slot.logical_slots = Some(1);
        let off: Change = |next| next.hot_standby = false;
        let expected = if major < 16 {
            ""
        } else {
            "hot_standby off < on"
        };
        check(&with_slot, &[(off, expected)]);
        with_slot.recovery.as_mut().expect("a recovery").is_standby = false;
        check(&with_slot, &[(off, "")]);
    }
}

#[test]
fn prepared_transactions_have_room() {
    let with_one = Restored {
        prepared_transactions: Some(1),
        ..primary(15)
    };
    check(
        &with_one,
        &[
            (|next| next.like_primary.max_prepared_transactions = 1, ""),
            (
                |next| next.like_primary.max_prepared_transactions = 0,
                "max_prepared_transactions 0 < 1",
            ),
        ],
    );
    let untold = Restored {
        prepared_transactions: None,
        ..with_one
    };
    check(
        &untold,
        &[
            (|next| next.like_primary.max_prepared_transactions = 2, ""),
            (
                |next| next.like_primary.max_prepared_transactions = 1,
                "max_prepared_transactions 1 < 2?",
            ),
        ],
    );
}

#[test]
fn origins_have_room() {
    for major in 15..=19 {
        let setting = if major < 18 {
            "max_replication_slots"
        } else {
            "max_active_replication_origins"
        };
        let with_three = Restored {
            origins: Some(3),
            ..primary(major)
        };
        let two = format!("{setting} 2 < 3");
        check(
            &with_three,
            &[
                (|next| next.max_origins = 3, ""),
                (|next| next.max_origins = 2, &two),
                // It brings back none, and says nothing.
                (|next| next.max_origins = 0, ""),
            ],
        );
        let untold = Restored {
            origins: None,
            ..with_three
        };
        let two = format!("{setting} 2 < 10?");
        check(&untold, &[(|next| next.max_origins = 2, &two)]);
    }
}

#[test]
fn a_setting_is_named_once() {
    let lower: Change = |next| {
        next.max_replication_slots = 1;
        next.max_origins = 1;
    };
    let mut both = primary(15);
    (both.physical_slots, both.origins) = (Some(2), Some(4));
    check(&both, &[(lower, "max_replication_slots 1 < 4")]);
    (both.physical_slots, both.origins) = (Some(5), Some(4));
    check(&both, &[(lower, "max_replication_slots 1 < 5")]);
    // What is certain goes before what may need more.
    both.origins = None;
    check(&both, &[(lower, "max_replication_slots 1 < 5")]);
    both.major = 18;
    check(
        &both,
        &[(
            lower,
            "max_replication_slots 1 < 5, max_active_replication_origins 1 < 10?",
        )],
    );
}
