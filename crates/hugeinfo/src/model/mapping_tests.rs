use super::*;
use crate::model::{
    cgroup::{Counter, Group, Memory},
    pools::Counters,
};

const PAGE: u64 = 2 << 20;

fn pool(free: u64, overcommit: u64) -> Pool {
    let counters = Counters {
        total: free,
        free,
        overcommit,
        ..Counters::default()
    };
    Pool::new(PAGE, &counters, vec![])
}

fn group(faults: Option<u64>, reservations: Option<u64>) -> Groups {
    let counter = |limit| Counter {
        limit,
        ..Counter::default()
    };
    Groups(vec![Group {
        faults: counter(faults),
        reservations: Some(counter(reservations)),
        ..Group::default()
    }])
}

fn place() -> Place {
    Place {
        group: Some(0),
        nodes: vec![0],
    }
}

/// Pages that were touched, and why it was not more.
fn touch(pages: u64, is_reserved: bool, pool: Pool, groups: Groups) -> (u64, Option<Refusal>) {
    let (mut pool, mut groups) = (pool, groups);
    let before = (pool.clone(), groups.clone());
    let mapping = Mapping::new(10, is_reserved, &place(), &mut pool, &mut groups);
    let mut mapping = mapping.expect("a mapping");
    let result = mapping.touch(pages, &place(), &mut pool, &mut groups);
    assert_eq!(mapping.touched(), result.0);
    mapping.unmap(&mut pool, &mut groups);
    assert_eq!(pool.counters(), before.0.counters(), "all is given back");
    for (after, before) in groups.0.iter().zip(before.1.0) {
        assert_eq!(after.faults.used, before.faults.used);
        assert_eq!(
            after.reservations.map(|counter| counter.used),
            before.reservations.map(|counter| counter.used)
        );
        assert_eq!(after.memory, before.memory);
    }
    result
}

#[test]
fn touches() {
    let fault = Some(Refusal::FaultLimit { group: 0 });
    let reservation = Some(Refusal::ReservationLimit { group: 0 });
    let exhausted = Some(Refusal::PoolExhausted { missing: 1 });
    for (case, pages, is_reserved, pool, groups, expected) in [
        ("all", 10, true, pool(10, 0), group(None, None), (10, None)),
        (
            "no more than mapped",
            11,
            true,
            pool(20, 0),
            group(None, None),
            (10, None),
        ),
        (
            "the bomb",
            10,
            true,
            pool(10, 0),
            group(Some(4), None),
            (4, fault),
        ),
        (
            "not armed",
            4,
            true,
            pool(10, 0),
            group(Some(4), None),
            (4, None),
        ),
        (
            "overcommit",
            10,
            true,
            pool(0, 10),
            group(None, None),
            (10, None),
        ),
        (
            "nobody promised",
            10,
            false,
            pool(3, 0),
            group(None, None),
            (3, exhausted),
        ),
        (
            "overcommit helps",
            10,
            false,
            pool(3, 5),
            group(None, None),
            (8, exhausted),
        ),
        (
            "counts as promised",
            10,
            false,
            pool(10, 0),
            group(None, Some(2)),
            (2, reservation),
        ),
        (
            "promised first",
            10,
            false,
            pool(10, 0),
            group(Some(2), Some(2)),
            (2, reservation),
        ),
    ] {
        assert_eq!(touch(pages, is_reserved, pool, groups), expected, "{case}");
    }
}

#[test]
fn memory_limit() {
    let mut groups = group(None, None);
    groups.0[0].memory = Some(Memory {
        limit_bytes: Some(3 * PAGE + 1),
        used_bytes: 0,
    });
    let refused = Some(Refusal::MemoryLimit { group: 0 });
    assert_eq!(touch(10, true, pool(10, 0), groups), (3, refused));
}

#[test]
fn a_refused_mapping_leaves_nothing() {
    let (mut pool, mut groups) = (pool(9, 0), group(None, Some(10)));
    let refused = Mapping::new(10, true, &place(), &mut pool, &mut groups);
    assert_eq!(refused, Err(Refusal::PoolExhausted { missing: 1 }));
    assert_eq!(groups, group(None, Some(10)));
    let refused = Mapping::new(11, true, &place(), &mut pool, &mut groups);
    assert_eq!(refused, Err(Refusal::ReservationLimit { group: 0 }));
}

#[test]
fn a_server_that_is_found_can_be_stopped() {
    let counters = Counters {
        total: 600,
        free: 575,
        reserved: 512,
        ..Counters::default()
    };
    let mut pool = Pool::new(PAGE, &counters, vec![]);
    let segment = Mapping::found(537, &[(0, 25)], None);
    segment.unmap(&mut pool, &mut Groups::default());
    assert_eq!((pool.free(), pool.reserved), (600, 0));
}
