use super::*;

const PAGE: u64 = 2 << 20;

fn limited(parent: Option<usize>, faults: Option<u64>, reservations: Option<u64>) -> Group {
    let counter = |limit| Counter {
        limit,
        ..Counter::default()
    };
    Group {
        parent,
        faults: counter(faults),
        reservations: Some(counter(reservations)),
        ..Group::default()
    }
}

/// 0 above 1 and 2.
fn family() -> Groups {
    Groups(vec![
        limited(None, Some(10), None),
        limited(Some(0), Some(6), Some(3)),
        limited(Some(0), None, None),
    ])
}

fn used(groups: &Groups) -> Vec<u64> {
    groups.0.iter().map(|group| group.faults.used).collect()
}

#[test]
fn all_levels_or_none() {
    for (case, charges, refusal, after) in [
        ("fits", vec![(1, 6), (2, 4)], None, [10, 6, 4]),
        ("its own limit", vec![(1, 7)], Some(1), [0, 0, 0]),
        ("the one above", vec![(2, 6), (1, 5)], Some(0), [6, 0, 6]),
        ("above alone", vec![(0, 11)], Some(0), [0, 0, 0]),
    ] {
        let mut groups = family();
        let mut last = Ok(());
        for (group, pages) in charges {
            last = groups.charge(group, Kind::Fault, pages);
        }
        let expected = refusal.map_or(Ok(()), |group| Err(Refusal::FaultLimit { group }));
        assert_eq!(last, expected, "{case}");
        assert_eq!(used(&groups), after, "{case}");
    }
}

#[test]
fn refusals_are_counted() {
    let mut groups = family();
    assert!(groups.charge(2, Kind::Fault, 11).is_err());
    assert!(groups.charge(1, Kind::Reservation, 4).is_err());
    let refusals: Vec<_> = groups.0.iter().map(|group| group.faults.refusals).collect();
    assert_eq!(refusals, [1, 0, 0], "failcnt: of the level that refuses");
    let events: Vec<_> = (groups.0.iter())
        .map(|group| (group.events, group.local_events))
        .collect();
    assert_eq!(events, [(2, 0), (1, 1), (1, 1)]);
}

#[test]
fn limits_are_set() {
    let reservation = Kind::Reservation;
    for (case, kind, bytes, result, limit) in [
        ("higher", Kind::Fault, Some(9 * PAGE), Ok(()), Some(9)),
        (
            "rounded down",
            Kind::Fault,
            Some(9 * PAGE - 1),
            Ok(()),
            Some(8),
        ),
        ("lifted", Kind::Fault, None, Ok(()), None),
        (
            "to what is used",
            Kind::Fault,
            Some(5 * PAGE),
            Ok(()),
            Some(5),
        ),
        (
            "below",
            Kind::Fault,
            Some(4 * PAGE),
            Err(Refusal::LimitBelowUse),
            Some(6),
        ),
        (
            "below by a byte",
            Kind::Fault,
            Some(5 * PAGE - 1),
            Err(Refusal::LimitBelowUse),
            Some(6),
        ),
        ("zero", reservation, Some(0), Ok(()), Some(0)),
    ] {
        let mut groups = family();
        assert_eq!(groups.charge(1, Kind::Fault, 5), Ok(()));
        assert_eq!(groups.set_limit(1, kind, bytes, PAGE), result, "{case}");
        let counter = groups.0[1].counter(kind);
        assert_eq!(counter.and_then(|counter| counter.limit), limit, "{case}");
    }
    let mut groups = family();
    let missing = Err(Refusal::Missing);
    assert_eq!(groups.set_limit(3, Kind::Fault, None, PAGE), missing);
}

#[test]
fn kernels_before_5_7_promise_without_limit() {
    let mut groups = Groups(vec![Group::default()]);
    assert_eq!(groups.charge(0, Kind::Reservation, 1 << 40), Ok(()));
    assert_eq!(groups.room(0, Kind::Reservation), u64::MAX);
    let missing = Err(Refusal::Missing);
    assert_eq!(groups.set_limit(0, Kind::Reservation, None, PAGE), missing);
}

#[test]
fn the_memory_controller_counts_too() {
    let mut groups = family();
    groups.0[0].memory = Some(Memory {
        limit_bytes: Some(5 * PAGE),
        used_bytes: PAGE,
    });
    groups.0[1].memory = Some(Memory::default());
    assert_eq!(groups.memory_room(1), 4 * PAGE);
    assert_eq!(groups.charge_memory(1, 4 * PAGE), Ok(()));
    let refused = Err(Refusal::MemoryLimit { group: 0 });
    assert_eq!(groups.charge_memory(1, 1), refused);
    groups.uncharge_memory(1, 4 * PAGE);
    assert_eq!(groups.memory_room(1), 4 * PAGE);
}

#[test]
fn a_list_out_of_order_ends() {
    let groups = Groups(vec![
        limited(Some(1), None, None),
        limited(Some(0), None, None),
    ]);
    assert_eq!(groups.path(1).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(groups.path(9).count(), 0);
}
