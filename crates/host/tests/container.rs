//! Containers, capabilities and the OOM killer of cgroups, in small directory trees in place of a
//! host.

#![allow(clippy::expect_used)]

mod tree;

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use host::{
    linux::{
        cgroup::memory_events::{self, OomKiller},
        container::{has_systemd, is_container},
        process::Process,
    },
    server::rights::can_lower_oom_score,
};
use tree::Host;

const PID: u32 = 10;
const V1: &str = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
const ROOT: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
const CHROOT: &str = "27 1 254:0 /srv / rw,relatime - ext4 /dev/vda rw\n";

impl Host {
    fn namespace(&self, kind: &str, number: u64) {
        let link = self.0.path().join(format!("proc/self/ns/{kind}"));
        fs::create_dir_all(link.parent().expect("a parent")).expect("mkdir");
        symlink(format!("{kind}:[{number}]"), link).expect("a link");
    }

    fn process(&self) -> Process {
        Process::open(&self.root(), PID).expect("a process")
    }

    fn oom_killer(&self) -> OomKiller {
        memory_events::oom_killer(&self.root(), &self.process()).expect("a cgroup")
    }
}

fn container(
    pid: Option<u64>,
    cgroup: Option<u64>,
    own: &str,
    first: Option<&str>,
) -> Option<bool> {
    let host = Host::new("0::/\n", own);
    for (kind, number) in [("pid", pid), ("cgroup", cgroup)] {
        if let Some(number) = number {
            host.namespace(kind, number);
        }
    }
    if let Some(first) = first {
        host.write("proc/1/mountinfo", first);
    }
    is_container(&host.root()).expect("no error")
}

#[test]
fn container_is_detected_by_namespaces_or_root_directory() {
    const PIDS: Option<u64> = Some(4_026_531_836);
    const CGROUPS: Option<u64> = Some(4_026_531_835);
    const OTHER: Option<u64> = Some(4_026_532_700);
    for (pid, cgroup, own, first, expected) in [
        (PIDS, CGROUPS, ROOT, Some(ROOT), Some(false)),
        // a kernel without cgroups
        (PIDS, None, ROOT, Some(ROOT), Some(false)),
        (OTHER, CGROUPS, ROOT, Some(ROOT), Some(true)),
        (PIDS, OTHER, ROOT, Some(ROOT), Some(true)),
        (PIDS, CGROUPS, CHROOT, Some(ROOT), Some(true)),
        // chroot without a mount
        (PIDS, CGROUPS, V2, Some(ROOT), Some(true)),
        // a later mount covers an earlier one
        (
            PIDS,
            CGROUPS,
            &[CHROOT, ROOT].concat(),
            Some(ROOT),
            Some(false),
        ),
        (PIDS, CGROUPS, ROOT, None, None),
        (None, CGROUPS, ROOT, Some(ROOT), None),
        (None, OTHER, ROOT, None, Some(true)),
    ] {
        let found = container(pid, cgroup, own, first);
        assert_eq!(found, expected, "{pid:?} {cgroup:?} {own} {first:?}");
    }
}

#[test]
fn systemd_is_detected_by_its_directory() {
    let host = Host::new("0::/\n", ROOT);
    assert_eq!(has_systemd(&host.root()).expect("no error"), Some(false));
    host.write("run/systemd/system/x.conf", "");
    assert_eq!(has_systemd(&host.root()).expect("no error"), Some(true));
    // a file in place of a parent directory
    let host = Host::new("0::/\n", ROOT);
    host.write("run/systemd", "");
    assert_eq!(has_systemd(&host.root()).expect("no error"), None);
}

#[test]
fn capability_counts_only_in_the_initial_user_namespace() {
    const INITIAL: &str = "         0          0 4294967295\n";
    const NESTED: &str = "         0     100000      65536\n";
    // a server started as an ordinary user
    const USER: &str = "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n";
    const DOCKER: &str = "CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\n";
    for (status, uid_map, expected) in [
        (USER, Some(INITIAL), Some(true)),
        (DOCKER, Some(INITIAL), Some(false)),
        (USER, Some(NESTED), Some(false)),
        (USER, None, None),
        (DOCKER, None, Some(false)),
        ("Name:\tx\n", Some(INITIAL), None),
    ] {
        let host = Host::new("0::/\n", ROOT);
        host.write(&format!("proc/{PID}/status"), status);
        if let Some(uid_map) = uid_map {
            host.write(&format!("proc/{PID}/uid_map"), uid_map);
        }
        let found = can_lower_oom_score(&host.process(), &mut Vec::new());
        assert_eq!(found.expect("no error"), expected, "{status} {uid_map:?}");
    }
}

#[test]
fn nearest_cgroup_that_is_killed_as_a_whole() {
    let host = Host::new("0::/pod/pg\n", V2);
    assert_eq!(host.oom_killer(), OomKiller::default());
    host.write("sys/fs/cgroup/pod/memory.oom.group", "1\n");
    host.write("sys/fs/cgroup/pod/pg/memory.oom.group", "0\n");
    host.write(
        "sys/fs/cgroup/pod/pg/memory.events",
        "low 0\nmax 26\noom 3\noom_kill 2\noom_group_kill 1\n",
    );
    let expected = OomKiller {
        group: Some(PathBuf::from("/sys/fs/cgroup/pod")),
        kills: Some(2),
    };
    assert_eq!(host.oom_killer(), expected);
    host.write("sys/fs/cgroup/pod/pg/memory.oom.group", "1\n");
    let nearest = host.oom_killer().group;
    assert_eq!(nearest, Some(PathBuf::from("/sys/fs/cgroup/pod/pg")));
    // Neither file decides if its contents are unknown.
    host.write("sys/fs/cgroup/pod/pg/memory.oom.group", "x\n");
    host.write("sys/fs/cgroup/pod/pg/memory.events", "oom_kill -1\n");
    let expected = OomKiller {
        kills: None,
        ..expected
    };
    assert_eq!(host.oom_killer(), expected);
}

#[test]
fn cgroup_v1_has_kills_but_no_groups() {
    let host = Host::new("4:memory:/pg\n", V1);
    host.write("sys/fs/cgroup/memory/pg/memory.oom.group", "1\n");
    host.write(
        "sys/fs/cgroup/memory/pg/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    );
    let expected = OomKiller {
        group: None,
        kills: Some(2),
    };
    assert_eq!(host.oom_killer(), expected);
}
