//! NUMA nodes: the distribution of pools and segments, and servers that are bound to some nodes.

use host::{
    linux::{
        hugepages::Pool,
        numa::node::{Node, NodeCounters},
    },
    server::state::Files,
};

use expect_test::expect;

use crate::{scene::*, table::*};

/// Nodes with equal memory.
fn nodes(m: &mut Scene, pages: &[u64]) {
    let each = 64 * GB / pages.len() as u64;
    let nodes: Vec<_> = pages.iter().map(|&pages| (pages, each)).collect();
    m.nodes(&nodes);
}

fn of_32_gb(number: u32, total: u64, free: u64) -> Node {
    let mut node = on_node(number, total);
    node.memory.total = Some(32 * GB);
    node.memory.available = Some(28 * GB);
    node.pools[0].counters = Some(NodeCounters {
        total,
        free,
        surplus: 0,
    });
    node
}

fn counters(m: &mut Scene, node: usize) -> &mut NodeCounters {
    let node = &mut m.facts.nodes.as_mut().expect("nodes")[node];
    node.pools[0].counters.as_mut().expect("counters")
}

#[test]
fn pools() {
    test(vec![
        when("one of two nodes has few pages", |m| nodes(m, &[500, 37]))
            .see("status", expect![["ok on_huge_pages: On 537 huge pages of 2 MB. A restart would get them again."]]),
        when("the pool is uneven and short", |m| {
            m.fall_back(11);
            nodes(m, &[0, 11]);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 11 are available.
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when(
            "the pool in use is surplus, and one node has most of it",
            |m| {
                m.ram(256 * GB);
                m.on_huge_pages(100 * GB, 100 * GB);
                m.nodes(&[(1393, 128 * GB), (49_807, 128 * GB)]);
                m.pool(0).surplus = 50_663;
                counters(m, 0).surplus = 856;
                counters(m, 1).surplus = 49_807;
            },
        )
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 51200 huge pages of 2 MB; 537 are available.
            sysctl -w vm.nr_hugepages=51200"#]]),
        when("nodes differ in memory, and the middle one has the pool", |m| {
            m.ram(112 * GB);
            m.on_huge_pages(762 * MB, 762 * MB);
            m.nodes(&[(0, 16 * GB), (381, 32 * GB), (0, 64 * GB)]);
            m.waits(|next| next.shared_memory_bytes = 1073 * MB);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 537 huge pages of 2 MB; 381 are available.
            sysctl -w vm.nr_hugepages=537
            sed -i 's/^vm\.nr_hugepages = 381$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=537
            sed -i 's/^vm\.nr_hugepages = 381$/vm.nr_hugepages = 537/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi"#]]),
        when("an uneven pool of 105 GB has few idle pages", |m| {
            m.ram(256 * GB);
            m.on_huge_pages(100 * GB, 100 * GB);
            m.more(2489);
            m.nodes(&[(48_000, 128 * GB), (5689, 128 * GB)]);
        })
        .see("status", expect![["ok on_huge_pages: On 51200 huge pages of 2 MB. A restart would get them again."]])
        .see("pool_size", expect!["ok few_idle_pages: 2489 huge pages of 2 MB (4978 MB) are idle: PostgreSQL needs none of them; 51200 are needed."])
        .see("how_to_set_2", expect![[""]])
        .see("runbook", expect![[""]]),
        when("an uneven pool has many idle pages", |m| {
            m.ram(128 * GB);
            m.on_huge_pages(18_240 * 2 * MB, 18_240 * 2 * MB);
            m.more(11_760);
            m.nodes(&[(25_000, 64 * GB), (5000, 64 * GB)]);
        })
        .see("pool_size", expect![[r#"
            warning unused_pages: 11760 huge pages of 2 MB (23 GB) are idle: PostgreSQL needs none of them; 18240 are needed.
            # if no other program needs 11760 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=18240"#]])
        .see("runbook", expect!["# if no other program needs 11760 huge pages of 2 MB that are idle now: sysctl -w vm.nr_hugepages=18240"]),
    ]);
}

#[test]
fn segments() {
    fn on(m: &mut Scene, pages: &[u64]) {
        m.nodes(&[(269, 32 * GB), (268, 32 * GB)]);
        m.state.segment_nodes = Some((0..).zip(pages.iter().copied()).collect());
    }
    fn eight(m: &mut Scene, pages: &[u64]) {
        m.ram(1024 * GB);
        m.on_small_pages(200 * GB, 0);
        m.nodes(&[(0, 128 * GB); 8]);
        let pages = pages.iter().map(|gb| gb * GB / 4096);
        m.state.segment_nodes = Some((0..).zip(pages).collect());
    }
    fn full(m: &mut Scene, pages: &[u64]) {
        eight(m, pages);
        let nodes = m.facts.nodes.as_mut().expect("nodes");
        for (node, free) in nodes
            .iter_mut()
            .zip([200 * MB].into_iter().chain([80 * GB; 7]))
        {
            node.memory.free = Some(free);
        }
    }
    test(vec![
        when("there is one node", |_| {}).see("numa_segment", expect![["ok one_node: The server can use only one NUMA node."]]),
        when("the segment is on one of two nodes", |m| on(m, &[0, 530]))
            .see("numa_segment", expect![[r#"
                warning on_few_nodes: More than 90% of the 1060 MB of the segment that is in use is on NUMA node 1, out of 2 nodes.
                # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]])
            .see("runbook", expect![["# start PostgreSQL with numactl --interleave=all; takes effect at the next restart"]]),
        when("the segment is on both nodes", |m| on(m, &[270, 267])).see("numa_segment", expect![["ok on_several_nodes: The segment is on most NUMA nodes."]]),
        when("little of the segment is in use", |m| on(m, &[25, 0])).see("numa_segment", expect![["ok little_in_use: Too little of the segment is in use to judge: 50 MB."]]),
        when("the nodes of the segment cannot be read", |m| {
            on(m, &[]);
            m.state.segment_nodes = None;
        })
        .see("numa_segment", expect![["unknown unknown: Cannot judge numa_segment: numa_maps cannot be read for any process."]]),
        when("the segment is on two of eight nodes", |m| {
            eight(m, &[100, 98])
        })
        .see("numa_segment", expect![[r#"
            warning on_few_nodes: More than 90% of the 198 GB of the segment that is in use is on NUMA nodes 0, 1, out of 8 nodes.
            # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]]),
        when("a full node has half of the segment, and the others have free memory", |m| {
            full(m, &[100, 14, 14, 14, 14, 14, 14, 14]);
        })
        .see("numa_segment", expect![[r#"
            warning on_full_node: NUMA node 0 has 100 GB of the 198 GB of the segment that is in use, several times its share of 8 nodes, and only 200 MB of free memory.
            # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]]),
        when("a full node has twice its share", |m| {
            full(m, &[50, 21, 21, 21, 21, 21, 21, 22]);
        })
        .see("numa_segment", expect!["ok on_several_nodes: The segment is on most NUMA nodes."]),
        when("the memory of all nodes is full of cached files", |m| {
            full(m, &[100, 14, 14, 14, 14, 14, 14, 14]);
            for node in m.facts.nodes.as_mut().expect("nodes") {
                node.memory.free = Some(200 * MB);
            }
        })
        .see("numa_segment", expect!["ok on_several_nodes: The segment is on most NUMA nodes."]),
        when("the segment is on five of eight nodes", |m| {
            eight(m, &[40, 40, 40, 40, 40])
        })
        .see("numa_segment", expect![["ok on_several_nodes: The segment is on most NUMA nodes."]]),
        when("the segment is on huge pages of two of eight nodes", |m| {
            m.nodes(&[(68, 8 * GB); 8]);
            m.pool(0).total = 544;
            m.state.segment_nodes = Some([(0, 270), (1, 267)].into());
        })
        .see("numa_segment", expect![[r#"
            warning on_few_nodes: More than 90% of the 1074 MB of the segment that is in use is on NUMA nodes 0, 1, out of 8 nodes.
            # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]]),
    ]);
}

#[test]
fn bound_servers() {
    test(vec![
        when("the allowed node has too few of the free pages", |m| {
            m.fall_back(600);
            m.nodes(&[(500, 32 * GB), (100, 32 * GB)]);
            m.facts.allowed_nodes =
                host::server::state::AllowedNodes::Only(vec![of_32_gb(1, 100, 100)]);
        })
        .see("restart", expect![[r#"
            warning would_not_get: A restart would not get huge pages. Needs 537 huge pages of 2 MB on the NUMA nodes that the server is allowed to use (1); 100 are available there.
            # as huge_pages"#]])
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB on the NUMA nodes that the server is allowed to use (1); 100 are available there.
            # allocate 437 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 100 of 100 pages free"#]]),
        when("the pool is empty", |m| {
            m.fall_back(0);
            m.nodes(&[(0, 32 * GB), (0, 32 * GB)]);
            m.bound(&[1]);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 537 huge pages of 2 MB; 0 are available.
            # allocate 537 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 0 of 0 pages free"#]])
        .see("how_to_set_2", expect![["# allocate 537 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 0 of 0 pages free"]])
        .see("reboot", expect![[r#"
            warning boot_fell_short: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot, but the pool has 0. Unless the line is newer than this boot, the next boot might also fall short; 537 are needed.
            # as huge_pages"#]]),
        when("the allowed node has the pages", |m| {
            m.fall_back(537);
            m.nodes(&[(0, 32 * GB), (537, 32 * GB)]);
            m.bound(&[1]);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]])
        .see("how_to_set_2", expect![[""]]),
        when("the allowed nodes lost their pages", |m| {
            let pool = m.pool(0);
            (pool.total, pool.free, pool.reserved) = (637, 597, 497);
            m.facts.nodes = Ok(vec![of_32_gb(0, 537, 537), of_32_gb(1, 100, 60)]);
            m.bound(&[1]);
        })
        .see("status", expect![[r#"
            critical nodes_short: On 537 huge pages of 2 MB, but the NUMA nodes that the server is allowed to use have only 100. The server crashes (SIGBUS, or short reads) when it uses the rest.
            # allocate 437 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 60 of 100 pages free, and 28 GB of memory available"#]])
        .see("huge_pages", expect![[r#"
            critical nodes_short: On 537 huge pages of 2 MB, but the NUMA nodes that the server is allowed to use have only 100. The server crashes (SIGBUS, or short reads) when it uses the rest.
            # allocate 437 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 60 of 100 pages free, and 28 GB of memory available"#]]),
        when(
            "the pages were faulted in before the server was bound",
            |m| {
                let pool = m.pool(0);
                (pool.total, pool.free, pool.reserved) = (637, 100, 0);
                m.facts.nodes = Ok(vec![of_32_gb(0, 537, 37), of_32_gb(1, 100, 63)]);
                m.bound(&[1]);
            },
        )
        .see("huge_pages", expect![["ok on_huge_pages: On 537 huge pages of 2 MB."]]),
        when(
            "the server was turned off, and another server has reserved pages",
            |m| {
                m.ram(128 * GB);
                m.state.server.huge_page_size_bytes = None;
                m.fall_back(600);
                m.pool(0).reserved = 100;
                m.off();
                m.nodes(&[(200, 32 * GB), (200, 32 * GB), (200, 64 * GB)]);
                m.bound(&[2]);
            },
        )
        .see("pool_size", expect!["ok idle_by_configuration: 63 huge pages of 2 MB (126 MB) are idle, although /etc/sysctl.d/hugepages.conf:1 asks for 537 at boot; needed: 100 that no visible server holds."])
        .see("huge_pages", expect![["ok turned_off: On 4 kB pages: huge_pages = off."]]),
        when("the allowed node is too small", |m| {
            m.ram(128 * GB);
            m.on_small_pages(20 * GB, 0);
            m.nodes(&[(0, 16 * GB), (0, 112 * GB)]);
            m.facts.nodes.as_mut().expect("nodes")[0].memory.available = Some(15 * GB);
            m.bound(&[0]);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 10240 huge pages of 2 MB; 0 are available.
            # allocate 10240 more huge pages of 2 MB on NUMA node 0 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 10240 there; node 0 has 0 of 0 pages free, and 15 GB of memory available"#]]),
        when(
            "the pool is uneven, bound to one node, and on is set",
            |m| {
                m.ram(128 * GB);
                m.state.server.huge_pages = host::server::state::HugePages::On;
                m.on_huge_pages(20 * GB, 20 * GB);
                m.waits(|next| next.shared_memory_bytes = 21 * GB);
                m.nodes(&[(5000, 64 * GB), (5240, 64 * GB)]);
                m.state.segment_nodes = Some([(0, 5000), (1, 5240)].into());
            },
        )
        .see("restart", expect![[r#"
            critical would_not_start: A restart would fail, because huge_pages = on. Needs 10752 huge pages of 2 MB; 10240 are available.
            sysctl -w vm.nr_hugepages=10752
            sed -i 's/^vm\.nr_hugepages = 10240$/vm.nr_hugepages = 10752/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10752 ]; then echo 'too few pages, do not restart (huge_pages = on): free memory and repeat, or reboot' >&2; false; fi"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=10752
            sed -i 's/^vm\.nr_hugepages = 10240$/vm.nr_hugepages = 10752/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10752 ]; then echo 'too few pages, do not restart (huge_pages = on): free memory and repeat, or reboot' >&2; false; fi"#]]),
        when(
            "the segment is on one node, and a larger one requires huge pages",
            |m| {
                m.ram(128 * GB);
                m.on_huge_pages(18 * GB, 18 * GB);
                m.nodes(&[(9216, 64 * GB), (0, 64 * GB)]);
                m.state.segment_nodes = Some([(0, 9216)].into());
                m.waits(|next| {
                    next.huge_pages = host::server::state::HugePages::On;
                    next.shared_memory_bytes = 20 * GB;
                });
            },
        )
        .see("numa_segment", expect![[r#"
            warning on_few_nodes: More than 90% of the 18 GB of the segment that is in use is on NUMA node 0, out of 2 nodes.
            # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]])
        .see("runbook", expect![[r#"
            sysctl -w vm.nr_hugepages=10240
            sed -i 's/^vm\.nr_hugepages = 9216$/vm.nr_hugepages = 10240/' /etc/sysctl.d/hugepages.conf
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 10240 ]; then echo 'too few pages, do not restart (huge_pages = on): free memory and repeat, or reboot' >&2; false; fi
            # start PostgreSQL with numactl --interleave=all; takes effect at the next restart"#]]),
        when("nodes get too few pages at boot", |m| {
            m.nodes(&[(537, 32 * GB), (0, 32 * GB)]);
            m.bound(&[0]);
        })
        .see("reboot", expect![["unknown unknown: /etc/sysctl.d/hugepages.conf:1 sets 537 huge pages of 2 MB at boot on all NUMA nodes together; the server needs 537 on those that it is allowed to use (0)."]]),
        when(
            "both servers of two nodes have used all of their pages",
            |m| {
                *m.pool(0) = Pool {
                    total: 1074,
                    free: 0,
                    reserved: 0,
                    ..m.pool(0).clone()
                };
                m.facts.nodes = Ok(vec![of_32_gb(0, 537, 0), of_32_gb(1, 537, 0)]);
                m.bound(&[1]);
            },
        )
        .see("restart", expect![["ok fits: A restart would get them again."]]),
        when("pending settings need more pages on two allowed nodes", |m| {
            m.ram(128 * GB);
            m.on_huge_pages(475 * 2 * MB, 157 * 2 * MB);
            m.nodes(&[(77, 32 * GB), (398, 32 * GB), (0, 64 * GB)]);
            m.bound(&[0, 1]);
            m.waits(|next| next.shared_memory_bytes = 789 * 2 * MB);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 789 huge pages of 2 MB; 475 are available.
            # allocate 314 more huge pages of 2 MB on NUMA nodes 0, 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), let the server use more nodes, or lower shared_buffers by 628MB: the server needs 789 there; node 0 has 77 of 77 pages free; node 1 has 241 of 398 pages free"#]])
        .see("runbook", expect![[r#"
            # allocate 314 more huge pages of 2 MB on NUMA nodes 0, 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), let the server use more nodes, or lower shared_buffers by 628MB: the server needs 789 there; node 0 has 77 of 77 pages free; node 1 has 241 of 398 pages free
            # allocate 789 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 789 on nodes 0, 1"#]]),
        when("the server was turned off, and the 512 MB pages of its node are reserved", |m| {
            m.ram(256 * GB);
            m.state.base_page_bytes = 65_536;
            m.fall_back(0);
            m.off();
            m.file("etc/sysctl.d/hugepages.conf", None);
            m.state.segment.as_mut().expect("a segment").page_bytes = Some(65_536);
            m.state.meminfo.as_mut().expect("meminfo").default_huge_page_bytes = Some(512 * MB);
            m.state.pools = Ok(vec![Pool {
                page_bytes: 512 * MB,
                total: 118,
                free: 118,
                reserved: 118,
                surplus: 0,
                overcommit: 0,
                demote_bytes: None,
                below_zero: Vec::new(),
            }]);
            m.nodes(&[(0, 64 * GB), (0, 64 * GB), (118, 128 * GB)]);
            for node in m.facts.nodes.as_mut().expect("nodes") {
                node.pools[0].page_bytes = 512 * MB;
            }
            m.bound(&[2]);
        })
        .see("status", expect![["ok turned_off: On 64 kB pages: huge_pages = off."]])
        .see("pool_size", expect![["ok no_idle_pages: No pool holds idle pages."]])
        .see("runbook", expect![[""]]),
        when("a pool was lowered under a bound server", |m| {
            m.on_huge_pages(789 * 2 * MB, 789 * 2 * MB);
            m.nodes(&[(789, 32 * GB), (0, 32 * GB)]);
            m.bound(&[0]);
            m.pool(0).surplus = 500;
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 789 huge pages of 2 MB; 289 are available.
            sysctl -w vm.nr_hugepages=789"#]])
        .see("runbook", expect![["sysctl -w vm.nr_hugepages=789"]]),
        when("a pool was lowered, and pending settings of a bound server need more pages", |m| {
            m.on_huge_pages(789 * 2 * MB, 789 * 2 * MB);
            m.nodes(&[(789, 32 * GB), (0, 32 * GB)]);
            m.bound(&[0]);
            m.pool(0).surplus = 500;
            m.waits(|next| next.shared_memory_bytes = 900 * 2 * MB);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 900 huge pages of 2 MB; 289 are available.
            # allocate 611 more huge pages of 2 MB on NUMA node 0 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), let the server use more nodes, or lower shared_buffers by 222MB: the server needs 900 there; node 0 has 0 of 789 pages free"#]])
        .see("runbook", expect![[r#"
            # allocate 611 more huge pages of 2 MB on NUMA node 0 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), let the server use more nodes, or lower shared_buffers by 222MB: the server needs 900 there; node 0 has 0 of 789 pages free
            # allocate 900 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 900 on node 0"#]]),
        when("nodes have too few pages, and the files would keep the server from starting", |m| {
            let pool = m.pool(0);
            (pool.total, pool.free, pool.reserved) = (637, 597, 497);
            m.facts.nodes = Ok(vec![of_32_gb(0, 537, 537), of_32_gb(1, 100, 60)]);
            m.bound(&[1]);
            m.state.next.files = Files::Refused("syntax error".to_owned());
        })
        .see("huge_pages", expect![[r#"
            critical nodes_short: On 537 huge pages of 2 MB, but the NUMA nodes that the server is allowed to use have only 100. The server crashes (SIGBUS, or short reads) when it uses the rest.
            # allocate 437 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 537 there; node 1 has 60 of 100 pages free, and 28 GB of memory available"#]]),
        when("another server has pages on the other node", |m| {
            m.on_huge_pages(1074 * MB, 300 * MB);
            m.asked(900);
            m.pool(0).total = 1000;
            m.pool(0).reserved += 463;
            m.pool(0).free += 463;
            m.nodes(&[(537, 32 * GB), (463, 32 * GB)]);
            m.bound(&[0]);
            m.other(926 * MB, 2 * MB, TRY);
        })
        .see("reboot", expect![[r#"
            warning too_few_at_boot: /etc/sysctl.d/hugepages.conf:1 sets 900 huge pages of 2 MB at boot; needed: 1000 = 537 for this server + 463 for the server on port 5433.
            # allocate 1000 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 537 on node 0"#]]),
        when("the boot sets more pages than are in use now", |m| {
            m.on_huge_pages(1074 * MB, 300 * MB);
            m.nodes(&[(537, 32 * GB), (463, 32 * GB)]);
            m.pool(0).total = 1000;
            m.pool(0).free += 463;
            m.asked(1000);
            m.bound(&[0]);
        })
        .see("reboot", expect![["unknown unknown: /etc/sysctl.d/hugepages.conf:1 sets 1000 huge pages of 2 MB at boot on all NUMA nodes together; the server needs 537 on those that it is allowed to use (0)."]]),
        when("another server asks for pages, and lives on the other node", |m| {
            m.on_small_pages(8 * GB, 0);
            m.nodes(&[(0, 32 * GB), (0, 32 * GB)]);
            m.bound(&[1]);
            m.other(8 * GB, 4096, TRY);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 4096 huge pages of 2 MB; 0 are available.
            # allocate 4096 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 4096 there; node 1 has 0 of 0 pages free"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 0 huge pages of 2 MB; needed: 8192 = 4096 for this server + 4096 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # allocate 4096 huge pages of 2 MB for other servers, on the NUMA nodes that they use"#]])
        .see("how_to_set_2", expect![["# allocate 4096 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 4096 there; node 1 has 0 of 0 pages free"]])
        .see("runbook", expect![[r#"
            # allocate 4096 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 4096 there; node 1 has 0 of 0 pages free
            # allocate 8192 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 4096 on node 1
            # allocate 4096 huge pages of 2 MB for other servers, on the NUMA nodes that they use"#]]),
        when("the own node has no memory for another server that asks", |m| {
            m.on_small_pages(12 * GB, 0);
            m.faulted_in(GB);
            m.available = Some(60 * GB);
            m.nodes(&[(0, 32 * GB), (0, 32 * GB)]);
            m.bound(&[1]);
            m.other(20 * GB, 4096, TRY).rss_shmem_bytes = Some(0);
        })
        .see("huge_pages", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. Needs 6144 huge pages of 2 MB; 0 are available.
            # allocate 6144 more huge pages of 2 MB on NUMA node 1 (/sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages), or let the server use more nodes: the server needs 6144 there; node 1 has 0 of 0 pages free"#]]),
        when("a pool was lowered, and another server asks for pages", |m| {
            m.on_huge_pages(8 * GB, 8 * GB);
            m.lowered(4000);
            m.asked(4000);
            m.nodes(&[(4096, 32 * GB), (0, 32 * GB)]);
            m.bound(&[0]);
            m.other(8 * GB, 4096, TRY);
        })
        .see("restart", expect![[r#"
            warning would_lose_at_restart: A restart would lose huge pages. Needs 4096 huge pages of 2 MB; 4000 are available.
            sysctl -w vm.nr_hugepages=4096
            # allocate 4096 huge pages of 2 MB for other servers, on the NUMA nodes that they use
            # allocate 8192 huge pages of 2 MB at boot by hand, or let the server use all NUMA nodes: a boot line spreads the pages over all nodes, and this server needs 4096 on node 0"#]])
        .see("other_servers", expect![[r#"
            warning pool_short_for_all: Another server runs on this host. The pool has 4000 huge pages of 2 MB; needed: 8192 = 4096 for this server + 4096 for the server on port 5433 (huge_pages = try). The last server to start would get no huge pages.
            # as restart"#]]),
        when("others have reserved pages of a size that the server does not ask for", |m| {
            m.on_small_pages(8 * GB, 4096);
            m.pool(0).reserved = 4096;
            m.pool(1).total = 8;
            m.pool(1).free = 8;
            m.nodes(&[(0, 32 * GB), (4096, 32 * GB)]);
            let nodes = m.facts.nodes.as_mut().expect("nodes");
            for (node, total) in nodes.iter_mut().zip([8, 0]) {
                let mut part = node.pools[0];
                part.page_bytes = GB;
                part.counters.as_mut().expect("counters").total = total;
                node.pools.push(part);
            }
            m.bound(&[0]);
            m.file("proc/cmdline", "hugepagesz=1G hugepages=8");
            m.state.server.huge_page_size_bytes = Some(GB);
        })
        .see("status", expect![[r#"
            warning fell_back: On 4 kB pages: huge_pages = try fell back. A restart would get huge pages.
            # restart PostgreSQL (ends all sessions)"#]]),
    ]);
}
