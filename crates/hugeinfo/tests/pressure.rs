//! Memory shortage of the host and of cgroups, in small directory trees in place of a host.

#![allow(clippy::expect_used)]

mod tree;

use std::{fs, path::Path};

use hugeinfo::{
    linux::{
        cgroup::memory_events::Shortage,
        pressure::{Pressure, Stalls},
    },
    server::{
        facts::Subject,
        memory_pressure::{self, Level},
        sources::{self, Availability},
    },
};
use tree::Host;

const PID: u32 = 10;
const V1: &str = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

impl Host {
    fn levels(&self) -> Vec<Level> {
        memory_pressure::read(&self.root(), PID).expect("readable")
    }

    fn source(&self, name: &str) -> Availability {
        let subject = Subject {
            postmaster: Some(PID),
            address: 0,
        };
        let sources = sources::probe(&self.root(), &subject);
        let source = sources.iter().find(|source| source.name == name);
        source.expect("a source of that name").status
    }
}

fn level(group: &str, shortage: Shortage) -> Level {
    Level {
        group: Some(Path::new(group).to_owned()),
        shortage,
    }
}

#[test]
fn host_is_the_first_level() {
    let host = Host::new("0::/\n", V2);
    host.write("proc/vmstat", "oom_kill 3\n");
    host.write(
        "proc/pressure/memory",
        "some avg10=1.50 avg60=0.20 avg300=0.03 total=4000\n\
         full avg10=0.75 avg60=0.10 avg300=0.01 total=2000\n",
    );
    let stalls = |avg10, avg60, avg300, total| {
        Some(Stalls {
            avg10,
            avg60,
            avg300,
            total,
        })
    };
    let shortage = Shortage {
        oom_kills: Some(3),
        pressure: Some(Pressure {
            some: stalls(1.5, 0.2, 0.03, 4000),
            full: stalls(0.75, 0.1, 0.01, 2000),
        }),
        ..Shortage::default()
    };
    // The root cgroup has no counters.
    let root = level("/sys/fs/cgroup", Shortage::default());
    let first = Level {
        group: None,
        shortage,
    };
    assert_eq!(host.levels(), [first, root]);
    assert_eq!(host.source("memory pressure"), Availability::Ok);
    assert_eq!(host.source("memory control group"), Availability::Missing);
}

#[test]
fn cgroup_v2_has_events_and_pressure() {
    let host = Host::new("0::/slice/pg\n", V2);
    let file = |group: &str, name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup{group}/memory.{name}"), text);
    };
    let events = "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n";
    file("/slice/pg", "events", events);
    file("/slice/pg", "max", "1073741824\n");
    file("/slice/pg", "current", "4096\n");
    let some = "some avg10=0.00 avg60=0.00 avg300=2.00 total=9\n";
    file("/slice/pg", "pressure", some);
    file("/slice", "max", "max\n");
    file("/slice", "current", "8192\n");
    // Before Linux 4.13, `oom_kill` is missing.
    file("/slice", "events", "low 0\nhigh 0\nmax 7\noom 0\n");
    let some = Stalls {
        avg300: 2.0,
        total: 9,
        ..Stalls::default()
    };
    let pg = Shortage {
        limit_bytes: Some(1 << 30),
        used_bytes: Some(4096),
        limit_hits: Some(3),
        high_hits: Some(2),
        oom_kills: Some(5),
        pressure: Some(Pressure {
            some: Some(some),
            full: None,
        }),
    };
    let slice = Shortage {
        used_bytes: Some(8192),
        limit_hits: Some(7),
        high_hits: Some(0),
        ..Shortage::default()
    };
    assert_eq!(
        host.levels()[1..],
        [
            level("/sys/fs/cgroup/slice/pg", pg),
            level("/sys/fs/cgroup/slice", slice),
            level("/sys/fs/cgroup", Shortage::default()),
        ]
    );
    assert_eq!(host.source("memory control group"), Availability::Ok);
    // The source is then that of the nearest cgroup with counters.
    fs::remove_dir_all(host.0.path().join("sys/fs/cgroup/slice/pg")).expect("removed");
    assert_eq!(host.source("memory control group"), Availability::Ok);
    assert_eq!(host.levels()[1].shortage, Shortage::default());
}

#[test]
fn cgroup_v1_has_failcnt_and_oom_control() {
    let host = Host::new("3:memory:/pg\n0::/elsewhere\n", V1);
    let file = |group: &str, name: &str, text: &str| {
        host.write(&format!("sys/fs/cgroup/memory{group}/memory.{name}"), text);
    };
    file("/pg", "limit_in_bytes", "2147483648\n");
    file("/pg", "usage_in_bytes", "1048576\n");
    file("/pg", "failcnt", "12\n");
    file("/pg", "memsw.failcnt", "30\n");
    let control = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n";
    file("/pg", "oom_control", control);
    file("", "limit_in_bytes", "9223372036854771712\n");
    file("", "usage_in_bytes", "2097152\n");
    file("", "failcnt", "0\n");
    // Before Linux 4.13, `oom_kill` is missing.
    file("", "oom_control", "oom_kill_disable 0\nunder_oom 0\n");
    let pg = Shortage {
        limit_bytes: Some(2 << 30),
        used_bytes: Some(1 << 20),
        limit_hits: Some(42),
        oom_kills: Some(4),
        ..Shortage::default()
    };
    let all = Shortage {
        used_bytes: Some(2 << 20),
        limit_hits: Some(0),
        ..Shortage::default()
    };
    assert_eq!(
        host.levels()[1..],
        [
            level("/sys/fs/cgroup/memory/pg", pg),
            level("/sys/fs/cgroup/memory", all),
        ]
    );
    assert_eq!(host.source("memory control group"), Availability::Ok);
}

#[test]
fn shortage_is_unknown_without_files() {
    // Without cgroups, and with psi=0.
    let host = Host::new("", "");
    let unknown = [Level {
        group: None,
        shortage: Shortage::default(),
    }];
    assert_eq!(host.levels(), unknown);
    // The cgroup is not visible in this namespace.
    host.write("proc/10/cgroup", "0::/../pg\n");
    host.write("proc/self/mountinfo", V2);
    assert_eq!(host.levels(), unknown);
    for name in ["memory pressure", "memory control group"] {
        assert_eq!(host.source(name), Availability::Missing, "{name}");
    }
}

#[test]
fn invalid_value_is_absent_and_others_are_kept() {
    let host = Host::new("3:memory:/pg\n", V1);
    host.write("proc/vmstat", "oom_kill 18446744073709551615\n");
    host.write("proc/pressure/memory", "some avg10=0.00\n");
    for (file, text) in [
        ("failcnt", "many\n"),
        ("usage_in_bytes", "18446744073709551615\n"),
        ("limit_in_bytes", "much\n"),
        ("oom_control", "under_oom 0\noom_kill 2\n"),
        ("pressure", "some\n"),
    ] {
        host.write(&format!("sys/fs/cgroup/memory/pg/memory.{file}"), text);
    }
    let of_host = Level {
        group: None,
        shortage: Shortage {
            pressure: Some(Pressure::default()),
            ..Shortage::default()
        },
    };
    let of_group = Shortage {
        oom_kills: Some(2),
        pressure: Some(Pressure::default()),
        ..Shortage::default()
    };
    let levels = host.levels();
    assert_eq!(levels[0], of_host);
    assert_eq!(levels[1], level("/sys/fs/cgroup/memory/pg", of_group));
}
