//! For every captured host, the readers and the forecast return the values that were computed by
//! hand from its files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

#[path = "../../host/tests/txtar/mod.rs"]
mod txtar;

use std::{fs, path::Path};

use advice::{
    answer,
    check::CheckId,
    model::{forecast::Forecast, limits::CgroupLimits, machine::Machine},
};
use host::{
    linux::root::Root,
    server::{
        facts::{Facts, Subject},
        state::{HugePages, Server, SharedMemoryType},
    },
};
use serde::Deserialize;
use tempfile::TempDir;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "kernel")]
    _kernel: String,
    postmaster: u32,
    address: String,
    base_page_bytes: u64,
    huge_pages: String,
    huge_page_size_kb: u64,
    shared_memory_type: String,
    shared_memory_size_mb: u64,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    segment_bytes: Option<u64>,
    segment_page_bytes: Option<u64>,
    segment_mappings: Option<usize>,
    default_huge_page_bytes: Option<u64>,
    status: Option<String>,
    in_use: Option<bool>,
    #[serde(default)]
    pool: Vec<Pool>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Pool {
    page_size_bytes: u64,
    total: u64,
    free: u64,
    reserved: u64,
    surplus: u64,
    overcommit: u64,
    required: u64,
    available: u64,
    committed: u64,
    own: Option<u64>,
    others: Option<u64>,
    shortfall: Option<u64>,
    recommended: Option<u64>,
    fits: Option<bool>,
    cgroup_limit_bytes: Option<u64>,
    cgroup_used_bytes: Option<u64>,
    cgroup_reserved_limit_bytes: Option<u64>,
    cgroup_reserved_bytes: Option<u64>,
}

impl From<Forecast> for Pool {
    fn from(forecast: Forecast) -> Self {
        let recommended = forecast.recommended().map(|pages| pages.0);
        let pool = forecast.pool;
        let CgroupLimits {
            fault_limit,
            fault_use,
            reservation_limit,
            reservation_use,
            fault_limit_source: _,
        } = forecast.cgroup.unwrap_or_default();
        Self {
            page_size_bytes: pool.page_bytes,
            total: pool.total,
            free: pool.free,
            reserved: pool.reserved,
            surplus: pool.surplus,
            overcommit: pool.overcommit,
            required: forecast.required.0,
            available: pool.available().expect("no bad counter"),
            committed: pool.committed().expect("no bad counter"),
            own: forecast.held.map(|pages| pages.0),
            others: forecast.others.map(|pages| pages.0),
            shortfall: forecast.shortfall.map(|pages| pages.0),
            recommended,
            fits: forecast.fits_after_restart,
            cgroup_limit_bytes: fault_limit,
            cgroup_used_bytes: fault_use,
            cgroup_reserved_limit_bytes: reservation_limit,
            cgroup_reserved_bytes: reservation_use,
        }
    }
}

fn facts_of(directory: &Path, host: &Host) -> Facts {
    let server = Server {
        huge_pages: match host.huge_pages.as_str() {
            "off" => HugePages::Off,
            "on" => HugePages::On,
            "try" => HugePages::Try,
            other => panic!("huge_pages = {other}"),
        },
        shared_memory_type: match host.shared_memory_type.as_str() {
            "mmap" => SharedMemoryType::Mmap,
            "sysv" => SharedMemoryType::Sysv,
            other => panic!("shared_memory_type = {other}"),
        },
        huge_page_size_bytes: Some(host.huge_page_size_kb << 10).filter(|&bytes| bytes > 0),
        shared_memory_bytes: host.shared_memory_size_mb << 20,
    };
    let digits = host
        .address
        .strip_prefix("0x")
        .expect("an address starts with 0x");
    let subject = Subject {
        postmaster: Some(host.postmaster),
        address: u64::from_str_radix(digits, 16).expect("an address is hexadecimal"),
    };
    let mut facts = Facts::read(&Root::at(directory), server, &subject).expect("readable files");
    facts.state.base_page_bytes = host.base_page_bytes;
    facts
}

fn host_of(tree: &TempDir) -> Host {
    let text = fs::read_to_string(tree.path().join("host.toml")).expect("host.toml");
    toml::from_str(&text).expect("host.toml is well formed")
}

fn check(archive: &Path) {
    let tree = txtar::unpack(archive);
    let host = host_of(&tree);
    let facts = facts_of(tree.path(), &host);
    let expect = host.expect;

    let segment = facts.state.segment.as_ref().ok();
    assert_eq!(
        segment.map(|s| s.bytes),
        expect.segment_bytes,
        "segment_bytes"
    );
    assert_eq!(
        facts.state.page_bytes(),
        expect.segment_page_bytes,
        "segment_page_bytes"
    );
    assert_eq!(
        segment.map(|s| s.mappings),
        expect.segment_mappings,
        "segment_mappings"
    );
    let default = facts
        .state
        .meminfo
        .as_ref()
        .ok()
        .and_then(|m| m.default_huge_page_bytes);
    assert_eq!(
        default, expect.default_huge_page_bytes,
        "default_huge_page_bytes"
    );
    let in_use = facts.state.backing().is_huge();
    assert_eq!(in_use, expect.in_use, "in_use");

    let machine = Machine::new(facts);
    let pools: Vec<Pool> = Forecast::for_each_pool(&machine)
        .unwrap_or_default()
        .into_iter()
        .map(Pool::from)
        .collect();
    assert_eq!(pools, expect.pool, "pools");

    let verdict = answer::verdict(&machine);
    println!("{}: {}", verdict.status.as_str(), verdict.reason);
    if let Some(status) = expect.status {
        assert_eq!(verdict.status.as_str(), status, "status");
    }
}

#[test]
fn facts_of_every_captured_host_match_its_table() {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/hosts");
    let mut archives: Vec<_> = fs::read_dir(hosts)
        .expect("../host/tests/hosts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "txtar")
        })
        .collect();
    archives.sort();
    assert!(!archives.is_empty());
    let mut failed = Vec::new();
    for archive in &archives {
        println!("--- {}", archive.display());
        if std::panic::catch_unwind(|| check(archive)).is_err() {
            failed.push(archive.file_stem().expect("a name"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} hosts: {failed:?}",
        failed.len(),
        archives.len()
    );
}

/// Mounts that are usual in hardened units and in some containers: the finding names the mount,
/// not a file that is there.
#[test]
fn mounts_that_hide_facts_are_named() {
    let finding = |change: fn(&Path, String) -> String, id| {
        let tree = txtar::unpack("../host/tests/hosts/linux-6.18-2mb.txtar");
        let mounts = tree.path().join("proc/self/mountinfo");
        let before = fs::read_to_string(&mounts).expect("mounts");
        let after = change(tree.path(), before.clone());
        assert_ne!(after, before);
        fs::write(&mounts, after).expect("written");
        let facts = facts_of(tree.path(), &host_of(&tree));
        let finding = answer::finding(&Machine::new(facts), id);
        let root = tree.path().display().to_string();
        format!("{}: {}", finding.status.as_str(), finding.text).replace(&root, "")
    };
    let only_processes = |root: &Path, mounts: String| {
        fs::remove_file(root.join("proc/meminfo")).expect("removed");
        mounts.replace("- proc proc rw", "- proc proc rw,subset=pid")
    };
    assert_eq!(
        finding(only_processes, CheckId::Restart),
        "unknown: Cannot judge restart: /proc/meminfo is hidden: /proc is mounted with subset=pid (in a systemd unit, set ProcSubset=all)."
    );
    let no_cgroups = |_: &Path, mounts: String| {
        let lines = mounts.lines().filter(|line| !line.contains("cgroup"));
        lines.map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(
        finding(no_cgroups, CheckId::CgroupFaultLimit),
        "unknown: Cannot judge cgroup_fault_limit: /proc/self/mountinfo has no cgroup2 file system that shows this cgroup."
    );
}
