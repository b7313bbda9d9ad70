use super::*;
use crate::model::pools::{Counters, Node};

fn pool(total: u64, free: u64, reserved: u64, surplus: u64, overcommit: u64) -> Pool {
    let counters = Counters {
        total,
        free,
        reserved,
        surplus,
        overcommit,
    };
    Pool::new(2 << 20, &counters, vec![])
}

fn shown(pool: &Pool) -> (u64, u64, u64, u64) {
    (pool.total(), pool.free(), pool.reserved, pool.surplus())
}

#[test]
fn promises() {
    let short = |missing| Err(Refusal::PoolExhausted { missing });
    for (case, before, pages, result, after) in [
        ("fits", pool(10, 10, 0, 0, 0), 10, Ok(0), (10, 10, 10, 0)),
        (
            "one short",
            pool(10, 10, 0, 0, 0),
            11,
            short(1),
            (10, 10, 0, 0),
        ),
        (
            "promised to others",
            pool(10, 10, 4, 0, 0),
            7,
            short(1),
            (10, 10, 4, 0),
        ),
        ("in use", pool(10, 5, 0, 0, 0), 6, short(1), (10, 5, 0, 0)),
        (
            "overcommit",
            pool(10, 10, 0, 0, 5),
            12,
            Ok(2),
            (12, 12, 12, 2),
        ),
        (
            "overcommit only",
            pool(0, 0, 0, 0, 5),
            5,
            Ok(5),
            (5, 5, 5, 5),
        ),
        (
            "too much for it",
            pool(10, 10, 0, 0, 5),
            16,
            short(1),
            (10, 10, 0, 0),
        ),
        ("used up", pool(12, 2, 2, 2, 3), 3, short(2), (12, 2, 2, 2)),
        (
            "below what there is",
            pool(12, 2, 0, 9, 3),
            3,
            short(1),
            (12, 2, 0, 9),
        ),
    ] {
        let mut pool = before;
        assert_eq!(pool.reserve(pages, &[0]), result, "{case}");
        assert_eq!(shown(&pool), after, "{case}");
    }
}

#[test]
fn what_is_not_touched_is_taken_back() {
    let mut pool = pool(10, 10, 0, 0, 5);
    assert_eq!(pool.reserve(14, &[0]), Ok(4));
    assert_eq!(pool.touch(3, true, &[0]), [(0, 3)]);
    assert_eq!(shown(&pool), (14, 11, 11, 4));
    // surplus pages go first
    pool.give_back(0, 3);
    assert_eq!(shown(&pool), (11, 11, 11, 1));
    pool.unreserve(11);
    assert_eq!(shown(&pool), (10, 10, 0, 0));
}

#[test]
fn pages_that_nobody_promised() {
    let mut pool = pool(10, 10, 8, 0, 1);
    assert_eq!(pool.touch(5, false, &[0]), [(0, 2), (0, 1)]);
    assert_eq!(shown(&pool), (11, 8, 8, 1));
    assert_eq!(pool.touch(1, false, &[0]), []);
}

/// Three pages on the first node, none on the second, and one of two on the third.
fn three_nodes() -> Pool {
    let node = |number, total, free| Node {
        number,
        total,
        free,
        surplus: 0,
        room: Some(10),
    };
    let nodes = vec![node(0, 3, 3), node(1, 0, 0), node(2, 2, 1)];
    Pool::new(2 << 20, &Counters::default(), nodes)
}

#[test]
fn nodes_that_a_process_may_use() {
    for (nodes, pages, result) in [
        (vec![0, 1, 2], 4, Ok(0)),
        (vec![0], 3, Ok(0)),
        (vec![0], 4, Err(Refusal::NodesExhausted { missing: 1 })),
        (vec![1], 1, Err(Refusal::NodesExhausted { missing: 1 })),
        (vec![0, 2], 5, Err(Refusal::PoolExhausted { missing: 1 })),
    ] {
        let mut pool = three_nodes();
        assert_eq!(pool.reserve(pages, &nodes), result, "{pages} of {nodes:?}");
        let reserved = if result.is_ok() { pages } else { 0 };
        assert_eq!(pool.reserved, reserved);
        assert_eq!((pool.total(), pool.free()), (5, 4));
    }
}

#[test]
fn overcommit_has_memory_of_its_nodes_only() {
    let mut pool = three_nodes();
    pool.overcommit = 99;
    assert_eq!(
        pool.reserve(30, &[1]),
        Err(Refusal::PoolExhausted { missing: 16 })
    );
    assert_eq!(
        pool.reserve(9, &[1]),
        Err(Refusal::NodesExhausted { missing: 4 })
    );
    assert_eq!(shown(&pool), (5, 4, 0, 0));
    assert_eq!(pool.touch(4, false, &[1, 2]), [(2, 1), (1, 3)]);
}
