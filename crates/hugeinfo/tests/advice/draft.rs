//! A machine in a few words: what a test or a generator says of it, and all that follows from that.
//! The counters fit together as the kernel's do.

use std::{collections::BTreeMap, path::PathBuf};

use hugeinfo::{
    linux::{
        boot::{Content, DropIn, DropIns, Kernel, NextBoot, Sources},
        buddyinfo::FreeBlocks,
        cgroup::{Group, Hugetlb, Limits, Version, memory::MemoryLimit},
        error::{Absence, Absent},
        hugepages::{self, Pool},
        meminfo::{Meminfo, Usage},
        numa::node::{Node, NodeCounters, NodeMemory, NodePool},
        pages::pages_required,
        process::segment::Segment,
        sysctl::Vm,
        transparent_hugepage::{Modes, SizeModes},
        vmstat::Vmstat,
    },
    model::machine::Machine,
    server::{
        facts::{AllowedNodes, Facts, HugePages, Server, SharedMemoryType},
        host::Host,
        instances::Instance,
        restored::{Because, TooLow, Value},
        setting::{Setting, SettingSource},
        sight::Sight,
        surroundings::{Files, ProcessFigures, Surroundings},
    },
};

pub const KB: u64 = 1 << 10;
pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;

/// The words, each with what it is unless something else is said; whole machines print themselves
/// as the code that makes them.
macro_rules! words {
    ($(#[$of:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty = $usual:expr,)* }) => {
        $(#[$of])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $usual,)* }
            }
        }

        impl $name {
            /// As it is written in a test.
            pub fn written(&self) -> String {
                let usual = Self::default();
                let mut text = String::from("Draft {");
                $(if self.$field != usual.$field {
                    let value = format!("{:?}", self.$field).replace('[', "vec![");
                    text.push_str(&format!(" {}: {value},", stringify!($field)));
                })*
                text + " ..Draft::default() }"
            }

            /// The same with one word less, each.
            pub fn simpler(&self) -> Vec<Self> {
                let usual = Self::default();
                let mut all = Vec::new();
                $(if self.$field != usual.$field {
                    all.push(Self { $field: usual.$field.clone(), ..self.clone() });
                })*
                all
            }
        }
    };
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum On {
    Small,
    /// Pages of so many MB.
    Huge(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub page_mb: u64,
    pub persistent: u64,
    pub others: u64,
    pub promised: u64,
    pub overcommit: u64,
    /// All of it on this node first. Else each node has as much as its share of RAM.
    pub first: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Strict {
    Ratio(u64),
    Megabytes(u64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Neighbour {
    Small(u64),
    SystemV(u64),
    Huge(u64),
    Hidden,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    pub page_mb: u64,
    pub fault_mb: Option<u64>,
    pub reservation_mb: Option<u64>,
    /// Pages of others in it.
    pub others: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Waiting {
    Nothing,
    Planned(Next),
    Refused,
    TooLow,
    Unseen,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Next {
    pub need_kb: u64,
    pub huge_pages: char,
    pub is_sysv: bool,
    pub size_kb: u64,
}

words! {
    /// By default: a server of 1074 MB on 537 huge pages of 2 MB, on a host of 64 GB.
    Draft {
        nodes_gb: Vec<u64> = vec![64],
        allowed: Option<Vec<u32>> = None,
        base_kb: u64 = 4,
        default_mb: u64 = 2,
        need_kb: u64 = 1_098_752,
        /// `t`ry, `o`n or `n`one.
        huge_pages: char = 't',
        is_sysv: bool = false,
        size_kb: u64 = 0,
        on: On = On::Huge(2),
        touched_percent: u64 = 5,
        pools: Vec<Kept> = vec![
            Kept { page_mb: 2, persistent: 537, others: 0, promised: 0, overcommit: 0, first: None },
            Kept { page_mb: 1024, persistent: 0, others: 0, promised: 0, overcommit: 0, first: None },
        ],
        used_percent: u64 = 20,
        shown_gb: Option<u64> = None,
        swap_gb: u64 = 8,
        strict: Option<Strict> = None,
        committed_percent: u64 = 40,
        whole_percent: u64 = 90,
        neighbours: Vec<Neighbour> = vec![],
        is_hidden: bool = false,
        levels: Vec<Level> = vec![],
        is_v1: bool = false,
        is_container: bool = false,
        is_old: bool = false,
        waiting: Waiting = Waiting::Nothing,
        on_line: Option<(u64, u64)> = None,
        in_sysctl: Option<u64> = Some(537),
        in_tmpfiles: Option<(u64, u64)> = None,
        is_unread: bool = false,
        has_systemd: bool = true,
        thp: (u8, u8) = (1, 3),
        thp_sizes: Vec<(u64, u8, u8)> = vec![],
        is_on_command_line: bool = false,
        allows_alter_system: bool = true,
        processes: usize = 20,
        page_tables_mb: u64 = 6,
        swapped_mb: u64 = 0,
        oom: (i32, i32) = (-900, 0),
        uses_io_uring: bool = false,
        memory_limit: Option<(u64, bool)> = None,
        /// What others, and the server's own memory, have in it.
        in_limit_mb: u64 = 0,
        segment_on_node: Option<u32> = None,
        /// This node has so many percent of its share of available memory, the others have more.
        crowded: Option<(usize, u64)> = None,
        /// What lies on the last nodes first: 1 for surplus pages, 2 for own ones, 4 for others'.
        turned: u64 = 0,
        /// Surplus pages in use beside idle persistent ones.
        extra: u64 = 0,
    }
}

fn huge_pages(c: char) -> HugePages {
    match c {
        'o' => HugePages::On,
        'n' => HugePages::Off,
        _ => HugePages::Try,
    }
}

pub fn absent(path: &str) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why: Absence::Denied,
    }
}

impl Next {
    pub fn server(self) -> Server {
        Server {
            huge_pages: huge_pages(self.huge_pages),
            shared_memory_type: if self.is_sysv {
                SharedMemoryType::Sysv
            } else {
                SharedMemoryType::Mmap
            },
            huge_page_size_bytes: Some(self.size_kb * KB).filter(|&bytes| bytes > 0),
            shared_memory_bytes: self.need_kb * KB,
        }
    }
}

/// The parts of one pool.
struct Counted {
    pool: Pool,
    nodes: Vec<NodeCounters>,
}

impl Draft {
    fn is_allowed(&self, node: usize) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|&n| usize::try_from(n) == Ok(node)))
    }

    /// How the kernel counts a pool. `None`: no machine can be so.
    fn counted(&self, kept: &Kept) -> Option<Counted> {
        let page = kept.page_mb * MB;
        let own = match self.on {
            On::Huge(mb) if mb == kept.page_mb => pages_required(self.need_kb * KB, page),
            _ => 0,
        };
        let of_neighbours: u64 = if self.default_mb == kept.page_mb {
            let huge = self.neighbours.iter().map(|n| match n {
                Neighbour::Huge(mb) => pages_required(mb * MB, page),
                _ => 0,
            });
            huge.sum()
        } else {
            0
        };
        let others = kept.others + of_neighbours;
        let touched = (own * self.touched_percent).div_ceil(100);
        let committed = own + others + kept.promised;
        let extra = if kept.page_mb == self.default_mb {
            self.extra
        } else {
            0
        };
        let total = committed.max(kept.persistent) + extra;
        let surplus = total - kept.persistent;
        let all: u64 = self.nodes_gb.iter().sum();
        let mut left = total;
        let room: Vec<u64> = self
            .nodes_gb
            .iter()
            .map(|gb| gb * GB / 100 * 90 / page)
            .collect();
        let mut nodes: Vec<NodeCounters> = self
            .nodes_gb
            .iter()
            .zip(&room)
            .map(|(gb, room)| {
                let share = if kept.first.is_some() {
                    0
                } else {
                    total * gb / all
                };
                let share = share.min(left).min(*room);
                left -= share;
                NodeCounters {
                    total: share,
                    free: share,
                    surplus: 0,
                }
            })
            .collect();
        let count = nodes.len();
        let start = kept.first.unwrap_or(0);
        for at in (0..count).map(|i| (i + start) % count) {
            let more = left.min(room[at] - nodes[at].total);
            nodes[at].total += more;
            nodes[at].free += more;
            left -= more;
        }
        let turned = self.turned;
        let mut take = |mut pages: u64, allowed_only: bool| {
            let bit = if allowed_only { 2 } else { 4 };
            for at in 0..count {
                let at = if turned & bit != 0 {
                    count - 1 - at
                } else {
                    at
                };
                let node = &mut nodes[at];
                if !allowed_only || self.is_allowed(at) {
                    let here = pages.min(node.free);
                    node.free -= here;
                    pages -= here;
                }
            }
            pages
        };
        if left > 0 || take(touched, true) > 0 || take(others, false) > 0 {
            return None;
        }
        let mut more = surplus;
        for at in 0..count {
            let at = if turned & 1 != 0 { count - 1 - at } else { at };
            let node = &mut nodes[at];
            node.surplus = more.min(node.total - node.free);
            more -= node.surplus;
        }
        // Free surplus pages are there for what is reserved.
        if more > own - touched + kept.promised {
            return None;
        }
        for node in &mut nodes {
            let here = more.min(node.total - node.surplus);
            node.surplus += here;
            more -= here;
        }
        let pool = Pool {
            page_bytes: page,
            total,
            free: total - touched - others,
            reserved: own - touched + kept.promised,
            surplus,
            overcommit: kept.overcommit,
        };
        Some(Counted { pool, nodes })
    }

    /// The machine. `None`: there is no such one.
    pub fn machine(&self) -> Option<Machine> {
        let base = self.base_kb * KB;
        let default = self.default_mb * MB;
        if !self
            .pools
            .iter()
            .any(|kept| kept.page_mb == self.default_mb)
            || self.default_mb == 512 && self.base_kb == 4
        {
            return None;
        }
        let counted: Vec<Counted> = self
            .pools
            .iter()
            .map(|kept| self.counted(kept))
            .collect::<Option<_>>()?;
        let need = self.need_kb * KB;
        let next = |huge, is_sysv, size_kb, need_kb| Next {
            need_kb,
            huge_pages: huge,
            is_sysv,
            size_kb,
        };
        let now = next(self.huge_pages, self.is_sysv, self.size_kb, self.need_kb).server();
        let stated = need.div_ceil(MB) * MB;
        let server = Server {
            shared_memory_bytes: stated,
            ..now
        };
        let lies_on = match self.on {
            On::Small => base,
            On::Huge(mb) => mb * MB,
        };
        // A server is on huge pages of the size that it asks for, or on small ones.
        if let On::Huge(mb) = self.on {
            let asked = if self.size_kb == 0 {
                default
            } else {
                self.size_kb * KB
            };
            if asked != mb * MB || self.is_sysv || self.huge_pages == 'n' {
                return None;
            }
        } else if self.huge_pages == 'o' {
            return None;
        }
        let segment = Segment {
            bytes: need.div_ceil(lies_on) * lies_on,
            page_bytes: Some(lies_on),
            mappings: 1,
        };
        let ram: u64 = self.nodes_gb.iter().sum::<u64>() * GB;
        let pools_bytes: u64 = counted
            .iter()
            .map(|c| c.pool.total * c.pool.page_bytes)
            .sum();
        let small = if self.on == On::Small {
            segment.bytes
        } else {
            0
        };
        let touched_small = small / 100 * self.touched_percent;
        let of_neighbours: u64 = self
            .neighbours
            .iter()
            .map(|n| match n {
                Neighbour::Small(mb) | Neighbour::SystemV(mb) => mb * MB / 2,
                _ => 0,
            })
            .sum();
        let beside = ram
            .checked_sub(pools_bytes)?
            .checked_sub(touched_small + of_neighbours)?;
        let available = beside - beside / 100 * self.used_percent;
        if beside < ram / 100 || self.shown_gb.is_some_and(|gb| gb * GB >= ram) {
            return None;
        }
        let swap = self.swap_gb * GB;
        let pages = |bytes: u64| bytes / base;
        let limit = match self.strict {
            Some(Strict::Megabytes(mb)) => pages(mb * MB) + pages(swap),
            Some(Strict::Ratio(ratio)) => {
                (pages(ram) - pages(pools_bytes)) * ratio / 100 + pages(swap)
            }
            None => (pages(ram) - pages(pools_bytes)) * 50 / 100 + pages(swap),
        } * base;
        let committed = small + limit.saturating_sub(small) / 100 * self.committed_percent;
        let on_host = available;
        let (available, total) = match self.shown_gb {
            Some(gb) => (available.min(gb * GB / 2), gb * GB),
            None => (available, ram),
        };
        let available_on = self.available_on_nodes(&counted, on_host)?;
        let nodes: Vec<Node> = self
            .nodes_gb
            .iter()
            .enumerate()
            .map(|(at, gb)| Node {
                number: u32::try_from(at).unwrap_or(0),
                memory: NodeMemory {
                    total: Some(gb * GB),
                    free: Some(available_on[at] / 2),
                    available: Some(available_on[at]),
                },
                pools: counted
                    .iter()
                    .map(|c| NodePool {
                        page_bytes: c.pool.page_bytes,
                        counters: Some(c.nodes[at]),
                    })
                    .collect(),
            })
            .collect();
        let allowed_nodes = match &self.allowed {
            None => AllowedNodes::All,
            Some(list) => {
                let only: Vec<Node> = nodes
                    .iter()
                    .filter(|n| list.contains(&n.number))
                    .cloned()
                    .collect();
                if only.is_empty() || only.len() == nodes.len() {
                    AllowedNodes::All
                } else {
                    AllowedNodes::Only(only)
                }
            }
        };
        let pools: Vec<Pool> = counted.into_iter().map(|c| c.pool).collect();
        let mut own_in_use = 0;
        if let On::Huge(_) = self.on {
            own_in_use = pages_required(need, lies_on);
        }
        let groups = self.groups(&pools, lies_on, own_in_use)?;
        let planned = match &self.waiting {
            Waiting::Planned(next) => Some(next.server()),
            _ => None,
        };
        let facts = Facts {
            server,
            planned: None,
            base_page_bytes: base,
            segment: Ok(segment.clone()),
            meminfo: Ok(Meminfo {
                total_bytes: Some(total),
                default_huge_page_bytes: Some(default),
            }),
            pools: Ok(pools.clone()),
            misread_limits: Vec::new(),
            hugetlb: Ok(Hugetlb {
                version: if self.is_v1 { Version::V1 } else { Version::V2 },
                groups,
            }),
            allowed_nodes,
        };
        let usage = Usage {
            total: Some(total),
            free: Some(available / 2),
            available: Some(available),
            swap_total: Some(swap),
            swap_free: Some(swap.saturating_sub(self.swapped_mb * MB)),
            commit_limit: Some(limit),
            committed: Some(committed),
            ..Usage::default()
        };
        let (ratio, kilobytes) = match self.strict {
            Some(Strict::Ratio(ratio)) => (ratio, 0),
            Some(Strict::Megabytes(mb)) => (0, mb * MB),
            None => (50, 0),
        };
        let signed = |n: u64| i64::try_from(n).ok();
        let order = (u64::from((2 * MB / base).ilog2()) + 1).max(10);
        let order = if default > (base << order) {
            u64::from((default / base).ilog2())
        } else {
            order
        };
        let mut blocks = BTreeMap::new();
        for (number, available) in (0..).zip(&available_on) {
            let mut of_node = vec![0; usize::try_from(order).ok()? + 1];
            let whole = available / 200 * self.whole_percent;
            *of_node.last_mut()? = whole / (base << order);
            blocks.insert(number, of_node);
        }
        let modes = ["always", "madvise", "never", "inherit"];
        let shmem = [
            "always",
            "within_size",
            "advise",
            "never",
            "deny",
            "force",
            "inherit",
        ];
        let mode = |all: &[&str], at: u8| Some(all[usize::from(at) % all.len()].to_owned());
        let around = Surroundings {
            host: Host {
                kernel_release: "6.18.5".to_owned(),
                machine: "x86_64".to_owned(),
                base_page_bytes: base,
                default_huge_page_bytes: Some(default),
                usage: Ok(usage),
                vm: Vm {
                    overcommit_memory: Some(if self.strict.is_some() { 2 } else { 0 }),
                    overcommit_ratio: signed(ratio),
                    overcommit_bytes: signed(kilobytes),
                    swappiness: Some(60),
                    hugetlb_shm_group: Some(0),
                    ..Vm::default()
                },
                thp: Ok(Modes {
                    enabled: mode(&modes[..3], self.thp.0),
                    defrag: None,
                    shmem_enabled: mode(&shmem[..6], self.thp.1),
                    sizes: self
                        .thp_sizes
                        .iter()
                        .map(|&(kb, private, shared)| SizeModes {
                            page_bytes: kb * KB,
                            enabled: mode(&modes, private),
                            shmem_enabled: mode(&shmem, shared),
                        })
                        .collect(),
                }),
                nodes: Ok(nodes.iter().map(|n| n.number).collect()),
                processors: Err(absent("/sys/devices/system/cpu")),
            },
            vmstat: Ok(Vmstat::default()),
            free_blocks: Ok(FreeBlocks(blocks)),
            asked_at_boot: Ok(self.boot(&pools)),
            nodes: Ok(nodes),
            segment_nodes: self
                .segment_on_node
                .map(|node| BTreeMap::from([(node, segment.bytes / lies_on)])),
            segment_thp_bytes: None,
            processes: self.figures(touched_small),
            oom_score_adj: Ok(self.oom.0),
            locked_memory: Ok(Some(64 * KB)),
            memory_limits: Ok(Vec::from_iter(self.memory_limit.map(
                |(mb, counts_hugetlb)| {
                    let huge = if counts_hugetlb {
                        own_in_use * lies_on / 100 * self.touched_percent
                    } else {
                        0
                    };
                    let used = huge + touched_small + self.in_limit_mb * MB;
                    MemoryLimit {
                        directory: PathBuf::from("/sys/fs/cgroup/pg"),
                        limit_bytes: (mb * MB).max(used),
                        use_bytes: used,
                        file_bytes: Some(0),
                        swap_room_bytes: None,
                        counts_hugetlb,
                    }
                },
            ))),
            refused_by_limits: Vec::new(),
            neighbours: Ok(self.instances(base, default)),
            sight: if self.is_hidden {
                Sight::Hidden
            } else {
                Sight::Host
            },
            uses_io_uring: self.uses_io_uring,
            max_connections: 100,
            shared_buffers_bytes: need / 10 * 9,
            settings: self.settings(),
            settings_wait_for_restart: self.waiting != Waiting::Nothing,
            waiting_settings: Vec::new(),
            allows_alter_system: self.allows_alter_system,
            files: match (&self.waiting, planned) {
                (Waiting::Planned(_), Some(next)) => Files::Planned(next),
                (Waiting::Refused, _) => Files::Refused("invalid value".to_owned()),
                (Waiting::TooLow, _) => Files::TooLow(vec![too_low()]),
                (Waiting::Unseen, _) => Files::Unseen("only superusers may look".to_owned()),
                _ => Files::NothingWaits,
            },
        };
        Some(Machine::new(facts, Some(around)))
    }

    /// Each node has it as it has memory beside its part of the pools.
    fn available_on_nodes(&self, counted: &[Counted], available: u64) -> Option<Vec<u64>> {
        let beside: Vec<u64> = self
            .nodes_gb
            .iter()
            .enumerate()
            .map(|(at, gb)| {
                let bytes = |c: &Counted| c.nodes[at].total * c.pool.page_bytes;
                (gb * GB).saturating_sub(counted.iter().map(bytes).sum())
            })
            .collect();
        let part = |bytes: u64, of: u64, all: u64| {
            let part = u128::from(bytes) * u128::from(of) / u128::from(all.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let all = beside.iter().sum();
        let mut on: Vec<u64> = beside.iter().map(|&of| part(available, of, all)).collect();
        if let Some((crowded, percent)) = self.crowded {
            let left = on.get(crowded)? / 100 * percent;
            let moved = std::mem::replace(&mut on[crowded], left) - left;
            let others = all - beside[crowded];
            for (at, on) in on.iter_mut().enumerate().filter(|(at, _)| *at != crowded) {
                *on += part(moved, beside[at], others);
                if *on > beside[at] {
                    return None;
                }
            }
        }
        Some(on)
    }

    fn groups(&self, pools: &[Pool], lies_on: u64, own: u64) -> Option<Vec<Group>> {
        let mut path = PathBuf::from("/sys/fs/cgroup");
        let mut groups = Vec::new();
        let mut others = 0;
        let count = self.levels.len();
        for (at, level) in self.levels.iter().enumerate() {
            let page = level.page_mb * MB;
            let pool = pools.iter().find(|pool| pool.page_bytes == page)?;
            let own = if page == lies_on { own } else { 0 };
            let of_others = pool.committed() - own;
            others = (others + level.others).min(of_others);
            let touched = (own * self.touched_percent).div_ceil(100);
            let others_touched = others.min(pool.total - pool.free - touched);
            let mut directory = path.clone();
            for deeper in 0..count - at {
                directory.push(format!("level{deeper}"));
            }
            groups.push(Group {
                is_told: false,
                directory,
                limits: vec![Limits {
                    page_bytes: page,
                    fault_limit: level.fault_mb.map(|mb| mb * MB),
                    fault_use: Some((touched + others_touched) * page),
                    reservation_limit: level
                        .reservation_mb
                        .filter(|_| !self.is_old)
                        .map(|mb| mb * MB),
                    reservation_use: (!self.is_old).then_some((own + others) * page),
                }],
                is_set_outside: self.is_container,
            });
            // What is mapped and touched was within the limits.
            let limits = &groups.last()?.limits[0];
            let is_over = |used: Option<u64>, limit: Option<u64>| {
                used.zip(limit).is_some_and(|(used, limit)| used > limit)
            };
            if is_over(limits.fault_use, limits.fault_limit)
                || is_over(limits.reservation_use, limits.reservation_limit)
            {
                return None;
            }
        }
        path.clear();
        Some(groups)
    }

    fn boot(&self, pools: &[Pool]) -> NextBoot {
        let default = self.default_mb * MB;
        let mut line = format!("default_hugepagesz={}M", self.default_mb);
        if let Some((mb, pages)) = self.on_line {
            line += &format!(" hugepagesz={mb}M hugepages={pages}");
        }
        let kind = |directory: &str, files: [(&str, Option<Content>); 2]| DropIns {
            directory: directory.to_owned(),
            files: files
                .into_iter()
                .filter_map(|(name, content)| {
                    let path = format!("{directory}/{name}.conf");
                    Some(DropIn {
                        local: Some(path.clone()),
                        path,
                        content: content?,
                    })
                })
                .collect(),
            ..DropIns::default()
        };
        let text = |line: String| Content::Text(format!("{line}\n").into_bytes());
        let in_sysctl = self
            .in_sysctl
            .map(|pages| text(format!("vm.nr_hugepages={pages}")));
        let in_tmpfiles = self.in_tmpfiles.map(|(mb, pages)| {
            let pool = hugepages::directory(mb * MB);
            text(format!("w {pool}/nr_hugepages - - - - {pages}"))
        });
        let unread = self.is_unread.then_some(Content::Unread);
        let tmpfiles = kind("/etc/tmpfiles.d", [("hugepages", in_tmpfiles), ("-", None)]);
        let sources = Sources {
            kernel: Kernel {
                version: (6, 18),
                sizes: Some(pools.iter().map(|pool| pool.page_bytes).collect()),
                hpage_bytes: default.min(if self.base_kb == 4 { 2 * MB } else { 512 * MB }),
                nodes: None,
                most_sizes: 4,
                has_cma: true,
            },
            command_line: Ok(line.into_bytes()),
            sysctl: kind("/etc/sysctl.d", [("hugepages", in_sysctl), ("zz", unread)]),
            tmpfiles: self.has_systemd.then_some(tmpfiles),
        };
        NextBoot::of(sources).expect("memory enough")
    }

    fn figures(&self, touched_small: u64) -> Vec<ProcessFigures> {
        let count = u64::try_from(self.processes).unwrap_or(1).max(1) + 1;
        (0..count)
            .map(|at| ProcessFigures {
                page_tables: Some(self.page_tables_mb * MB / count),
                rss_anon: Some(2 * MB),
                rss_shmem: Some(touched_small),
                swap: Some(if at > 0 {
                    self.swapped_mb * MB / count
                } else {
                    0
                }),
                major_faults: 0,
                age_seconds: Some(3600),
                oom_score_adj: Some(if at == 0 { self.oom.0 } else { self.oom.1 }),
                is_postmaster: at == 0,
            })
            .collect()
    }

    fn instances(&self, base: u64, default: u64) -> Vec<Instance> {
        let mut pid = 4000;
        self.neighbours
            .iter()
            .map(|neighbour| {
                pid += 1;
                let lies_on = |bytes: u64, page: u64| {
                    Some(Segment {
                        bytes: bytes.div_ceil(page) * page,
                        page_bytes: Some(page),
                        mappings: 1,
                    })
                };
                Instance {
                    pid,
                    owner_uid: None,
                    owner: None,
                    data_directory: None,
                    directory_argument: None,
                    port: None,
                    shared_memory_type: match neighbour {
                        Neighbour::Small(_) | Neighbour::Huge(_) => Some(SharedMemoryType::Mmap),
                        Neighbour::SystemV(_) => Some(SharedMemoryType::Sysv),
                        Neighbour::Hidden => None,
                    },
                    segment: match neighbour {
                        Neighbour::Small(mb) | Neighbour::SystemV(mb) => lies_on(mb * MB, base),
                        Neighbour::Huge(mb) => lies_on(mb * MB, default),
                        Neighbour::Hidden => None,
                    },
                }
            })
            .collect()
    }

    fn settings(&self) -> BTreeMap<&'static str, Setting> {
        let source = if self.is_on_command_line {
            SettingSource::CommandLine
        } else {
            SettingSource::Default
        };
        ["huge_pages", "shared_memory_type", "huge_page_size"]
            .into_iter()
            .map(|name| {
                (
                    name,
                    Setting {
                        value: String::new(),
                        source: source.clone(),
                    },
                )
            })
            .collect()
    }
}

/// A standby with fewer connections than its primary.
fn too_low() -> TooLow {
    TooLow {
        setting: "max_connections",
        value: Some(Value::Number(20)),
        least: Value::Number(100),
        because: Because::Primary,
    }
}
