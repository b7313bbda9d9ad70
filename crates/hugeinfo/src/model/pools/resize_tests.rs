use super::*;
use crate::model::pools::{Counters, Node, Rules};

const OLD: Rules = Rules {
    spares_other_nodes: false,
    frees_beside_surplus: false,
};

/// A pool of one node.
fn pool(total: u64, free: u64, reserved: u64, surplus: u64) -> Pool {
    let counters = Counters {
        total,
        free,
        reserved,
        surplus,
        overcommit: 0,
    };
    Pool::new(2 << 20, &counters, vec![])
}

/// Nodes of so many total, free and surplus pages.
fn nodes(nodes: &[(u64, u64, u64)]) -> Pool {
    let node = |(number, &(total, free, surplus))| Node {
        number,
        total,
        free,
        surplus,
        room: None,
    };
    let nodes = (0..).zip(nodes).map(node).collect();
    Pool::new(2 << 20, &Counters::default(), nodes)
}

fn shown(pool: &Pool) -> (u64, u64, u64) {
    (pool.total(), pool.free(), pool.surplus())
}

#[test]
fn one_node() {
    for (case, before, pages, after) in [
        ("grows", pool(10, 10, 0, 0), 30, (30, 30, 0)),
        ("shrinks", pool(30, 30, 0, 0), 10, (10, 10, 0)),
        ("to nothing", pool(30, 30, 0, 0), 0, (0, 0, 0)),
        ("in use", pool(30, 10, 0, 0), 5, (20, 0, 15)),
        ("promised", pool(30, 30, 25, 0), 5, (25, 25, 20)),
        // facts.md: 544 in use, `nr_hugepages = 100`
        ("a server", pool(600, 56, 0, 0), 100, (544, 0, 444)),
        ("and back", pool(544, 0, 0, 444), 544, (544, 0, 0)),
        ("and further", pool(544, 0, 0, 444), 600, (600, 56, 0)),
        ("half of it", pool(544, 0, 0, 444), 300, (544, 0, 244)),
        ("free beside surplus", pool(20, 5, 0, 10), 0, (15, 0, 15)),
    ] {
        let mut pool = before.clone();
        let resized = pool.set(pages);
        assert_eq!(shown(&pool), after, "{case}");
        assert_eq!(resized.missing, 0, "{case}");
        // one node is all nodes
        let mut pool = before;
        assert_eq!(pool.set_on_node(0, pages), Ok(resized), "{case}");
        assert_eq!(shown(&pool), after, "{case}");
    }
}

#[test]
fn surplus_pages_kept_free_ones() {
    let mut pool = pool(20, 5, 0, 10);
    pool.rules = OLD;
    pool.set(0);
    assert_eq!(shown(&pool), (20, 5, 20));
}

#[test]
fn memory_may_not_suffice() {
    let mut pool = pool(10, 10, 0, 0);
    pool.nodes[0].room = Some(7);
    let resized = pool.set(30);
    assert_eq!((resized.fresh, resized.missing), (7, 13));
    assert_eq!(shown(&pool), (17, 17, 0));
    // what is freed can be had again
    pool.set(0);
    assert_eq!(pool.set(u64::MAX).fresh, 17);
}

#[test]
fn nodes_take_turns() {
    let mut pool = nodes(&[(0, 0, 0), (0, 0, 0), (0, 0, 0)]);
    pool.nodes[1].room = Some(2);
    pool.set(9);
    let totals = |pool: &Pool| pool.nodes.iter().map(|node| node.total).collect::<Vec<_>>();
    assert_eq!(totals(&pool), [4, 2, 3]);
    pool.set(4);
    assert_eq!(totals(&pool), [2, 0, 2]);
}

#[test]
fn one_node_of_several() {
    // the third has only surplus pages
    let before = nodes(&[(10, 10, 0), (10, 10, 0), (6, 0, 6)]);
    for (rules, node, pages, expected) in [
        (Rules::default(), 0, 15, [15, 10, 6]),
        (Rules::default(), 1, 0, [10, 0, 6]),
        // the six count as if they were persistent
        (OLD, 0, 15, [21, 10, 6]),
    ] {
        let mut pool = before.clone();
        pool.rules = rules;
        assert!(pool.set_on_node(node, pages).is_ok());
        let totals: Vec<u64> = pool.nodes.iter().map(|node| node.total).collect();
        assert_eq!(totals, expected, "{rules:?}, node {node}: {pages}");
    }
    assert_eq!(before.clone().set_on_node(7, 1), Err(Refusal::Missing));
}

#[test]
fn gigantic_pages_are_not_overcommitted() {
    let mut pool = pool(1, 1, 0, 0);
    assert_eq!(pool.set_overcommit(3), Ok(()));
    assert_eq!(pool.overcommit_left(), 3);
    pool.is_gigantic = true;
    assert_eq!(pool.set_overcommit(0), Err(Refusal::Gigantic));
    assert_eq!(pool.overcommit_left(), 0);
}
