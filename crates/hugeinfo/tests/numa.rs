//! NUMA nodes of all kinds: one, many, with holes between them, without memory, without huge pages.

#![allow(clippy::expect_used)]

use std::fs;

use hugeinfo::linux::{
    error::ReadError,
    numa::node::{self, Counters, Memory, Node, Pool},
    root::Root,
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
}

fn pool(page_bytes: u64, counters: Option<[u64; 3]>) -> Pool {
    let counters = counters.map(|[total, free, surplus]| Counters {
        total,
        free,
        surplus,
    });
    Pool {
        page_bytes,
        counters,
    }
}

#[test]
fn holes_and_a_node_without_memory() {
    let host = Host::new(&[1_048_576, 2048]);
    host.write("sys/devices/system/node/online", "0,3,8\n");
    host.write("sys/devices/system/node/power/control", "auto\n");
    host.node(0, 1000);
    host.pool(0, 2048, [20, 5, 3]);
    host.pool(0, 1_048_576, [1, 1, 0]);
    host.node(8, 2000);
    host.pool(8, 2048, [0, 0, 0]);
    host.pool(8, 1_048_576, [0, 0, 0]);
    // Processors only: the kernel gives it no directory of pools.
    host.node(3, 0);
    let nodes = host.read().expect("nodes");
    let expected = [
        Node {
            number: 0,
            memory: Memory {
                total: Some(1000 << 10),
                free: Some(500 << 10),
            },
            pools: vec![
                pool(2 << 20, Some([20, 5, 3])),
                pool(1 << 30, Some([1, 1, 0])),
            ],
        },
        Node {
            number: 3,
            memory: Memory {
                total: Some(0),
                free: Some(0),
            },
            pools: vec![pool(2 << 20, None), pool(1 << 30, None)],
        },
        Node {
            number: 8,
            memory: Memory {
                total: Some(2000 << 10),
                free: Some(1000 << 10),
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
fn many_nodes_in_order() {
    let host = Host::new(&[2048]);
    for number in 0..256 {
        host.node(number, 1 << 30);
        host.pool(number, 2048, [u64::from(number), 0, 0]);
    }
    let mut pauses = 0;
    let nodes = node::read(&Root::at(host.0.path()), || pauses += 1).expect("nodes");
    assert_eq!((nodes.len(), pauses), (256, 256));
    for (node, number) in nodes.iter().zip(0..) {
        assert_eq!(node.number, number);
        assert_eq!(node.pools, [pool(2 << 20, Some([u64::from(number), 0, 0]))]);
    }
}

#[test]
fn without_huge_pages_or_numa() {
    let host = Host::new(&[]);
    let error = host.read().expect_err("no nodes");
    assert!(matches!(error, ReadError::Absent(_)), "{error}");
    host.node(0, 1000);
    assert_eq!(host.read().expect("a node")[0].pools, []);
    fs::create_dir_all(host.0.path().join("sys/devices/system/node/node1")).expect("mkdir");
    assert_eq!(host.read().expect("nodes")[1].memory, Memory::default());
}

#[test]
fn the_file_is_named() {
    let host = Host::new(&[2048]);
    host.node(1, 1000);
    host.pool(1, 2048, [1, 1, 0]);
    let broken = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages";
    host.write(broken, "many\n");
    let error = host.read().expect_err("no number").to_string();
    assert!(error.contains(broken), "{error}");
    host.pool(1, 2048, [1, 1, 0]);
    host.write(
        "sys/devices/system/node/node1/meminfo",
        "Node 1 MemFree: x\n",
    );
    let error = host.read().expect_err("no number").to_string();
    assert!(error.contains("node1/meminfo\", line 1"), "{error}");
}
