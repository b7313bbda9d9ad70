//! Each check beyond the cheap ones: a machine where it fires, and one where it doesn't.
//!
//! The machines are trees of kernel files: those of a captured one (Linux 6.18), changed in the
//! files that matter, in the form that the kernel's documentation gives them.

#![allow(clippy::expect_used)]

mod scene;

use std::{collections::BTreeMap, fs, path::Path};

use hugeinfo::{
    advice::{
        check::{Check, Status},
        checks,
    },
    linux::{
        boot, buddyinfo,
        error::{Absent, absent_or},
        hugepages::Pool,
        numa::node::{self, Counters, Node},
        process::segment::Segment,
        root::Root,
        vmstat,
    },
    server::{
        facts::{Facts, HugePages, Server, SharedMemoryType},
        host::Host,
        instances::Instance,
        surroundings::{Files, ProcessFigures, Surroundings},
    },
};
use scene::*;

const THP: &str = "sys/kernel/mm/transparent_hugepage";

/// A quiet host of 64 GB, all of whose pages were asked for at boot.
const CAPTURED: [(&str, &str); 12] = [
    (
        "proc/meminfo",
        "MemTotal:       67108864 kB\nMemFree:        41943040 kB\nMemAvailable:   52428800 kB\nCached:          9437184 kB\n\
         SwapTotal:       8388608 kB\nSwapFree:        8388608 kB\nAnonHugePages:     92160 kB\nShmemHugePages:        0 kB\n\
         ShmemPmdMapped:        0 kB\nPageTables:        24576 kB\nCommitLimit:    41943040 kB\nCommitted_AS:    4194304 kB\n\
         HugePages_Total:     537\nHugePages_Free:      512\nHugePages_Rsvd:      512\nHugePages_Surp:        0\n\
         Hugepagesize:       2048 kB\nHugetlb:         1099776 kB\n",
    ),
    (
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=/dev/vda ro quiet\n",
    ),
    (
        "proc/vmstat",
        "nr_free_pages 10485760\npgmajfault 812\nhtlb_buddy_alloc_success 537\nhtlb_buddy_alloc_fail 0\n",
    ),
    (
        "proc/buddyinfo",
        "Node 0, zone   Normal   1846   1217    632    302    157     76     40     21     11      9   1000\n",
    ),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    ("proc/sys/vm/overcommit_ratio", "50\n"),
    ("proc/sys/vm/overcommit_kbytes", "0\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/hugetlb_shm_group", "0\n"),
    ("etc/sysctl.d/hugepages.conf", "vm.nr_hugepages = 537\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
    ),
];

fn surroundings(changes: &[(&str, Option<&str>)]) -> Surroundings {
    let mut files: BTreeMap<&str, Option<&str>> = CAPTURED
        .iter()
        .map(|&(path, text)| (path, Some(text)))
        .collect();
    files.extend(changes.iter().copied());
    let tree = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        if let Some(text) = text {
            write(&tree.path().join(path), text);
        }
    }
    let root = Root::at(tree.path());
    let mut host = Host::read(&root).expect("a host");
    host.kernel_release = "6.18.5".to_owned();
    Surroundings {
        host,
        vmstat: absent_or(vmstat::read(&root)).expect("vmstat"),
        free_blocks: absent_or(buddyinfo::read(&root)).expect("buddyinfo"),
        asked_at_boot: boot::read(&root).expect("boot"),
        nodes: Ok(vec![on_node(0, 537)]),
        segment_nodes: None,
        segment_thp_bytes: None,
        processes: processes(
            20,
            ProcessFigures {
                page_tables: Some(300 << 10),
                rss_anon: Some(2 * MB),
                swap: Some(0),
                ..ProcessFigures::default()
            },
        ),
        oom_score_adj: Ok(-900),
        locked_memory: Ok(Some(64 << 10)),
        memory_limit: Ok(None),
        refused_by_limits: Vec::new(),
        neighbours: Ok(Vec::new()),
        uses_io_uring: false,
        max_connections: 100,
        shared_buffers_bytes: 128 * MB,
        settings: BTreeMap::new(),
        settings_wait_for_restart: false,
        allows_alter_system: true,
        files: Files::NothingWaits,
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    fs::write(path, text).expect("write");
}

fn on_node(number: u32, total: u64) -> Node {
    let counters = Counters {
        total,
        free: 0,
        surplus: 0,
    };
    Node {
        number,
        memory: node::Memory::default(),
        pools: vec![node::Pool {
            page_bytes: 2 * MB,
            counters: Some(counters),
        }],
    }
}

/// The postmaster and so many others, a day old.
fn processes(others: usize, each: ProcessFigures) -> Vec<ProcessFigures> {
    let postmaster = ProcessFigures {
        is_postmaster: true,
        oom_score_adj: Some(-900),
        age_seconds: Some(86_400),
        ..each
    };
    let other = ProcessFigures {
        oom_score_adj: Some(0),
        age_seconds: Some(3600),
        ..each
    };
    std::iter::once(postmaster)
        .chain(std::iter::repeat_n(other, others))
        .collect()
}

fn quiet() -> Surroundings {
    surroundings(&[])
}

#[track_caller]
fn named(facts: &Facts, around: &Surroundings, name: &str) -> Check {
    let all = checks::all(facts, around);
    all.into_iter()
        .find(|check| check.name == name)
        .expect("a check of that name")
}

#[track_caller]
fn expect(
    facts: &Facts,
    around: &Surroundings,
    name: &str,
    status: Status,
    in_finding: &[&str],
    in_remedy: Option<&str>,
) {
    let check = named(facts, around, name);
    assert_eq!(check.status, status, "{check:?}");
    for part in in_finding {
        assert!(
            check.finding.contains(part),
            "{part:?} is not in {:?}",
            check.finding
        );
    }
    match (in_remedy, &check.remedy) {
        (None, None) => {}
        (Some(part), Some(remedy)) if remedy.contains(part) => {}
        _ => panic!("{in_remedy:?} was expected: {check:?}"),
    }
}

#[test]
fn a_quiet_host_has_nothing_to_complain_of() {
    for check in checks::all(&healthy(), &quiet()) {
        assert_eq!(check.status, Status::Ok, "{check:?}");
        assert_eq!(check.remedy, None, "{check:?}");
        assert!(check.evidence.is_object(), "{check:?}");
        assert!(
            !check.finding.is_empty() && !check.finding.ends_with('.'),
            "{check:?}"
        );
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = checks::all(&healthy(), &quiet())
        .iter()
        .map(|check| check.name)
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn without_its_sources_a_check_is_unknown() {
    let everything: Vec<_> = CAPTURED.iter().map(|&(path, _)| (path, None)).collect();
    fn gone<T>() -> Result<T, Absent> {
        Err(missing("/gone"))
    }
    let around = Surroundings {
        asked_at_boot: gone(),
        nodes: gone(),
        processes: Vec::new(),
        oom_score_adj: gone(),
        locked_memory: gone(),
        neighbours: gone(),
        files: Files::Unseen("nobody may".to_owned()),
        ..surroundings(&everything)
    };
    let mut facts = healthy();
    facts.meminfo = gone();
    facts.pools = gone();
    facts.segment = gone();
    facts.hugetlb = gone();
    for check in checks::all(&facts, &around) {
        let is_told = match check.name {
            // Missing files mean that the kernel was built without it.
            "thp_private" | "thp_shared" => Status::Ok,
            _ => Status::Unknown,
        };
        assert_eq!(check.status, is_told, "{check:?}");
        assert_eq!(check.remedy, None, "{check:?}");
    }
}

#[test]
fn huge_page_size() {
    let mut facts = healthy();
    facts.server.huge_page_size_bytes = Some(16 * MB);
    expect(
        &facts,
        &quiet(),
        "huge_page_size",
        Status::Warning,
        &["of 16 MB, and the kernel has 2 MB, 1 GB"],
        Some("huge_page_size = 0"),
    );
    facts.server.huge_pages = HugePages::On;
    expect(
        &facts,
        &quiet(),
        "huge_page_size",
        Status::Critical,
        &["16 MB"],
        Some("huge_page_size = 0"),
    );
    facts.server.huge_pages = HugePages::Off;
    expect(
        &facts,
        &quiet(),
        "huge_page_size",
        Status::Ok,
        &["16 MB"],
        None,
    );
    expect(
        &healthy(),
        &quiet(),
        "huge_page_size",
        Status::Ok,
        &["has huge pages of 2 MB"],
        None,
    );
}

#[test]
fn pool_filled() {
    let asked = |text| surroundings(&[("etc/sysctl.d/hugepages.conf", Some(text))]);
    let short = asked("vm.nr_hugepages = 600\n");
    expect(
        &healthy(),
        &short,
        "pool_filled",
        Status::Warning,
        &["/etc/sysctl.d/hugepages.conf asked for 600 huge pages of 2 MB, and 537 are there"],
        Some("vm.nr_hugepages=600"),
    );
    // To fill it would only make pool_size complain.
    let idle = asked("vm.nr_hugepages = 5000\n");
    expect(
        &healthy(),
        &idle,
        "pool_filled",
        Status::Warning,
        &["asked for 5000"],
        Some("ask for fewer in /etc/sysctl.d/hugepages.conf: 537 are needed"),
    );
    // More than was asked for is no fault.
    expect(
        &healthy(),
        &asked("vm.nr_hugepages = 500\n"),
        "pool_filled",
        Status::Ok,
        &[],
        None,
    );

    let at_boot = surroundings(&[(
        "proc/cmdline",
        Some("hugepagesz=1G hugepages=0:2,1:2 quiet\n"),
    )]);
    expect(
        &healthy(),
        &at_boot,
        "pool_filled",
        Status::Warning,
        &["/proc/cmdline asked for 4 huge pages of 1 GB, and 0 are there"],
        Some("ask for fewer in /proc/cmdline: 0 are needed"),
    );
    expect(
        &healthy(),
        &asked("vm.nr_hugepages = 32000\n"),
        "pool_filled",
        Status::Warning,
        &["asked for 32000"],
        Some("ask for fewer in /etc/sysctl.d/hugepages.conf: 32000 huge pages of 2 MB would leave"),
    );
    let nothing = surroundings(&[("etc/sysctl.d/hugepages.conf", None)]);
    expect(
        &healthy(),
        &nothing,
        "pool_filled",
        Status::Ok,
        &["ask for huge pages"],
        None,
    );
    // sysctl runs after the kernel has started, and has the last word.
    let both = surroundings(&[("proc/cmdline", Some("hugepages=10000\n"))]);
    expect(&healthy(), &both, "pool_filled", Status::Ok, &[], None);
}

#[test]
fn surplus_pages_were_not_asked_for() {
    let mut facts = healthy();
    pool(&mut facts, 0).surplus = 100;
    expect(
        &facts,
        &quiet(),
        "pool_filled",
        Status::Warning,
        &["asked for 537", "437 are there"],
        Some("537"),
    );
}

#[test]
fn reboot() {
    let asked = |text| surroundings(&[("etc/sysctl.d/hugepages.conf", text)]);
    expect(
        &healthy(),
        &asked(Some("vm.nr_hugepages = 536\n")),
        "reboot",
        Status::Warning,
        &["sets up 536 huge pages of 2 MB at the next boot, and 537 are required"],
        Some("vm.nr_hugepages = 537"),
    );
    expect(
        &healthy(),
        &asked(None),
        "reboot",
        Status::Warning,
        &["neither", "537 are required"],
        Some("/etc/sysctl.d/hugepages.conf: vm.nr_hugepages = 537"),
    );
    // A line in another file would be overruled by this one.
    expect(
        &healthy(),
        &surroundings(&[("etc/sysctl.conf", Some("vm.nr_hugepages = 5\n"))]),
        "reboot",
        Status::Warning,
        &["/etc/sysctl.conf sets up 5 "],
        Some("in /etc/sysctl.conf: vm.nr_hugepages = 537"),
    );
    let mut facts = healthy();
    facts.server.shared_memory_bytes = 62 * GB;
    facts.segment.as_mut().expect("a segment").bytes = 62 * GB;
    expect(
        &facts,
        &quiet(),
        "reboot",
        Status::Warning,
        &["31744 are required"],
        Some("lower shared_buffers"),
    );
    let mut facts = healthy();
    pool(&mut facts, 0).overcommit = 1;
    expect(
        &facts,
        &asked(Some("vm.nr_hugepages = 536\n")),
        "reboot",
        Status::Ok,
        &[],
        None,
    );
    facts = healthy();
    facts.server.huge_pages = HugePages::Off;
    expect(
        &facts,
        &asked(None),
        "reboot",
        Status::Ok,
        &["asks for no huge pages"],
        None,
    );
    facts = healthy();
    facts.server.huge_page_size_bytes = Some(GB);
    expect(
        &facts,
        &quiet(),
        "reboot",
        Status::Warning,
        &["1 GB", "2 are required"],
        Some("hugepagesz=1G hugepages=2"),
    );
}

#[test]
fn pool_growth() {
    let blocks = |text| {
        surroundings(&[
            ("proc/buddyinfo", Some(text)),
            ("proc/vmstat", Some("htlb_buddy_alloc_fail 17\n")),
        ])
    };
    let fragmented = blocks(
        "Node 0, zone   Normal   900000   400000    6    3    1    0     0     0      0      3   2\n",
    );
    expect(
        &healthy(),
        &fragmented,
        "pool_growth",
        Status::Ok,
        &["need not grow"],
        None,
    );
    let short = fallen_back(500);
    expect(
        &short,
        &fragmented,
        "pool_growth",
        Status::Warning,
        &[
            "grow by 37 huge pages of 2 MB",
            "holds only 7 in whole blocks",
        ],
        Some("compact_memory"),
    );
    let check = named(&short, &fragmented, "pool_growth");
    assert_eq!(check.evidence["htlb_buddy_alloc_fail"], 17);
    assert_eq!(check.evidence["free_in_blocks_pages"], 7);
    expect(
        &short,
        &quiet(),
        "pool_growth",
        Status::Ok,
        &["grow by 37", "holds 2009"],
        None,
    );
    let mut gigantic = fallen_back(0);
    gigantic.server.huge_page_size_bytes = Some(GB);
    expect(
        &gigantic,
        &quiet(),
        "pool_growth",
        Status::Warning,
        &["grow by 2 huge pages of 1 GB", "larger than any block"],
        Some("hugepagesz=1G hugepages=2"),
    );
}

#[test]
fn memory_left() {
    expect(
        &healthy(),
        &quiet(),
        "memory_left",
        Status::Ok,
        &["huge pages of 1074 MB leave 63 GB of 64 GB RAM"],
        None,
    );
    let mut facts = healthy();
    pool(&mut facts, 0).total = 30_000;
    pool(&mut facts, 0).free = 29_975;
    expect(
        &facts,
        &quiet(),
        "memory_left",
        Status::Warning,
        &["leave", "of 64 GB RAM"],
        Some("lower shared_buffers"),
    );
    // Enough for huge pages, and then nothing else: no remedy may set such a pool.
    let mut greedy = fallen_back(0);
    greedy.server.shared_memory_bytes = 60 * GB;
    greedy.segment.as_mut().expect("a segment").bytes = 60 * GB;
    expect(
        &greedy,
        &quiet(),
        "memory_left",
        Status::Warning,
        &["would leave 4 GB of 64 GB RAM"],
        Some("lower shared_buffers"),
    );
    for name in ["huge_pages", "restart"] {
        let remedy = named(&greedy, &quiet(), name).remedy.expect("a remedy");
        assert!(
            remedy.contains(
                "lower shared_buffers: 30720 huge pages of 2 MB would leave 4 GB of 64 GB RAM"
            ),
            "{remedy}"
        );
        assert!(!remedy.contains("nr_hugepages="), "{remedy}");
    }
}

#[test]
fn neighbours() {
    let other = |segment| Instance {
        pid: 815,
        owner_uid: Some(1001),
        owner: None,
        data_directory: None,
        directory_argument: None,
        port: None,
        segment,
    };
    let of = |bytes, page_bytes| {
        other(Some(Segment {
            bytes,
            page_bytes: Some(page_bytes),
            mappings: 1,
        }))
    };
    let with = |others: Vec<Instance>| Surroundings {
        neighbours: Ok(others),
        ..quiet()
    };
    expect(
        &healthy(),
        &quiet(),
        "neighbours",
        Status::Ok,
        &["no other PostgreSQL server"],
        None,
    );
    let small = with(vec![of(143 * MB, 4096)]);
    expect(
        &healthy(),
        &small,
        "neighbours",
        Status::Warning,
        &["need 609 huge pages of 2 MB; the pool can give 537"],
        Some("vm.nr_hugepages=609"),
    );
    let mut facts = healthy();
    pool(&mut facts, 0).overcommit = 72;
    expect(
        &facts,
        &small,
        "neighbours",
        Status::Ok,
        &["need 609", "can give 609"],
        None,
    );
    // 500 pages that another program has are not to be had; on a host without the memory nobody is
    // told to take it.
    let mut facts = healthy();
    *pool(&mut facts, 0) = Pool {
        total: 1037,
        free: 512,
        ..pool(&mut facts, 0).clone()
    };
    expect(
        &facts,
        &small,
        "neighbours",
        Status::Warning,
        &[
            "need 1109 huge pages of 2 MB, with the 500 that other programs have; the pool can give 1037",
        ],
        Some("vm.nr_hugepages=1109"),
    );
    expect(
        &healthy(),
        &with(vec![of(70 * GB, 4096)]),
        "neighbours",
        Status::Warning,
        &["whichever starts last"],
        Some("lower shared_buffers: 36377 huge pages of 2 MB would leave"),
    );
    // A server that asks for none takes none away.
    let mut facts = fallen_back(100);
    facts.server.huge_pages = HugePages::Off;
    expect(
        &facts,
        &small,
        "neighbours",
        Status::Ok,
        &["need 72 huge pages of 2 MB; the pool can give 100"],
        None,
    );
    // One on pages of another size, one that nobody may look into.
    expect(
        &healthy(),
        &with(vec![of(9 * GB, GB)]),
        "neighbours",
        Status::Ok,
        &["need 537"],
        None,
    );
    expect(
        &healthy(),
        &with(vec![other(None), other(None)]),
        "neighbours",
        Status::Unknown,
        &["2 other servers", "what 2 of them need"],
        None,
    );
    expect(
        &fallen_back(0),
        &small,
        "neighbours",
        Status::Ok,
        &["no pool to share"],
        None,
    );
}

#[test]
fn numa_pool() {
    let over = |pools: &[u64]| Surroundings {
        nodes: Ok(pools
            .iter()
            .zip(0..)
            .map(|(&total, node)| on_node(node, total))
            .collect()),
        ..quiet()
    };
    expect(
        &healthy(),
        &over(&[500, 37]),
        "numa_pool",
        Status::Warning,
        &["node 1 has 37 huge pages of 2 MB, and 268 would be its share of 537"],
        Some("echo 269 >"),
    );
    let mut facts = fallen_back(537);
    facts.server.huge_pages = HugePages::Off;
    expect(
        &facts,
        &over(&[500, 37]),
        "numa_pool",
        Status::Ok,
        &["asks for no huge pages"],
        None,
    );
    expect(
        &healthy(),
        &over(&[269, 268]),
        "numa_pool",
        Status::Ok,
        &["evenly on 2 nodes"],
        None,
    );
    expect(
        &healthy(),
        &over(&[0, 0]),
        "numa_pool",
        Status::Ok,
        &["empty"],
        None,
    );
    expect(
        &healthy(),
        &quiet(),
        "numa_pool",
        Status::Ok,
        &["one node"],
        None,
    );
    let mut many = vec![100; 255];
    many.push(0);
    expect(
        &healthy(),
        &over(&many),
        "numa_pool",
        Status::Warning,
        &["node 255 has 0"],
        Some("echo 100 >"),
    );
}

#[test]
fn numa_segment() {
    let over = |pages: &[u64]| Surroundings {
        nodes: Ok(vec![on_node(0, 269), on_node(1, 268)]),
        segment_nodes: Some((0..).zip(pages.iter().copied()).collect()),
        ..quiet()
    };
    expect(
        &healthy(),
        &over(&[0, 530]),
        "numa_segment",
        Status::Warning,
        &["1060 MB of the main segment lie on node 1"],
        Some("numactl --interleave=all"),
    );
    expect(
        &healthy(),
        &over(&[270, 267]),
        "numa_segment",
        Status::Ok,
        &["several nodes"],
        None,
    );
    expect(
        &healthy(),
        &over(&[25, 0]),
        "numa_segment",
        Status::Ok,
        &["too little"],
        None,
    );
    let unseen = Surroundings {
        segment_nodes: None,
        ..over(&[])
    };
    expect(
        &healthy(),
        &unseen,
        "numa_segment",
        Status::Unknown,
        &["numa_maps"],
        None,
    );
    expect(
        &healthy(),
        &quiet(),
        "numa_segment",
        Status::Ok,
        &["one node"],
        None,
    );
}

#[test]
fn page_tables() {
    let each = |bytes| Surroundings {
        processes: processes(
            80,
            ProcessFigures {
                page_tables: Some(bytes),
                ..ProcessFigures::default()
            },
        ),
        ..quiet()
    };
    // The published machine: 138 GiB in small pages, 80 connections, 25 GB of page tables.
    let mut facts = fallen_back(0);
    facts.meminfo.as_mut().expect("meminfo").total_bytes = Some(256 * GB);
    facts.server.shared_memory_bytes = 138 * GB;
    facts.segment.as_mut().expect("a segment").bytes = 138 * GB;
    expect(
        &facts,
        &each(312 * MB),
        "page_tables",
        Status::Warning,
        &["page tables of 81 processes take 25 GB, for a main segment of 138 GB and 256 GB RAM"],
        Some("sysctl -w vm.nr_hugepages="),
    );
    expect(
        &facts,
        &each(MB),
        "page_tables",
        Status::Ok,
        &["81 MB"],
        None,
    );
    let check = named(&facts, &each(MB), "page_tables");
    assert_eq!(
        check.evidence["at_max_connections_bytes"],
        100 * (138_u64 << 30) / 4096 * 8
    );
    assert_eq!(
        check.evidence["at_max_connections_on_huge_pages_bytes"],
        100 * (138_u64 << 30) / (2 << 20) * 8
    );

    // Small against RAM, large against the segment; then on huge pages, where connections are what
    // is left to save.
    let mut small = fallen_back(537);
    small.meminfo.as_mut().expect("meminfo").total_bytes = Some(256 * GB);
    expect(
        &small,
        &each(3 * MB),
        "page_tables",
        Status::Warning,
        &["243 MB"],
        Some("restart PostgreSQL"),
    );
    let mut huge = healthy();
    huge.meminfo.as_mut().expect("meminfo").total_bytes = Some(256 * GB);
    expect(
        &huge,
        &each(3 * MB),
        "page_tables",
        Status::Warning,
        &["243 MB"],
        Some("pooler"),
    );
    expect(
        &healthy(),
        &each(500 << 10),
        "page_tables",
        Status::Ok,
        &[],
        None,
    );
}

#[test]
fn swap() {
    let each = |bytes| Surroundings {
        processes: processes(
            9,
            ProcessFigures {
                swap: Some(bytes),
                ..ProcessFigures::default()
            },
        ),
        ..quiet()
    };
    expect(
        &healthy(),
        &each(20 * MB),
        "swap",
        Status::Warning,
        &["200 MB of private memory"],
        Some("swappiness"),
    );
    expect(&healthy(), &each(MB), "swap", Status::Ok, &["10 MB"], None);
}

#[test]
fn major_faults() {
    let each = |major_faults| Surroundings {
        processes: processes(
            9,
            ProcessFigures {
                major_faults,
                ..ProcessFigures::default()
            },
        ),
        ..quiet()
    };
    expect(
        &healthy(),
        &each(100_000),
        "major_faults",
        Status::Warning,
        &["1000000 major faults", "86400 seconds"],
        Some("hugeinfo_fault_rates()"),
    );
    expect(
        &healthy(),
        &each(11),
        "major_faults",
        Status::Ok,
        &["110 major faults"],
        None,
    );
    let mut young = each(100_000);
    for process in &mut young.processes {
        process.age_seconds = Some(10);
    }
    expect(&healthy(), &young, "major_faults", Status::Ok, &[], None);
}

#[test]
fn transparent_huge_pages_of_private_memory() {
    let enabled =
        |text| surroundings(&[("sys/kernel/mm/transparent_hugepage/enabled", Some(text))]);
    expect(
        &healthy(),
        &enabled("[always] madvise never\n"),
        "thp_private",
        Status::Warning,
        &["enabled = always", "the host has 90 MB on them"],
        Some("echo madvise"),
    );
    expect(
        &healthy(),
        &enabled("always madvise [never]\n"),
        "thp_private",
        Status::Ok,
        &["never"],
        None,
    );
}

#[test]
fn transparent_huge_pages_of_shared_memory() {
    let with = |mode, got| Surroundings {
        segment_thp_bytes: got,
        ..surroundings(&[(
            "sys/kernel/mm/transparent_hugepage/shmem_enabled",
            Some(mode),
        )])
    };
    let always = "[always] within_size advise never deny force\n";
    expect(
        &fallen_back(0),
        &with(always, Some(Ok(10 * MB))),
        "thp_shared",
        Status::Warning,
        &["10 MB of the main segment", "shmem_enabled = always"],
        Some("huge_pages"),
    );
    expect(
        &fallen_back(0),
        &with(always, Some(Err(denied("/proc/1/smaps")))),
        "thp_shared",
        Status::Warning,
        &["nobody can say", "/proc/1/smaps may not be read"],
        Some("huge_pages"),
    );
    // Only a hint of the program's would do, and PostgreSQL gives none.
    expect(
        &fallen_back(0),
        &with("always within_size [advise] never deny force\n", None),
        "thp_shared",
        Status::Ok,
        &["advise"],
        None,
    );
    expect(
        &healthy(),
        &with(always, None),
        "thp_shared",
        Status::Ok,
        &["don't concern"],
        None,
    );
    // Private memory's mode says nothing of shared memory, and the other way round.
    let private = surroundings(&[(
        "sys/kernel/mm/transparent_hugepage/enabled",
        Some("[always] madvise never\n"),
    )]);
    expect(
        &fallen_back(0),
        &private,
        "thp_shared",
        Status::Ok,
        &["never"],
        None,
    );
    expect(
        &fallen_back(0),
        &with(always, None),
        "thp_private",
        Status::Ok,
        &["madvise"],
        None,
    );

    let one_size = surroundings(&[(
        &format!("{THP}/hugepages-64kB/shmem_enabled"),
        Some("[always] inherit within_size advise never\n"),
    )]);
    expect(
        &fallen_back(0),
        &one_size,
        "thp_shared",
        Status::Warning,
        &[],
        Some("huge_pages"),
    );
}

#[test]
fn overcommit() {
    let meminfo = CAPTURED[0].1;
    let promised = meminfo.replace("Committed_AS:    4194304 kB", "Committed_AS:   39321600 kB");
    let strict = |meminfo| {
        surroundings(&[
            ("proc/sys/vm/overcommit_memory", Some("2\n")),
            ("proc/meminfo", Some(meminfo)),
        ])
    };
    expect(
        &healthy(),
        &strict(&promised),
        "overcommit",
        Status::Warning,
        &[
            "38 GB of 40 GB are promised",
            "the pools take 537 MB from the limit",
        ],
        Some("overcommit_ratio"),
    );
    expect(
        &healthy(),
        &strict(meminfo),
        "overcommit",
        Status::Ok,
        &["4 GB of 40 GB"],
        None,
    );
    expect(
        &healthy(),
        &quiet(),
        "overcommit",
        Status::Ok,
        &["vm.overcommit_memory = 0"],
        None,
    );
    // A limit in kB takes the place of the ratio, and the pools take nothing from it.
    let in_kilobytes = surroundings(&[
        ("proc/sys/vm/overcommit_memory", Some("2\n")),
        ("proc/sys/vm/overcommit_kbytes", Some("41943040\n")),
    ]);
    let check = named(&healthy(), &in_kilobytes, "overcommit");
    assert!(
        check.evidence["taken_by_pools_bytes"].is_null() && !check.finding.contains("take"),
        "{check:?}"
    );
    // Setting the ratio would put an end to the limit in kB.
    let promised_in_kilobytes = surroundings(&[
        ("proc/sys/vm/overcommit_memory", Some("2\n")),
        ("proc/sys/vm/overcommit_kbytes", Some("41943040\n")),
        ("proc/meminfo", Some(&promised)),
    ]);
    expect(
        &healthy(),
        &promised_in_kilobytes,
        "overcommit",
        Status::Warning,
        &["38 GB of 40 GB are promised"],
        Some("raise vm.overcommit_kbytes"),
    );
    // The kernel takes any ratio.
    let absurd = surroundings(&[
        ("proc/sys/vm/overcommit_memory", Some("2\n")),
        (
            "proc/sys/vm/overcommit_ratio",
            Some("9223372036854775807\n"),
        ),
    ]);
    let check = named(&healthy(), &absurd, "overcommit");
    assert_eq!(check.evidence["taken_by_pools_bytes"], u64::MAX);
}

#[test]
fn oom_protection() {
    let adjusted = |postmaster, others| {
        let mut around = Surroundings {
            oom_score_adj: Ok(postmaster),
            ..quiet()
        };
        for process in around
            .processes
            .iter_mut()
            .filter(|process| !process.is_postmaster)
        {
            process.oom_score_adj = Some(others);
        }
        around
    };
    expect(
        &healthy(),
        &adjusted(0, 0),
        "oom_protection",
        Status::Warning,
        &["oom_score_adj = 0"],
        Some("OOMScoreAdjust=-900"),
    );
    expect(
        &healthy(),
        &adjusted(-1000, -1000),
        "oom_protection",
        Status::Warning,
        &["could end none"],
        Some("PG_OOM_ADJUST_FILE"),
    );
    expect(
        &healthy(),
        &adjusted(-1000, 0),
        "oom_protection",
        Status::Ok,
        &["-1000"],
        None,
    );
    let strict = Surroundings {
        oom_score_adj: Ok(0),
        ..surroundings(&[("proc/sys/vm/overcommit_memory", Some("2\n"))])
    };
    expect(
        &healthy(),
        &strict,
        "oom_protection",
        Status::Ok,
        &["strict overcommit"],
        None,
    );
}

#[test]
fn memlock_matters_to_io_uring_alone() {
    for limit in [Some(0), Some(64 << 10), None] {
        let around = Surroundings {
            locked_memory: Ok(limit),
            ..quiet()
        };
        expect(
            &fallen_back(0),
            &around,
            "memlock",
            Status::Ok,
            &["no part in PostgreSQL's huge pages"],
            None,
        );
    }
    let mut around = Surroundings {
        uses_io_uring: true,
        ..quiet()
    };
    expect(&healthy(), &around, "memlock", Status::Ok, &[], None);
    around.host.kernel_release = "5.10.0-35-amd64".to_owned();
    expect(
        &healthy(),
        &around,
        "memlock",
        Status::Warning,
        &["5.10", "64 kB", "huge pages do not need it"],
        Some("LimitMEMLOCK"),
    );
    around.locked_memory = Ok(None);
    expect(
        &healthy(),
        &around,
        "memlock",
        Status::Ok,
        &["unlimited"],
        None,
    );
}

#[test]
fn hugetlb_shm_group_is_irrelevant() {
    let around = surroundings(&[("proc/sys/vm/hugetlb_shm_group", Some("1001\n"))]);
    expect(
        &fallen_back(0),
        &around,
        "hugetlb_shm_group",
        Status::Ok,
        &["(1001) has no part"],
        None,
    );
}

#[test]
fn restart_with_files() {
    let waiting = |files| Surroundings { files, ..quiet() };
    let larger = Server {
        shared_memory_bytes: 2048 * MB,
        ..healthy().server
    };
    expect(
        &healthy(),
        &waiting(Files::Planned(larger.clone())),
        "restart_with_files",
        Status::Warning,
        &[
            "wait for a restart",
            "1024 huge pages of 2 MB are required and the pool can give 537",
        ],
        Some("vm.nr_hugepages=1024"),
    );
    // The pool has them, and the control group would let the server start and break.
    let mut facts = healthy();
    *pool(&mut facts, 0) = Pool {
        total: 1024,
        free: 999,
        ..pool(&mut facts, 0).clone()
    };
    limited(&mut facts, Some(1100), None);
    expect(
        &facts,
        &waiting(Files::Planned(larger.clone())),
        "restart_with_files",
        Status::Warning,
        &[
            "wait for a restart",
            "after a restart the server would break",
        ],
        Some("echo 2147483648 >"),
    );
    limited(&mut facts, Some(2048), None);
    expect(
        &facts,
        &waiting(Files::Planned(larger.clone())),
        "restart_with_files",
        Status::Ok,
        &["would get them again"],
        None,
    );
    let smaller = Server {
        shared_memory_bytes: 100 * MB,
        ..healthy().server
    };
    expect(
        &healthy(),
        &waiting(Files::Planned(smaller)),
        "restart_with_files",
        Status::Ok,
        &["would get them again"],
        None,
    );
    let sysv = Server {
        shared_memory_type: SharedMemoryType::Sysv,
        ..healthy().server
    };
    expect(
        &healthy(),
        &waiting(Files::Planned(sysv.clone())),
        "restart_with_files",
        Status::Ok,
        &["would not ask"],
        None,
    );
    // PostgreSQL says so only when it starts in earnest.
    let sysv_with_huge_pages = Server {
        huge_pages: HugePages::On,
        ..sysv
    };
    expect(
        &healthy(),
        &waiting(Files::Planned(sysv_with_huge_pages)),
        "restart_with_files",
        Status::Critical,
        &["a restart would fail", "shared_memory_type = sysv"],
        Some("shared_memory_type = 'mmap'"),
    );
    expect(
        &healthy(),
        &waiting(Files::Refused(
            "invalid value for parameter \"shared_buffers\"".to_owned(),
        )),
        "restart_with_files",
        Status::Critical,
        &["shared_buffers"],
        Some("pg_file_settings"),
    );
    expect(
        &healthy(),
        &quiet(),
        "restart_with_files",
        Status::Ok,
        &["nothing that waits"],
        None,
    );
}

#[test]
fn a_pool_that_ram_holds_only_without_the_present_segment() {
    let of = |bytes| {
        let mut facts = fallen_back(0);
        facts.server.shared_memory_bytes = bytes;
        facts.segment.as_mut().expect("a segment").bytes = bytes;
        facts
    };
    for name in ["huge_pages", "restart"] {
        let remedy = |facts: &Facts| named(facts, &quiet(), name).remedy.unwrap_or_default();
        assert_eq!(
            remedy(&of(40 * GB)),
            "stop PostgreSQL, which has the memory that the pool takes; sysctl -w vm.nr_hugepages=20480; start PostgreSQL"
        );
        assert_eq!(
            remedy(&of(8 * GB)),
            "sysctl -w vm.nr_hugepages=4096; then restart PostgreSQL"
        );
        assert!(remedy(&of(62 * GB)).starts_with("lower shared_buffers"));
    }
}

#[test]
fn a_pool_set_up_for_settings_that_wait_is_not_idle() {
    let mut facts = healthy();
    *pool(&mut facts, 0) = Pool {
        total: 2048,
        free: 2023,
        ..pool(&mut facts, 0).clone()
    };
    let waiting = |shared_memory_bytes| Surroundings {
        files: Files::Planned(Server {
            shared_memory_bytes,
            ..healthy().server
        }),
        ..quiet()
    };
    let idle = "huge pages of 2 MB (";
    for (around, status, remedy) in [
        (quiet(), Status::Warning, Some("vm.nr_hugepages=537")),
        (waiting(GB), Status::Warning, Some("vm.nr_hugepages=537")),
        (
            waiting(2 * GB),
            Status::Warning,
            Some("vm.nr_hugepages=1024"),
        ),
        (waiting(3 * GB + 900 * MB), Status::Ok, None),
    ] {
        expect(&facts, &around, "pool_size", status, &[idle], remedy);
    }

    // Huge pages are about to be switched on.
    let mut facts = fallen_back(537);
    facts.server.huge_pages = HugePages::Off;
    let switched_on = Surroundings {
        files: Files::Planned(healthy().server),
        ..quiet()
    };
    let all = ["537 huge pages of 2 MB"];
    let remedy = Some("vm.nr_hugepages=0");
    expect(&facts, &quiet(), "pool_size", Status::Warning, &all, remedy);
    expect(&facts, &switched_on, "pool_size", Status::Ok, &[], None);
}
