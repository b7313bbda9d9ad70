//! Every reader, called with arbitrary bytes: it returns a value or an error, and never panics.
//!
//! `tests/properties.rs` calls the readers with damaged samples and with random bytes, and `fuzz/`
//! with inputs that libFuzzer finds.

use std::{
    ffi::OsStr,
    ops::ControlFlow,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use advice::failure;
use host::{
    escape,
    linux::{
        boot::{Kernel, NextBoot},
        buddyinfo,
        cgroup::{self, Limit, Version, membership, mount, parse_limit},
        hugepages, list, meminfo, mountinfo, mounts,
        numa::{node, nodes},
        passwd,
        process::{
            children,
            maps::{self, Device, Extent, Mapping},
            oom_score, parse_command_line, segment, smaps, stat, status,
        },
        sysctl, transparent_hugepage, vmstat, zfs,
    },
    server::{
        configuration, dynamic_shared_memory, instances, mapping_kind::Landmarks,
        postmaster_arguments, postmaster_pid,
    },
};

/// Panics if a parser is wrong.
pub type Reader = fn(&[u8]);

/// The readers by name. The samples of each are below `NAME/` in `samples.txtar`.
pub const READERS: &[(&str, Reader)] = &[
    ("buddyinfo", buddyinfo),
    ("cgroup", cgroup),
    ("cgroup_limit", cgroup_limit),
    ("children", children),
    ("cmdline", cmdline),
    ("dynamic_shared_memory", dynamic_shared_memory),
    ("hugepages", hugepages),
    ("kernel_command_line", kernel_command_line),
    ("list", list),
    ("maps", maps),
    ("meminfo", meminfo),
    ("mountinfo", mountinfo),
    ("node_meminfo", node_meminfo),
    ("numa_maps", numa_maps),
    ("oom_score", oom_score),
    ("passwd", passwd),
    ("postgresql_conf", postgresql_conf),
    ("postmaster_pid", postmaster_pid),
    ("server_log", server_log),
    ("smaps", smaps),
    ("stat", stat),
    ("status", status),
    ("swaps", swaps),
    ("sysctl", sysctl),
    ("sysctl_conf", sysctl_conf),
    ("sysvipc", sysvipc),
    ("tmpfiles", tmpfiles),
    ("transparent_hugepage", transparent_hugepage),
    ("vmstat", vmstat),
    ("zfs", zfs),
];

/// The log of a server.
fn server_log(bytes: &[u8]) {
    let log = String::from_utf8_lossy(bytes);
    if let Some(failure) = failure::last(&log) {
        for line in failure.details.iter().chain([&failure.message]) {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

/// `/proc/buddyinfo`.
fn buddyinfo(bytes: &[u8]) {
    let free = buddyinfo::parse(bytes);
    for page_bytes in [0, 4096, 2 << 20, 1 << 30, u64::MAX] {
        let _ = free.huge_pages(page_bytes, 4096);
    }
    let _ = free.huge_pages(2 << 20, 0);
}

/// `/proc/PID/cgroup`.
fn cgroup(bytes: &[u8]) {
    let _ = membership::parse(bytes, "hugetlb");
}

/// `hugetlb.2MB.max` and the like.
fn cgroup_limit(bytes: &[u8]) {
    let _ = cgroup::parse_keyed(bytes, "max");
    for page_bytes in [64 << 10, 2 << 20, 1 << 30, u64::MAX] {
        if let Some(Limit::Bytes(limit)) = parse_limit(bytes, page_bytes) {
            assert!(limit <= i64::MAX.unsigned_abs());
        }
    }
}

/// `/proc/PID/task/PID/children`.
fn children(bytes: &[u8]) {
    let _ = children::parse_children(bytes).count();
}

/// `/proc/PID/cmdline`.
fn cmdline(bytes: &[u8]) {
    assert!(bytes.starts_with(parse_command_line(bytes)));
    let directory = postmaster_arguments::directory_argument(bytes);
    assert!(directory.is_none_or(|path| path.starts_with(b"/")));
    let _ = postmaster_arguments::looks_like_server(bytes);
    for (name, _) in postmaster_arguments::settings(bytes) {
        assert!(!name.contains(&b'-') && !name.contains(&b'='));
    }
    let _ = configuration::of_command_line(bytes);
}

/// `postgresql.conf` and `postmaster.opts`.
fn postgresql_conf(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).split('\n') {
        let _ = configuration::parse_line(line);
    }
    if let Some(command_line) = postmaster_arguments::parse_options(bytes) {
        assert!(command_line.ends_with(b"\0"));
    }
}

/// PostgreSQL's list of its segments of dynamic shared memory.
fn dynamic_shared_memory(bytes: &[u8]) {
    let segments = dynamic_shared_memory::parse(bytes).unwrap_or_default();
    assert!(segments.len() <= bytes.len() / 40);
}

/// A directory and a file of `/sys/kernel/mm/hugepages`.
fn hugepages(bytes: &[u8]) {
    let _ = hugepages::parse_demote_size(bytes);
    if let Some(page_bytes) = str::from_utf8(bytes).ok().and_then(hugepages::parse_name) {
        let directory = hugepages::directory(page_bytes);
        let name = directory.rsplit('/').next().unwrap_or_default();
        assert_eq!(hugepages::parse_name(name), Some(page_bytes));
    }
}

/// `/proc/cmdline`.
fn kernel_command_line(bytes: &[u8]) {
    boot(bytes, &[]);
}

/// Lists of nodes and processors in `/sys`, and a directory of a node.
fn list(bytes: &[u8]) {
    if let Some(list) = list::parse(bytes) {
        assert_eq!(list.count() == 0, bytes.trim_ascii().is_empty());
        assert!(list.covers(&list));
        assert_eq!(list.intersection(&list), list);
    }
    if let Some(node) = str::from_utf8(bytes).ok().and_then(nodes::parse_name) {
        assert_eq!(
            nodes::directory(node).rsplit('/').next(),
            Some(format!("node{node}").as_str())
        );
    }
}

/// `/proc/PID/maps`.
fn maps(bytes: &[u8]) {
    let _ = maps::parse_extents(bytes);
    let _ = instances::main_segment(bytes);
    for line in bytes.split(|&b| b == b'\n') {
        if let Some(mapping) = maps::parse_line(line) {
            look_at(&mapping);
            assert_eq!(maps::parse_line(&written(&mapping)), Some(mapping));
        }
    }
}

/// `/proc/meminfo`.
fn meminfo(bytes: &[u8]) {
    if let Ok(meminfo) = meminfo::parse(bytes) {
        assert_ne!(meminfo.default_huge_page_bytes, Some(0));
    }
    let lines = meminfo::parse_lines(bytes);
    for line in &lines {
        assert!(line.huge_pages <= line.bytes);
        assert!(line.bytes.is_none_or(|bytes| i64::try_from(bytes).is_ok()));
    }
    let _ = meminfo::Usage::parse(bytes);
}

/// `/proc/self/mountinfo`.
fn mountinfo(bytes: &[u8]) {
    let _ = mountinfo::parse(bytes, "hugetlbfs", |mount| {
        let _ = mounts::Hugetlbfs::of(mount);
        ControlFlow::Continue(())
    });
    for version in [Version::V1, Version::V2] {
        for group in ["/", "/pg", "/pg/main", "/..", ""] {
            let shown = mount::parse(bytes, version, "hugetlb", Path::new(group));
            if let Ok(Some(shown)) = shown {
                let is_below = |part| matches!(part, Component::Normal(_));
                assert!(shown.below.components().all(is_below), "{shown:?}");
            }
        }
    }
}

/// `/sys/devices/system/node/nodeN/meminfo`.
fn node_meminfo(bytes: &[u8]) {
    let _ = node::parse_meminfo(bytes);
}

/// `/proc/PID/numa_maps`.
fn numa_maps(bytes: &[u8]) {
    let _ = host::linux::process::numa_maps::parse(bytes, &[SEGMENT, extent(0)], || ());
    let _ = segment::parse_numa_maps(bytes, &[SEGMENT, extent(0)]);
    let _ = host::linux::process::numa_maps::parse_bound_nodes(bytes);
}

/// `/proc/PID/oom_score` and `oom_score_adj`.
fn oom_score(bytes: &[u8]) {
    if let Some(score) = oom_score::parse(bytes) {
        assert_eq!(oom_score::parse(score.to_string().as_bytes()), Some(score));
    }
}

/// `/etc/passwd`.
fn passwd(bytes: &[u8]) {
    let Ok(users) = passwd::parse(bytes) else {
        return;
    };
    for uid in [0, 105, u32::MAX] {
        assert!(users.name(uid).is_none_or(|name| !name.is_empty()));
    }
}

/// `postmaster.pid`.
fn postmaster_pid(bytes: &[u8]) {
    let _ = postmaster_pid::parse(bytes);
}

/// `/proc/PID/smaps` and `smaps_rollup`.
fn smaps(bytes: &[u8]) {
    let _ = segment::parse_smaps(bytes, SEGMENT.start);
    let mut checks = 0;
    let entries: Result<Vec<_>, _> = smaps::parse(bytes, || checks += 1).collect();
    let Ok(entries) = entries else {
        return;
    };
    assert!(checks >= entries.len());
    let landmarks = Landmarks {
        main: Some(SEGMENT),
        shim: entries.last().map(|entry| entry.mapping.extent),
        executable: Some(b"/usr/bin/postgres".to_vec()),
    };
    for entry in &entries {
        look_at(&entry.mapping);
        let _ = landmarks.kind(entry).as_str();
        let _ = entry.figures.uss();
    }
}

/// `/proc/PID/stat`.
fn stat(bytes: &[u8]) {
    let _ = stat::parse(bytes);
    assert!(
        stat::parse(bytes).is_none()
            || stat::parse_name(bytes).is_none_or(|n| n.len() < bytes.len())
    );
}

/// `/proc/PID/status`.
fn status(bytes: &[u8]) {
    let _ = status::parse_memory(bytes);
    let _ = status::parse_identity(bytes);
    let _ = status::parse_allowed_nodes(bytes);
    let _ = status::parse_can_gain_resource(bytes);
}

/// `/proc/swaps`.
fn swaps(bytes: &[u8]) {
    let _ = meminfo::free_zram(bytes);
}

/// A file of `/proc/sys/vm`.
fn sysctl(bytes: &[u8]) {
    if let Some(number) = sysctl::parse(bytes) {
        assert_eq!(sysctl::parse(number.to_string().as_bytes()), Some(number));
    }
}

/// A file of `/sys/kernel/mm/transparent_hugepage`.
fn transparent_hugepage(bytes: &[u8]) {
    if let Some(mode) = transparent_hugepage::parse(bytes) {
        assert!(!mode.is_empty() && !mode.contains(' '));
    }
}

/// `/proc/vmstat`.
fn vmstat(bytes: &[u8]) {
    for (_, value) in vmstat::parse(bytes).counters() {
        assert!(value.is_none_or(|value| i64::try_from(value).is_ok()));
    }
}

/// A mapping that the samples contain.
const SEGMENT: Extent = extent(0x7f00_0000_0000);

const fn extent(start: u64) -> Extent {
    Extent {
        start,
        end: start + 4096,
        offset: 0,
        device: Device { major: 0, minor: 1 },
        inode: 42,
    }
}

fn look_at(mapping: &Mapping) {
    let extent = &mapping.extent;
    assert!(extent.bytes() > 0);
    assert!(extent.holds(extent.start) && !extent.holds(extent.end));
    assert!(extent.is_same_object(extent));
    let name = escape::name(OsStr::from_bytes(&mapping.path));
    assert!(name.len() >= mapping.path.len());
    assert!(!name.contains(char::is_control));
    assert!(escape::ascii(&name).is_ascii());
}

/// As the kernel writes it.
pub fn written(mapping: &Mapping) -> Vec<u8> {
    let Mapping {
        extent,
        permissions,
        path,
    } = mapping;
    let Extent {
        start,
        end,
        offset,
        device: Device { major, minor },
        inode,
    } = extent;
    let mut line = format!(
        "{start:08x}-{end:08x} {permissions} {offset:08x} {major:02x}:{minor:02x} {inode} "
    );
    if !path.is_empty() {
        // Up to the column of names, or one blank.
        line.push_str(&" ".repeat(72_usize.saturating_sub(line.len())));
    }
    let mut line = line.into_bytes();
    line.extend_from_slice(path);
    line
}

/// A file of `/etc/sysctl.d`.
fn sysctl_conf(bytes: &[u8]) {
    boot(b"", &[("/etc/sysctl.d/a.conf", bytes)]);
}

/// `/proc/sysvipc/shm`.
fn sysvipc(bytes: &[u8]) {
    let _ = host::linux::sysvipc::parse(bytes);
}

/// A file of `/etc/tmpfiles.d`.
fn tmpfiles(bytes: &[u8]) {
    boot(b"", &[("/etc/tmpfiles.d/a.conf", bytes)]);
}

/// The next boot with these texts.
fn boot(command_line: &[u8], files: &[(&str, &[u8])]) {
    const DEFAULT: u64 = 2 << 20;
    let line = String::from_utf8_lossy(command_line);
    let texts: Vec<_> = files
        .iter()
        .map(|(path, bytes)| (*path, String::from_utf8_lossy(bytes)))
        .collect();
    let texts: Vec<_> = texts.iter().map(|(path, text)| (*path, &**text)).collect();
    let kernel = Kernel {
        sizes: Some(vec![DEFAULT, 1 << 30]),
        default_bytes: Some(DEFAULT),
    };
    let next = NextBoot::parse(&line, &texts, true, kernel);
    for size in [DEFAULT, 1 << 30] {
        let _ = next.pages(size);
        if let Some((_, after)) = next.change(size, 7) {
            assert_eq!(after.pages(size).map(|request| request.pages), Some(7));
        }
    }
}

/// Memory of ZFS.
fn zfs(bytes: &[u8]) {
    let _ = zfs::parse(bytes);
}
