//! A healthy server and its machine, to be changed before they are judged.

#![allow(clippy::expect_used, dead_code)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use advice::{model::machine::Machine, muted::Muted};
use host::{
    linux::{
        boot::{Kernel, NextBoot, is_etc_kept},
        buddyinfo::{self, FreeBlocks},
        cgroup::{Group, Hugetlb, Limits, Version, memory::MemoryLimit},
        error::{Absence, Absent, absent_or},
        hugepages::Pool,
        meminfo::{self, Meminfo},
        numa::node::{self, Node, NodeCounters},
        process::segment::Segment,
        root::Root,
        sysctl, transparent_hugepage, vmstat,
    },
    server::{
        configuration::RequestedPages,
        connection::Connection,
        facts::Facts,
        instances::Instance,
        state::{
            AllowedNodes, HugePages, NextSettings, ProcessFigures, Server, SharedMemoryType, State,
        },
        visibility::Visibility,
    },
};

/// A server that requests huge pages by default.
pub const TRY: RequestedPages = RequestedPages::Known(HugePages::Try, Some(0));
/// A server that was turned off.
pub const OFF: RequestedPages = RequestedPages::Known(HugePages::Off, Some(0));

pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;

/// A server of 1074 MB on 537 huge pages of 2 MB, 25 of them faulted in, on a host of 64 GB without
/// idle pages.
pub fn healthy() -> State {
    let server = Server {
        huge_pages: HugePages::Try,
        shared_memory_type: SharedMemoryType::Mmap,
        huge_page_size_bytes: None,
        shared_memory_bytes: 1073 * MB,
    };
    State {
        base_page_bytes: 4096,
        segment: Ok(Segment {
            bytes: 1074 * MB,
            page_bytes: Some(2 * MB),
            mappings: 1,
        }),
        meminfo: Ok(Meminfo {
            total_bytes: Some(64 * GB),
            default_huge_page_bytes: Some(2 * MB),
        }),
        pools: Ok(vec![
            Pool {
                total: 537,
                free: 512,
                reserved: 512,
                ..Pool::empty(2 * MB)
            },
            Pool::empty(GB),
        ]),
        hugetlb: Ok(Hugetlb {
            version: Version::V2,
            groups: vec![],
            counts_as_memory: false,
        }),
        ..State::unread(server)
    }
}

/// A server and its machine.
pub struct Scene {
    pub state: State,
    /// The other facts; the state in them is not used.
    pub facts: Facts,
    /// `MemAvailable`. `None`: RAM without the pools, the segment and an eighth for everything
    /// else.
    pub available: Option<u64>,
    /// `Shmem`. `None`: what the servers have faulted in on small pages.
    pub shmem: Option<u64>,
    /// `Committed_AS`. `None`: 3 GB, and the segment if it is on small pages.
    pub committed: Option<u64>,
    /// Names of muted checks.
    pub muted: &'static str,
    files: Vec<(String, Option<String>)>,
}

impl Scene {
    /// [`healthy`], on a quiet host.
    pub fn healthy() -> Self {
        Self::of(healthy())
    }

    /// This state of the server and its pools on a quiet host.
    pub fn of(state: State) -> Self {
        let facts = quiet();
        Self {
            state: State {
                server: state.server,
                next: NextSettings {
                    server: state.next.server,
                    ..NextSettings::default()
                },
                base_page_bytes: state.base_page_bytes,
                segment: state.segment,
                meminfo: state.meminfo,
                pools: state.pools,
                hugetlb: state.hugetlb,
                ..facts.state.clone()
            },
            facts,
            available: None,
            shmem: None,
            committed: None,
            muted: "",
            files: Vec::new(),
        }
    }

    /// Puts the server on small pages, and the given number of free pages into the pool.
    pub fn fall_back(&mut self, pages: u64) {
        let fallen_back = fallen_back(pages);
        self.state.segment = fallen_back.segment;
        self.state.pools = fallen_back.pools;
    }

    /// Shared memory of a server on small pages.
    pub fn needs(&mut self, bytes: u64) {
        self.state.server.shared_memory_bytes = bytes;
        self.state.segment.as_mut().expect("a segment").bytes = bytes;
    }

    pub fn ram(&mut self, bytes: u64) {
        self.state.meminfo.as_mut().expect("meminfo").total_bytes = Some(bytes);
    }

    pub fn pool(&mut self, index: usize) -> &mut Pool {
        pool(&mut self.state, index)
    }

    /// Sets a file of the kernel or of its configuration. `None` removes it.
    pub fn file<'t>(&mut self, path: &str, text: impl Into<Option<&'t str>>) {
        let text = text.into().map(str::to_owned);
        self.files.push((path.to_owned(), text));
        let files = self.files.iter();
        let files: Vec<_> = files
            .map(|(path, text)| (path.as_str(), text.as_deref()))
            .collect();
        let read = facts(&files);
        self.facts.vmstat = read.vmstat;
        self.facts.free_blocks = read.free_blocks;
        self.state.usage = read.state.usage;
        self.state.vm = read.state.vm;
        self.state.thp = read.state.thp;
        self.state.next_boot = read.state.next_boot;
    }

    /// Sets the requested pages of this boot and the next.
    pub fn asked(&mut self, pages: u64) {
        let text = format!("vm.nr_hugepages = {pages}\n");
        self.file("etc/sysctl.d/hugepages.conf", text.as_str());
    }

    /// Makes a change that is pending a restart.
    pub fn waits(&mut self, change: impl FnOnce(&mut Server)) {
        let mut next = self.state.server.clone();
        change(&mut next);
        let now = &self.state.server;
        let names = [
            ("huge_pages", next.huge_pages != now.huge_pages),
            (
                "shared_memory_type",
                next.shared_memory_type != now.shared_memory_type,
            ),
            (
                "huge_page_size",
                next.huge_page_size_bytes != now.huge_page_size_bytes,
            ),
            (
                "shared_buffers",
                next.shared_memory_bytes != now.shared_memory_bytes,
            ),
        ];
        let waiting = names.into_iter().filter(|(_, waits)| *waits);
        self.state.next.pending = waiting.map(|(name, _)| name.to_owned()).collect();
        self.state.next.server = Some(next);
    }

    /// Puts the server on huge pages of the first pool, with no idle page, a boot file that
    /// requests them, and this many bytes faulted in.
    pub fn on_huge_pages(&mut self, bytes: u64, touched: u64) {
        let pages = bytes / (2 * MB);
        self.asked(pages);
        self.state.server.shared_memory_bytes = bytes;
        self.state.segment = Ok(Segment {
            bytes,
            page_bytes: Some(2 * MB),
            mappings: 1,
        });
        let free = pages - touched / (2 * MB);
        *self.pool(0) = Pool {
            total: pages,
            free,
            reserved: free,
            ..self.pool(0).clone()
        };
        self.facts.shared_buffers_bytes = bytes / 100 * 95;
        self.facts.nodes = Ok(vec![on_node(0, pages)]);
    }

    /// Puts a server of this size on small pages, and the given number of free pages into the pool.
    pub fn on_small_pages(&mut self, bytes: u64, pages: u64) {
        self.fall_back(pages);
        self.needs(bytes);
        self.facts.shared_buffers_bytes = bytes / 100 * 95;
        self.facts.nodes = Ok(vec![on_node(0, pages)]);
    }

    /// Adds free pages to the first pool.
    pub fn more(&mut self, pages: u64) {
        self.pool(0).total += pages;
        self.pool(0).free += pages;
        let total = self.pool(0).total;
        self.facts.nodes = Ok(vec![on_node(0, total)]);
    }

    /// Lowers `vm.nr_hugepages` under the running server.
    pub fn lowered(&mut self, pages: u64) {
        self.pool(0).surplus = self.pool(0).total - pages;
    }

    /// Sets the part of a segment on small pages that a process has faulted in.
    pub fn faulted_in(&mut self, bytes: u64) {
        for process in &mut self.state.processes {
            process.rss_shmem = Some(bytes);
        }
    }

    /// Turns huge pages off in the configuration of the server.
    pub fn off(&mut self) {
        self.state.server.huge_pages = HugePages::Off;
    }

    /// Adds another server, all of whose segment is in use. Its port is 5433, or the next one.
    pub fn other(
        &mut self,
        bytes: u64,
        page_bytes: u64,
        requested: RequestedPages,
    ) -> &mut Instance {
        let servers = self.state.other_servers.as_mut().expect("servers");
        let nth = u16::try_from(servers.len()).expect("few servers");
        servers.push(Instance {
            pid: 815 + u32::from(nth),
            owner_uid: Some(1001),
            port: Some(5433 + nth),
            segment: Some(Segment {
                bytes,
                page_bytes: Some(page_bytes),
                mappings: 1,
            }),
            shared_memory_type: Some(SharedMemoryType::Mmap),
            rss_shmem_bytes: (page_bytes == 4096).then_some(bytes),
            huge_pages: requested,
            ..Instance::default()
        });
        servers.last_mut().expect("a server")
    }

    /// Turns strict overcommit on.
    pub fn strict(&mut self, committed: u64) {
        self.file("proc/sys/vm/overcommit_memory", "2\n");
        self.committed = Some(committed);
    }

    /// Sets the size of the swap, all of it free.
    pub fn swap(&mut self, bytes: u64) {
        let usage = self.state.usage.as_mut().expect("meminfo");
        usage.swap_total = Some(bytes);
        usage.swap_free = Some(bytes);
    }

    /// Adds a memory limit of the server's cgroup, without swap.
    pub fn memory_limit(&mut self, limit: u64, used: u64, files: u64) -> &mut MemoryLimit {
        let limits = self.state.memory_limits.as_mut().expect("limits");
        limits.push(MemoryLimit {
            directory: PathBuf::from("/sys/fs/cgroup/pg"),
            limit_bytes: limit,
            use_bytes: used,
            file_bytes: Some(files),
            swap_room_bytes: Some(0),
            counts_hugetlb: false,
        });
        limits.last_mut().expect("a limit")
    }

    /// Restricts the server to these nodes.
    pub fn bound(&mut self, nodes: &[usize]) {
        let all = self.facts.nodes.clone().expect("nodes");
        let allowed = nodes.iter().map(|&node| all[node].clone()).collect();
        self.facts.allowed_nodes = AllowedNodes::Only(allowed);
    }

    /// Sets the OOM scores of the postmaster and of all other processes.
    pub fn oom_scores(&mut self, postmaster: i32, others: i32) {
        self.state.oom_score_adj = Ok(postmaster);
        for process in &mut self.state.processes {
            process.oom_score_adj = Some(if process.is_postmaster {
                postmaster
            } else {
                others
            });
        }
    }

    /// Puts the server into a container, whose boot files and systemd are hidden.
    pub fn container(&mut self) {
        self.facts.is_container = Some(true);
        self.facts.has_systemd = Some(false);
        self.facts.can_lower_oom_score = Some(false);
        self.facts.visibility = Visibility::Namespace;
        self.state.next_boot = Err(Absent {
            path: PathBuf::from("/etc"),
            why: Absence::OfAnotherRoot,
        });
    }

    /// Sets the page tables of the postmaster and of 80 client backends.
    pub fn page_tables(&mut self, postmaster: u64, backend: u64) {
        let page_tables = Some(backend);
        self.state.processes = processes(
            80,
            ProcessFigures {
                page_tables,
                ..ProcessFigures::default()
            },
        );
        self.state.processes[0].page_tables = Some(postmaster);
    }

    /// The NUMA nodes: pages of 2 MB and memory of each.
    pub fn nodes(&mut self, nodes: &[(u64, u64)]) {
        let node = |(number, &(total, memory))| {
            let mut node = on_node(number, total);
            node.memory.total = Some(memory);
            node
        };
        self.facts.nodes = Ok((0..).zip(nodes).map(node).collect());
        // Each node has free blocks like the first.
        if let Ok(FreeBlocks(free)) = &mut self.facts.free_blocks {
            let of_first = free.get(&0).cloned().unwrap_or_default();
            *free = (0..)
                .zip(nodes)
                .map(|(at, _)| (at, of_first.clone()))
                .collect();
        }
    }

    /// The machine, with all counters as one kernel would have them.
    pub fn machine(self) -> Machine {
        let names = Muted::parse(self.muted).names;
        Machine {
            muted: names,
            ..Machine::new(self.settled())
        }
    }

    /// The facts of [`Scene::machine`].
    pub fn settled(mut self) -> Facts {
        self.settle();
        if let AllowedNodes::Only(allowed) = &mut self.facts.allowed_nodes {
            let nodes = self.facts.nodes.as_deref().unwrap_or_default();
            for node in allowed {
                let same = nodes.iter().find(|other| other.number == node.number);
                node.clone_from(same.expect("a node"));
            }
        }
        Facts {
            state: self.state,
            ..self.facts
        }
    }

    fn settle(&mut self) {
        let (state, facts) = (&mut self.state, &mut self.facts);
        let (Ok(meminfo), Ok(pools)) = (&state.meminfo, &state.pools) else {
            return;
        };
        let Some(ram) = meminfo.total_bytes else {
            return;
        };
        if let Ok([node]) = facts.nodes.as_deref_mut() {
            node.memory.total = Some(ram);
            let part = |pool: &Pool| node::NodePool {
                page_bytes: pool.page_bytes,
                counters: Some(NodeCounters {
                    total: pool.total,
                    free: pool.free,
                    surplus: pool.surplus,
                }),
            };
            node.pools = pools.iter().map(part).collect();
        }
        for pool in pools {
            share_out(pool, facts.nodes.as_deref_mut().unwrap_or_default());
        }
        let on_small_pages = match &state.segment {
            Ok(segment) if segment.page_bytes == Some(state.base_page_bytes) => segment.bytes,
            _ => 0,
        };
        for process in &mut state.processes {
            process.rss_shmem = process.rss_shmem.or(Some(on_small_pages));
        }
        let in_pools = pools.iter().map(|pool| pool.total * pool.page_bytes);
        let in_pools = in_pools.fold(0, u64::saturating_add);
        let Ok(usage) = &mut state.usage else {
            return;
        };
        let taken = in_pools
            .saturating_add(on_small_pages)
            .saturating_add(ram / 8);
        usage.total = Some(ram);
        let page_tables = state.processes.iter().filter_map(|one| one.page_tables);
        usage.page_tables = Some(page_tables.sum());
        usage.hugetlb = Some(in_pools);
        usage.available = self.available.or(Some(ram.saturating_sub(taken)));
        usage.free = usage.available;
        let own = state.processes.iter().filter_map(|one| one.rss_shmem).max();
        let others = state.other_servers.iter().flatten();
        let others = others.filter_map(|other| other.rss_shmem_bytes);
        let touched = own.into_iter().chain(others).fold(0, u64::saturating_add);
        usage.shmem = self.shmem.or(Some(touched));
        usage.committed = self.committed.or(Some(3 * GB + on_small_pages));
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let of_ram = match number(state.vm.overcommit_bytes) {
            Some(bytes) if bytes > 0 => bytes,
            _ => {
                let ratio = number(state.vm.overcommit_ratio).unwrap_or(50);
                (ram.saturating_sub(in_pools) / 100).saturating_mul(ratio)
            }
        };
        usage.commit_limit = usage.swap_total.map(|swap| of_ram.saturating_add(swap));
    }
}

/// Puts free and surplus pages of the pool on the first nodes that have pages.
fn share_out(pool: &Pool, nodes: &mut [Node]) {
    let parts = nodes.iter_mut().flat_map(|node| &mut node.pools);
    let parts = parts.filter(|part| part.page_bytes == pool.page_bytes);
    let (mut free, mut surplus) = (pool.free, pool.surplus);
    for counters in parts.filter_map(|part| part.counters.as_mut()) {
        counters.free = counters.total.min(free);
        counters.surplus = counters.total.min(surplus);
        free -= counters.free;
        surplus -= counters.surplus;
    }
}

/// The same server on small pages, with this many free pages in the pool.
pub fn fallen_back(pool_pages: u64) -> State {
    let mut state = healthy();
    state.segment = Ok(Segment {
        bytes: 1073 * MB,
        page_bytes: Some(4096),
        mappings: 1,
    });
    *pool(&mut state, 0) = Pool {
        total: pool_pages,
        free: pool_pages,
        reserved: 0,
        ..pool(&mut state, 0).clone()
    };
    state
}

pub fn pool(state: &mut State, index: usize) -> &mut Pool {
    &mut state.pools.as_mut().expect("pools")[index]
}

pub fn limited(state: &mut State, fault_mb: Option<u64>, reservation_mb: Option<u64>) {
    state.hugetlb = Ok(Hugetlb {
        version: Version::V2,
        groups: vec![Group {
            directory: PathBuf::from("/sys/fs/cgroup/pg"),
            limits: vec![Limits {
                page_bytes: 2 * MB,
                fault_limit: fault_mb.map(|mb| mb * MB),
                fault_use: Some(0),
                reservation_limit: reservation_mb.map(|mb| mb * MB),
                reservation_use: Some(0),
            }],
            is_set_outside: false,
            is_told: false,
        }],
        counts_as_memory: false,
    });
}

pub fn missing(path: &str) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why: Absence::Missing,
    }
}

pub fn denied(path: &str) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why: Absence::Denied,
    }
}

/// Files of a quiet host of 64 GB whose boot requested all of its huge pages.
pub const CAPTURED: [(&str, &str); 16] = [
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
    ("proc/sys/vm/admin_reserve_kbytes", "0\n"),
    ("proc/sys/vm/user_reserve_kbytes", "0\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/hugetlb_shm_group", "0\n"),
    ("etc/sysctl.d/hugepages.conf", "vm.nr_hugepages = 537\n"),
    (
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "537\n",
    ),
    (
        "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        "0\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
    ),
];

pub fn facts(changes: &[(&str, Option<&str>)]) -> Facts {
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
    as_the_host(tree.path());
    let root = Root::at(tree.path());
    let (memory, usage) = meminfo::read(&root).expect("meminfo");
    let kernel = Kernel {
        sizes: Some(vec![2 * MB, GB]),
        default_bytes: memory
            .ok()
            .and_then(|memory| memory.default_huge_page_bytes),
    };
    let is_etc_kept = is_etc_kept(&root).expect("mounts");
    let state = State {
        usage,
        vm: sysctl::read(&root).expect("settings"),
        thp: absent_or(transparent_hugepage::read(&root)).expect("modes"),
        next_boot: NextBoot::read(&root, kernel, is_etc_kept).expect("boot"),
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
        memory_limits: Ok(Vec::new()),
        next: NextSettings::default(),
        other_servers: Ok(Vec::new()),
        ..healthy()
    };
    Facts {
        is_whole: true,
        kernel: "6.18.5 x86_64".to_owned(),
        vmstat: absent_or(vmstat::read(&root)).expect("vmstat"),
        free_blocks: absent_or(buddyinfo::read(&root)).expect("buddyinfo"),
        nodes: Ok(vec![on_node(0, 537)]),
        is_segment_aligned: Some(true),
        can_lower_oom_score: Some(true),
        cgroup_oom_kills: Some(0),
        is_container: Some(false),
        has_systemd: Some(true),
        connection: Connection {
            user: Some("postgres".to_owned()),
            address: Some(("/run/postgresql".into(), 5432)),
        },
        visibility: Visibility::Host,
        max_connections: 100,
        shared_buffers_bytes: 128 * MB,
        allows_alter_system: true,
        ..Facts::unread(state)
    }
}

/// Makes the tree look like that of process 1.
pub fn as_the_host(tree: &Path) {
    const MOUNTS: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
    for process in ["self", "1"] {
        write(&tree.join(format!("proc/{process}/mountinfo")), MOUNTS);
    }
    let namespace = tree.join("proc/self/ns/pid");
    fs::create_dir_all(namespace.parent().expect("a parent")).expect("mkdir");
    symlink("pid:[4026531836]", namespace).expect("a link");
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    fs::write(path, text).expect("write");
}

pub fn on_node(number: u32, total: u64) -> Node {
    let counters = NodeCounters {
        total,
        free: 0,
        surplus: 0,
    };
    Node {
        number,
        memory: node::NodeMemory::default(),
        pools: vec![node::NodePool {
            page_bytes: 2 * MB,
            counters: Some(counters),
        }],
    }
}

/// The postmaster, a day old, and this many other processes.
pub fn processes(others: usize, each: ProcessFigures) -> Vec<ProcessFigures> {
    let postmaster = ProcessFigures {
        is_postmaster: true,
        oom_score_adj: Some(-900),
        age_seconds: Some(86_400),
        ..each
    };
    let other = ProcessFigures {
        oom_score_adj: Some(0),
        age_seconds: Some(3600),
        is_client_backend: true,
        ..each
    };
    std::iter::once(postmaster)
        .chain(std::iter::repeat_n(other, others))
        .collect()
}

pub fn quiet() -> Facts {
    facts(&[])
}
