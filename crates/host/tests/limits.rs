//! Memory limits of cgroups, in small directory trees in place of a host.

#![allow(clippy::expect_used)]

mod tree;

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use host::linux::{
    cgroup::{
        self,
        memory::{self, MemoryLimit},
    },
    error::{Absence, ReadError},
    process::Process,
};
use tree::Host;

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
const V1: &str = "\
    31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
    32 23 0:28 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n";

impl Host {
    /// Adds a v2 cgroup with its memory in MB, and the part of it that is cached files.
    fn memory(&self, group: &str, limit: &str, usage: u64, files: u64) {
        let file = |name| format!("sys/fs/cgroup{group}/memory.{name}");
        self.write(&file("max"), &format!("{limit}\n"));
        self.write(&file("current"), &format!("{}\n", usage << 20));
        let half = files << 19;
        let stat = format!("file 1\nshmem 7\ninactive_file {half}\nactive_file {half}\n");
        self.write(&file("stat"), &stat);
    }

    /// Sets the swap of a cgroup in MB.
    fn swap(&self, group: &str, limit: &str, usage: u64) {
        let file = |name| format!("sys/fs/cgroup{group}/memory.swap.{name}");
        self.write(&file("max"), &format!("{limit}\n"));
        self.write(&file("current"), &format!("{}\n", usage << 20));
    }

    fn process(&self) -> Process {
        Process::open(&self.root(), 10).expect("a process")
    }

    fn memory_limits(&self) -> Result<Vec<MemoryLimit>, ReadError> {
        memory::read(&self.root(), &self.process())
    }
}

#[test]
fn every_cgroup_with_a_memory_limit_is_listed() {
    let host = Host::new("0::/slice/pg\n", V2);
    host.memory("/slice/pg", "4294967296", 1024, 0);
    host.memory("/slice", "8589934592", 7000, 6000);
    let limit = |group: &str, limit_bytes, use_bytes, files| MemoryLimit {
        directory: PathBuf::from(format!("/sys/fs/cgroup{group}")),
        limit_bytes,
        use_bytes,
        file_bytes: Some(files),
        swap_room_bytes: None,
        counts_hugetlb: false,
    };
    let pg = limit("/slice/pg", 4 << 30, 1024 << 20, 0);
    let slice = limit("/slice", 8 << 30, 7000 << 20, 6000 << 20);
    assert_eq!(slice.kept_bytes(), 1000 << 20);
    let limits = host.memory_limits().expect("readable");
    assert_eq!(limits, [pg, slice.clone()]);

    host.memory("/slice/pg", "max", 1024, 0);
    assert_eq!(host.memory_limits().expect("readable"), [slice]);
    host.memory("/slice", "max", 7000, 0);
    assert_eq!(host.memory_limits().expect("readable"), []);
}

#[test]
fn memory_high_is_read_for_every_cgroup() {
    let host = Host::new("0::/slice/pg\n", V2);
    host.memory("/slice/pg", "max", 6140, 100);
    host.memory("/slice", "max", 7000, 0);
    host.write("sys/fs/cgroup/slice/pg/memory.high", "6442450944\n");
    host.write("sys/fs/cgroup/slice/memory.high", "max\n");
    let limits = memory::read_high(&host.root(), &host.process()).expect("readable");
    let figures: Vec<_> = limits
        .iter()
        .map(|limit| (limit.limit_bytes, limit.kept_bytes()))
        .collect();
    assert_eq!(figures, [(6 << 30, 6040 << 20)]);
    assert_eq!(host.memory_limits().expect("readable"), []);
}

#[test]
fn refused_pages_count_if_a_limit_can_be_hidden() {
    const PART: &str = "30 23 0:26 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    let sizes = [2 << 20, 1 << 30];
    for (mounts, group, expected) in [
        (PART, "/pod/pg", vec![(2 << 20, 7)]),
        // All cgroups are visible.
        (V2, "/pg", vec![]),
        (V1, "/pg", vec![]),
    ] {
        let host = Host::new(&format!("0::{group}\n"), mounts);
        let namespace = host.0.path().join("proc/self/ns");
        fs::create_dir_all(&namespace).expect("mkdir");
        symlink("cgroup:[4026531835]", namespace.join("cgroup")).expect("a link");
        host.write("sys/fs/cgroup/pg/hugetlb.2MB.events", "max 7\n");
        host.write("sys/fs/cgroup/pg/hugetlb.1GB.events", "max -1\n");
        let refused = cgroup::refusals(&host.root(), &host.process(), sizes.into_iter());
        let refused = refused.unwrap_or_default();
        assert_eq!(refused, expected.into_iter().collect(), "{mounts}");
    }
}

#[test]
fn swap_is_limited_by_a_cgroup_and_its_ancestors() {
    let host = Host::new("0::/slice/pg\n", V2);
    let rooms = || {
        let limits = host.memory_limits().expect("readable");
        let rooms = limits.iter().map(|limit| limit.swap_room_bytes);
        rooms.collect::<Vec<_>>()
    };
    host.memory("/slice/pg", "4294967296", 1024, 0);
    host.memory("/slice", "max", 1024, 0);
    assert_eq!(rooms(), [None]);
    host.swap("/slice/pg", "max", 7);
    host.swap("/slice", "104857600", 40);
    assert_eq!(rooms(), [Some(60 << 20)]);
    host.swap("/slice/pg", "10485760", 40);
    assert_eq!(rooms(), [Some(0)]);
}

#[test]
fn without_swappiness_nothing_is_swapped_out() {
    let room = |host: &Host| host.memory_limits().expect("readable")[0].swap_room_bytes;
    let host = Host::new("0::/pg\n", V2);
    host.memory("/pg", "4294967296", 1024, 0);
    for (swappiness, expected) in [("60\n", None), ("0\n", Some(0))] {
        host.write("proc/sys/vm/swappiness", swappiness);
        assert_eq!(room(&host), expected);
    }
    // In v1, a cgroup has its own.
    let host = Host::new("3:memory:/pg\n", V1);
    let file = |name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup/memory/pg/memory.{name}"), text);
    };
    file("limit_in_bytes", "2147483648\n");
    file("usage_in_bytes", "1048576\n");
    for (of_host, own, expected) in [("0\n", "60\n", None), ("60\n", "0\n", Some(0))] {
        host.write("proc/sys/vm/swappiness", of_host);
        file("swappiness", own);
        assert_eq!(room(&host), expected);
    }
}

#[test]
fn huge_pages_count_with_memory_hugetlb_accounting() {
    let host = Host::new("0::/pg\n", &format!("{V2},memory_hugetlb_accounting\n"));
    host.memory("/pg", "1073741824", 5, 7);
    let limits = host.memory_limits().expect("readable");
    assert!(limits[0].counts_hugetlb);
    assert_eq!(limits[0].kept_bytes(), 0);
}

#[test]
fn memory_limits_of_cgroup_v1_are_read() {
    let host = Host::new("3:memory:/pg\n0::/elsewhere\n", V1);
    let file = |name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup/memory/pg/memory.{name}"), text);
    };
    file("limit_in_bytes", "9223372036854771712\n");
    file("usage_in_bytes", "1048576\n");
    assert_eq!(host.memory_limits().expect("readable"), []);
    file("limit_in_bytes", "2147483648\n");
    file(
        "stat",
        "inactive_file 1\ntotal_inactive_file 4096\ntotal_active_file 8192\n",
    );
    // memory.memsw limits memory and swap together.
    file("memsw.limit_in_bytes", "3221225472\n");
    file("memsw.usage_in_bytes", "3145728\n");
    let limits = host.memory_limits().expect("readable");
    let limit = &limits[0];
    assert_eq!(limit.file_bytes, Some(12_288));
    assert_eq!((limit.limit_bytes, limit.counts_hugetlb), (2 << 30, false));
    assert_eq!(limit.swap_room_bytes, Some((1 << 30) - (2 << 20)));
    let file_bytes = |text: &str| {
        file("stat", text);
        host.memory_limits().expect("readable")[0].file_bytes
    };
    let active = "total_active_file 8192\n";
    for inactive in ["x", "18446744073709551615"] {
        let text = format!("total_inactive_file {inactive}\n{active}");
        assert_eq!(file_bytes(&text), None, "{text}");
    }
    file("usage_in_bytes", "18446744073709551615\n");
    let limits = host.memory_limits().expect("readable");
    // Unknown use leaves no room below the limit.
    assert!(limits[0].use_bytes > limits[0].limit_bytes);
}

#[test]
fn cgroup_v1_limits_of_ancestors_are_read() {
    let host = Host::new("3:memory:/slice/pg\n", V1);
    for (group, limit) in [
        ("", "9223372036854771712\n"),
        ("/slice", "1073741824\n"),
        ("/slice/pg", "2147483648\n"),
    ] {
        for (name, text) in [
            ("limit_in_bytes", limit),
            ("usage_in_bytes", "1048576\n"),
            ("stat", ""),
        ] {
            host.write(&format!("sys/fs/cgroup/memory{group}/memory.{name}"), text);
        }
    }
    let limits = host.memory_limits().expect("readable");
    let megabytes: Vec<_> = limits.iter().map(|limit| limit.limit_bytes >> 20).collect();
    assert_eq!(megabytes, [2048, 1024]);
}

#[test]
fn limits_are_unknown_in_a_hidden_cgroup_and_empty_without_the_controller() {
    let host = Host::new("0::/pg\n", V2);
    let hidden = host.memory_limits();
    assert!(
        matches!(&hidden, Err(ReadError::Absent(absent)) if absent.why == Absence::Missing),
        "{hidden:?}"
    );
    host.write("sys/fs/cgroup/pg/cgroup.procs", "");
    assert_eq!(host.memory_limits().expect("readable"), []);
    // The file is there, and lacks an entry.
    host.write(
        "proc/self/mountinfo",
        "30 23 0:26 / /sys rw - sysfs sysfs rw\n",
    );
    let error = host.memory_limits().expect_err("not mounted").to_string();
    let expected = "mountinfo has no cgroup2 file system that shows this cgroup";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn limits_of_the_outermost_cgroup_are_set_outside_of_a_container() {
    const ALL: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    let fixed = |mount: &str, namespace: &str| {
        let host = Host::new("0::/slice/pg\n", mount);
        for group in ["", "/slice", "/slice/pg", "/pg"] {
            let file = |name| format!("sys/fs/cgroup{group}/hugetlb.2MB.{name}");
            host.write(&file("max"), "4194304\n");
        }
        let links = host.0.path().join("proc/self/ns");
        fs::create_dir_all(&links).expect("mkdir");
        std::os::unix::fs::symlink(namespace, links.join("cgroup")).expect("symlink");
        let hugetlb = cgroup::read(&host.root(), &host.process(), &[2 << 20]).expect("limits");
        let groups = hugetlb.groups.iter();
        groups.map(|group| group.is_set_outside).collect::<Vec<_>>()
    };
    let (host, other) = ("cgroup:[4026531835]", "cgroup:[4026532835]");
    assert_eq!(fixed(ALL, host), [false, false, false]);
    assert_eq!(fixed(ALL, other), [false, false, true]);
    // ProtectControlGroups of systemd makes the mount read-only for the server, but not for root.
    let read_only = ALL.replace("cgroup rw", "cgroup ro,nosuid");
    assert_eq!(fixed(&read_only, host), [false, false, false]);
    assert_eq!(fixed(&read_only, other), [true, true, true]);
    // Without a cgroup namespace, a container sees the mounted part.
    let part = ALL.replace(" / /sys", " /slice /sys");
    assert_eq!(fixed(&part, host), [false, true]);
}
