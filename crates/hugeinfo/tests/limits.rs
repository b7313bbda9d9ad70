//! What control groups limit and have refused, on small trees that stand for a host.

#![allow(clippy::expect_used)]

use std::{fs, path::PathBuf};

use hugeinfo::linux::{
    cgroup::{
        self, Refused,
        memory::{self, MemoryLimit},
    },
    error::{Absence, ReadError},
    process::Process,
    root::Root,
};
use tempfile::TempDir;

struct Host(TempDir);

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
const V1: &str = "\
    31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
    32 23 0:28 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";

impl Host {
    fn new(groups: &str, mounts: &str) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        host.write("proc/10/cgroup", groups);
        host.write("proc/self/mountinfo", mounts);
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    /// A group of v2 with its memory in MB.
    fn memory(&self, group: &str, limit: &str, usage: u64, inactive_file: u64) {
        let file = |name| format!("sys/fs/cgroup{group}/memory.{name}");
        self.write(&file("max"), &format!("{limit}\n"));
        self.write(&file("current"), &format!("{}\n", usage << 20));
        let stat = format!("file 1\ninactive_file {}\n", inactive_file << 20);
        self.write(&file("stat"), &stat);
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn process(&self) -> Process {
        Process::open(&self.root(), 10).expect("a process")
    }

    fn memory_limit(&self) -> Result<Option<MemoryLimit>, ReadError> {
        memory::read(&self.root(), &self.process())
    }

    fn refused(&self) -> Vec<Refused> {
        let sizes = [2 << 20, 1 << 30];
        let hugetlb = cgroup::read(&self.root(), &self.process(), &sizes).expect("limits");
        cgroup::refused(&self.root(), &hugetlb).expect("counters")
    }
}

#[test]
fn the_tightest_limit_on_memory_is_that_with_the_least_room() {
    let host = Host::new("0::/slice/pg\n", V2);
    host.memory("/slice/pg", "4294967296", 1024, 0);
    host.memory("/slice", "8589934592", 7000, 0);
    let limit = host.memory_limit().expect("readable").expect("a limit");
    let expected = MemoryLimit {
        directory: PathBuf::from("/sys/fs/cgroup/slice"),
        limit_bytes: 8 << 30,
        use_bytes: 7000 << 20,
        inactive_file_bytes: Some(0),
        counts_hugetlb: false,
    };
    assert_eq!(limit, expected);
    assert_eq!(limit.room_bytes(), 1192 << 20);

    // Files can be dropped.
    host.memory("/slice", "8589934592", 7000, 6000);
    let limit = host.memory_limit().expect("readable").expect("a limit");
    assert_eq!(limit.room_bytes(), 3072 << 20);
    assert_eq!(limit.directory, PathBuf::from("/sys/fs/cgroup/slice/pg"));

    host.memory("/slice/pg", "max", 1024, 0);
    host.memory("/slice", "max", 7000, 0);
    assert_eq!(host.memory_limit().expect("readable"), None);
}

#[test]
fn huge_pages_count_where_the_mount_says_so() {
    let host = Host::new("0::/pg\n", &format!("{V2},memory_hugetlb_accounting\n"));
    host.memory("/pg", "1073741824", 5, 7);
    let limit = host.memory_limit().expect("readable").expect("a limit");
    assert!(limit.counts_hugetlb);
    assert_eq!(limit.room_bytes(), 1 << 30);
}

#[test]
fn limits_on_memory_by_the_older_interface() {
    let host = Host::new("3:memory:/pg\n0::/elsewhere\n", V1);
    let file = |name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup/memory/pg/memory.{name}"), text);
    };
    file("limit_in_bytes", "9223372036854771712\n");
    file("usage_in_bytes", "1048576\n");
    assert_eq!(host.memory_limit().expect("readable"), None);
    file("limit_in_bytes", "2147483648\n");
    file("stat", "inactive_file 1\ntotal_inactive_file 4096\n");
    let limit = host.memory_limit().expect("readable").expect("a limit");
    assert_eq!(limit.inactive_file_bytes, Some(4096));
    assert_eq!((limit.limit_bytes, limit.counts_hugetlb), (2 << 30, false));
    file("stat", "total_inactive_file x\n");
    let error = host.memory_limit().expect_err("no number").to_string();
    assert!(error.contains("pg/memory.stat\", line 1"), "{error}");
}

#[test]
fn a_group_that_is_hidden_is_unknown_and_one_without_the_controller_is_not() {
    let host = Host::new("0::/pg\n", V2);
    let hidden = host.memory_limit();
    assert!(
        matches!(&hidden, Err(ReadError::Absent(absent)) if absent.why == Absence::Missing),
        "{hidden:?}"
    );
    host.write("sys/fs/cgroup/pg/cgroup.procs", "");
    assert_eq!(host.memory_limit().expect("readable"), None);
}

#[test]
fn refusals_are_counted() {
    let host = Host::new("0::/slice/pg\n", V2);
    for (group, count) in [("slice", 3), ("slice/pg", 0)] {
        for size in ["2MB", "1GB"] {
            let file = |name| format!("sys/fs/cgroup/{group}/hugetlb.{size}.{name}");
            host.write(&file("max"), "max\n");
            host.write(&file("events"), &format!("max {count}\n"));
        }
    }
    fs::remove_file(host.0.path().join("sys/fs/cgroup/slice/hugetlb.1GB.events")).expect("rm");
    let expected = Refused {
        directory: PathBuf::from("/sys/fs/cgroup/slice"),
        page_bytes: 2 << 20,
        is_reservation: None,
        count: 3,
    };
    assert_eq!(host.refused(), [expected]);

    let host = Host::new("9:hugetlb:/pg\n", V1);
    let file = |name: &str, text: &str| {
        host.write(
            &format!("sys/fs/cgroup/hugetlb/pg/hugetlb.2MB.{name}"),
            text,
        );
    };
    file("limit_in_bytes", "2097152\n");
    file("failcnt", "7\n");
    file("rsvd.failcnt", "1\n");
    let counts: Vec<_> = host
        .refused()
        .iter()
        .map(|refused| (refused.is_reservation, refused.count))
        .collect();
    assert_eq!(counts, [(Some(false), 7), (Some(true), 1)]);
}
