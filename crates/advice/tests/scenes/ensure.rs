//! Pages that `hugeinfo ensure` adds, and memory that it leaves.

use advice::{
    answer::{self, Answer},
    check::{CheckId, Status},
    ensure,
    model::{machine::Machine, step::Step},
    render,
};
use host::{
    linux::process::segment::Segment,
    server::{instances::Instance, state::HugePages},
    units::{Bytes, Pages},
};

use crate::scene::*;

/// A stopped server that needs a segment of this size, on a host with an empty pool.
fn stopped(ram: u64, available: u64, segment: u64, huge_pages: HugePages) -> Machine {
    let mut scene = Scene::healthy();
    scene.ram(ram);
    scene.fall_back(0);
    scene.needs(segment);
    scene.state.server.huge_pages = huge_pages;
    scene.faulted_in(0);
    scene.available = Some(available);
    let machine = scene.machine();
    machine.apply(&Step::Stop).expect("a server that runs")
}

/// Pages that are added, or the reason why none are.
fn added(machine: &Machine) -> Result<Pages, String> {
    let steps = ensure::steps(machine).map_err(|decision| decision.to_string())?;
    let pages = steps.iter().find_map(|step| match step {
        Step::SetPool { pages, .. } => Some(*pages),
        _ => None,
    });
    Ok(pages.unwrap_or_default())
}

/// The commands for the next start, once the server has stopped.
#[track_caller]
fn commands(change: impl FnOnce(&mut Scene)) -> Vec<String> {
    let mut scene = Scene::healthy();
    change(&mut scene);
    let stopped = scene
        .machine()
        .apply(&Step::Stop)
        .expect("a server that runs");
    let steps = ensure::steps(&stopped).expect("pages that can be added");
    let commands = steps.iter().map(|step| render::command(&stopped, step));
    commands
        .map(|command| command.expect("a command"))
        .collect()
}

#[test]
fn small_hosts_keep_memory_for_the_system() {
    let with = |segment| stopped(2 * GB, 800 * MB, segment, HugePages::On);
    assert_eq!(added(&with(544 * MB)), Ok(Pages(272)));
    assert_eq!(
        added(&with(546 * MB)),
        Err("free 2 MB of memory, or lower shared_buffers by 2MB: with the pool, less than 256 MB would stay available".to_owned())
    );
}

#[test]
fn servers_that_start_later_keep_their_memory() {
    let with = |huge_pages| stopped(64 * GB, 40 * GB, 20 * GB, huge_pages);
    let mut machine = with(HugePages::Try);
    assert_eq!(added(&machine), Ok(Pages(10_240)));
    ensure::count_later(&mut machine, Bytes(10 * GB));
    assert_eq!(added(&machine), Ok(Pages(10_240)));
    ensure::count_later(&mut machine, Bytes(10 * GB));
    // Swap of 8 GB holds a part of these segments.
    assert_eq!(added(&machine), Ok(Pages(10_240)));
    ensure::count_later(&mut machine, Bytes(10 * GB));
    assert!(added(&machine).is_err_and(|why| why.starts_with("free ")));
    // Without its pages, this server would be down.
    let mut machine = with(HugePages::On);
    ensure::count_later(&mut machine, Bytes(20 * GB));
    assert_eq!(added(&machine), Ok(Pages(10_240)));
}

#[test]
fn idle_pages_could_be_for_servers_that_start_later() {
    // The pool has the pages of both servers, and leaves less RAM than the stopped one needs.
    let stopped = stopped(64 * GB, 40 * GB, 25 * GB, HugePages::Try);
    let with = |pages, server: Option<Instance>| {
        let mut scene = Scene::healthy();
        scene.ram(64 * GB);
        scene.on_huge_pages(25 * GB, 25 * GB);
        scene.more(pages);
        let mut machine = scene.machine();
        let servers = machine.state.other_servers.as_mut().expect("servers");
        servers.extend(server);
        machine
    };
    let finding = |machine: &Machine, id| {
        let checks = Answer::of(machine).checks();
        let check = checks.into_iter().find(|check| check.id == id);
        check.expect("the check").finding
    };
    let idle = |machine: &Machine| finding(machine, CheckId::PoolSize).code;
    assert_eq!(idle(&with(12_800, None)), "unused_pages");
    for server in [Some(&stopped), None] {
        let machine = with(12_800, ensure::starting_later(server));
        let pool = finding(&machine, CheckId::PoolSize);
        assert_eq!(pool.code, "unknown");
        assert!(
            pool.text
                .ends_with("They could be meant for a server that does not run.")
        );
        // It does not run, so it uses no memory except its pages.
        assert_eq!(finding(&machine, CheckId::OtherServers).code, "alone");
        let left = finding(&machine, CheckId::MemoryLeft);
        assert_eq!(left.status, Status::Ok, "{}", left.text);
    }
    // No remedy adds its pages.
    let machine = with(0, ensure::starting_later(Some(&stopped)));
    assert_eq!(answer::verdict(&machine).status, Status::Ok);
    let mut off = stopped.clone();
    off.state.server.huge_pages = HugePages::Off;
    off.state.next.server = None;
    assert_eq!(ensure::starting_later(Some(&off)), None);
}

#[test]
fn users_cannot_keep_servers_of_others_down() {
    let with = |huge_pages, segment: Option<u64>, owner, is_examined| {
        let mut machine = stopped(64 * GB, 40 * GB, 20 * GB, huge_pages);
        let servers = machine.state.other_servers.as_mut().expect("servers");
        servers.push(Instance {
            owner_uid: Some(owner),
            segment: segment.map(|bytes| Segment {
                bytes,
                page_bytes: Some(4096),
                mappings: 1,
            }),
            is_examined,
            ..Instance::default()
        });
        ensure::distrust_other_users(&mut machine, 26);
        added(&machine).is_ok()
    };
    for (huge_pages, segment, owner, expected) in [
        (HugePages::On, None, 1000, true),
        (HugePages::On, Some(1 << 40), 1000, true),
        (HugePages::On, Some(1 << 40), 26, false),
        (HugePages::On, None, 26, false),
        (HugePages::Try, None, 1000, true),
        (HugePages::Try, Some(1 << 40), 1000, false),
    ] {
        let is_enough = with(huge_pages, segment, owner, true);
        assert_eq!(is_enough, expected, "{huge_pages:?}, {segment:?}, {owner}");
    }
    // A server whose memory could not be read in time.
    assert!(!with(HugePages::Try, None, 1000, false));
    assert!(with(HugePages::On, None, 1000, false));
}

#[test]
fn pages_are_persistent_whatever_the_kernel_could_allocate_later() {
    for overcommit in [0, 100, 137, 1000] {
        let added = commands(|m| {
            m.fall_back(400);
            m.pool(0).overcommit = overcommit;
        });
        assert_eq!(added, ["sysctl -w vm.nr_hugepages=537"], "{overcommit}");
    }
}

#[test]
fn surplus_pages_of_others_are_not_for_the_server() {
    for overcommit in [0, 100] {
        let added = commands(|m| {
            m.fall_back(100);
            m.pool(0).free = 0;
            m.pool(0).surplus = 100;
            m.pool(0).overcommit = overcommit;
        });
        assert_eq!(added, ["sysctl -w vm.nr_hugepages=637"], "{overcommit}");
    }
}

#[test]
fn pages_on_the_nodes_of_a_bound_server_are_for_a_person_to_decide() {
    for overcommit in [0, 5000] {
        for huge_pages in [HugePages::Try, HugePages::On] {
            for of_other_node in [0, 8000] {
                let mut scene = Scene::healthy();
                scene.on_small_pages(8 * GB, 0);
                scene.state.server.huge_pages = huge_pages;
                scene.pool(0).total = of_other_node;
                scene.pool(0).free = of_other_node;
                scene.pool(0).overcommit = overcommit;
                scene.nodes(&[(of_other_node, 32 * GB), (0, 32 * GB)]);
                scene.bound(&[1]);
                let stopped = scene
                    .machine()
                    .apply(&Step::Stop)
                    .expect("a server that runs");
                let decision = ensure::steps(&stopped).expect_err("a decision");
                assert_eq!(
                    decision.to_string(),
                    "allocate 4096 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 4096 there; node 1 has 0 of 0 pages free",
                    "{overcommit}, {huge_pages:?}, {of_other_node}"
                );
            }
        }
    }
}

/// A limit on reservations is not a lack of pages.
#[test]
fn limit_on_reservations_is_named() {
    let mut scene = Scene::healthy();
    scene.fall_back(600);
    limited(&mut scene.state, None, Some(1000));
    let stopped = scene.machine().apply(&Step::Stop).expect("it runs");
    assert_eq!(
        added(&stopped),
        Err("raise the limit on 2 MB pages to 1126170624 bytes (1074 MB), where it is set (its unit, for example), or lower shared_buffers by 73MB".to_owned())
    );
}

/// The memory of a running server is available once it has stopped.
#[test]
fn pages_that_fit_only_while_the_server_is_stopped() {
    let with = |available| {
        let mut scene = Scene::healthy();
        scene.on_small_pages(20 * GB, 0);
        scene.available = Some(available);
        scene.machine()
    };
    let helps = "The pages can be added while the server is stopped: stop it, run hugeinfo ensure again, and start it.";
    assert!(added(&with(10 * GB)).is_err());
    assert_eq!(ensure::while_stopped(&with(10 * GB)), Some(helps));
    // The pages do not fit even then.
    assert_eq!(ensure::while_stopped(&with(GB)), None);
    // The server is already stopped.
    let stopped = with(10 * GB).apply(&Step::Stop).expect("it runs");
    assert_eq!(ensure::while_stopped(&stopped), None);
}

/// `ensure` cannot ask who made idle pages, so it names them.
#[test]
fn idle_pages_of_an_unknown_owner_are_counted() {
    let counted = |idle, line: Option<&str>, bytes| {
        let mut scene = Scene::healthy();
        scene.fall_back(idle);
        scene.needs(bytes);
        scene.file("etc/sysctl.d/hugepages.conf", line);
        let stopped = scene.machine().apply(&Step::Stop).expect("it runs");
        ensure::of_unknown_owner(&stopped)
    };
    assert_eq!(counted(600, None, 1074 * MB), Pages(537));
    assert_eq!(counted(500, None, 1074 * MB), Pages(500));
    assert_eq!(counted(0, None, 1074 * MB), Pages(0));
    let line = Some("vm.nr_hugepages = 500\n");
    assert_eq!(counted(600, line, 1074 * MB), Pages(37));
    assert_eq!(counted(600, line, 1000 * MB), Pages(0));
}
