//! Use and OOM kills of cgroups, in small directory trees in place of a host.

#![allow(clippy::expect_used)]

mod tree;

use std::fs;

use host::{
    linux::{
        cgroup::memory_events::{self, GroupMemory},
        process::Process,
    },
    server::{
        facts::Subject,
        sources::{self, Availability},
    },
};
use tree::Host;

const PID: u32 = 10;
const V1: &str = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

impl Host {
    fn memory(&self) -> GroupMemory {
        let process = Process::open(&self.root(), PID).expect("a process");
        memory_events::read(&self.root(), &process).expect("readable")
    }

    fn source(&self) -> Availability {
        let subject = Subject {
            postmaster: Some(PID),
            address: 0,
        };
        let sources = sources::probe(&self.root(), &subject).expect("memory");
        let is_it = |source: &&sources::Source| source.name == "memory cgroup";
        sources.iter().find(is_it).expect("a source").status
    }
}

#[test]
fn root_of_v2_reports_nothing() {
    let host = Host::new("0::/\n", V2);
    assert_eq!(host.memory(), GroupMemory::default());
    assert_eq!(host.source(), Availability::Missing);
}

#[test]
fn v2_has_current_and_events() {
    let host = Host::new("0::/slice/pg\n", V2);
    let file = |group: &str, name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup{group}/memory.{name}"), text);
    };
    let events = "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n";
    file("/slice/pg", "events", events);
    file("/slice/pg", "current", "4096\n");
    file("/slice", "current", "8192\n");
    // Before Linux 4.13, `oom_kill` is missing.
    file("/slice", "events", "low 0\nhigh 0\nmax 7\noom 0\n");
    let pg = GroupMemory {
        used_bytes: Some(4096),
        oom_kills: Some(5),
    };
    assert_eq!(host.memory(), pg);
    assert_eq!(host.source(), Availability::Ok);
    // Without files, the nearest cgroup that has them counts.
    fs::remove_dir_all(host.0.path().join("sys/fs/cgroup/slice/pg")).expect("removed");
    let slice = GroupMemory {
        used_bytes: Some(8192),
        oom_kills: None,
    };
    assert_eq!(host.memory(), slice);
    assert_eq!(host.source(), Availability::Ok);
}

#[test]
fn v1_has_usage_and_oom_control() {
    let host = Host::new("3:memory:/pg\n0::/elsewhere\n", V1);
    let file = |name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup/memory/pg/memory.{name}"), text);
    };
    file("usage_in_bytes", "1048576\n");
    file(
        "oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
    );
    let pg = GroupMemory {
        used_bytes: Some(1 << 20),
        oom_kills: Some(4),
    };
    assert_eq!(host.memory(), pg);
    assert_eq!(host.source(), Availability::Ok);
    // An invalid value is absent.
    file("usage_in_bytes", "18446744073709551615\n");
    assert_eq!(host.memory(), GroupMemory::default());
}

#[test]
fn memory_is_unknown_without_cgroups() {
    let host = Host::new("", "");
    assert_eq!(host.memory(), GroupMemory::default());
    // The cgroup is not visible in this namespace.
    host.write("proc/10/cgroup", "0::/../pg\n");
    host.write("proc/self/mountinfo", V2);
    let process = Process::open(&host.root(), PID).expect("a process");
    assert!(memory_events::read(&host.root(), &process).is_err());
    assert_eq!(host.source(), Availability::Missing);
}
