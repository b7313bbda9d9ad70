//! NUMA nodes: one, many, with gaps in their numbers, without memory, without huge pages.

#![allow(clippy::expect_used)]

use std::fs;

use host::{
    linux::{
        error::ReadError,
        numa::node::{self, Node, NodeCounters, NodeMemory, NodePool},
        root::Root,
    },
    server::{
        facts::{Facts, Subject},
        state::{AllowedNodes, HugePages, Server, SharedMemoryType},
    },
};
use tempfile::TempDir;

struct Host(TempDir);

impl Host {
    fn new(page_kilobytes: &[u64]) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        for kb in page_kilobytes {
            host.write(
                &format!("sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages"),
                "0\n",
            );
        }
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    fn node(&self, number: u32, kilobytes: u64) {
        self.write(
            &format!("sys/devices/system/node/node{number}/meminfo"),
            &format!(
                "Node {number} MemTotal:       {kilobytes} kB\nNode {number} MemFree:        {} kB\n",
                kilobytes / 2
            ),
        );
    }

    fn pool(&self, node: u32, page_kilobytes: u64, [total, free, surplus]: [u64; 3]) {
        for (file, count) in [
            ("nr_hugepages", total),
            ("free_hugepages", free),
            ("surplus_hugepages", surplus),
        ] {
            self.write(
                &format!("sys/devices/system/node/node{node}/hugepages/hugepages-{page_kilobytes}kB/{file}"),
                &format!("{count}\n"),
            );
        }
    }

    fn read(&self) -> Result<Vec<Node>, ReadError> {
        node::read(&Root::at(self.0.path()), || ())
    }

    fn allowed_nodes(&self) -> AllowedNodes {
        let server = Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 4096,
        };
        let subject = Subject {
            postmaster: Some(10),
            address: 0x1000,
        };
        let facts = Facts::read(&Root::at(self.0.path()), server, &subject);
        facts.expect("readable files").allowed_nodes
    }
}

fn pool(page_bytes: u64, counters: Option<[u64; 3]>) -> NodePool {
    let counters = counters.map(|[total, free, surplus]| NodeCounters {
        total,
        free,
        surplus,
    });
    NodePool {
        page_bytes,
        counters,
    }
}

#[test]
fn nodes_with_gaps_and_without_memory_are_read() {
    let host = Host::new(&[1_048_576, 2048]);
    host.write("sys/devices/system/node/online", "0,3,8\n");
    host.write("sys/devices/system/node/power/control", "auto\n");
    host.node(0, 1000);
    host.pool(0, 2048, [20, 5, 3]);
    host.pool(0, 1_048_576, [1, 1, 0]);
    host.node(8, 2000);
    host.pool(8, 2048, [0, 0, 0]);
    host.pool(8, 1_048_576, [0, 0, 0]);
    // Processors only: the kernel creates no directory of pools.
    host.node(3, 0);
    let nodes = host.read().expect("nodes");
    let expected = [
        Node {
            number: 0,
            memory: NodeMemory {
                total: Some(1000 << 10),
                free: Some(500 << 10),
                available: None,
            },
            pools: vec![
                pool(2 << 20, Some([20, 5, 3])),
                pool(1 << 30, Some([1, 1, 0])),
            ],
        },
        Node {
            number: 3,
            memory: NodeMemory {
                total: Some(0),
                free: Some(0),
                available: None,
            },
            pools: vec![pool(2 << 20, None), pool(1 << 30, None)],
        },
        Node {
            number: 8,
            memory: NodeMemory {
                total: Some(2000 << 10),
                free: Some(1000 << 10),
                available: None,
            },
            pools: vec![
                pool(2 << 20, Some([0, 0, 0])),
                pool(1 << 30, Some([0, 0, 0])),
            ],
        },
    ];
    assert_eq!(nodes, expected);
}

#[test]
fn nodes_are_in_order_of_their_numbers() {
    let host = Host::new(&[2048]);
    for number in 0..256 {
        host.node(number, 1 << 30);
        host.pool(number, 2048, [u64::from(number), 0, 0]);
    }
    let mut checks = 0;
    let nodes = node::read(&Root::at(host.0.path()), || checks += 1).expect("nodes");
    assert_eq!((nodes.len(), checks), (256, 256));
    for (node, number) in nodes.iter().zip(0..) {
        assert_eq!(node.number, number);
        assert_eq!(node.pools, [pool(2 << 20, Some([u64::from(number), 0, 0]))]);
    }
}

/// The nodes that a server is allowed to use, on a host with four nodes. Node 2 has no memory.
fn allowed(mems_allowed: &str, policy: Option<&str>) -> AllowedNodes {
    let host = Host::new(&[2048]);
    for number in [0, 1, 3] {
        host.node(number, 1000);
        host.pool(number, 2048, [u64::from(number), 0, 0]);
    }
    host.node(2, 0);
    host.write("sys/devices/system/node/has_memory", "0-1,3\n");
    host.write(
        "proc/10/maps",
        "1000-2000 rw-s 00000000 00:01 42 /dev/zero (deleted)\n",
    );
    host.write(
        "proc/10/status",
        &format!("Name:\tpostgres\n{mems_allowed}"),
    );
    if let Some(policy) = policy {
        let text = format!("1000 {policy} file=/dev/zero\\040(deleted) N0=1 kernelpagesize_kB=4\n");
        host.write("proc/10/numa_maps", &text);
    }
    host.allowed_nodes()
}

#[test]
fn allowed_nodes_are_those_of_cpuset_and_policy() {
    let numbers = |mems_allowed: &str, policy| -> Vec<u32> {
        match allowed(mems_allowed, Some(policy)) {
            AllowedNodes::Only(nodes) => nodes.iter().map(|node| node.number).collect(),
            other => panic!("{other:?}"),
        }
    };
    for all in [
        "",
        "Mems_allowed_list:\t0-3\n",
        "Mems_allowed_list:\t0-1,3\n",
    ] {
        for policy in ["default", "interleave:0-1", "bind:0-1,3"] {
            assert_eq!(
                allowed(all, Some(policy)),
                AllowedNodes::All,
                "{all} {policy}"
            );
        }
    }
    assert_eq!(numbers("Mems_allowed_list:\t1-2\n", "default"), [1]);
    assert_eq!(numbers("Mems_allowed_list:\t0-3\n", "bind:0,3"), [0, 3]);
    assert_eq!(numbers("Mems_allowed_list:\t0-1\n", "bind:1,3"), [1]);
    assert_eq!(numbers("Mems_allowed_list:\t2\n", "default"), [0; 0]);
    let AllowedNodes::Only(nodes) = allowed("Mems_allowed_list:\t3\n", Some("default")) else {
        panic!("not all");
    };
    assert_eq!(nodes[0].pools, [pool(2 << 20, Some([3, 0, 0]))]);
}

#[test]
fn single_node_is_allowed_forbidden_or_unknown() {
    let allows = |allowed: &AllowedNodes| [0, 1, 3].map(|node| allowed.allows(node));
    let some = allowed("Mems_allowed_list:\t1-2\n", Some("default"));
    assert_eq!(allows(&some), [Some(false), Some(true), Some(false)]);
    assert_eq!(allows(&AllowedNodes::All), [Some(true); 3]);
    let unknown = allowed("Mems_allowed_list:\t0-3\n", None);
    assert_eq!(allows(&unknown), [None; 3]);
}

#[test]
fn processors_of_a_node_are_counted() {
    let host = Host::new(&[]);
    let root = Root::at(host.0.path());
    let count = |text: &str| {
        host.write("sys/devices/system/node/node1/cpulist", text);
        node::read_processors(&root, 1).map(|list| list.count())
    };
    assert_eq!(count("0-3,8\n").expect("a list"), 5);
    assert_eq!(count("\n").expect("a list"), 0);
    assert!(matches!(count("x\n"), Err(ReadError::Malformed { .. })));
    let other = node::read_processors(&root, 2).expect_err("no such node");
    assert!(matches!(other, ReadError::Absent(_)), "{other}");
}

#[test]
fn allowed_nodes_are_unknown_if_the_kernel_does_not_report_them() {
    let unknown = allowed("Mems_allowed_list:\t0-3\n", None);
    assert!(matches!(unknown, AllowedNodes::Unknown(_)), "{unknown:?}");
    let host = Host::new(&[2048]);
    // A kernel without NUMA support; then one node. `has_memory` exists since Linux 4.14.
    assert_eq!(host.allowed_nodes(), AllowedNodes::All);
    host.node(0, 1000);
    assert_eq!(host.allowed_nodes(), AllowedNodes::All);
    host.node(1, 1000);
    assert!(matches!(host.allowed_nodes(), AllowedNodes::Unknown(_)));
    host.write("sys/devices/system/node/has_memory", "1\n");
    assert_eq!(host.allowed_nodes(), AllowedNodes::All);
    host.write("sys/devices/system/node/has_memory", "0-1\n");
    assert!(
        matches!(host.allowed_nodes(), AllowedNodes::Unknown(_)),
        "no such process"
    );
}

#[test]
fn nodes_are_absent_without_numa_and_have_no_pools_without_huge_pages() {
    let host = Host::new(&[]);
    let error = host.read().expect_err("no nodes");
    assert!(matches!(error, ReadError::Absent(_)), "{error}");
    host.node(0, 1000);
    assert_eq!(host.read().expect("a node")[0].pools, []);
    fs::create_dir_all(host.0.path().join("sys/devices/system/node/node1")).expect("mkdir");
    assert_eq!(host.read().expect("nodes")[1].memory, NodeMemory::default());
}

#[test]
fn invalid_counter_makes_only_its_node_unknown() {
    let host = Host::new(&[2048]);
    for node in [0, 1] {
        host.node(node, 1000);
        host.pool(node, 2048, [1, 1, 0]);
    }
    let meminfo = "sys/devices/system/node/node1/meminfo";
    host.write(meminfo, "Node 1 MemTotal: 9 kB\nNode 1 MemFree: x\n");
    for counter in ["many\n", "18446744073709551615\n"] {
        let file = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages";
        host.write(file, counter);
        let nodes = host.read().expect("nodes");
        let is_known = |node: &Node| node.pools[0].counters.is_some();
        let known: Vec<_> = nodes.iter().map(is_known).collect();
        assert_eq!(known, [true, false], "{counter}");
        let memory = nodes[1].memory;
        assert_eq!((memory.total, memory.free), (Some(9 << 10), None));
    }
}
