//! Our readers and those of the `procfs` crate find the same in the files of this kernel.

#![allow(clippy::expect_used)]

use std::{fs, iter::zip, os::unix::ffi::OsStrExt};

use host::linux::{
    meminfo,
    process::{maps, stat, status},
    sysvipc,
};
use procfs::{
    FromRead, Meminfo, SharedMemorySegments,
    process::{MMapPath, MemoryMaps, Stat, Status},
};

/// Reads a file once, because its values change.
fn file(path: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn meminfo_is_the_same() {
    let bytes = file("/proc/meminfo");
    let ours = meminfo::parse(&bytes).expect("meminfo");
    let theirs = Meminfo::from_read(&bytes[..]).expect("meminfo");
    assert_eq!(ours.total_bytes, Some(theirs.mem_total));
    assert_eq!(ours.default_huge_page_bytes, theirs.hugepagesize);
    let usage = meminfo::Usage::parse(&bytes);
    assert_eq!(usage.available, theirs.mem_available);
    assert_eq!(usage.committed, Some(theirs.committed_as));
}

#[test]
fn status_of_all_processes_is_the_same() {
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        // Not a process, or it has ended.
        let Ok(bytes) = fs::read(process.path().join("status")) else {
            continue;
        };
        let ours = status::parse_memory(&bytes);
        let theirs = Status::from_read(&bytes[..]).expect("status");
        let bytes = |kilobytes: Option<u64>| kilobytes.map(|kilobytes| kilobytes << 10);
        assert_eq!(ours.page_tables, bytes(theirs.vmpte));
        assert_eq!(ours.rss_anon, bytes(theirs.rssanon));
        assert_eq!(ours.rss_shmem, bytes(theirs.rssshmem));
        assert_eq!(ours.swap, bytes(theirs.vmswap));
    }
}

#[test]
fn stat_is_the_same() {
    let bytes = file("/proc/self/stat");
    let ours = stat::parse(&bytes).expect("stat");
    let theirs = Stat::from_read(&bytes[..]).expect("stat");
    assert_eq!(i64::from(ours.parent), i64::from(theirs.ppid));
    assert_eq!(ours.minor_faults, Some(theirs.minflt));
    assert_eq!(ours.major_faults, Some(theirs.majflt));
    assert_eq!(ours.start_ticks, theirs.starttime);
}

#[test]
fn mappings_are_the_same() {
    let bytes = file("/proc/self/maps");
    let theirs = MemoryMaps::from_read(&bytes[..]).expect("maps");
    let lines: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    let ours: Vec<_> = lines
        .iter()
        .filter_map(|line| maps::parse_line(line))
        .collect();
    assert_eq!(ours.len(), theirs.0.len());
    for (ours, theirs) in zip(ours, theirs) {
        let (start, end) = theirs.address;
        assert_eq!((ours.extent.start, ours.extent.end), (start, end));
        if let MMapPath::Path(path) = &theirs.pathname {
            assert_eq!(ours.path, path.as_os_str().as_bytes());
        }
    }
}

#[test]
fn system_v_segments_are_the_same() {
    let bytes = file("/proc/sysvipc/shm");
    let Ok(theirs) = SharedMemorySegments::from_read(&bytes[..]) else {
        println!("skipped: `procfs` rejects /proc/sysvipc/shm with a user ID above 65535");
        return;
    };
    let ours = sysvipc::parse(&bytes);
    assert_eq!(ours.len(), theirs.0.len());
    for (ours, theirs) in zip(ours, theirs.0) {
        assert_eq!(
            (ours.key, ours.attached),
            (theirs.key, theirs.nattch.into())
        );
        assert_eq!(ours.resident, Some(theirs.rss));
        assert_eq!(ours.swapped, Some(theirs.swap));
    }
}
