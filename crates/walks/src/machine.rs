//! The model of this machine: pools and groups of every size, mappings, and CommitLimit.

use std::{collections::BTreeMap, io};

use hugeinfo::model::{
    cgroup::{Counter, Group, Groups},
    commit::{Commit, Rule},
    mapping::{Mapping, Place},
    pools::{Counters, Node, Pool, Rules},
};

use crate::kernel::{self, Kernel, Shown};

/// What a page size has.
#[derive(Clone)]
pub struct Size {
    pub kb: u64,
    pub pool: Pool,
    pub groups: Groups,
}

/// What differs between kernels, without a file that says it. On one node nothing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelRules {
    pub pools: Rules,
    /// Surplus pages of a reservation come from the node of the lowest number: Linux 6.12.
    pub surplus_by_number: bool,
}

impl KernelRules {
    /// The same place, with its nodes in the order in which a reservation takes surplus pages.
    pub fn reserving(self, place: &Place) -> Place {
        let mut place = place.clone();
        if self.surplus_by_number {
            place.nodes.sort_unstable();
        }
        place
    }

    /// All that there are; on one node one will do.
    pub fn all(nodes: usize) -> Vec<Self> {
        let all = if nodes > 1 { 8 } else { 1 };
        let rules = (0..all).map(|number| Self {
            pools: Rules {
                spares_other_nodes: number & 1 == 0,
                frees_beside_surplus: number & 2 == 0,
            },
            surplus_by_number: number & 4 != 0,
        });
        rules.collect()
    }
}

#[derive(Clone)]
pub struct Machine {
    pub rules: KernelRules,
    pub sizes: Vec<Size>,
    pub commit: Commit,
    /// By the number of who holds it, with the place of its size.
    pub mappings: BTreeMap<u64, (usize, Mapping)>,
}

impl Machine {
    /// As the kernel shows it now, while nobody holds anything. Where it begins to take turns among
    /// nodes cannot be seen, so that there is one for each possibility.
    pub fn all(kernel: &Kernel, base_kb: u64, rules: &[KernelRules]) -> io::Result<Vec<Self>> {
        let shown = kernel.shown()?;
        let largest = kernel::largest_block_kb(base_kb)?;
        let sizes = kernel.sizes_kb.iter();
        let sizes = sizes.map(|&kb| size(kernel, &shown, kb, kb > largest));
        let machine = Self {
            rules: *rules.first().ok_or(io::ErrorKind::InvalidInput)?,
            sizes: sizes.collect(),
            commit: commit(base_kb)?,
            mappings: BTreeMap::new(),
        };
        let nodes = kernel.nodes.len();
        let turns = (0..nodes).flat_map(|give| (0..nodes).map(move |free| (give, free)));
        let turned = turns.flat_map(|(give, free)| {
            let machine = &machine;
            rules.iter().map(move |&rules| {
                let mut machine = machine.clone();
                machine.rules = rules;
                for size in &mut machine.sizes {
                    size.pool = size.pool.clone().with_turn(give, free);
                    size.pool.rules = rules.pools;
                }
                machine
            })
        });
        Ok(turned.collect())
    }

    /// As `Kernel::shown`.
    pub fn shown(&self, version: u32) -> Shown {
        let mut shown = Shown::new();
        let mut huge_bytes = 0;
        for Size { kb, pool, groups } in &self.sizes {
            huge_bytes += pool.bytes();
            let counters = pool.counters();
            for (name, value) in [
                ("total", counters.total),
                ("free", counters.free),
                ("reserved", counters.reserved),
                ("surplus", counters.surplus),
                ("overcommit", counters.overcommit),
            ] {
                shown.insert(format!("{kb} kB {name}"), Some(value));
            }
            for node in &pool.nodes {
                for (name, value) in [
                    ("total", node.total),
                    ("free", node.free),
                    ("surplus", node.surplus),
                ] {
                    shown.insert(format!("{kb} kB node {} {name}", node.number), Some(value));
                }
            }
            for (place, group) in groups.0.iter().enumerate() {
                show_group(
                    &format!("{kb} kB group {place}"),
                    group,
                    version,
                    &mut shown,
                );
            }
        }
        let limit = self.commit.limit_bytes(huge_bytes);
        shown.insert("CommitLimit kB".into(), Some(limit >> 10));
        shown
    }

    /// mmap by a holder. Whether it succeeds.
    pub fn map(
        &mut self,
        holder: u64,
        size: usize,
        pages: u64,
        promised: bool,
        place: &Place,
    ) -> bool {
        let Size { pool, groups, .. } = &mut self.sizes[size];
        let place = self.rules.reserving(place);
        let mapping = Mapping::new(pages, promised, &place, pool, groups);
        let mapping = mapping.map(|mapping| self.mappings.insert(holder, (size, mapping)));
        mapping.is_ok()
    }

    /// Pages that it gets, and whether it dies of the next.
    pub fn touch(&mut self, holder: u64, pages: u64, place: &Place) -> (u64, bool) {
        let Some((size, mapping)) = self.mappings.get_mut(&holder) else {
            return (0, false);
        };
        let Size { pool, groups, .. } = &mut self.sizes[*size];
        let (got, refusal) = mapping.touch(pages, place, pool, groups);
        (got, refusal.is_some())
    }

    pub fn unmap(&mut self, holder: u64) {
        if let Some((size, mapping)) = self.mappings.remove(&holder) {
            let Size { pool, groups, .. } = &mut self.sizes[size];
            mapping.unmap(pool, groups);
        }
    }
}

fn size(here: &Kernel, shown: &Shown, kb: u64, is_gigantic: bool) -> Size {
    let value = |name: String| shown.get(&name).copied().flatten().unwrap_or(0);
    let pool = |name| value(format!("{kb} kB {name}"));
    let counters = Counters {
        total: pool("total"),
        free: pool("free"),
        reserved: pool("reserved"),
        surplus: pool("surplus"),
        overcommit: pool("overcommit"),
    };
    let node = |&number: &u32| {
        let value = |name| value(format!("{kb} kB node {number} {name}"));
        Node {
            number,
            total: value("total"),
            free: value("free"),
            surplus: value("surplus"),
            room: None,
        }
    };
    let nodes = here.nodes.iter().map(node).collect();
    let mut pool = Pool::new(kb << 10, &counters, nodes);
    pool.is_gigantic = is_gigantic;

    let group = |place: usize| {
        let value = |name: &str| value(format!("{kb} kB group {place} {name}"));
        let counter = |kind: &str| Counter {
            limit: shown
                .get(&format!("{kb} kB group {place} {kind} limit"))
                .copied()
                .flatten(),
            used: value(&format!("{kind} used")),
            refusals: value(&format!("{kind} refusals")),
        };
        let above = here.groups[place].parent();
        Group {
            parent: here
                .groups
                .iter()
                .position(|group| Some(group.as_path()) == above),
            faults: counter("fault"),
            reservations: Some(counter("reservation")),
            memory: None,
            events: value("events"),
            local_events: value("events.local"),
        }
    };
    Size {
        kb,
        pool,
        groups: Groups((0..here.groups.len()).map(group).collect()),
    }
}

fn show_group(name: &str, group: &Group, version: u32, shown: &mut Shown) {
    let reservations = group.reservations.unwrap_or_default();
    for (kind, counter) in [("fault", group.faults), ("reservation", reservations)] {
        shown.insert(format!("{name} {kind} used"), Some(counter.used));
        shown.insert(format!("{name} {kind} limit"), counter.limit);
        if version == 1 {
            shown.insert(format!("{name} {kind} refusals"), Some(counter.refusals));
        }
    }
    if version == 2 {
        shown.insert(format!("{name} events"), Some(group.events));
        shown.insert(format!("{name} events.local"), Some(group.local_events));
    }
}

/// As the kernel has it now.
pub fn commit(base_kb: u64) -> io::Result<Commit> {
    let kilobytes = kernel::number("/proc/sys/vm/overcommit_kbytes")?;
    let rule = match kilobytes {
        0 => Rule::Ratio(kernel::number("/proc/sys/vm/overcommit_ratio")?),
        _ => Rule::Kilobytes(kilobytes),
    };
    Ok(Commit {
        ram_bytes: kernel::meminfo("MemTotal")? << 10,
        swap_bytes: kernel::meminfo("SwapTotal")? << 10,
        rule,
        page_bytes: base_kb << 10,
    })
}
