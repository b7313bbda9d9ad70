//! Servers beside others on NUMA nodes: what has gone wrong once.
#![allow(clippy::expect_used)]

mod scene;

use hugeinfo::{
    advice::{check::Check, diagnosis, how_to_set},
    linux::{
        buddyinfo::FreeBlocks,
        numa::node::{Node, NodeCounters},
        process::segment::Segment,
    },
    model::{
        machine::Machine,
        step::Step,
        take::{Harm, Trouble, take, take_all},
    },
    server::facts::{AllowedNodes, HugePages},
};
use scene::*;

fn node(number: u32, total: u64, free: u64, surplus: u64, gb: u64) -> Node {
    let mut node = on_node(number, total);
    node.memory.total = Some(gb * GB);
    node.pools[0].counters = Some(NodeCounters {
        total,
        free,
        surplus,
    });
    node
}

/// A server of that segment, on these nodes as they are.
struct Host {
    nodes: Vec<Node>,
    reserved: u64,
    overcommit: u64,
    segment: Segment,
    allowed: Vec<u32>,
}

impl Host {
    fn with(self, change: impl FnOnce(&mut Scene)) -> Machine {
        let mut scene = Scene::healthy();
        let counters = self.nodes.iter().map(|node| node.pools[0].counters);
        let counters: Vec<NodeCounters> = counters.flatten().collect();
        let sum = |of: fn(&NodeCounters) -> u64| counters.iter().map(of).sum();
        let pool = &mut scene.facts.pools.as_mut().expect("pools")[0];
        pool.total = sum(|node| node.total);
        pool.free = sum(|node| node.free);
        pool.surplus = sum(|node| node.surplus);
        pool.reserved = self.reserved;
        pool.overcommit = self.overcommit;
        scene.asked(pool_persistent(&scene));
        scene.facts.server.shared_memory_bytes = self.segment.bytes;
        scene.around.shared_buffers_bytes = self.segment.bytes / 10 * 9;
        scene.facts.segment = Ok(self.segment);
        let nodes = self.nodes.iter();
        let allowed: Vec<Node> = nodes
            .filter(|node| self.allowed.contains(&node.number))
            .cloned()
            .collect();
        if !allowed.is_empty() {
            scene.facts.allowed_nodes = AllowedNodes::Only(allowed);
        }
        scene.ram(self.nodes.iter().filter_map(|node| node.memory.total).sum());
        if let Ok(FreeBlocks(free)) = &mut scene.around.free_blocks {
            let blocks = free.get(&0).cloned().unwrap_or_default();
            let nodes = self.nodes.iter();
            *free = nodes.map(|node| (node.number, blocks.clone())).collect();
        }
        scene.around.nodes = Ok(self.nodes);
        change(&mut scene);
        // The scene would share free pages out anew.
        let nodes = scene.around.nodes.clone();
        let mut machine = scene.machine();
        machine.around.as_mut().expect("around").nodes = nodes;
        machine
    }
}

fn pool_persistent(scene: &Scene) -> u64 {
    let pool = &scene.facts.pools.as_ref().expect("pools")[0];
    pool.total - pool.surplus
}

fn segment(bytes: u64, page_bytes: u64) -> Segment {
    Segment {
        bytes,
        page_bytes: Some(page_bytes),
        mappings: 1,
    }
}

fn on_huge_pages(pages: u64) -> Segment {
    segment(pages * 2 * MB, 2 * MB)
}

fn says(name: &str, machine: &Machine) -> Check {
    let mut checks = diagnosis::checks(machine).into_iter();
    checks.find(|check| check.name == name).expect("a check")
}

#[test]
fn a_restart_for_another_reason_finds_its_pages_again() {
    // Others have node 0; somebody made the pool of node 1 smaller while the server ran.
    let machine = Host {
        nodes: vec![node(0, 1000, 0, 0, 32), node(1, 1000, 0, 500, 32)],
        reserved: 0,
        overcommit: 0,
        segment: on_huge_pages(1000),
        allowed: vec![],
    }
    .with(|m| {
        m.around.oom_score_adj = Ok(0);
        for process in &mut m.around.processes {
            process.oom_score_adj = Some(0);
        }
    });
    let (_, trouble) = take(&machine, &Step::Restart);
    assert_eq!(trouble, Some(Trouble::Harm(Harm::LostHugePages)));
    let remedy = says("oom_protection", &machine).remedy.expect("a remedy");
    assert!(
        remedy.ends_with("; sysctl -w vm.nr_hugepages=2000; then restart PostgreSQL"),
        "{remedy}"
    );
}

#[test]
fn free_surplus_pages_go_with_what_was_promised() {
    for huge_pages in [HugePages::Try, HugePages::On] {
        let machine = Host {
            nodes: vec![node(0, 3296, 3210, 1505, 32), node(1, 1649, 1649, 0, 16)],
            reserved: 1634,
            overcommit: 0,
            segment: on_huge_pages(1720),
            allowed: vec![0],
        }
        .with(|m| m.facts.server.huge_pages = huge_pages);
        assert_eq!(take(&machine, &Step::Restart).1, None);
        let steps = says("pool_size", &machine).steps;
        let after = take_all(&machine, &steps).expect("no harm");
        assert_eq!(take(&after, &Step::Restart).1, None, "{steps:?}");
    }
    let machine = Host {
        nodes: vec![node(0, 1000, 1000, 500, 32), node(1, 1000, 1000, 0, 32)],
        reserved: 1000,
        overcommit: 0,
        segment: on_huge_pages(1000),
        allowed: vec![0],
    }
    .with(|_| ());
    let restart = says("restart", &machine);
    assert!(
        restart.finding.starts_with("cannot determine"),
        "{}",
        restart.finding
    );
}

/// Ours has touched all, the other nothing yet.
fn two_servers(pages: u64) -> Machine {
    let left = 60 * GB - pages * 2 * MB;
    let mut nodes = vec![node(0, pages, 0, 0, 64), node(1, pages, pages, 0, 64)];
    for node in &mut nodes {
        node.memory.available = Some(left);
    }
    Host {
        nodes,
        reserved: pages,
        overcommit: 0,
        segment: on_huge_pages(pages),
        allowed: vec![0],
    }
    .with(|m| m.available = Some(2 * left))
}

#[test]
fn promises_on_another_node_are_not_wanted_on_this_one() {
    for pages in [7000, 22_000] {
        let machine = two_servers(pages);
        let pool = machine.pool(2 * MB).expect("a pool");
        assert_eq!(
            how_to_set(&machine, pool),
            Some(format!("sysctl -w vm.nr_hugepages={}", 2 * pages))
        );
        // Somebody else may have taken what it has not touched.
        let restart = says("restart", &machine);
        assert!(
            restart.finding.starts_with("cannot determine"),
            "{}",
            restart.finding
        );
    }
}

/// Bound to node 0, on small pages, of which it has touched so much. Nodes: their memory in GB, and
/// what of it is available.
fn on_small_pages(bytes: u64, touched: u64, of_nodes: [(u64, u64); 2]) -> Machine {
    let with_memory = |(number, (gb, available))| {
        let mut node = node(number, 0, 0, 0, gb);
        node.memory.available = Some(available);
        node
    };
    Host {
        nodes: (0..).zip(of_nodes).map(with_memory).collect(),
        reserved: 0,
        overcommit: 0,
        segment: segment(bytes, 4096),
        allowed: vec![0],
    }
    .with(|m| {
        m.available = Some(of_nodes.iter().map(|(_, available)| available).sum());
        for process in &mut m.around.processes {
            process.rss_shmem = Some(touched);
        }
    })
}

#[test]
fn a_pool_grows_on_the_nodes_of_the_server_alone() {
    let machine = on_small_pages(40 * GB, 40 * GB, [(64, 15 * GB), (64, 60 * GB)]);
    for check in diagnosis::checks(&machine) {
        let remedy = check.remedy.unwrap_or_default();
        assert!(!remedy.contains("sysctl -w"), "{}: {remedy}", check.name);
    }
}

#[test]
fn a_node_is_not_filled_that_is_too_small() {
    let of_nodes = [(16, 157 * GB / 10), (112, 100 * GB)];
    let machine = on_small_pages(20 * GB, 100 * MB, of_nodes);
    let pool = machine.pool(2 * MB).expect("a pool");
    let said = how_to_set(&machine, pool).expect("advice");
    assert!(
        said.contains("or let the server use more NUMA nodes"),
        "{said}"
    );
}

#[test]
fn surplus_pages_elsewhere_become_persistent_first() {
    let mut nodes = vec![node(0, 0, 0, 0, 64), node(1, 10_000, 0, 10_000, 64)];
    nodes[0].memory.available = Some(20 * GB);
    nodes[1].memory.available = Some(30 * GB);
    let machine = Host {
        nodes,
        reserved: 0,
        overcommit: 10_000,
        segment: segment(2000 * MB, 4096),
        allowed: vec![0],
    }
    .with(|m| m.available = Some(50 * GB));
    assert_eq!(
        says("huge_pages", &machine).remedy.as_deref(),
        Some(
            "echo 10000 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 1000 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages; then restart PostgreSQL"
        )
    );
    // Before Linux 6.15 the first alone would make 11,000 pages of node 0.
    let alone = Step::SetPool {
        page_bytes: 2 * MB,
        node: Some(0),
        pages: 1000,
    };
    let (_, trouble) = take(&machine, &alone);
    assert!(matches!(trouble, Some(Trouble::Less { .. })), "{trouble:?}");
}
