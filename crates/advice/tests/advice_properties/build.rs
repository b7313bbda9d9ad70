//! The facts of a machine from its description.

use std::{collections::BTreeMap, path::PathBuf};

use advice::model::machine::Machine;
use host::{
    linux::{
        boot::{Kernel, NextBoot},
        buddyinfo::FreeBlocks,
        cgroup::{Group, Hugetlb, Limits, Version, memory::MemoryLimit},
        error::{Absence, Absent},
        hugepages::Pool,
        meminfo::{Meminfo, Usage},
        numa::node::{Node, NodeCounters, NodeMemory, NodePool},
        process::segment::Segment,
        sysctl::Vm,
        transparent_hugepage::{Modes, SizeModes},
        vmstat::Vmstat,
    },
    server::{
        configuration::RequestedPages,
        facts::Facts,
        instances::Instance,
        setting::{Setting, SettingSource},
        state::{
            AllowedNodes, Files, HugePages, NextSettings, ProcessFigures, Server, SharedMemoryType,
            State,
        },
        unit::{OomPolicy, Unit},
        visibility::Visibility,
    },
};

use super::machines::{
    Arch, FilesSpec, GB, KB, MB, NextSpec, OtherPages, OtherSpec, PoolSpec, SizeSpec, Spec, Strict,
};

pub fn absent(path: &str, why: Absence) -> Absent {
    Absent {
        path: PathBuf::from(path),
        why,
    }
}

fn setting(huge_pages: char) -> HugePages {
    match huge_pages {
        'o' => HugePages::On,
        'f' => HugePages::Off,
        _ => HugePages::Try,
    }
}

/// A pool and its part on each node.
struct Counted {
    pool: Pool,
    parts: Vec<NodeCounters>,
}

impl Spec {
    fn ram(&self) -> u64 {
        let gb: u64 = self.host.nodes_gb.iter().sum();
        gb * self.unit()
    }

    /// Bytes of a gigabyte of the host, which is 1 GB apart from the scale.
    pub fn unit(&self) -> u64 {
        self.host.scale * GB / if self.host.is_small { 16 } else { 1 }
    }

    fn memory_of(&self, node: usize) -> u64 {
        self.host.nodes_gb[node] * self.unit()
    }

    fn server_of(&self, next: NextSpec) -> Server {
        Server {
            huge_pages: setting(next.huge_pages),
            shared_memory_type: match next.is_sysv {
                true => SharedMemoryType::Sysv,
                false => SharedMemoryType::Mmap,
            },
            huge_page_size_bytes: self.huge_page_size(next.size),
            shared_memory_bytes: self.ram() / 100 * next.percent_of_ram
                + match self.host.is_small {
                    true => next.plus_kb / 128 * 8 * KB,
                    false => next.plus_kb * KB,
                },
        }
    }

    /// `None`: the default.
    fn huge_page_size(&self, size: SizeSpec) -> Option<u64> {
        match size {
            SizeSpec::Default => None,
            SizeSpec::Nth(nth) => self.host.arch.sizes().get(nth).copied(),
            SizeSpec::Bytes(bytes) => Some(bytes),
        }
    }

    /// The size that a start with this `huge_page_size` requests.
    fn asked(&self, huge_page_size: Option<u64>) -> Option<u64> {
        let arch = self.host.arch;
        match huge_page_size {
            None => arch.default_size(),
            Some(bytes) => {
                let rounded = bytes.next_power_of_two();
                Some(rounded).filter(|size| arch.sizes().contains(size))
            }
        }
    }

    fn other_pages(&self, other: &OtherSpec) -> Option<u64> {
        match other.pages {
            OtherPages::Huge(nth) => self.host.arch.sizes().get(nth).copied(),
            _ => None,
        }
    }

    fn other_bytes(&self, other: &OtherSpec) -> u64 {
        self.ram() / 100 * other.percent_of_ram + other.mb * MB
    }

    fn is_allowed(&self, node: usize) -> bool {
        let bound = &self.server.bound;
        bound.is_empty() || bound.contains(&node)
    }

    /// The counters of one pool. `None`: there can be no such pool.
    fn count(
        &self,
        spec: &PoolSpec,
        size: u64,
        held: u64,
        wanted: u64,
        room: &mut [u64],
    ) -> Option<Counted> {
        let faulted_in = (held * self.server.touched_percent).div_ceil(100);
        let mut in_use = self.ram() / 100 * spec.others_percent / size;
        let mut reserved = spec.reserved;
        let mut asking = 0;
        for other in &self.others {
            let pages = self.other_bytes(other).div_ceil(size);
            if self.other_pages(other) == Some(size) {
                let faulted_in = (pages * other.touched_percent).div_ceil(100);
                in_use += faulted_in;
                reserved += pages - faulted_in;
            } else if other.pages == OtherPages::Small
                && matches!(other.huge_pages, 't' | 'o')
                && other
                    .size
                    .and_then(|asked| self.asked(self.huge_page_size(asked)))
                    == Some(size)
            {
                asking += pages;
            }
        }
        let needed = wanted + in_use + reserved + asking;
        let fits: u64 = room.iter().map(|bytes| bytes / size).sum();
        let persistent = spec.persistent.of(needed).min(fits);
        let committed = held + in_use + reserved;
        let extra = spec.extra_surplus.min(in_use);
        let total = committed.max(persistent) + extra;
        let pool = Pool {
            page_bytes: size,
            total,
            free: total - faulted_in - in_use,
            reserved: held - faulted_in + reserved,
            surplus: total - persistent,
            overcommit: spec.overcommit.of(wanted),
            demote_bytes: (spec.is_demotable && total > 0 && size == GB).then_some(2 * MB),
            below_zero: Vec::new(),
        };
        let parts = self.spread(spec, &pool, faulted_in, in_use, room)?;
        Some(Counted { pool, parts })
    }

    fn spread(
        &self,
        spec: &PoolSpec,
        pool: &Pool,
        touched: u64,
        in_use: u64,
        room: &mut [u64],
    ) -> Option<Vec<NodeCounters>> {
        let size = pool.page_bytes;
        let count = room.len();
        let mut parts = vec![
            NodeCounters {
                total: 0,
                free: 0,
                surplus: 0,
            };
            count
        ];
        let mut left = pool.total;
        let share = |node: usize| {
            let share = u128::from(pool.total) * u128::from(self.memory_of(node));
            u64::try_from(share / u128::from(self.ram())).ok()
        };
        if !spec.is_on_first_node {
            for (node, part) in parts.iter_mut().enumerate() {
                part.total = share(node)?.min(room[node] / size).min(left);
                left -= part.total;
            }
        }
        for (part, room) in parts.iter_mut().zip(room.iter_mut()) {
            let more = left.min((*room / size).saturating_sub(part.total));
            part.total += more;
            part.free = part.total;
            left -= more;
            *room -= part.total * size;
        }
        // Pages in use: this server's on nodes that it is allowed to use.
        let mut take = |mut pages: u64, is_own: bool| {
            let nodes = parts.iter_mut().enumerate();
            for (_, part) in nodes.filter(|(node, _)| !is_own || self.is_allowed(*node)) {
                let here = pages.min(part.free);
                part.free -= here;
                pages -= here;
            }
            pages
        };
        if left > 0 || take(touched, true) > 0 || take(in_use, false) > 0 {
            return None;
        }
        // Surplus pages are in use first, then reserved.
        let mut surplus = pool.surplus;
        for part in &mut parts {
            part.surplus = surplus.min(part.total - part.free);
            surplus -= part.surplus;
        }
        if surplus > pool.reserved {
            return None;
        }
        for part in &mut parts {
            let more = surplus.min(part.total - part.surplus);
            part.surplus += more;
            surplus -= more;
        }
        Some(parts)
    }

    /// The machine. `None`: there can be no such machine.
    pub fn machine(&self) -> Option<Machine> {
        let mut machine = Machine::new(self.facts()?);
        machine.muted = self.muted.iter().copied().collect();
        Some(machine)
    }

    /// The facts that are read from the machine.
    pub fn facts(&self) -> Option<Facts> {
        let arch = self.host.arch;
        let (ram, base) = (self.ram(), arch.base());
        let mut server = self.server_of(self.server.next);
        let need = server.shared_memory_bytes;
        let asked = self.asked(server.huge_page_size_bytes);
        let is_asking = server.huge_pages != HugePages::Off
            && server.shared_memory_type == SharedMemoryType::Mmap;
        let is_on = is_asking && self.server.is_on_huge_pages && asked.is_some();
        if !is_on && server.huge_pages == HugePages::On {
            server.huge_pages = HugePages::Try;
        }
        let page = asked.filter(|_| is_on).unwrap_or(base);
        let segment = Segment {
            bytes: match is_on {
                true => server.pages(page) * page,
                false => need.next_multiple_of(base),
            },
            page_bytes: Some(page),
            mappings: 1,
        };
        server.shared_memory_bytes = need.next_multiple_of(MB);
        let planned = match self.files {
            FilesSpec::Planned(next) => Some(self.server_of(next)),
            _ => None,
        };
        let next = planned.as_ref().unwrap_or(&server);

        // Pools.
        let nodes = self.host.nodes_gb.len();
        let mut room: Vec<u64> = (0..nodes).map(|n| self.memory_of(n) / 100 * 92).collect();
        let mut counted = Vec::new();
        for (&size, spec) in arch.sizes().iter().zip(&self.pools) {
            let held = if page == size {
                segment.bytes / size
            } else {
                0
            };
            let asks_next = next.huge_pages != HugePages::Off
                && next.shared_memory_type == SharedMemoryType::Mmap
                && self.asked(next.huge_page_size_bytes) == Some(size);
            let wanted = if asks_next { next.pages(size) } else { held };
            counted.push(self.count(spec, size, held, wanted, &mut room)?);
        }
        let in_pools: u64 = counted
            .iter()
            .map(|counted| counted.pool.total * counted.pool.page_bytes)
            .sum();

        // Memory.
        let small = if is_on { 0 } else { segment.bytes };
        let touched_small = small / 100 * self.server.touched_percent / base * base;
        let (mut of_others, mut touched_by_others) = (0, 0);
        for other in &self.others {
            if self.other_pages(other).is_none() {
                of_others += self.other_bytes(other);
                touched_by_others += self.other_bytes(other) / 100 * other.touched_percent;
            }
        }
        let beside = ram
            .checked_sub(in_pools)?
            .checked_sub(touched_small + touched_by_others)?;
        if beside < ram / 50 {
            return None;
        }
        let mut available = beside / 100 * (100 - self.host.used_percent);
        let tmpfs = (self.host.tmpfs_mb * MB).min(beside / 100 * self.host.used_percent);
        let available_of = self.available_of_nodes(&counted, available)?;
        let mut total = ram;
        if let Some(shown) = self.host.shown_gb.map(|gb| gb * GB)
            && shown < ram
        {
            total = shown;
            available = available.min(shown / 2);
        }
        let swap = self.host.swap_gb * GB;
        let (ratio, by_bytes) = match self.host.strict {
            Some(Strict::Ratio(ratio)) => (ratio, 0),
            Some(Strict::PercentOfRam(percent)) => (0, ram / 100 * percent),
            None => (50, 0),
        };
        let commit_limit = match by_bytes {
            0 => (ram - in_pools) / 100 * ratio + swap,
            bytes => bytes + swap,
        };
        let free_to_commit = commit_limit.saturating_sub(small + of_others);
        let mut committed = small + of_others + free_to_commit / 100 * self.host.committed_percent;
        if self.host.strict.is_some() && committed > commit_limit {
            return None;
        }
        if self.host.is_commit_wrong {
            committed += 3 * (ram + swap);
        }

        let node = |at: usize| Node {
            number: u32::try_from(at).unwrap_or(0),
            memory: NodeMemory {
                total: Some(self.memory_of(at)),
                free: Some(match self.full_node() == Some(at) {
                    true => (available_of[at] / 2).min(self.memory_of(at) / 200),
                    false => available_of[at] / 2,
                }),
                available: Some(available_of[at]),
            },
            pools: counted
                .iter()
                .map(|counted| NodePool {
                    page_bytes: counted.pool.page_bytes,
                    counters: (self.memory_of(at) > 0).then_some(counted.parts[at]),
                })
                .collect(),
        };
        let all_nodes: Vec<Node> = (0..nodes).map(node).collect();
        let has_memory = |node: &&Node| node.memory.total != Some(0);
        let allowed: Vec<Node> = all_nodes
            .iter()
            .enumerate()
            .filter(|(at, _)| self.is_allowed(*at))
            .map(|(_, node)| node)
            .filter(has_memory)
            .cloned()
            .collect();
        let is_bound =
            !allowed.is_empty() && allowed.len() < all_nodes.iter().filter(has_memory).count();
        let pools: Vec<Pool> = counted.into_iter().map(|counted| counted.pool).collect();
        let hugetlb = Hugetlb {
            version: if self.is_v1 { Version::V1 } else { Version::V2 },
            groups: self.groups(&pools, &segment, next)?,
            counts_as_memory: self.memory_limits.iter().any(|limit| limit.counts_hugetlb),
        };
        let swap_free = swap.saturating_sub(self.server.swapped_mb * MB);
        let usage = Usage {
            total: Some(total),
            free: Some(available / 2),
            available: Some(available),
            shmem: Some(touched_small + touched_by_others + tmpfs),
            swap_total: Some(swap),
            swap_free: Some(swap_free),
            commit_limit: Some(commit_limit),
            committed: Some(committed),
            hugetlb: Some(in_pools),
            ..Usage::default()
        };
        let signed = |number: u64| i64::try_from(number).ok();
        let mode = |text: &str| Some(text.to_owned());
        let allowed_nodes = match is_bound {
            true => AllowedNodes::Only(allowed),
            false => AllowedNodes::All,
        };
        let on_huge_pages = if is_on { segment.bytes } else { 0 };
        let faulted_in = on_huge_pages / 100 * self.server.touched_percent + touched_small;
        let default = arch.default_size().unwrap_or(0);
        let limits = |specs| self.limits_of_memory(specs, touched_small, faulted_in);
        let state = State {
            base_page_bytes: base,
            segment: Ok(segment.clone()),
            meminfo: Ok(Meminfo {
                total_bytes: Some(total),
                default_huge_page_bytes: arch.default_size(),
            }),
            usage: Ok(usage),
            pools: match arch {
                Arch::None => Err(absent("/sys/kernel/mm/hugepages", Absence::Missing)),
                _ => Ok(pools.clone()),
            },
            hugetlb: Ok(hugetlb),
            vm: Vm {
                overcommit_memory: Some(if self.host.strict.is_some() { 2 } else { 0 }),
                overcommit_ratio: signed(ratio),
                overcommit_bytes: signed(by_bytes),
                admin_reserve_bytes: signed(self.host.reserves_mb.0 * MB),
                user_reserve_bytes: signed(self.host.reserves_mb.1 * MB),
                swappiness: Some(60),
                panic_on_oom: Some(self.host.panic_on_oom),
                hugetlb_shm_group: Some(0),
                ..Vm::default()
            },
            thp: Ok(Modes {
                enabled: mode(self.host.thp.0),
                defrag: mode("madvise"),
                shmem_enabled: mode(self.host.thp.1),
                sizes: self
                    .host
                    .thp_of_sizes
                    .iter()
                    .flat_map(|modes| [(64 * KB, modes), (2 * MB, modes)])
                    .map(|(page_bytes, modes)| SizeModes {
                        page_bytes,
                        enabled: mode(modes.0),
                        shmem_enabled: mode(modes.1),
                    })
                    .collect(),
            }),
            next_boot: self.next_boot(next, default, &pools),
            segment_nodes: self.segment_nodes(&allowed_nodes, faulted_in / page),
            processes: self.processes(touched_small),
            oom_score_adj: Ok(self.server.oom.0),
            unit: self.server.oom_policy.map(|oom_policy| Unit {
                name: "postgresql.service".to_owned(),
                oom_policy: Ok(oom_policy),
            }),
            memory_limits: Ok(limits(&self.memory_limits)),
            other_servers: match self.visibility {
                'u' => Err(absent("/proc", Absence::Denied)),
                _ => Ok(self.instances()),
            },
            ..State::unread(server.clone())
        };
        let from_files = self.server_of_files(&server, next);
        let next = NextSettings {
            files: match &self.files {
                FilesSpec::Planned(_) | FilesSpec::Nothing => Files::Valid,
                FilesSpec::Refused => Files::Refused("invalid value".to_owned()),
                FilesSpec::Unknown(is_pending) => Files::Unknown {
                    why: "only superusers may look".to_owned(),
                    is_pending: *is_pending,
                },
            },
            pending: planned
                .iter()
                .flat_map(|next| shown(next).into_iter().zip(shown(&server)))
                .filter(|(next, now)| next.1 != now.1)
                .map(|(next, _)| next.0.to_owned())
                .collect(),
            settings: self.settings(&server, next, from_files.as_ref()),
            from_files,
            server: planned.filter(|next| !state.is_as_now(next)),
            ..NextSettings::default()
        };
        let mut facts = Facts {
            is_whole: true,
            allowed_nodes,
            kernel: "6.18.5 x86_64".to_owned(),
            vmstat: Ok(Vmstat::default()),
            free_blocks: Ok(self.free_blocks(&available_of)),
            nodes: Ok(all_nodes),
            is_segment_aligned: Some(true),
            can_lower_oom_score: Some(!self.server.is_container),
            cgroup_oom_kills: Some(0),
            memory_oom_group: (self.server.oom_policy == Some(OomPolicy::Kill))
                .then(|| PathBuf::from("/sys/fs/cgroup/system.slice/postgresql.service")),
            memory_high: limits(self.high.as_slice()),
            free_zram_bytes: swap_free / 100 * self.host.zram_percent,
            refused_pages: arch
                .sizes()
                .iter()
                .map(|&size| (size, self.refused))
                .collect(),
            is_container: Some(self.server.is_container),
            has_systemd: Some(self.boot.has_systemd),
            visibility: match self.visibility {
                'n' => Visibility::Namespace,
                'd' => Visibility::Hidden,
                _ => Visibility::Host,
            },
            max_connections: 100,
            shared_buffers_bytes: need / 10 * 9,
            allows_alter_system: self.server.allows_alter_system,
            ..Facts::unread(State { next, ..state })
        };
        for fact in &self.absent {
            remove(*fact, &mut facts, Absence::Denied);
        }
        Some(facts)
    }

    /// Available memory of each node: in proportion to its memory outside of the pools.
    fn available_of_nodes(&self, counted: &[Counted], available: u64) -> Option<Vec<u64>> {
        let beside: Vec<u64> = (0..self.host.nodes_gb.len())
            .map(|node| {
                let in_pools = counted
                    .iter()
                    .map(|counted| counted.parts[node].total * counted.pool.page_bytes);
                self.memory_of(node).saturating_sub(in_pools.sum())
            })
            .collect();
        let share = |bytes: u64, part: u64, whole: u64| {
            let share = u128::from(bytes) * u128::from(part) / u128::from(whole.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let all: u64 = beside.iter().sum();
        let first = share(available, beside[0], all) / 100 * self.host.first_node_percent;
        let rest = available - first.min(available);
        let mut of_nodes = vec![first];
        for part in &beside[1..] {
            of_nodes.push(share(rest, *part, all - beside[0]));
        }
        let fits = of_nodes.iter().zip(&beside).all(|(has, most)| has <= most);
        fits.then_some(of_nodes)
    }

    fn free_blocks(&self, available_of: &[u64]) -> FreeBlocks {
        let base = self.host.arch.base();
        let order = match self.host.arch {
            Arch::Arm64k => 13,
            _ => 10,
        };
        let of = |available: &u64| {
            let mut blocks = vec![0; order + 1];
            blocks[order] = available / 100 * self.host.blocks_percent / (base << order);
            blocks
        };
        FreeBlocks((0..).zip(available_of.iter().map(of)).collect())
    }

    fn groups(&self, pools: &[Pool], segment: &Segment, next: &Server) -> Option<Vec<Group>> {
        let mut groups = Vec::new();
        let count = self.limits.len();
        let mut others = 0;
        for (at, spec) in self.limits.iter().enumerate() {
            let Some(pool) = pools.get(spec.nth_size) else {
                continue;
            };
            let size = pool.page_bytes;
            let held = match segment.page_bytes == Some(size) {
                true => segment.bytes / size,
                false => 0,
            };
            let faulted_in = (held * self.server.touched_percent).div_ceil(100);
            others = (others + spec.others).min(pool.committed().unwrap_or(held) - held);
            let faulted_in = faulted_in + others.min(pool.total - pool.free - faulted_in);
            let wanted = next.pages(size);
            let limit = |amount: super::machines::Amount, used: u64| {
                amount.of(wanted).max(used).saturating_mul(size)
            };
            let reserved = held + others;
            let depth: PathBuf = (at..count).map(|level| format!("l{level}")).collect();
            groups.push(Group {
                directory: PathBuf::from("/sys/fs/cgroup").join(depth),
                limits: vec![Limits {
                    page_bytes: size,
                    fault_limit: spec.faults.map(|amount| limit(amount, faulted_in)),
                    fault_use: Some(faulted_in * size),
                    reservation_limit: spec
                        .reservations
                        .filter(|_| self.counts_reservations)
                        .map(|amount| limit(amount, reserved)),
                    reservation_use: self.counts_reservations.then_some(reserved * size),
                }],
                is_set_outside: self.server.is_container && at + 1 == count,
                is_told: false,
            });
        }
        if let (Some(amount), Some(size)) = (self.told_limit, self.host.arch.default_size()) {
            groups.push(Group {
                directory: PathBuf::from("PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi"),
                limits: vec![Limits {
                    page_bytes: size,
                    fault_limit: Some(amount.of(next.pages(size)).saturating_mul(size)),
                    fault_use: None,
                    reservation_limit: None,
                    reservation_use: None,
                }],
                is_set_outside: true,
                is_told: true,
            });
        }
        Some(groups)
    }

    /// The node that has almost no free memory, by position.
    fn full_node(&self) -> Option<usize> {
        let node = self.server.segment_node.unwrap_or(0);
        self.host
            .is_node_full
            .then_some(node % self.host.nodes_gb.len())
    }

    /// The pages of the segment on each node: all on one, or most on the node that is full.
    fn segment_nodes(&self, allowed: &AllowedNodes, pages: u64) -> Option<BTreeMap<u32, u64>> {
        let count = self.host.nodes_gb.len();
        let number = |node: usize| u32::try_from(node).unwrap_or(0);
        let is_usable =
            |node: &usize| allowed_number(allowed, *node, count) && self.memory_of(*node) > 0;
        let Some(full) = self.full_node().filter(is_usable) else {
            let node = self.server.segment_node;
            let node = node.filter(|node| allowed_number(allowed, *node, count))?;
            return Some(BTreeMap::from([(number(node), pages)]));
        };
        let others: Vec<_> = (0..count)
            .filter(is_usable)
            .filter(|node| *node != full)
            .collect();
        let rest = pages / 100 * 24 / u64::try_from(others.len().max(1)).unwrap_or(1);
        let mut nodes: BTreeMap<_, _> = others.iter().map(|node| (number(*node), rest)).collect();
        nodes.insert(number(full), pages - nodes.values().sum::<u64>());
        Some(nodes)
    }

    fn limits_of_memory(
        &self,
        specs: &[super::machines::MemoryLimitSpec],
        touched_small: u64,
        faulted_in: u64,
    ) -> Vec<MemoryLimit> {
        let count = specs.len();
        let specs = specs.iter().enumerate();
        specs
            .map(|(at, spec)| {
                let own = match spec.counts_hugetlb {
                    true => faulted_in,
                    false => touched_small,
                };
                let files = spec.files_mb * MB;
                let used = own + files + spec.others_mb * MB;
                let depth: PathBuf = (at..count).map(|level| format!("l{level}")).collect();
                MemoryLimit {
                    directory: PathBuf::from("/sys/fs/cgroup").join(depth),
                    limit_bytes: (self.ram() / 100 * spec.percent_of_ram).max(used),
                    use_bytes: used,
                    file_bytes: Some(files),
                    swap_room_bytes: spec.swap_room_mb.map(|mb| mb * MB),
                    counts_hugetlb: spec.counts_hugetlb,
                }
            })
            .collect()
    }

    fn next_boot(&self, next: &Server, default: u64, pools: &[Pool]) -> Result<NextBoot, Absent> {
        let boot = &self.boot;
        if !boot.is_readable {
            return Err(absent("/etc/sysctl.d", Absence::Denied));
        }
        let needed = |size: u64| {
            let pool = pools.iter().find(|pool| pool.page_bytes == size);
            let others = pool.map_or(0, |pool| pool.committed().unwrap_or(0));
            let own = if self.asked(next.huge_page_size_bytes) == Some(size) {
                next.pages(size)
            } else {
                0
            };
            let held = if self.server.is_on_huge_pages { own } else { 0 };
            others.saturating_sub(held) + own
        };
        let mut line = boot.word.to_owned();
        for (nth, amount) in &boot.words {
            if let Some(&size) = self.host.arch.sizes().get(*nth) {
                let pages = amount.of(needed(size));
                line += &format!(" hugepagesz={}M hugepages={pages}", size / MB);
            }
        }
        let sysctl = |amount: Option<super::machines::Amount>| {
            let pages = amount.map(|amount| amount.of(needed(default.max(1))));
            pages.map(|pages| format!("vm.nr_hugepages = {pages}\n"))
        };
        let (first, later) = (sysctl(boot.sysctl), sysctl(boot.later));
        let mut files = Vec::new();
        files.extend(
            first
                .as_deref()
                .map(|text| ("/etc/sysctl.d/60-hugepages.conf", text)),
        );
        files.extend(
            later
                .as_deref()
                .map(|text| ("/etc/sysctl.d/90-later.conf", text)),
        );
        files.extend(Some(boot.file).filter(|(path, _)| !path.is_empty()));
        let kernel = Kernel {
            sizes: Some(self.host.arch.sizes().to_vec()),
            default_bytes: self.host.arch.default_size(),
        };
        let mut next_boot = NextBoot::parse(&line, &files, boot.has_systemd, kernel);
        next_boot.is_kept = boot.is_kept;
        Ok(next_boot)
    }

    fn processes(&self, touched_small: u64) -> Vec<ProcessFigures> {
        let (count, server) = (self.server.processes, &self.server);
        (0..count)
            .map(|at| ProcessFigures {
                page_tables: Some(server.page_tables_mb * MB / count),
                rss_anon: Some(2 * MB),
                rss_shmem: Some(touched_small),
                rss_file: Some(30 * MB),
                swap: Some(if at > 0 {
                    server.swapped_mb * MB / count
                } else {
                    0
                }),
                major_faults: 0,
                age_seconds: Some(3600),
                oom_score_adj: Some(if at == 0 { server.oom.0 } else { server.oom.1 }),
                is_postmaster: at == 0,
                is_client_backend: at > 0,
            })
            .collect()
    }

    fn instances(&self) -> Vec<Instance> {
        let base = self.host.arch.base();
        let instance = |(pid, other): (u32, &OtherSpec)| {
            let page = self.other_pages(other);
            let bytes = self
                .other_bytes(other)
                .next_multiple_of(page.unwrap_or(base));
            let is_readable = other.pages != OtherPages::Unreadable;
            let faulted_in = match page {
                Some(_) => 0,
                None => self.other_bytes(other) / 100 * other.touched_percent,
            };
            Instance {
                pid,
                port: other.has_port.then(|| u16::try_from(pid).unwrap_or(0)),
                segment: is_readable.then_some(Segment {
                    bytes,
                    page_bytes: Some(page.unwrap_or(base)),
                    mappings: 1,
                }),
                shared_memory_type: is_readable.then_some(match other.pages {
                    OtherPages::SystemV => SharedMemoryType::Sysv,
                    _ => SharedMemoryType::Mmap,
                }),
                huge_pages: match other.huge_pages {
                    '?' => RequestedPages::Unknown(None),
                    known => RequestedPages::Known(
                        setting(known),
                        other
                            .size
                            .map(|size| self.huge_page_size(size).unwrap_or(0)),
                    ),
                },
                rss_shmem_bytes: (other.has_rss && is_readable).then_some(faulted_in),
                ..Instance::default()
            }
        };
        (5000..).zip(&self.others).map(instance).collect()
    }

    /// The settings of a start from the files alone. `None`: they are those of the next start.
    fn server_of_files(&self, running: &Server, next: &Server) -> Option<Server> {
        let mut files = self.server_of(self.server.from_files?);
        files.shared_memory_bytes = files.shared_memory_bytes.next_multiple_of(MB);
        // Pending changes come from the files.
        if next.huge_pages != running.huge_pages {
            files.huge_pages = next.huge_pages;
        }
        if next.shared_memory_type != running.shared_memory_type {
            files.shared_memory_type = next.shared_memory_type;
        }
        if next.huge_page_size_bytes != running.huge_page_size_bytes {
            files.huge_page_size_bytes = next.huge_page_size_bytes;
        }
        if next.shared_memory_bytes != running.shared_memory_bytes {
            files.shared_memory_bytes = next.shared_memory_bytes;
        }
        (files != *next).then_some(files)
    }

    /// The settings of the running server, as `SHOW` prints them. The command line sets those that
    /// differ from the files.
    fn settings(
        &self,
        running: &Server,
        next: &Server,
        from_files: Option<&Server>,
    ) -> BTreeMap<&'static str, Setting> {
        let values = shown(running).into_iter();
        let of_files = shown(from_files.unwrap_or(next)).into_iter();
        let setting = |(((name, value), next), files): (((_, _), _), _)| {
            let source = match next == files {
                true => self.server.source.clone(),
                false => SettingSource::CommandLine,
            };
            (name, Setting { value, source })
        };
        let all = values.zip(shown(next)).zip(of_files);
        all.map(setting).collect()
    }
}

/// Settings as `SHOW` prints them.
pub fn shown(server: &Server) -> [(&'static str, String); 4] {
    let kilobytes = |bytes: u64| format!("{}kB", bytes / KB);
    let huge_page_size = server.huge_page_size_bytes.map(kilobytes);
    [
        ("huge_pages", server.huge_pages.as_str().to_owned()),
        ("huge_page_size", huge_page_size.unwrap_or("0".to_owned())),
        (
            "shared_memory_type",
            server.shared_memory_type.as_str().to_owned(),
        ),
        (
            "shared_buffers",
            kilobytes(server.shared_memory_bytes / 10 * 9),
        ),
    ]
}

fn allowed_number(allowed: &AllowedNodes, node: usize, nodes: usize) -> bool {
    let number = u32::try_from(node).unwrap_or(u32::MAX);
    node < nodes && allowed.allows(number) == Some(true)
}

/// Facts that can be absent.
pub const FACTS: usize = 21;

/// The sources of these facts.
pub const SOURCES: [&str; 11] = [
    "/proc/1/maps",
    "/proc/meminfo",
    "/sys/kernel/mm/hugepages",
    "/sys/fs/cgroup",
    "/proc/1/status",
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/sys/devices/system/node",
    "/proc/1/oom_score_adj",
    "/proc",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Makes one fact absent.
pub fn remove(fact: usize, facts: &mut Facts, why: Absence) {
    if !facts.is_whole {
        return;
    }
    let state = &mut facts.state;
    let meminfo = state.meminfo.as_mut();
    match fact {
        0 => state.segment = Err(absent("/proc/1/maps", why)),
        1 => {
            if let Ok(segment) = &mut state.segment {
                segment.page_bytes = None;
            }
        }
        2 => state.meminfo = Err(absent("/proc/meminfo", why)),
        3 => state.pools = Err(absent("/sys/kernel/mm/hugepages", why)),
        4 => state.hugetlb = Err(absent("/sys/fs/cgroup", why)),
        5 => facts.allowed_nodes = AllowedNodes::Unknown(absent("/proc/1/status", why)),
        6 => state.usage = Err(absent("/proc/meminfo", why)),
        7 => facts.free_blocks = Err(absent("/proc/buddyinfo", why)),
        8 => state.next_boot = Err(absent("/proc/cmdline", why)),
        9 => facts.nodes = Err(absent("/sys/devices/system/node", why)),
        10 => state.processes.clear(),
        11 => state.oom_score_adj = Err(absent("/proc/1/oom_score_adj", why)),
        12 => state.memory_limits = Err(absent("/sys/fs/cgroup", why)),
        13 => state.other_servers = Err(absent("/proc", why)),
        14 => state.thp = Err(absent("/sys/kernel/mm/transparent_hugepage", why)),
        15 => meminfo
            .into_iter()
            .for_each(|meminfo| meminfo.total_bytes = None),
        16 => meminfo
            .into_iter()
            .for_each(|meminfo| meminfo.default_huge_page_bytes = None),
        17 => {
            let NextSettings { files, pending, .. } = &state.next;
            state.next.files = Files::Unknown {
                why: "only superusers may look".to_owned(),
                is_pending: !pending.is_empty()
                    || files.stop_a_start()
                    || files.hide_pending_settings(),
            };
            state.next.server = None;
        }
        18 => state.vm.overcommit_memory = None,
        19 => state.pools.iter_mut().flatten().for_each(|pool| {
            (pool.reserved, pool.below_zero) = (pool.free, vec!["resv_hugepages"]);
        }),
        _ => facts.is_whole = false,
    }
}
