use super::*;
use crate::model::{
    cgroup::{Counter, Group},
    pools::Counters,
};

const MB: u64 = 1 << 20;

fn pool(free: u64) -> Pool {
    let counters = Counters {
        total: free,
        free,
        ..Counters::default()
    };
    Pool::new(2 * MB, &counters, vec![])
}

fn start(huge_pages: HugePages) -> Start {
    Start {
        huge_pages,
        shared_memory_type: SharedMemoryType::Mmap,
        bytes: 100 * MB + 8192,
        huge_page_bytes: None,
        commit_room_bytes: None,
    }
}

/// `None`: on huge pages. `Some`: the reason, and whether it starts all the same.
fn outcome(start: Start, pool: Option<Pool>, groups: Groups) -> Option<(Reason, bool)> {
    let (mut pool_then, mut groups_then) = (pool.clone(), groups.clone());
    let place = Place {
        group: Some(0),
        nodes: vec![0],
    };
    match start.run(&place, pool_then.as_mut(), &mut groups_then) {
        Outcome::OnHugePages(mapping) => {
            let reserved = pool_then.map(|pool| pool.reserved);
            assert_eq!(reserved, Some(mapping.pages()));
            None
        }
        Outcome::OnSmallPages(reason) => {
            assert_eq!(pool_then, pool);
            Some((reason, true))
        }
        Outcome::Refused(reason) => {
            assert_eq!(pool_then, pool);
            Some((reason, false))
        }
    }
}

#[test]
fn starts() {
    use HugePages::{Off, On, Try};
    let none = || Groups(vec![Group::default()]);
    let limited = |pages| {
        let reservations = Some(Counter {
            limit: Some(pages),
            ..Counter::default()
        });
        Groups(vec![Group {
            reservations,
            ..Group::default()
        }])
    };
    let sysv = |huge_pages| Start {
        shared_memory_type: SharedMemoryType::Sysv,
        ..start(huge_pages)
    };
    let committed = |bytes| Start {
        commit_room_bytes: Some(bytes),
        ..start(Try)
    };
    let short = Reason::Refused(Refusal::PoolExhausted { missing: 1 });
    let limit = Reason::Refused(Refusal::ReservationLimit { group: 0 });
    for (case, start, pool, groups, expected) in [
        (
            "off",
            start(Off),
            Some(pool(51)),
            none(),
            Some((Reason::Off, true)),
        ),
        ("just enough", start(On), Some(pool(51)), none(), None),
        ("try", start(Try), Some(pool(51)), none(), None),
        (
            "one short",
            start(On),
            Some(pool(50)),
            none(),
            Some((short, false)),
        ),
        (
            "falls back",
            start(Try),
            Some(pool(50)),
            none(),
            Some((short, true)),
        ),
        (
            "sysv",
            sysv(Try),
            Some(pool(51)),
            none(),
            Some((Reason::NotMmap, true)),
        ),
        (
            "sysv, on",
            sysv(On),
            Some(pool(51)),
            none(),
            Some((Reason::NotMmap, false)),
        ),
        (
            "no such size",
            start(Try),
            None,
            none(),
            Some((Reason::UnknownSize, true)),
        ),
        (
            "none, on",
            start(On),
            None,
            none(),
            Some((Reason::UnknownSize, false)),
        ),
        (
            "limit",
            start(Try),
            Some(pool(51)),
            limited(50),
            Some((limit, true)),
        ),
        (
            "limit, on",
            start(On),
            Some(pool(51)),
            limited(50),
            Some((limit, false)),
        ),
        (
            "limit suffices",
            start(On),
            Some(pool(51)),
            limited(51),
            None,
        ),
        (
            "huge pages need no commit",
            committed(0),
            Some(pool(51)),
            none(),
            None,
        ),
        (
            "room",
            committed(101 * MB),
            Some(pool(0)),
            none(),
            Some((
                Reason::Refused(Refusal::PoolExhausted { missing: 51 }),
                true,
            )),
        ),
        (
            "no room to fall back",
            committed(100 * MB),
            Some(pool(0)),
            none(),
            Some((Reason::CommitLimit, false)),
        ),
    ] {
        assert_eq!(outcome(start, pool, groups), expected, "{case}");
    }
}

#[test]
fn sizes_that_are_no_power_of_two() {
    let start = Start {
        huge_page_bytes: Some(1536 << 10),
        bytes: 3 * MB + 1,
        ..start(HugePages::On)
    };
    let pool = pool(9);
    assert!(start.takes_from(&pool, false));
    // 4.5 MB for PostgreSQL, 6 MB for the kernel
    assert_eq!(start.pages(&pool), 3);
    let start = Start {
        huge_page_bytes: Some(3 * MB),
        ..start
    };
    assert!(!start.takes_from(&pool, true));
}
