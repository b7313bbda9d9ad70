//! Each NUMA node: its memory and its part of the pools (mm/hugetlb.c `hugetlb_register_node`,
//! drivers/base/node.c).

use std::{collections::BTreeSet, path::Path};

use crate::linux::{
    error::{ReadError, absent_or, fact},
    hugepages,
    list::{self, List},
    numa::nodes,
    root::Root,
    text::{lines, parse_kilobytes, split_once, words},
};

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Number of the node. Numbers can have gaps.
    pub number: u32,
    pub memory: NodeMemory,
    /// The node's part of each pool of the kernel, smallest page first. A node without memory has
    /// no part.
    pub pools: Vec<NodePool>,
}

impl Node {
    /// The node's part of the pool of that size.
    pub fn part(&self, page_bytes: u64) -> Option<&NodePool> {
        self.pools.iter().find(|part| part.page_bytes == page_bytes)
    }
}

/// Memory in bytes. `None`: no such line, or below zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// `MemTotal` of the node.
    pub total: Option<u64>,
    /// `MemFree` of the node: unused, not even for cached files.
    pub free: Option<u64>,
    /// Free memory, cached files and reclaimable kernel caches. Nodes have no `MemAvailable`, which
    /// is lower, because it leaves out the kernel's reserves.
    pub available: Option<u64>,
}

/// A node's part of a pool. Only the host counts reserved pages and overcommit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePool {
    pub page_bytes: u64,
    /// `None`: the node has no part of this pool, or a counter cannot be read or is below zero.
    pub counters: Option<NodeCounters>,
}

/// Counts of pages on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeCounters {
    /// `nr_hugepages`: persistent and surplus pages that exist.
    pub total: u64,
    /// `free_hugepages`: not faulted in yet, reserved or not.
    pub free: u64,
    /// `surplus_hugepages`: pages beyond the persistent ones.
    pub surplus: u64,
}

/// All nodes that are online, by number, each with a pool for every huge page size of the kernel.
///
/// Errors: absent if the kernel has no NUMA support, or `/sys` is not mounted or hidden.
pub fn read(root: &Root, check_for_interrupts: impl FnMut()) -> Result<Vec<Node>, ReadError> {
    read_among(root, |_| true, check_for_interrupts)
}

/// Reads the memory of all nodes, without their pools.
pub fn read_memory_of_all(
    root: &Root,
    mut check_for_interrupts: impl FnMut(),
) -> Result<Vec<Node>, ReadError> {
    let node = |number| {
        check_for_interrupts();
        Ok(Node {
            number,
            memory: fact(read_memory(root, number))?.unwrap_or_default(),
            pools: Vec::new(),
        })
    };
    nodes::read(root)?.into_iter().map(node).collect()
}

/// Reads the nodes whose numbers `is_wanted` accepts.
pub fn read_among(
    root: &Root,
    is_wanted: impl Fn(u32) -> bool,
    mut check_for_interrupts: impl FnMut(),
) -> Result<Vec<Node>, ReadError> {
    let mut numbers = nodes::read(root)?;
    numbers.retain(|&number| is_wanted(number));
    let page_sizes: BTreeSet<_> = absent_or(hugepages::page_sizes(root))?
        .unwrap_or_default()
        .into_iter()
        .collect();
    let node = |number| {
        check_for_interrupts();
        let pools = page_sizes
            .iter()
            .map(|&page_bytes| {
                Ok(NodePool {
                    page_bytes,
                    counters: fact(read_counters(root, number, page_bytes))?.ok(),
                })
            })
            .collect::<Result<_, ReadError>>()?;
        Ok(Node {
            number,
            memory: fact(read_memory(root, number))?.unwrap_or_default(),
            pools,
        })
    };
    numbers.into_iter().map(node).collect()
}

fn read_counters(root: &Root, node: u32, page_bytes: u64) -> Result<NodeCounters, ReadError> {
    let pool = hugepages::directory(page_bytes);
    let name = pool.rsplit('/').next().unwrap_or_default();
    let directory = format!("{}/hugepages/{name}", nodes::directory(node));
    let counter = |file| hugepages::read_counter(root, &Path::new(&directory).join(file));
    Ok(NodeCounters {
        total: counter("nr_hugepages")?,
        free: counter("free_hugepages")?,
        surplus: counter("surplus_hugepages")?,
    })
}

/// Reads which processors of a node are online. None: the node has only memory or devices.
///
/// Errors: absent if there is no such node.
pub fn read_processors(root: &Root, node: u32) -> Result<List, ReadError> {
    let path = format!("{}/cpulist", nodes::directory(node));
    root.parse(&path, "a list of numbers was expected", |bytes| {
        list::parse(bytes).ok_or(1)
    })
}

/// Reads the memory of a node. Errors: absent if there is no such node.
pub fn read_memory(root: &Root, node: u32) -> Result<NodeMemory, ReadError> {
    let path = format!("{}/meminfo", nodes::directory(node));
    Ok(parse_meminfo(&root.read_record(&path)?))
}

/// `Node 0 MemTotal:       24684092 kB` in each line. Lines with other names are ignored, and those
/// without a valid number of kB have no value.
pub fn parse_meminfo(bytes: &[u8]) -> NodeMemory {
    let mut memory = NodeMemory::default();
    let (mut active_files, mut inactive_files, mut slab) = (None, None, None);
    for (_, line) in lines(bytes) {
        let Some((name, value)) = split_once(line, b':') else {
            continue;
        };
        let field = match words(name).nth(2) {
            Some(b"MemTotal") => &mut memory.total,
            Some(b"MemFree") => &mut memory.free,
            Some(b"Active(file)") => &mut active_files,
            Some(b"Inactive(file)") => &mut inactive_files,
            Some(b"SReclaimable") => &mut slab,
            _ => continue,
        };
        *field = parse_kilobytes(value);
    }
    let parts = [memory.free, active_files, inactive_files, slab];
    let sum = |all: u64, part: Option<u64>| Some(all.saturating_add(part?));
    memory.available = parts.into_iter().try_fold(0, sum);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_node() {
        let text = b"Node 3 MemTotal:       24684092 kB\nNode 3 MemFree:        0 kB\nNode 3 HugePages_Total:  5\n\n";
        let expected = NodeMemory {
            total: Some(24_684_092 << 10),
            free: Some(0),
            available: None,
        };
        assert_eq!(parse_meminfo(text), expected);
        let text = b"Node 0 MemTotal: 900 kB\nNode 0 MemFree: 100 kB\nNode 0 Active: 77 kB\n\
            Node 0 Active(anon): 70 kB\nNode 0 Active(file): 7 kB\nNode 0 Inactive(file): 30 kB\n\
            Node 0 FilePages: 90 kB\nNode 0 Slab: 50 kB\nNode 0 SReclaimable: 4 kB\n";
        let expected = NodeMemory {
            total: Some(900 << 10),
            free: Some(100 << 10),
            available: Some((100 + 7 + 30 + 4) << 10),
        };
        assert_eq!(parse_meminfo(text), expected);
        assert_eq!(parse_meminfo(b""), NodeMemory::default());
        assert_eq!(parse_meminfo(b"MemTotal: 1 kB\n"), NodeMemory::default());
        let text = b"Node 0 MemTotal: 9 kB\nNode 0 MemFree: 18446744073709551615 kB\n\
            Node 0 Active(file): 7 kB\nNode 0 Inactive(file): 30 kB\nNode 0 SReclaimable: 4 MB\n";
        let expected = NodeMemory {
            total: Some(9 << 10),
            free: None,
            available: None,
        };
        assert_eq!(parse_meminfo(text), expected);
    }
}
