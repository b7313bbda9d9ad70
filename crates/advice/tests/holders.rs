//! Holders of huge pages, in small directory trees in place of a host.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

mod scene;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
};

use host::{
    linux::{mounts::Hugetlbfs, process::segment::Segment, root::Root},
    server::{
        holders::{self, Holder, HolderKind},
        state::State,
    },
};
use scene::{GB, MB, healthy, pool};
use tempfile::TempDir;

struct Host(TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        host.write("proc/self/mountinfo", "");
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    /// A process with this many MB of huge pages, and its mappings, each with its page size.
    fn process(&self, pid: u32, name: &str, mb: u64, mappings: &[(u64, &str)]) {
        let kilobytes = mb << 10;
        let status =
            format!("Name:\t{name}\nUid:\t1\t105\t1\t1\nHugetlbPages:\t{kilobytes:8} kB\n");
        self.write(&format!("proc/{pid}/status"), &status);
        let stat = format!("{pid} ({name}) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 100 1\n");
        self.write(&format!("proc/{pid}/stat"), &stat);
        let smaps: String = mappings
            .iter()
            .map(|(page, line)| format!("{line}\nKernelPageSize: {:8} kB\n", page >> 10))
            .collect();
        if !smaps.is_empty() {
            self.write(&format!("proc/{pid}/smaps"), &smaps);
        }
    }

    fn read(&self, state: &State) -> Vec<Holder> {
        let own = HashSet::from([10, 11]);
        let root = Root::at(self.0.path());
        let pools = state.pools.as_deref().unwrap_or_default();
        let mut mappings = HashMap::new();
        holders::huge_mappings(&root, pools, &own, |pid, found| {
            mappings.insert(pid, found);
        })
        .expect("readable files");
        let mut all = holders::read(&root, state, &own, &mappings, || ()).expect("readable files");
        all.sort_by_key(|holder| match &holder.kind {
            HolderKind::Process { pid, .. } => (0, *pid),
            HolderKind::Mount(_) => (1, 0),
            HolderKind::Unexplained => (2, 0),
        });
        all
    }
}

fn process(pid: u32, name: &str, page_bytes: Option<u64>, mb: u64) -> Holder {
    let kind = HolderKind::Process {
        pid,
        name: name.as_bytes().to_vec(),
        uid: Some(105),
        is_own: pid < 20,
    };
    Holder {
        kind,
        page_bytes,
        bytes: Some(mb * MB),
    }
}

fn unexplained(page_bytes: u64, bytes: u64) -> Holder {
    Holder {
        kind: HolderKind::Unexplained,
        page_bytes: Some(page_bytes),
        bytes: Some(bytes),
    }
}

#[test]
fn own_processes_explain_the_pool() {
    let host = Host::new();
    host.process(10, "postgres", 50, &[]);
    host.process(11, "postgres", 30, &[]);
    host.process(30, "bash", 0, &[]);
    host.write("proc/31/comm", "one that has ended");
    let expected = [
        process(10, "postgres", Some(2 * MB), 50),
        process(11, "postgres", Some(2 * MB), 30),
    ];
    assert_eq!(host.read(&healthy()), expected);
}

#[test]
fn shared_mappings_count_once() {
    let host = Host::new();
    let mut state = healthy();
    state.segment = Ok(Segment {
        bytes: 8 * MB,
        page_bytes: Some(4096),
        mappings: 1,
    });
    // Two processes share 100 MB, and each has 40 MB of private memory: 90 of 600 pages.
    *pool(&mut state, 0) = host::linux::hugepages::Pool {
        total: 600,
        free: 500,
        reserved: 500,
        ..pool(&mut state, 0).clone()
    };
    let shared = "7f0000000000-7f0006400000 rw-s 00000000 00:0f 42 /anon_hugepage (deleted)";
    for (pid, own) in [
        (
            20,
            "7f1000000000-7f1002800000 rw-p 00000000 00:0f 43 /anon_hugepage (deleted)",
        ),
        (
            21,
            "7f1000000000-7f1002800000 rw-p 00000000 00:0f 44 /anon_hugepage (deleted)",
        ),
    ] {
        let small = "55d000000000-55d000001000 r-xp 00000000 fe:00 12 /bin/x";
        let mappings = [(4096, small), (2 * MB, shared), (2 * MB, own)];
        host.process(pid, "worker", 60, &mappings);
    }
    // The mappings of this process are unknown.
    host.process(22, "qemu", 20, &[]);
    let expected = [
        process(20, "worker", Some(2 * MB), 60),
        process(21, "worker", Some(2 * MB), 60),
        process(22, "qemu", Some(2 * MB), 20),
        unexplained(2 * MB, (1200 - 180 - 20) * MB),
    ];
    assert_eq!(host.read(&state), expected);

    // With pages of two sizes, its page size is unknown.
    pool(&mut state, 1).total = 1;
    let mut holders = host.read(&state);
    assert_eq!(holders.remove(2), process(22, "qemu", None, 20));
    assert_eq!(holders.pop(), Some(unexplained(GB, GB - 20 * MB)));

    // Never below zero.
    *pool(&mut state, 0) = pool(&mut healthy(), 0).clone();
    pool(&mut state, 0).free = 530;
    host.process(22, "qemu", 100_000, &[]);
    assert!(
        host.read(&state)
            .iter()
            .all(|holder| holder.kind != HolderKind::Unexplained)
    );
}

#[test]
fn mounts_hold_their_reserved_pages() {
    let host = Host::new();
    let mounts = "\
        40 30 0:36 / /dev/hugepages rw - hugetlbfs hugetlbfs rw,pagesize=2M\n\
        41 30 0:37 / /mnt/huge rw - hugetlbfs none rw,pagesize=2M,min_size=104857600\n";
    host.write("proc/self/mountinfo", mounts);
    let mut state = healthy();
    pool(&mut state, 0).total += 70;
    pool(&mut state, 0).free += 10;
    let mount = |point: &str, min_size_bytes| Holder {
        kind: HolderKind::Mount(Hugetlbfs {
            point: PathBuf::from(point),
            page_bytes: Some(2 * MB),
            size_bytes: None,
            min_size_bytes,
        }),
        page_bytes: Some(2 * MB),
        bytes: min_size_bytes,
    };
    let expected = [
        mount("/dev/hugepages", None),
        mount("/mnt/huge", Some(100 * MB)),
        unexplained(2 * MB, 20 * MB),
    ];
    assert_eq!(host.read(&state), expected);
}
