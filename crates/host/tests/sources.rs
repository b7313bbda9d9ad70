//! Availability of sources: on captured hosts, and with wrong permissions or formats.

#![allow(clippy::expect_used)]

mod txtar;

use std::{collections::BTreeMap, fs, path::Path};

use host::{
    linux::root::Root,
    server::{
        facts::Subject,
        sources::{Availability, Source, probe},
    },
};

fn subject(postmaster: u32) -> Subject {
    Subject {
        postmaster: Some(postmaster),
        address: 0x7f00_0000_0000,
    }
}

/// The sources of the postmaster and the host, by name.
fn by_name(sources: Vec<Source>) -> BTreeMap<&'static str, Source> {
    let is_own = |source: &Source| {
        source.name != "mountinfo"
            && source
                .path
                .components()
                .any(|part| part.as_os_str() == "self")
    };
    let others = sources.into_iter().filter(|source| !is_own(source));
    others.map(|source| (source.name, source)).collect()
}

#[test]
fn a_host_with_a_control_group() {
    let host = txtar::unpack("tests/hosts/linux-6.18-cgroup-v2-bomb.txtar");
    let sources = by_name(probe(&Root::at(host.path()), &subject(14175)).expect("memory"));
    for name in [
        "maps",
        "smaps",
        "numa_maps",
        "cgroup",
        "mountinfo",
        "meminfo",
        "pools",
        "hugetlb cgroup",
    ] {
        assert_eq!(sources[name].status, Availability::Ok, "{name}");
    }
    for name in [
        // A captured file does not support the ioctl.
        "PROCMAP_QUERY",
        "smaps_rollup",
        "vmstat",
        "nodes",
        "transparent huge pages",
        "vm settings",
        "exe",
    ] {
        assert_eq!(sources[name].status, Availability::Missing, "{name}");
    }
    assert_eq!(sources["maps"].path, host.path().join("proc/14175/maps"));
    assert_eq!(
        sources["hugetlb cgroup"].path,
        Path::new("/sys/fs/cgroup/unified/hugeinfo-bomb/server")
    );
}

#[test]
fn sandboxes_lack_most() {
    let host = txtar::unpack("tests/hosts/gvisor.txtar");
    let sources = by_name(probe(&Root::at(host.path()), &subject(12)).expect("memory"));
    // There, but with nothing in it.
    assert_eq!(sources["cgroup"].status, Availability::Missing);
    assert_eq!(sources["hugetlb cgroup"].status, Availability::Missing);
    assert_eq!(sources["numa_maps"].status, Availability::Missing);
    assert_eq!(sources["meminfo"].status, Availability::Ok);
}

#[test]
fn protected_files_are_tried_for_two_processes() {
    let tree = tempfile::tempdir().expect("a directory");
    let this = std::process::id().to_string();
    for pid in ["10", "self", &this] {
        let directory = tree.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&directory).expect("mkdir");
        fs::write(directory.join("maps"), "1000-2000 r--p 0 00:00 0\n").expect("write");
    }
    let sources = probe(&Root::at(tree.path()), &subject(10)).expect("memory");
    let maps: Vec<_> = sources.iter().filter(|s| s.name == "maps").collect();
    assert_eq!(maps.len(), 2);
    assert!(maps.iter().all(|source| source.status == Availability::Ok));
    assert_eq!(sources.iter().filter(|s| s.name == "stat").count(), 1);
    let alone = Subject {
        postmaster: None,
        address: 0,
    };
    let sources = probe(&Root::at(tree.path()), &alone).expect("memory");
    assert_eq!(sources.iter().filter(|s| s.name == "maps").count(), 1);
}

#[test]
fn unreadable_or_malformed_source_has_failed() {
    let tree = tempfile::tempdir().expect("a directory");
    // A directory can be opened, but not read like a file.
    fs::create_dir_all(tree.path().join("proc/vmstat")).expect("mkdir");
    fs::create_dir_all(tree.path().join("proc/10")).expect("mkdir");
    fs::write(tree.path().join("proc/10/cgroup"), "nonsense\n").expect("write");
    let sources = by_name(probe(&Root::at(tree.path()), &subject(10)).expect("memory"));
    assert_eq!(sources["vmstat"].status, Availability::Failed);
    assert_eq!(sources["hugetlb cgroup"].status, Availability::Failed);
    assert_eq!(sources["meminfo"].status, Availability::Missing);
}
