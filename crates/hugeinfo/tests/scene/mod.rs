//! Servers and machines for the tests of the reasoning.

#![allow(clippy::expect_used, dead_code)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use hugeinfo::{
    advice::{
        check::Check,
        diagnosis::{self, Verdict},
        words,
    },
    linux::{
        boot::NextBoot,
        buddyinfo::{self, FreeBlocks},
        cgroup::{Group, Hugetlb, Limits, Version},
        error::{Absence, Absent, absent_or},
        hugepages::Pool,
        meminfo::Meminfo,
        numa::node::{self, Node, NodeCounters},
        process::segment::Segment,
        root::Root,
        vmstat,
    },
    model::machine::Machine,
    server::{
        facts::{AllowedNodes, Facts, HugePages, Server, SharedMemoryType},
        host::Host,
        sight::Sight,
        surroundings::{Files, ProcessFigures, Surroundings},
    },
};

pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;

/// A server of 1074 MB on 537 huge pages of 2 MB, 25 of them touched, on a host of 64 GB that has
/// no page too many.
pub fn healthy() -> Facts {
    Facts {
        server: Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 1073 * MB,
        },
        planned: None,
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
                page_bytes: 2 * MB,
                total: 537,
                free: 512,
                reserved: 512,
                surplus: 0,
                overcommit: 0,
            },
            Pool {
                page_bytes: GB,
                total: 0,
                free: 0,
                reserved: 0,
                surplus: 0,
                overcommit: 0,
            },
        ]),
        misread_limits: Vec::new(),
        hugetlb: Ok(Hugetlb {
            version: Version::V2,
            groups: vec![],
        }),
        allowed_nodes: AllowedNodes::All,
    }
}

/// A server and its machine, to be changed before they are looked at.
pub struct Scene {
    pub facts: Facts,
    pub around: Surroundings,
    /// `MemAvailable`. `None`: what pools, segment and an eighth for all others leave.
    pub available: Option<u64>,
    /// `Committed_AS`. `None`: 3 GB, and the segment where it is on small pages.
    pub committed: Option<u64>,
    files: Vec<(String, Option<String>)>,
}

impl Scene {
    /// [`healthy`], on a quiet host.
    pub fn healthy() -> Self {
        Self::of(healthy())
    }

    /// These facts on a quiet host.
    pub fn of(facts: Facts) -> Self {
        Self {
            facts,
            around: quiet(),
            available: None,
            committed: None,
            files: Vec::new(),
        }
    }

    /// The server is on small pages, beside a pool of so many free pages.
    pub fn fall_back(&mut self, pages: u64) {
        let fallen_back = fallen_back(pages);
        self.facts.segment = fallen_back.segment;
        self.facts.pools = fallen_back.pools;
    }

    /// Shared memory of a server on small pages.
    pub fn needs(&mut self, bytes: u64) {
        self.facts.server.shared_memory_bytes = bytes;
        self.facts.segment.as_mut().expect("a segment").bytes = bytes;
    }

    pub fn ram(&mut self, bytes: u64) {
        self.facts.meminfo.as_mut().expect("meminfo").total_bytes = Some(bytes);
    }

    pub fn pool(&mut self, index: usize) -> &mut Pool {
        pool(&mut self.facts, index)
    }

    /// A file of the kernel, or of its configuration; `None`: it isn't there.
    pub fn file<'t>(&mut self, path: &str, text: impl Into<Option<&'t str>>) {
        let text = text.into().map(str::to_owned);
        self.files.push((path.to_owned(), text));
        let files = self.files.iter();
        let files: Vec<_> = files
            .map(|(path, text)| (path.as_str(), text.as_deref()))
            .collect();
        let read = surroundings(&files);
        self.around.host = read.host;
        self.around.vmstat = read.vmstat;
        self.around.free_blocks = read.free_blocks;
        self.around.asked_at_boot = read.asked_at_boot;
    }

    /// The pool of the next boot.
    pub fn asked(&mut self, pages: u64) {
        let text = format!("vm.nr_hugepages = {pages}\n");
        self.file("etc/sysctl.d/hugepages.conf", text.as_str());
    }

    /// What waits in the files.
    pub fn waits(&mut self, change: impl FnOnce(&mut Server)) {
        let mut next = self.facts.server.clone();
        change(&mut next);
        self.around.files = Files::Planned(next);
        self.around.settings_wait_for_restart = true;
        self.around.waiting_settings = vec!["shared_buffers".to_owned()];
    }

    /// The NUMA nodes: pages of 2 MB and memory of each.
    pub fn nodes(&mut self, nodes: &[(u64, u64)]) {
        let node = |(number, &(total, memory))| {
            let mut node = on_node(number, total);
            node.memory.total = Some(memory);
            node
        };
        self.around.nodes = Ok((0..).zip(nodes).map(node).collect());
        // Free memory of each looks as that of the first.
        if let Ok(FreeBlocks(free)) = &mut self.around.free_blocks {
            let of_first = free.get(&0).cloned().unwrap_or_default();
            *free = (0..)
                .zip(nodes)
                .map(|(at, _)| (at, of_first.clone()))
                .collect();
        }
    }

    /// All counters as one kernel would have them.
    pub fn machine(mut self) -> Machine {
        self.settle();
        Machine::new(self.facts, Some(self.around))
    }

    fn settle(&mut self) {
        let (facts, around) = (&self.facts, &mut self.around);
        let (Ok(meminfo), Ok(pools)) = (&facts.meminfo, &facts.pools) else {
            return;
        };
        let Some(ram) = meminfo.total_bytes else {
            return;
        };
        if let Ok([node]) = around.nodes.as_deref_mut() {
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
            share_out(pool, around.nodes.as_deref_mut().unwrap_or_default());
        }
        let on_small_pages = match &facts.segment {
            Ok(segment) if segment.page_bytes == Some(facts.base_page_bytes) => segment.bytes,
            _ => 0,
        };
        for process in &mut around.processes {
            process.rss_shmem = process.rss_shmem.or(Some(on_small_pages));
        }
        let in_pools = pools.iter().map(|pool| pool.total * pool.page_bytes);
        let in_pools = in_pools.fold(0, u64::saturating_add);
        let Ok(usage) = &mut around.host.usage else {
            return;
        };
        let taken = in_pools
            .saturating_add(on_small_pages)
            .saturating_add(ram / 8);
        usage.total = Some(ram);
        usage.hugetlb = Some(in_pools);
        usage.available = self.available.or(Some(ram.saturating_sub(taken)));
        usage.free = usage.available;
        usage.committed = self.committed.or(Some(3 * GB + on_small_pages));
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let of_ram = match number(around.host.vm.overcommit_bytes) {
            Some(bytes) if bytes > 0 => bytes,
            _ => {
                let ratio = number(around.host.vm.overcommit_ratio).unwrap_or(50);
                (ram.saturating_sub(in_pools) / 100).saturating_mul(ratio)
            }
        };
        usage.commit_limit = usage.swap_total.map(|swap| of_ram.saturating_add(swap));
    }

    /// All checks.
    pub fn checks(self) -> Vec<Check> {
        diagnosis::checks(&self.machine())
    }

    /// The check of that name.
    pub fn check(self, name: &str) -> Check {
        let mut all = self.checks().into_iter();
        all.find(|check| check.name == name)
            .expect("a check of that name")
    }
}

/// Free and surplus pages of the pool lie on the first nodes that have any.
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

/// A server on a quiet host.
pub fn machine(facts: &Facts) -> Machine {
    Scene::of(facts.clone()).machine()
}

/// The answer for it, and what to type.
pub fn answer(facts: &Facts) -> (Verdict, Option<String>) {
    let machine = machine(facts);
    let remedy = words::remedy(&machine, &diagnosis::remedy(&machine));
    (diagnosis::verdict(&machine), remedy)
}

/// The same server on small pages, with a pool of so many free pages.
pub fn fallen_back(pool_pages: u64) -> Facts {
    let mut facts = healthy();
    facts.segment = Ok(Segment {
        bytes: 1073 * MB,
        page_bytes: Some(4096),
        mappings: 1,
    });
    *pool(&mut facts, 0) = Pool {
        total: pool_pages,
        free: pool_pages,
        reserved: 0,
        ..pool(&mut facts, 0).clone()
    };
    facts
}

pub fn pool(facts: &mut Facts, index: usize) -> &mut Pool {
    &mut facts.pools.as_mut().expect("pools")[index]
}

pub fn limited(facts: &mut Facts, fault_mb: Option<u64>, reservation_mb: Option<u64>) {
    facts.hugetlb = Ok(Hugetlb {
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
    });
}

/// How the pool of the next boot is typed: a line of sysctl's in place of another one.
pub fn typed_instead(file: &str, old: u64, pages: u64) -> String {
    let line = r"vm\.nr_hugepages = ";
    format!("sed -i 's/^{line}{old}$/vm.nr_hugepages = {pages}/' /etc/{file}")
}

/// The same in a file that is not there.
pub fn typed_anew(pages: u64) -> String {
    let file = "/etc/sysctl.d/hugepages.conf";
    format!("(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.nr_hugepages = {pages}' >> {file})")
}

/// The same where the directory is.
pub fn typed_into(file: &str, pages: u64) -> String {
    format!("(umask 022 && echo 'vm.nr_hugepages = {pages}' >> /etc/sysctl.d/{file})")
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

pub const THP: &str = "sys/kernel/mm/transparent_hugepage";

/// A quiet host of 64 GB, all of whose pages were asked for at boot.
pub const CAPTURED: [(&str, &str); 12] = [
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

pub fn surroundings(changes: &[(&str, Option<&str>)]) -> Surroundings {
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
    let mut host = Host::read(&root).expect("a host");
    host.kernel_release = "6.18.5".to_owned();
    Surroundings {
        host,
        vmstat: absent_or(vmstat::read(&root)).expect("vmstat"),
        free_blocks: absent_or(buddyinfo::read(&root)).expect("buddyinfo"),
        asked_at_boot: NextBoot::read(&root).expect("boot"),
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
        memory_limits: Ok(Vec::new()),
        refused_by_limits: Vec::new(),
        neighbours: Ok(Vec::new()),
        sight: Sight::Host,
        uses_io_uring: false,
        max_connections: 100,
        shared_buffers_bytes: 128 * MB,
        settings: BTreeMap::new(),
        settings_wait_for_restart: false,
        waiting_settings: Vec::new(),
        allows_alter_system: true,
        files: Files::NothingWaits,
    }
}

/// The tree is that of process 1.
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

/// The postmaster and so many others, a day old.
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
        ..each
    };
    std::iter::once(postmaster)
        .chain(std::iter::repeat_n(other, others))
        .collect()
}

pub fn quiet() -> Surroundings {
    surroundings(&[])
}
