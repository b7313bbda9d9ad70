//! Remedies that a review has proven wrong, each on the machine that proved it: what is said now,
//! to the letter. The numbers are those of the review.

#![allow(clippy::expect_used)]

mod scene;

use std::{collections::BTreeMap, path::PathBuf};

use hugeinfo::{
    advice::{
        check::{Check, Status},
        how_to_set,
        planned::{self, Planned},
        runbook, words,
    },
    linux::{
        boot::{Doubt, Doubtful, Phase, What},
        cgroup::Limits,
        hugepages::Pool,
        numa::node::{Node, NodeCounters},
        process::segment::Segment,
    },
    model::{
        forecast::Forecast,
        machine::Machine,
        step::{Step, Waits},
        take::{Harm, Trouble, take, take_all},
    },
    server::{
        facts::{AllowedNodes, HugePages, Server, SharedMemoryType},
        instances::Instance,
        restored::{Because, TooLow, Value},
        setting::{FileLine, Setting, SettingSource},
        surroundings::{Files, ProcessFigures},
    },
};
use scene::*;

fn scene(change: impl FnOnce(&mut Scene)) -> Scene {
    let mut scene = Scene::healthy();
    change(&mut scene);
    scene
}

/// What a check says of a machine. What it tells to do can be done.
#[track_caller]
fn says(name: &str, machine: &Machine) -> Check {
    let all = hugeinfo::advice::diagnosis::checks(machine);
    let mut named = all.into_iter().filter(|check| check.name == name);
    let check = named.next().expect("a check of that name");
    assert!(take_all(machine, &check.steps).is_ok(), "{check:?}");
    check
}

/// Settings that take effect at the next start.
fn plan(settings: &[(&str, &str, Result<Server, &str>)]) -> Planned {
    let setting =
        |&(name, value, ref next): &(&str, &str, Result<Server, &str>)| planned::Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            source: SettingSource::Default,
            waits: Waits::ForStart,
            next: next.clone().map_err(str::to_owned),
        };
    let settings: Vec<_> = settings.iter().map(setting).collect();
    let last = settings.last().expect("a setting");
    Planned {
        next: last.next.clone().expect("a start"),
        waits: Waits::ForNothing,
        names: settings
            .iter()
            .map(|setting| setting.name.clone())
            .collect(),
        settings,
    }
}

fn commands(machine: &Machine, plan: &Planned) -> Vec<String> {
    let rows = runbook::of(machine, Some(plan));
    rows.into_iter().map(|row| row.command).collect()
}

#[track_caller]
fn expect(
    name: &str,
    change: impl FnOnce(&mut Scene),
    status: Status,
    words: &str,
    remedy: Option<&str>,
) {
    let check = says(name, &scene(change).machine());
    assert_eq!(check.status, status, "{check:?}");
    assert!(check.finding.contains(words), "{check:?}");
    assert_eq!(check.remedy.as_deref(), remedy, "{check:?}");
}

/// What to type for the pool of 2 MB.
fn setting(change: impl FnOnce(&mut Scene)) -> String {
    let machine = scene(change).machine();
    let pool = machine.pool(2 * MB).expect("a pool");
    how_to_set(&machine, pool).expect("a number")
}

fn strict(m: &mut Scene, committed: u64) {
    m.file("proc/sys/vm/overcommit_memory", "2\n");
    m.committed = Some(committed);
}

/// Another server on small pages.
fn beside(m: &mut Scene, bytes: u64) {
    let segment = Some(Segment {
        bytes,
        page_bytes: Some(4096),
        mappings: 1,
    });
    let servers = m.around.neighbours.as_mut().expect("servers");
    servers.push(Instance {
        pid: 815,
        owner_uid: Some(1001),
        owner: None,
        data_directory: None,
        directory_argument: None,
        port: None,
        segment,
        shared_memory_type: Some(SharedMemoryType::Mmap),
    });
}

fn limits(m: &mut Scene) -> &mut Limits {
    &mut m.facts.hugetlb.as_mut().expect("cgroup").groups[0].limits[0]
}

/// A server of 50 GB on huge pages, which leave 14 GB of RAM.
fn large(m: &mut Scene) {
    m.asked(25_600);
    m.facts.server.shared_memory_bytes = 50 * GB;
    m.facts.segment = Ok(Segment {
        bytes: 50 * GB,
        page_bytes: Some(2 * MB),
        mappings: 1,
    });
    *m.pool(0) = Pool {
        total: 25_600,
        free: 25_000,
        reserved: 25_000,
        ..m.pool(0).clone()
    };
}

#[test]
fn n01_a_pool_that_grows_leaves_commit_limit_above_what_is_promised() {
    let machine = scene(|m| {
        m.fall_back(0);
        m.needs(24 * GB);
        strict(m, 30 * GB);
    })
    .machine();
    let check = says("huge_pages", &machine);
    assert_eq!(
        check.remedy.as_deref(),
        Some(
            "echo 64 > /proc/sys/vm/overcommit_ratio && (umask 022 && echo 'vm.overcommit_ratio = 64' >> /etc/sysctl.d/hugepages.conf); echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=12288; then restart PostgreSQL"
        )
    );
    let mut at = machine;
    for step in &check.steps {
        let (after, trouble) = take(&at, step);
        assert_eq!(trouble, None, "{step:?}");
        let usage = after.host_usage();
        assert!(usage.0 <= usage.1, "{step:?}: {usage:?}");
        at = after;
    }
}

/// What is promised, and the limit.
trait Promises {
    fn host_usage(&self) -> (Option<u64>, Option<u64>);
}

impl Promises for Machine {
    fn host_usage(&self) -> (Option<u64>, Option<u64>) {
        let around = self.around.as_ref().expect("a host");
        let usage = around.host.usage.as_ref().expect("meminfo");
        (usage.committed, usage.commit_limit)
    }
}

#[test]
fn n01_a_fallback_that_commit_limit_refuses_is_critical() {
    expect(
        "restart",
        |m| {
            large(m);
            m.pool(0).surplus = 25_500;
            strict(m, 3 * GB);
        },
        Status::Critical,
        "a restart would fail: the server needs 25600 huge pages of 2 MB; the pool can give 100, 25500 too few; on small pages the main segment takes 50 GB, and CommitLimit leaves only 12 GB",
        Some("sysctl -w vm.nr_hugepages=25600"),
    );
}

#[test]
fn n01_what_is_kept_for_root_of_commit_limit_is_no_servers() {
    let refused = |m: &mut Scene| {
        large(m);
        m.pool(0).surplus = 25_500;
        m.file("proc/sys/vm/admin_reserve_kbytes", "2097152\n");
        strict(m, 3 * GB);
    };
    expect(
        "restart",
        refused,
        Status::Critical,
        "on small pages the main segment takes 50 GB, and CommitLimit leaves only 10240 MB",
        Some("sysctl -w vm.nr_hugepages=25600"),
    );
    // CommitLimit falls from 40 to 35.5 GB, and 30 GB are committed.
    let reserved = |kb: &'static str| {
        let mut machine = scene(|m| {
            m.fall_back(0);
            m.needs(14 * GB);
            m.file("proc/sys/vm/admin_reserve_kbytes", kb);
            m.available = Some(60 * GB);
            strict(m, 30 * GB);
        })
        .machine();
        machine.is_compacted = true;
        machine
    };
    let grow = Step::SetPool {
        page_bytes: 2 * MB,
        node: None,
        pages: 9 * 512,
    };
    let (_, trouble) = take(&reserved("8192\n"), &grow);
    assert_eq!(trouble, None);
    let (_, trouble) = take(&reserved("6291456\n"), &grow);
    assert_eq!(trouble, Some(Trouble::Harm(Harm::CommitLimit)));
}

#[test]
fn n02_nodes_get_their_share_by_their_memory() {
    let unequal = |m: &mut Scene, of_0, of_1| {
        m.ram(144 * GB);
        large(m);
        m.nodes(&[(of_0, 128 * GB), (of_1, 16 * GB)]);
    };
    expect(
        "numa_pool",
        |m| unequal(m, 22_756, 2_844),
        Status::Ok,
        "in proportion to their memory",
        None,
    );
    expect(
        "numa_pool",
        |m| unequal(m, 25_600, 0),
        Status::Warning,
        "node 1 has 0 huge pages of 2 MB, and its share of 25600 would be 2845",
        Some(
            "echo 1 > /proc/sys/vm/compact_memory; echo 2845 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 22755 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
        ),
    );
    // Other programs have all of its memory.
    expect(
        "numa_pool",
        |m| {
            unequal(m, 25_600, 0);
            m.around.nodes.as_mut().expect("nodes")[1].memory.available = Some(GB / 4);
        },
        Status::Ok,
        "in proportion to their memory, as far as it has room",
        None,
    );
    // A node of CXL memory that is off line has none.
    expect(
        "numa_pool",
        |m| m.nodes(&[(537, 64 * GB), (0, 0)]),
        Status::Ok,
        "one node",
        None,
    );
}

fn of_32_gb(number: u32, total: u64, free: u64) -> Node {
    let mut node = on_node(number, total);
    node.memory.total = Some(32 * GB);
    node.pools[0].counters = Some(NodeCounters {
        total,
        free,
        surplus: 0,
    });
    node
}

#[test]
fn n02_a_server_that_may_use_some_nodes_gets_no_pages_of_others() {
    expect(
        "restart",
        |m| {
            m.fall_back(600);
            m.nodes(&[(500, 32 * GB), (100, 32 * GB)]);
            m.facts.allowed_nodes = AllowedNodes::Only(vec![of_32_gb(1, 100, 100)]);
        },
        Status::Warning,
        "the NUMA nodes that the server may use (1) lack 437 of them",
        Some(
            "echo 537 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 0 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
        ),
    );
}

#[test]
fn nor_does_the_number_for_its_pool_spread_them_over_others() {
    let bound = |m: &mut Scene| {
        m.fall_back(0);
        m.nodes(&[(0, 32 * GB), (0, 32 * GB)]);
        let nodes = m.around.nodes.clone().expect("nodes");
        m.facts.allowed_nodes = AllowedNodes::Only(nodes[1..].to_vec());
    };
    assert_eq!(
        setting(bound),
        "echo 537 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
    );
    // Where it has them already, what is there is said.
    let set_up = |m: &mut Scene| {
        bound(m);
        m.fall_back(537);
        m.nodes(&[(0, 32 * GB), (537, 32 * GB)]);
        let nodes = m.around.nodes.clone().expect("nodes");
        m.facts.allowed_nodes = AllowedNodes::Only(nodes[1..].to_vec());
    };
    assert_eq!(setting(set_up), "sysctl -w vm.nr_hugepages=537");
}

#[test]
fn what_a_bound_server_gives_back_is_on_its_nodes() {
    let machine = scene(|m| {
        // Each of two servers has touched all of its pages, each on one node.
        let pool = &mut m.facts.pools.as_mut().expect("pools")[0];
        (pool.total, pool.free, pool.reserved) = (1074, 0, 0);
        m.around.nodes = Ok(vec![of_32_gb(0, 537, 0), of_32_gb(1, 537, 0)]);
        m.facts.allowed_nodes = AllowedNodes::Only(vec![of_32_gb(1, 537, 0)]);
    })
    .machine();
    let (after, trouble) = take(&machine, &Step::Restart);
    assert_eq!(trouble, None);
    assert_eq!(after.is_on_huge_pages(), Some(true));
}

#[test]
fn a_page_touched_between_two_reads_hides_no_node() {
    let mut machine = scene(|_| ()).machine();
    let pool = &mut machine.facts.pools.as_mut().expect("pools")[0];
    (pool.total, pool.free, pool.reserved) = (1074, 937, 400);
    let mut nodes = vec![of_32_gb(0, 537, 500), of_32_gb(1, 537, 438)];
    nodes[1].memory.available = Some(GB);
    machine.around.as_mut().expect("around").nodes = Ok(nodes);
    let set = Step::SetPool {
        page_bytes: 2 * MB,
        node: Some(1),
        pages: 2000,
    };
    let (_, trouble) = take(&machine, &set);
    let less = matches!(trouble, Some(Trouble::Less { missing, .. }) if missing > 1000);
    assert!(less, "{trouble:?}");
}

#[test]
fn only_a_pool_that_was_made_larger_is_set_back() {
    let set = |page_bytes, pages| Step::SetPool {
        page_bytes,
        node: None,
        pages,
    };
    let machine = scene(|_| ()).machine();
    let said = |steps: &[Step]| words::remedy(&machine, steps).expect("steps");
    assert_eq!(
        said(&[Step::Stop, set(2 * MB, 0), Step::Start]),
        "stop PostgreSQL; sysctl -w vm.nr_hugepages=0; start PostgreSQL"
    );
    assert_eq!(
        said(&[Step::Stop, set(2 * MB, 0), set(GB, 2), Step::Start]),
        "stop PostgreSQL; sysctl -w vm.nr_hugepages=0; \
         echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; \
         if nr_hugepages reads less than was written, \
         first set it back: echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; \
         start PostgreSQL"
    );
}

#[test]
fn a_server_that_insists_on_huge_pages_is_told_to_try() {
    let steps = [
        Step::Stop,
        Step::SetPool {
            page_bytes: 2 * MB,
            node: None,
            pages: 20_480,
        },
        Step::Start,
    ];
    let said = |machine: &Machine, steps: &[Step]| words::remedy(machine, steps).expect("steps");
    let on = scene(|m| {
        m.fall_back(0);
        m.waits(|next| {
            next.huge_pages = HugePages::On;
            next.shared_memory_bytes = 40 * GB;
        });
    });
    let machine = on.machine();
    assert_eq!(
        said(&machine, &steps),
        "stop PostgreSQL; sysctl -w vm.nr_hugepages=20480; \
         if nr_hugepages reads less than 20480, first set it back: sysctl -w vm.nr_hugepages=0, \
         and in postgresql.auto.conf: huge_pages = 'try'; start PostgreSQL"
    );
    // While it runs, it is well.
    assert_eq!(
        said(&machine, &[steps[1].clone(), Step::Restart]),
        "sysctl -w vm.nr_hugepages=20480; \
         if nr_hugepages reads less than 20480, do not restart; then restart PostgreSQL"
    );
}

#[test]
fn a_bound_server_whose_nodes_lost_their_pages_will_crash() {
    // 40 of 537 pages are touched, and so many more; all others are promised.
    let bound = |m: &mut Scene, used: u64| {
        let pool = &mut m.facts.pools.as_mut().expect("pools")[0];
        (pool.total, pool.free, pool.reserved) = (637, 597 - used, 497 - used);
        m.around.nodes = Ok(vec![of_32_gb(0, 537, 537), of_32_gb(1, 100, 60)]);
        m.facts.allowed_nodes = AllowedNodes::Only(vec![of_32_gb(1, 100, 60)]);
    };
    expect(
        "huge_pages",
        |m| bound(m, 0),
        Status::Critical,
        "the NUMA nodes that the server may use have 100: it crashes",
        Some(
            "echo 537 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages; echo 0 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
        ),
    );
    // It may have touched them before it was bound.
    expect(
        "huge_pages",
        |m| bound(m, 497),
        Status::Ok,
        "537 huge pages",
        None,
    );
}

#[test]
fn n03_a_limit_lifted_alone_would_not_do() {
    let raise = "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max; in Kubernetes raise the pod's limit on huge pages instead";
    let set = "sysctl -w vm.nr_hugepages=537";
    expect(
        "restart_with_files",
        |m| {
            m.fall_back(10);
            limited(&mut m.facts, None, Some(100));
            m.waits(|next| next.huge_pages = HugePages::On);
        },
        Status::Critical,
        "a restart would fail",
        Some(&format!("{raise}; {set}")),
    );
    type Change = fn(&mut Server);
    let changes: [(Change, &str); 3] = [
        (
            |server| server.huge_pages = HugePages::Off,
            "ALTER SYSTEM SET huge_pages = 'try'",
        ),
        (
            |server| server.shared_memory_type = SharedMemoryType::Sysv,
            "ALTER SYSTEM SET shared_memory_type = 'mmap'",
        ),
        (
            |server| server.huge_page_size_bytes = Some(16 * MB),
            "ALTER SYSTEM SET huge_page_size = 0",
        ),
    ];
    for (change, altered) in changes {
        expect(
            "huge_pages",
            |m| {
                m.fall_back(10);
                limited(&mut m.facts, None, Some(100));
                change(&mut m.facts.server);
            },
            Status::Warning,
            "",
            Some(&format!(
                "{altered}; {raise}; {set}; then restart PostgreSQL"
            )),
        );
    }
}

#[test]
fn n04_a_pool_that_was_shrunk_is_made_whole_without_a_restart() {
    expect(
        "restart",
        |m| m.pool(0).surplus = 444,
        Status::Warning,
        "444 too few",
        Some("sysctl -w vm.nr_hugepages=537"),
    );
}

#[test]
fn n05_memory_has_to_be_available() {
    let short = |m: &mut Scene, touched| {
        m.fall_back(0);
        m.needs(8 * GB);
        m.available = Some(2 * GB);
        m.around.processes = processes(
            9,
            ProcessFigures {
                rss_shmem: Some(touched),
                ..ProcessFigures::default()
            },
        );
    };
    // What the server gives back is enough.
    expect(
        "huge_pages",
        |m| short(m, 8 * GB),
        Status::Warning,
        "4096 too few",
        Some(
            "stop PostgreSQL; echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=4096; if nr_hugepages reads less than 4096, first set it back: sysctl -w vm.nr_hugepages=0; start PostgreSQL",
        ),
    );
    // It is not, and is not asked for once more.
    expect(
        "huge_pages",
        |m| short(m, 3 * GB),
        Status::Warning,
        "4096 too few",
        Some(
            "free 4383 MB of memory first, or set up the pool at boot: MemAvailable lacks that much now",
        ),
    );
    // It has touched nothing.
    expect(
        "huge_pages",
        |m| short(m, 0),
        Status::Warning,
        "4096 too few",
        Some(
            "free 7455 MB of memory first, or set up the pool at boot: MemAvailable lacks that much now",
        ),
    );
}

#[test]
fn n06_the_server_is_stopped_first_where_it_must_be_and_nowhere_else() {
    let beyond = |m: &mut Scene| {
        m.fall_back(0);
        m.needs(40 * GB);
        m.asked(20_480);
    };
    let stop = "stop PostgreSQL; echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=20480; if nr_hugepages reads less than 20480, first set it back: sysctl -w vm.nr_hugepages=0; start PostgreSQL";
    expect(
        "huge_pages",
        |m| {
            beyond(m);
            m.facts.server.huge_page_size_bytes = Some(16 * MB);
        },
        Status::Warning,
        "16 MB",
        Some(&format!("ALTER SYSTEM SET huge_page_size = 0; {stop}")),
    );
    expect(
        "pool_filled",
        beyond,
        Status::Warning,
        "asked for 20480",
        Some(stop),
    );
    expect(
        "neighbours",
        |m| {
            beyond(m);
            beside(m, 144 * MB);
        },
        Status::Warning,
        "need 20552",
        // What its neighbour lacks is none of its own.
        Some(&stop.replace("nr_hugepages=20480", "nr_hugepages=20552")),
    );
    assert_eq!(setting(beyond), stop);
    expect(
        "huge_pages",
        |m| {
            m.ram(128 * GB);
            m.fall_back(20_479);
            m.needs(40 * GB);
        },
        Status::Warning,
        "1 too few",
        Some("sysctl -w vm.nr_hugepages=20480; then restart PostgreSQL"),
    );
}

#[test]
fn n07_no_restart_arms_a_limit() {
    let raise = "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead; then restart PostgreSQL";
    for name in ["huge_pages", "page_tables"] {
        expect(
            name,
            |m| {
                m.fall_back(537);
                limited(&mut m.facts, Some(100), None);
                m.around.processes = processes(
                    80,
                    ProcessFigures {
                        page_tables: Some(20 * MB),
                        ..ProcessFigures::default()
                    },
                );
            },
            Status::Warning,
            "",
            Some(raise),
        );
    }
}

#[test]
fn n08_a_fallback_beside_a_full_pool_counts() {
    let raise = "echo 53687091200 > /sys/fs/cgroup/pg/hugetlb.2MB.rsvd.max; in Kubernetes raise the pod's limit on huge pages instead";
    for (name, words) in [
        (
            "restart",
            "on small pages the main segment takes 50 GB, and the pools leave only 14 GB of RAM",
        ),
        ("memory_left", "after a restart on small pages"),
    ] {
        let limited = |m: &mut Scene| {
            large(m);
            scene::limited(&mut m.facts, None, Some(100));
        };
        expect(name, limited, Status::Critical, words, Some(raise));
    }
    // What waits in the files falls back as well.
    for name in ["restart", "restart_with_files", "memory_left"] {
        expect(
            name,
            |m| {
                large(m);
                m.around.shared_buffers_bytes = 49 * GB;
                m.waits(|next| next.shared_memory_bytes = 52 * GB);
            },
            Status::Critical,
            "on small pages the main segment takes 52 GB, and the pools leave only 14 GB of RAM",
            Some("sysctl -w vm.nr_hugepages=26624"),
        );
    }
}

#[test]
fn n09_one_result_names_one_number() {
    let off = |m: &mut Scene| {
        m.fall_back(537);
        m.facts.server.huge_pages = HugePages::Off;
    };
    expect(
        "pool_size",
        off,
        Status::Ok,
        "no pool holds unused pages",
        None,
    );
    let wanted = |m: &mut Scene| {
        beside(m, 4 * GB);
        m.pool(0).total += 2048;
        m.pool(0).free += 2048;
    };
    expect(
        "pool_size",
        wanted,
        Status::Ok,
        "no pool holds unused pages",
        None,
    );
    expect("neighbours", wanted, Status::Ok, "need 2585", None);

    let waits = |m: &mut Scene| m.waits(|next| next.shared_memory_bytes = 2120 * MB);
    let machine = scene(waits).machine();
    let set = "sysctl -w vm.nr_hugepages=1060";
    for name in ["restart", "restart_with_files"] {
        let check = says(name, &machine);
        assert_eq!(check.remedy.as_deref(), Some(set));
        assert_eq!(check.evidence["recommended_nr_hugepages"], 1060);
    }
    let forecast = Forecast::of_target(&machine).expect("a pool");
    assert_eq!(
        (forecast.required, forecast.recommended),
        (1060, Some(1060))
    );
    assert!(setting(waits).starts_with(&format!("{set}; sed -i ")));
    let reboot = says("reboot", &machine);
    assert_eq!(reboot.evidence["required_pages"], 1060);
    let rows = runbook::of(&machine, None);
    let commands: Vec<_> = rows.iter().map(|row| row.command.as_str()).collect();
    assert_eq!(
        commands,
        [set, &typed_instead("sysctl.d/hugepages.conf", 537, 1060)]
    );
}

const CONF: &str = "etc/sysctl.d/hugepages.conf";

#[test]
fn n10_the_next_boot_counts_others_and_no_overcommit() {
    expect(
        "reboot",
        |m| m.pool(0).total = 600,
        Status::Warning,
        "needed: 600, 63 of them by others",
        Some(&typed_instead("sysctl.d/hugepages.conf", 537, 600)),
    );
    expect(
        "reboot",
        |m| {
            m.file(CONF, "vm.nr_overcommit_hugepages = 600\n");
            m.pool(0).overcommit = 600;
        },
        Status::Warning,
        "needed: 537",
        Some(&typed_into("hugepages.conf", 537)),
    );
}

#[test]
fn n10_the_file_that_is_read_last_counts_and_is_named() {
    // What is written to /run is gone.
    expect(
        "reboot",
        |m| {
            m.file(CONF, None);
            m.file("run/sysctl.d/99-gone.conf", "vm.nr_hugepages = 600\n");
        },
        Status::Warning,
        "neither",
        Some(&typed_anew(537)),
    );
    // Nobody edits what a package has put there.
    expect(
        "reboot",
        |m| {
            m.file(CONF, None);
            m.file("usr/lib/sysctl.d/50-vendor.conf", "vm.nr_hugepages = 5\n");
        },
        Status::Warning,
        "/usr/lib/sysctl.d/50-vendor.conf sets up 5 ",
        Some(&typed_anew(537)),
    );
    // The file that is named is the one that is read last.
    expect(
        "reboot",
        |m| m.file("etc/sysctl.d/zz.conf", "vm.nr_hugepages = 5\n"),
        Status::Warning,
        "/etc/sysctl.d/zz.conf sets up 5 ",
        Some(&typed_instead("sysctl.d/zz.conf", 5, 537)),
    );
    // One that cannot be read may have the last word.
    expect(
        "reboot",
        |m| {
            let next = m.around.asked_at_boot.as_mut().expect("a boot");
            next.doubts.push(Doubt {
                phase: Phase::Sysctl,
                of: What::Pages,
                file: "/etc/sysctl.d/zz.conf".to_owned(),
                what: Doubtful::Unread,
            });
        },
        Status::Unknown,
        "/etc/sysctl.d/zz.conf might set another number, and cannot be read",
        None,
    );
}

#[test]
fn n10_the_command_line_is_read_as_the_kernel_reads_it() {
    let set = &typed_anew(537);
    // Pages of 1 GB are made first, and would leave no memory.
    let none =
        "for the next boot, on the kernel command line: hugepages=0 in place of hugepages=600";
    let both = format!("{set}; {none}");
    for (line, words, remedy) in [
        (
            "hugepages=20 hugepages=40",
            "/proc/cmdline sets up 20 ",
            set,
        ),
        (
            "hugepages=21 hugepagesz=2M hugepages=37",
            "/proc/cmdline sets up 21 ",
            set,
        ),
        (
            "hugepagesz=2M hugepages=12 default_hugepagesz=2M hugepages=600",
            "/proc/cmdline sets up 12 ",
            set,
        ),
        // Of 1GB the kernel reads 1G.
        (
            "hugepagesz=1GB hugepages=600",
            "/proc/cmdline sets up 64 ",
            &both,
        ),
        (
            "hugepagesz=1G hugepages=600",
            "/proc/cmdline sets up 64 ",
            &both,
        ),
    ] {
        expect(
            "reboot",
            |m| {
                m.file(CONF, None);
                m.file("proc/cmdline", line);
            },
            Status::Warning,
            words,
            Some(remedy),
        );
    }
}

#[test]
fn n10_gigantic_pages_by_tmpfiles_and_beside_cma() {
    let gigantic = |m: &mut Scene| {
        m.file(CONF, None);
        m.facts.server.huge_page_size_bytes = Some(GB);
        m.facts.segment = Ok(Segment {
            bytes: 2 * GB,
            page_bytes: Some(GB),
            mappings: 1,
        });
        *m.pool(0) = Pool {
            total: 0,
            free: 0,
            reserved: 0,
            ..m.pool(0).clone()
        };
        m.pool(1).total = 2;
    };
    let line = "w /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages - - - - 2\n";
    expect(
        "reboot",
        |m| {
            gigantic(m);
            m.file("run/systemd/system/x", "");
            m.file("etc/tmpfiles.d/huge.conf", line);
        },
        Status::Ok,
        "/etc/tmpfiles.d/huge.conf sets up 2 huge pages of 1 GB",
        None,
    );
    expect(
        "reboot",
        |m| {
            gigantic(m);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=2");
        },
        Status::Ok,
        "/proc/cmdline sets up 2 huge pages of 1 GB",
        None,
    );
    let beside_cma = |m: &mut Scene| {
        gigantic(m);
        for size in ["2048kB", "1048576kB"] {
            let file = format!("sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages");
            m.file(&file, "0\n");
        }
        let meminfo = CAPTURED[0].1.to_owned() + "CmaTotal: 2097152 kB\n";
        m.file("proc/meminfo", meminfo.as_str());
        m.file("proc/sys/kernel/osrelease", "6.1.0-56-amd64\n");
        m.file("proc/cmdline", "hugetlb_cma=2G hugepagesz=1G hugepages=2");
    };
    let words = "with hugetlb_cma= the kernel ignores hugepages= for pages of 1 GB";
    expect(
        "reboot",
        |m| {
            beside_cma(m);
            m.file("run/systemd/system/x", "");
        },
        Status::Warning,
        words,
        Some(&format!(
            "(umask 022 && mkdir -p /etc/tmpfiles.d && echo '{}' >> /etc/tmpfiles.d/hugepages.conf)",
            line.trim_end()
        )),
    );
    expect(
        "reboot",
        beside_cma,
        Status::Warning,
        words,
        Some(
            "find the file that sets the pool at boot: a file that is read later, or that cannot be read, decides",
        ),
    );
}

#[test]
fn n11_a_pool_shrinks_after_the_restart() {
    let machine = scene(|m| m.asked(537)).machine();
    let mut next = machine.facts.server.clone();
    next.shared_memory_bytes = 100 * MB;
    let plan = plan(&[("shared_buffers", "64MB", Ok(next))]);
    assert_eq!(
        commands(&machine, &plan),
        [
            "ALTER SYSTEM SET shared_buffers = '64MB'",
            "restart PostgreSQL",
            "sysctl -w vm.nr_hugepages=50",
        ]
    );
    let waits = |m: &mut Scene| m.waits(|next| next.shared_memory_bytes = 100 * MB);
    assert_eq!(
        setting(waits),
        format!(
            "restart PostgreSQL; sysctl -w vm.nr_hugepages=50; {}",
            typed_instead("sysctl.d/hugepages.conf", 537, 50)
        )
    );
    expect(
        "pool_size",
        waits,
        Status::Ok,
        "no pool holds unused pages",
        None,
    );
}

#[test]
fn n12_pages_that_the_kernel_has_yet_to_make_are_no_certainty() {
    let by_overcommit = |m: &mut Scene| {
        m.fall_back(0);
        m.pool(0).overcommit = 600;
    };
    expect(
        "restart",
        by_overcommit,
        Status::Warning,
        "a restart may not get huge pages: the server needs 537 huge pages of 2 MB; the kernel would have to make 537 of them",
        Some("sysctl -w vm.nr_hugepages=537"),
    );
    let forecast = Forecast::of_target(&scene(by_overcommit).machine()).expect("a pool");
    assert_eq!(forecast.fits_after_restart, None);
    // Nor is their memory free: on small pages the segment needs as much.
    expect(
        "huge_pages",
        |m| {
            by_overcommit(m);
            m.pool(0).overcommit = 31_744;
            m.needs(62 * GB);
            m.around.shared_buffers_bytes = 60 * GB;
        },
        Status::Warning,
        "31744 of them",
        Some(
            "lower shared_buffers to 56934MB or add memory: 31744 huge pages of 2 MB would leave less than 10 % of RAM; 4506 MB too much",
        ),
    );
}

#[test]
fn n13_the_culprit_is_who_holds_the_pool() {
    let foreign = |m: &mut Scene| {
        m.fall_back(25_600);
        m.asked(25_600);
        m.pool(0).reserved = 25_600;
        m.needs(8 * GB);
        m.around.shared_buffers_bytes = 7 * GB;
    };
    expect(
        "huge_pages",
        foreign,
        Status::Warning,
        "can give 0",
        Some(
            "find out who holds the huge pages (hugeinfo_holders): other programs have them, or pools that others have set up",
        ),
    );
    // In a container: nobody knows the host's RAM, and nobody is told to lower anything.
    let machine = scene(|m| {
        foreign(m);
        m.ram(16 * GB);
        m.available = Some(6 * GB);
    })
    .machine();
    let holders = "find out who holds the huge pages (hugeinfo_holders): other programs have them, or pools that others have set up";
    let remedy = |machine: &Machine| says("huge_pages", machine).remedy;
    assert_eq!(remedy(&machine).as_deref(), Some(holders));
    // The pools would fit into MemTotal or MemAvailable, and are not theirs.
    let own_total = |m: &mut Scene| {
        m.nodes(&[(12_800, 128 * GB), (12_800, 128 * GB)]);
        m.ram(70 * GB);
    };
    let own_available = |m: &mut Scene| {
        m.ram(256 * GB);
        m.nodes(&[(12_800, 128 * GB), (12_800, 128 * GB)]);
        m.around.nodes.as_mut().expect("nodes")[0].memory.free = Some(100 * GB);
    };
    for change in [&own_total as &dyn Fn(&mut Scene), &own_available] {
        let machine = scene(|m| {
            foreign(m);
            change(m);
            m.available = Some(GB);
        });
        assert_eq!(remedy(&machine.machine()).as_deref(), Some(holders));
    }
    for check in hugeinfo::advice::diagnosis::checks(&machine) {
        let remedy = check.remedy.unwrap_or_default();
        assert!(!remedy.contains("shared_buffers to"), "{remedy}");
        assert!(!remedy.contains("lower shared_buffers or"), "{remedy}");
    }
}

#[test]
fn n14_the_word_of_a_size_goes_before_the_general_one() {
    let private = |general: &'static str, of_size: &'static str| {
        move |m: &mut Scene| {
            m.file(&format!("{THP}/enabled"), general);
            m.file(&format!("{THP}/hugepages-2048kB/enabled"), of_size);
        }
    };
    expect(
        "thp_private",
        private(
            "always [madvise] never\n",
            "[always] inherit madvise never\n",
        ),
        Status::Warning,
        "hugepages-2048kB/enabled = always",
        Some("echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"),
    );
    expect(
        "thp_private",
        private(
            "[always] madvise never\n",
            "always inherit [madvise] never\n",
        ),
        Status::Ok,
        "only on request (enabled = always)",
        None,
    );
    expect(
        "thp_shared",
        |m| {
            m.fall_back(537);
            m.file(
                &format!("{THP}/shmem_enabled"),
                "always within_size advise never [deny] force\n",
            );
            m.file(
                &format!("{THP}/hugepages-64kB/shmem_enabled"),
                "[always] inherit within_size advise never\n",
            );
        },
        Status::Ok,
        "deny",
        None,
    );
}

#[test]
fn n15_before_linux_5_7_groups_count_what_was_touched() {
    // A sibling below the same limit has touched 1000 MB.
    expect(
        "cgroup_fault_limit",
        |m| {
            limited(&mut m.facts, Some(1200), None);
            limits(m).reservation_use = None;
            limits(m).fault_use = Some(1050 * MB);
        },
        Status::Critical,
        "allows 1200 MB of 2 MB pages, and 2074 MB are mapped",
        Some(
            "echo 2174746624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn n15_what_others_were_promised_elsewhere_is_none_of_the_group() {
    // Another pod has reserved pages, and this one has touched all that it may.
    expect(
        "cgroup_fault_limit",
        |m| {
            limited(&mut m.facts, Some(1074), None);
            limits(m).reservation_use = None;
            limits(m).fault_use = Some(1074 * MB);
            let pool = &mut m.facts.pools.as_mut().expect("pools")[0];
            (pool.total, pool.free, pool.reserved) = (2000, 1463, 1000);
        },
        Status::Unknown,
        "allows 1074 MB of 2 MB pages, and up to 2148 MB may be needed: this kernel does not tell",
        None,
    );
}

/// Before Linux 5.7, in a pod that has touched all that it may, beside another one whose pages are
/// all reserved.
fn pod_beside_promises(m: &mut Scene) {
    limited(&mut m.facts, Some(1074), None);
    limits(m).reservation_use = None;
    limits(m).fault_use = Some(1074 * MB);
    let pool = &mut m.facts.pools.as_mut().expect("pools")[0];
    (pool.total, pool.free, pool.reserved) = (2000, 1463, 1463);
}

#[test]
fn n15_a_start_that_maps_no_more_is_in_no_more_danger() {
    let machine = scene(pod_beside_promises).machine();
    let (after, trouble) = take(&machine, &Step::Restart);
    assert_eq!(trouble, None);
    assert_eq!(after.is_on_huge_pages(), Some(true));

    // What others have there is unknown, and may leave no room for more.
    let grown = scene(|m| {
        pod_beside_promises(m);
        let pool = m.pool(0);
        (pool.total, pool.free) = (pool.total + 10, pool.free + 10);
        m.waits(|next| next.shared_memory_bytes = 1076 * MB);
        limited(&mut m.facts, Some(1076), None);
        limits(m).reservation_use = None;
        limits(m).fault_use = Some(1074 * MB);
    });
    let (_, trouble) = take(&grown.machine(), &Step::Restart);
    assert_eq!(trouble, Some(Trouble::Harm(Harm::Armed)));
}

#[test]
fn n15_what_is_certain_is_said_as_such() {
    // Others have touched 100 MB at least, and what is reserved may all be ours.
    expect(
        "cgroup_fault_limit",
        |m| {
            pod_beside_promises(m);
            limits(m).fault_use = Some(1174 * MB);
            limits(m).fault_limit = Some(1100 * MB);
        },
        Status::Critical,
        "allows 1100 MB of 2 MB pages, and at least 1174 MB are mapped",
        Some(
            "echo 2357198848 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn n15_a_default_of_one_gigabyte() {
    let meminfo = CAPTURED[0]
        .1
        .replace("Hugepagesize:       2048 kB", "Hugepagesize:    1048576 kB");
    let default = |m: &mut Scene| {
        m.facts
            .meminfo
            .as_mut()
            .expect("meminfo")
            .default_huge_page_bytes = Some(GB);
        m.file("proc/meminfo", meminfo.as_str());
        m.file(
            "proc/cmdline",
            "default_hugepagesz=1G hugepagesz=1G hugepages=2",
        );
        m.file(CONF, None);
        m.facts.server.huge_page_size_bytes = Some(2 * MB);
    };
    // vm.nr_hugepages means pages of 1 GB.
    expect(
        "huge_pages",
        |m| {
            m.fall_back(500);
            default(m);
        },
        Status::Warning,
        "37 too few",
        Some(
            "echo 537 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; then restart PostgreSQL",
        ),
    );
    expect(
        "reboot",
        |m| default(m),
        Status::Warning,
        "neither the kernel command line nor sysctl's files set up huge pages of 2 MB",
        Some(
            "for the next boot, on the kernel command line, at the end of GRUB_CMDLINE_LINUX_DEFAULT: hugepagesz=2M hugepages=537",
        ),
    );
}

#[test]
fn n15_a_size_between_two_powers_of_two() {
    // 683 pages of 1536 kB, which the kernel puts on 513 of its own.
    expect(
        "huge_pages",
        |m| {
            m.fall_back(512);
            m.facts.server.huge_page_size_bytes = Some(1536 << 10);
            m.needs(1024 * MB);
        },
        Status::Warning,
        "the server needs 513 huge pages of 2 MB; the pool can give 512, 1 too few",
        Some("sysctl -w vm.nr_hugepages=513; then restart PostgreSQL"),
    );
}

#[test]
fn n15_a_tiny_server_and_forks_of_a_swapped_postmaster() {
    let figures = |m: &mut Scene, figures: ProcessFigures| {
        m.around.processes = processes(40, figures);
    };
    expect(
        "page_tables",
        |m| {
            m.fall_back(537);
            m.needs(16 * MB);
            let page_tables = Some(700 << 10);
            let each = ProcessFigures {
                page_tables,
                ..ProcessFigures::default()
            };
            figures(m, each);
        },
        Status::Ok,
        "the main segment has 16 MB",
        None,
    );
    expect(
        "swap",
        |m| {
            let each = ProcessFigures {
                swap: Some(10 * MB),
                ..ProcessFigures::default()
            };
            figures(m, each);
            m.around.host.usage.as_mut().expect("meminfo").swap_free = Some(7 * GB);
        },
        Status::Ok,
        "10 MB of private memory",
        None,
    );
}

#[test]
fn n16_a_setting_is_changed_where_it_comes_from() {
    let off = |source: SettingSource, allows_alter_system: bool| {
        move |m: &mut Scene| {
            m.fall_back(537);
            m.facts.server.huge_pages = HugePages::Off;
            let value = "off".to_owned();
            m.around.settings = BTreeMap::from([("huge_pages", Setting { value, source })]);
            m.around.allows_alter_system = allows_alter_system;
        }
    };
    let line = || {
        SettingSource::File(Some(FileLine {
            path: PathBuf::from("/etc/postgresql/17/main/postgresql.conf"),
            line: 42,
        }))
    };
    for (source, allows_alter_system, remedy) in [
        (
            SettingSource::CommandLine,
            true,
            "huge_pages = 'try' on the server's command line, which sets it (Patroni and systemd units do so; see postmaster.opts); then restart PostgreSQL",
        ),
        (
            SettingSource::CommandLine,
            false,
            "huge_pages = 'try' on the server's command line, which sets it (Patroni and systemd units do so; see postmaster.opts); then restart PostgreSQL",
        ),
        (
            line(),
            true,
            "ALTER SYSTEM SET huge_pages = 'try'; then restart PostgreSQL",
        ),
        (
            line(),
            false,
            "in /etc/postgresql/17/main/postgresql.conf: huge_pages = 'try'; then restart PostgreSQL",
        ),
        (
            SettingSource::AutoConf,
            false,
            "in postgresql.auto.conf: huge_pages = 'try'; then restart PostgreSQL",
        ),
    ] {
        expect(
            "huge_pages",
            off(source, allows_alter_system),
            Status::Warning,
            "huge_pages = off",
            Some(remedy),
        );
    }
}

#[test]
fn n16_limits_of_containers_are_raised_outside() {
    expect(
        "cgroup_fault_limit",
        |m| limited(&mut m.facts, Some(100), None),
        Status::Critical,
        "SIGBUS",
        Some(
            "echo 1126170624 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead",
        ),
    );
}

#[test]
fn n17_what_waits_while_huge_pages_are_in_use() {
    type Change = fn(&mut Server);
    let changes: [(Change, &str, &str); 2] = [
        (
            |next| next.huge_pages = HugePages::Off,
            "a restart would lose huge pages: huge_pages = off",
            "ALTER SYSTEM SET huge_pages = 'try'",
        ),
        (
            |next| next.shared_memory_type = SharedMemoryType::Sysv,
            "a restart would lose huge pages: shared_memory_type = sysv",
            "ALTER SYSTEM SET shared_memory_type = 'mmap'",
        ),
    ];
    for (change, words, remedy) in changes {
        for name in ["restart", "restart_with_files"] {
            let waits = |m: &mut Scene| m.waits(change);
            expect(name, waits, Status::Warning, words, Some(remedy));
        }
    }
}

#[test]
fn n17_three_servers_on_small_pages_need_what_all_need() {
    expect(
        "neighbours",
        |m| {
            m.fall_back(0);
            beside(m, 143 * MB);
            beside(m, 143 * MB);
        },
        Status::Warning,
        "2 other servers run on this host; all together need 681 huge pages of 2 MB; the pool has 0",
        Some("sysctl -w vm.nr_hugepages=681"),
    );
}

#[test]
fn files_that_refuse_the_next_start_come_first() {
    let refused = |m: &mut Scene| {
        m.fall_back(537);
        m.around.files = Files::Refused("syntax error".to_owned());
    };
    for name in ["huge_pages", "restart_with_files"] {
        let check = says(name, &scene(refused).machine());
        let remedy = check.remedy.expect("a remedy");
        assert!(
            remedy.starts_with("correct what the message names"),
            "{remedy}"
        );
    }
}

#[test]
fn what_the_server_has_is_not_typed_again() {
    let machine = scene(|m| m.asked(537)).machine();
    let has = |waits| Planned {
        names: vec!["shared_buffers".to_owned()],
        settings: Vec::new(),
        waits,
        next: machine.facts.server.clone(),
    };
    assert!(commands(&machine, &has(Waits::ForNothing)).is_empty());
    // In the files, and not in effect yet.
    assert_eq!(
        commands(&machine, &has(Waits::ForReload)),
        ["SELECT pg_reload_conf()"]
    );
    assert_eq!(
        commands(&machine, &has(Waits::ForStart)),
        ["restart PostgreSQL"]
    );
    // On small pages it is the same as without a plan.
    let machine = scene(|m| m.fall_back(0)).machine();
    let rows = runbook::of(&machine, None);
    assert!(!rows.is_empty());
    assert_eq!(runbook::of(&machine, Some(&has(Waits::ForNothing))), rows);
}

#[test]
fn what_changes_no_size_is_typed() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = machine.facts.server.clone();
    let logical = plan(&[("wal_level", "logical", Ok(next.clone()))]);
    let rows = runbook::of(&machine, Some(&logical));
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.command.as_str(), row.place.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            ("ALTER SYSTEM SET wal_level = 'logical'", "SQL"),
            ("restart PostgreSQL", "service"),
        ]
    );
    for row in &rows {
        let expected = row.expected.as_deref().unwrap_or_default();
        assert!(expected.starts_with("ok: "), "{row:?}");
    }
    // What a reload is enough for.
    let mut workers = plan(&[("io_workers", "5", Ok(next.clone()))]);
    workers.settings[0].waits = Waits::ForReload;
    let reload = "SELECT pg_reload_conf()";
    assert_eq!(
        commands(&machine, &workers),
        ["ALTER SYSTEM SET io_workers = 5", reload]
    );
    // A restart reads the files, too.
    let mut both = plan(&[
        ("io_workers", "5", Ok(next.clone())),
        ("wal_level", "logical", Ok(next)),
    ]);
    both.settings[0].waits = Waits::ForReload;
    assert_eq!(
        commands(&machine, &both),
        [
            "ALTER SYSTEM SET io_workers = 5",
            "ALTER SYSTEM SET wal_level = 'logical'",
            "restart PostgreSQL",
        ]
    );
}

#[test]
fn each_planned_setting_is_a_row() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = |bytes| Server {
        shared_memory_bytes: bytes,
        ..machine.facts.server.clone()
    };
    let larger = plan(&[
        ("superuser_reserved_connections", "90", Err("too many")),
        ("max_connections", "200", Ok(next(1100 * MB))),
        ("shared_buffers", "it''s 2GB", Ok(next(2100 * MB))),
    ]);
    let rows = runbook::of(&machine, Some(&larger));
    let commands: Vec<_> = rows.iter().map(|row| row.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "sysctl -w vm.nr_hugepages=1050",
            "ALTER SYSTEM SET superuser_reserved_connections = 90",
            "ALTER SYSTEM SET max_connections = 200",
            "ALTER SYSTEM SET shared_buffers = 'it''''s 2GB'",
            "restart PostgreSQL",
            &typed_instead("sysctl.d/hugepages.conf", 537, 1050),
        ]
    );
}

#[test]
fn what_the_command_line_sets_is_planned_there() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = Server {
        shared_memory_bytes: 2100 * MB,
        ..machine.facts.server.clone()
    };
    let mut larger = plan(&[("shared_buffers", "2GB", Ok(next))]);
    larger.settings[0].source = SettingSource::CommandLine;
    let rows = runbook::of(&machine, Some(&larger));
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.command.as_str(), row.place.as_str()))
        .collect();
    assert_eq!(
        said[..3],
        [
            ("sysctl -w vm.nr_hugepages=1050", "root shell"),
            (
                "shared_buffers = '2GB' on the server's command line, which sets it (Patroni and systemd units do so; see postmaster.opts)",
                "service"
            ),
            ("restart PostgreSQL", "service"),
        ]
    );
    // Nothing that the server could see has changed before its restart.
    assert_eq!(rows[0].expected, rows[1].expected);
    assert_ne!(rows[1].expected, rows[2].expected);
    // A change for a remedy neither.
    let off = |m: &mut Scene| {
        m.fall_back(537);
        m.facts.server.huge_pages = HugePages::Off;
        let by_hand = Setting {
            value: "off".to_owned(),
            source: SettingSource::CommandLine,
        };
        m.around.settings = BTreeMap::from([("huge_pages", by_hand)]);
    };
    let machine = scene(off).machine();
    let rows = runbook::of(&machine, None);
    assert!(rows[0].command.starts_with("huge_pages = 'try' on the"));
    let now = hugeinfo::advice::diagnosis::verdict(&machine);
    let now = format!("{}: {}", now.status.as_str(), now.reason);
    assert_eq!(rows[0].expected, Some(now));
}

#[test]
fn where_alter_system_is_refused_a_file_is_edited() {
    let mut machine = scene(|m| m.asked(537)).machine();
    if let Some(around) = &mut machine.around {
        around.allows_alter_system = false;
    }
    let next = machine.facts.server.clone();
    let mut logical = plan(&[("wal_level", "logical", Ok(next))]);
    let with = |logical: &Planned| {
        let rows = runbook::of(&machine, Some(logical));
        (rows[0].command.clone(), rows[0].place.as_str())
    };
    assert_eq!(
        with(&logical),
        (
            "in the configuration file: wal_level = 'logical'".to_owned(),
            "service"
        )
    );
    logical.settings[0].source = SettingSource::File(Some(FileLine {
        path: "/etc/postgresql/15/main/postgresql.conf".into(),
        line: 7,
    }));
    assert_eq!(
        with(&logical).0,
        "in /etc/postgresql/15/main/postgresql.conf: wal_level = 'logical'"
    );
}

#[test]
fn no_remedy_changes_what_is_planned() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = Server {
        huge_pages: HugePages::Off,
        ..machine.facts.server.clone()
    };
    let mut off = plan(&[("huge_pages", "off", Ok(next))]);
    let said = commands(&machine, &off);
    assert_eq!(said[0], "ALTER SYSTEM SET huge_pages = 'off'");
    assert!(
        !said.iter().any(|command| command.contains("try")),
        "{said:?}"
    );
    // What is not planned may be changed.
    let machine = scene(|m| {
        m.fall_back(537);
        m.facts.server.huge_pages = HugePages::Off;
    })
    .machine();
    off.settings.clear();
    off.names = vec!["max_connections".to_owned()];
    off.next = machine.facts.server.clone();
    assert_eq!(
        runbook::of(&machine, Some(&off)),
        runbook::of(&machine, None)
    );
}

fn fewer_than_the_primary() -> TooLow {
    TooLow {
        setting: "max_connections",
        value: Some(Value::Number(20)),
        least: Value::Number(100),
        because: Because::Primary,
    }
}

#[test]
fn a_standby_with_less_than_its_primary_is_not_restarted() {
    let behind = |m: &mut Scene| {
        m.fall_back(537);
        m.around.files = Files::TooLow(vec![fewer_than_the_primary()]);
    };
    let machine = scene(behind).machine();
    for name in ["huge_pages", "restart_with_files"] {
        let check = says(name, &machine);
        assert_eq!(
            check.remedy.as_deref(),
            Some("set max_connections to at least 100, as much as the primary has"),
            "{name}"
        );
    }
    let rows = runbook::of(&machine, None);
    let said: Vec<_> = rows.iter().map(|row| row.command.as_str()).collect();
    assert_eq!(
        said,
        ["set max_connections to at least 100, as much as the primary has"]
    );
    // With a plan that has enough it comes up.
    let enough = plan(&[("max_connections", "100", Ok(machine.facts.server.clone()))]);
    assert_eq!(
        commands(&machine, &enough),
        [
            "ALTER SYSTEM SET max_connections = 100",
            "restart PostgreSQL"
        ]
    );
}

#[test]
fn a_plan_that_would_not_start_is_a_decision() {
    let machine = scene(|_| {}).machine();
    let rows = runbook::refused(&machine, vec![fewer_than_the_primary()]);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(row.place.as_str(), "decision");
    assert_eq!(
        row.command,
        "set max_connections to at least 100, as much as the primary has"
    );
    assert_eq!(
        row.why,
        "the next start would fail: max_connections = 20, and the primary has 100"
    );
    assert_eq!((&row.expected, row.is_disruptive), (&None, false));
}

#[test]
fn a_plan_that_is_too_large_is_told_what_fits() {
    let machine = scene(|m| m.asked(537)).machine();
    let with = |bytes: u64, huge_pages| Server {
        huge_pages,
        shared_memory_bytes: bytes,
        ..machine.facts.server.clone()
    };
    let of = |machine: &Machine, next: Server| {
        commands(machine, &plan(&[("shared_buffers", "60GB", Ok(next))]))
    };
    // A tenth of 64 GB stays outside of the pools.
    let fits = "plan less: a main segment of 62 GB is too large for this host; at most 58982MB fits (segment_bytes of hugeinfo_plan)";
    assert_eq!(of(&machine, with(62 * GB, HugePages::Try)), [fits]);
    assert_ne!(of(&machine, with(57 * GB, HugePages::Try)), [fits]);
    let beyond = of(&machine, with(70 * GB, HugePages::Off));
    assert!(
        beyond[0].starts_with("plan less: a main segment of 70 GB"),
        "{beyond:?}"
    );
    // Memory would hold it, with next to nothing left for anything else.
    let small = of(&machine, with(61 * GB, HugePages::Off));
    let [row] = small.as_slice() else {
        panic!("a restart, and then another decision: {small:?}");
    };
    let most = row
        .split("at most ")
        .nth(1)
        .and_then(|rest| rest.split("MB").next()?.parse::<u64>().ok())
        .expect("a figure");
    let is_refused = |bytes| of(&machine, with(bytes, HugePages::Off))[0].starts_with("plan less");
    assert!(
        !is_refused(most * MB) && is_refused((most + 1) * MB),
        "{row}"
    );
    // huge_pages = on, and a size that the kernel does not have.
    let no_size = Server {
        huge_page_size_bytes: Some(3 * MB),
        ..with(2 * GB, HugePages::On)
    };
    assert_eq!(
        of(&machine, no_size),
        [
            "plan with huge_pages = try: with on the server would not start, as this host cannot give it its huge pages"
        ]
    );
}

#[test]
fn a_plan_that_insists_on_huge_pages_says_what_memory_is_short_of() {
    let machine = scene(|m| {
        m.asked(537);
        m.available = Some(8 * GB);
    })
    .machine();
    let of = |huge_pages| {
        let next = Server {
            shared_memory_bytes: 20 * GB,
            huge_pages,
            ..machine.facts.server.clone()
        };
        commands(&machine, &plan(&[("shared_buffers", "18GB", Ok(next))]))
    };
    assert_eq!(of(HugePages::On), of(HugePages::Try));
    assert!(of(HugePages::On)[0].starts_with("free 12 GB of memory first"));
}

#[test]
fn nodes_that_are_too_small_are_named_with_what_they_can_have() {
    let machine = scene(|m| {
        m.nodes(&[(0, 16 * GB), (0, 112 * GB)]);
        m.ram(128 * GB);
        m.around.shared_buffers_bytes = 18 * GB;
        m.fall_back(0);
        let nodes = m.around.nodes.clone().expect("nodes");
        m.facts.allowed_nodes = AllowedNodes::Only(nodes[..1].to_vec());
        m.needs(20 * GB);
    })
    .machine();
    let check = says("huge_pages", &machine);
    assert_eq!(
        check.remedy.as_deref(),
        Some(
            "lower shared_buffers to 13516MB or let the server use more NUMA nodes: it needs 10240 huge pages of 2 MB, and its nodes can give 7782"
        )
    );
}

#[test]
fn figures_that_depend_on_hidden_files_are_not_given() {
    let machine = scene(|m| {
        m.fall_back(0);
        m.around.settings_wait_for_restart = true;
        m.around.files = Files::Unseen("only superusers may look".to_owned());
    })
    .machine();
    let ask = "ask as a role that may execute hugeinfo_plan(jsonb): settings wait for a restart, and the figures depend on them";
    assert_eq!(says("huge_pages", &machine).remedy.as_deref(), Some(ask));
    let pool = machine.pool(2 * MB).expect("a pool");
    assert_eq!(how_to_set(&machine, pool).as_deref(), Some(ask));
}

#[test]
fn huge_pages_planned_off_give_their_pool_back_where_memory_does_not_hold_both() {
    let machine = scene(|m| {
        m.asked(25_600);
        m.needs(50 * GB);
        m.pool(0).total = 28_672;
        m.pool(0).free = 3_072 + m.pool(0).reserved;
        m.available = Some(6 * GB);
    })
    .machine();
    let next = Server {
        huge_pages: HugePages::Off,
        ..machine.facts.server.clone()
    };
    let said = commands(&machine, &plan(&[("huge_pages", "off", Ok(next))]));
    assert_eq!(
        said[..4],
        [
            "ALTER SYSTEM SET huge_pages = 'off'",
            "stop PostgreSQL",
            "sysctl -w vm.nr_hugepages=0",
            "start PostgreSQL",
        ]
    );
}

#[test]
fn a_number_is_typed_as_it_was_understood() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = machine.facts.server.clone();
    let octal = plan(&[
        ("max_connections", "0100", Ok(next.clone())),
        ("max_wal_senders", " 0\n", Ok(next)),
    ]);
    assert_eq!(
        commands(&machine, &octal)[..2],
        [
            "ALTER SYSTEM SET max_connections = '0100'",
            "ALTER SYSTEM SET max_wal_senders = 0",
        ]
    );
}

#[test]
fn what_the_command_line_heals_is_no_reason_against_a_plan() {
    let machine = scene(|m| m.asked(537)).machine();
    let next = machine.facts.server.clone();
    let mut both = plan(&[
        (
            "superuser_reserved_connections",
            "120",
            Err("must be less than max_connections"),
        ),
        ("max_connections", "500", Ok(next)),
    ]);
    both.settings[1].source = SettingSource::CommandLine;
    let said = commands(&machine, &both);
    assert_eq!(
        said[0],
        "ALTER SYSTEM SET superuser_reserved_connections = 120"
    );
    assert_eq!(said[2], "restart PostgreSQL");
}
