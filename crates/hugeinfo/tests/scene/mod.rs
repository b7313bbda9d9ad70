//! Servers and machines for the tests of the reasoning.

#![allow(clippy::expect_used, dead_code)]

use std::path::PathBuf;

use hugeinfo::{
    linux::{
        cgroup::{Group, Hugetlb, Limits, Version},
        error::{Absence, Absent},
        hugepages::Pool,
        meminfo::Meminfo,
        process::segment::Segment,
    },
    server::facts::{AllowedNodes, Facts, HugePages, Server, SharedMemoryType},
};

pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;

/// A server of 1074 MB on 537 huge pages of 2 MB, 25 of them touched, on a host of 64 GB that has
/// no page too many.
pub fn healthy() -> Facts {
    Facts {
        server: Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 1073 * MB,
        },
        planned: None,
        base_page_bytes: 4096,
        segment: Ok(Segment {
            bytes: 1074 * MB,
            page_bytes: Some(2 * MB),
            mappings: 1,
        }),
        meminfo: Ok(Meminfo {
            total_bytes: Some(64 * GB),
            default_huge_page_bytes: Some(2 * MB),
        }),
        pools: Ok(vec![
            Pool {
                page_bytes: 2 * MB,
                total: 537,
                free: 512,
                reserved: 512,
                surplus: 0,
                overcommit: 0,
            },
            Pool {
                page_bytes: GB,
                total: 0,
                free: 0,
                reserved: 0,
                surplus: 0,
                overcommit: 0,
            },
        ]),
        hugetlb: Ok(Hugetlb {
            version: Version::V2,
            groups: vec![],
        }),
        allowed_nodes: AllowedNodes::All,
    }
}

/// The same server on small pages, with a pool of so many free pages.
pub fn fallen_back(pool_pages: u64) -> Facts {
    let mut facts = healthy();
    facts.segment = Ok(Segment {
        bytes: 1073 * MB,
        page_bytes: Some(4096),
        mappings: 1,
    });
    *pool(&mut facts, 0) = Pool {
        total: pool_pages,
        free: pool_pages,
        reserved: 0,
        ..pool(&mut facts, 0).clone()
    };
    facts
}

pub fn pool(facts: &mut Facts, index: usize) -> &mut Pool {
    &mut facts.pools.as_mut().expect("pools")[index]
}

pub fn limited(facts: &mut Facts, fault_mb: Option<u64>, reservation_mb: Option<u64>) {
    facts.hugetlb = Ok(Hugetlb {
        version: Version::V2,
        groups: vec![Group {
            directory: PathBuf::from("/sys/fs/cgroup/pg"),
            limits: vec![Limits {
                page_bytes: 2 * MB,
                fault_limit: fault_mb.map(|mb| mb * MB),
                fault_use: Some(0),
                reservation_limit: reservation_mb.map(|mb| mb * MB),
                reservation_use: Some(0),
            }],
        }],
    });
}

pub fn missing(path: &str) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why: Absence::Missing,
    }
}

pub fn denied(path: &str) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why: Absence::Denied,
    }
}
