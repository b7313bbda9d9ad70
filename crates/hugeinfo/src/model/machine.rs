//! A server and its machine, as they are or as they would be after some steps.

use std::collections::BTreeSet;

use crate::{
    linux::{
        error::{Absence, Absent},
        hugepages::Pool,
        numa::node::Node,
    },
    model::{
        step::{Service, Waits},
        touched::Bounds,
    },
    server::{
        facts::{Facts, HugePages, Server, SharedMemoryType},
        surroundings::{Files, ProcessFigures, Surroundings},
    },
};

/// What steps change, and what checks look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The server, the pools and the limits. What waits in the configuration files, where that is
    /// known, is the plan of the next start.
    pub facts: Facts,
    /// All the rest. `None`: not read.
    pub around: Option<Surroundings>,
    /// Whether the server runs.
    pub is_running: bool,
    /// Whether the kernel has been asked to move pages together.
    pub is_compacted: bool,
    /// Changes of the service that its next start takes up.
    pub service: Vec<Service>,
    /// What the next start will use with what has been changed on the server's command line, which
    /// nothing but a start tells.
    pub on_command_line: Option<Server>,
    /// What settings that were planned wait for.
    pub waits: Waits,
    /// Whether the server was on huge pages when it was stopped, and is to be so again.
    pub has_to_come_back: bool,
    /// Unless a plan does without them.
    pub is_given_up: bool,
    /// Whether `MemTotal` and `MemAvailable` are the host's, and not a container's own.
    pub sees_memory_of_host: bool,
    /// Of what counts in the server's control groups, its main segment; once it is stopped, what
    /// may have gone with it.
    pub touched: Bounds,
    /// Names of muted checks.
    pub muted: BTreeSet<&'static str>,
}

impl Machine {
    /// As it is.
    pub fn new(mut facts: Facts, around: Option<Surroundings>) -> Self {
        if let Some(Files::Planned(next)) = around.as_ref().map(|around| &around.files)
            && facts.planned.is_none()
        {
            facts.planned = Some(next.clone());
        }
        let touched = around.as_ref().map(|around| Bounds::of(&facts, around));
        let mut machine = Self {
            sees_memory_of_host: true,
            touched: touched.unwrap_or_default(),
            facts,
            around,
            is_running: true,
            is_compacted: false,
            service: Vec::new(),
            on_command_line: None,
            waits: Waits::ForNothing,
            has_to_come_back: false,
            is_given_up: false,
            muted: BTreeSet::new(),
        };
        machine.sees_memory_of_host = sees_memory_of_host(&machine);
        machine
    }

    /// The same with another plan of the next start.
    #[must_use]
    pub fn planning(&self, next: Server) -> Self {
        let mut machine = self.clone();
        machine.facts.planned = Some(next);
        machine
    }

    /// The same for the search of a remedy, which tries many steps: all processes but the
    /// postmaster as one, which has what they have together. No check judges it otherwise.
    #[must_use]
    pub fn summed_up(&self) -> Self {
        let Some(around) = &self.around else {
            return self.clone();
        };
        let mut around = around.clone();
        around.processes = sum_up(&around.processes);
        Self {
            facts: self.facts.clone(),
            around: Some(around),
            service: self.service.clone(),
            on_command_line: self.on_command_line.clone(),
            muted: self.muted.clone(),
            ..*self
        }
    }

    /// What the server could be started with so that it asks for huge pages, and for a size that
    /// the kernel has: the settings as they are but for those that rule huge pages out.
    pub fn aim(&self) -> Server {
        let facts = &self.facts;
        let next = facts.next_start();
        let has_size = facts.target_pool().is_some() || facts.pools.is_err();
        Server {
            huge_pages: match next.huge_pages {
                HugePages::Off => HugePages::Try,
                as_it_is => as_it_is,
            },
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: next.huge_page_size_bytes.filter(|_| has_size),
            shared_memory_bytes: facts.needed_bytes(),
        }
    }

    /// The page size that such a start asks for. `None`: the kernel names none.
    pub fn aimed_page_bytes(&self) -> Option<u64> {
        self.facts.huge_page_of(&self.aim())
    }

    /// The pool of that page size.
    pub fn pool(&self, page_bytes: u64) -> Option<&Pool> {
        let mut pools = self.facts.pools.iter().flatten();
        pools.find(|pool| pool.page_bytes == page_bytes)
    }

    /// The NUMA nodes: none where the kernel knows none. `None`: not read.
    pub fn nodes(&self) -> Option<Result<&[Node], &Absent>> {
        let around = self.around.as_ref()?;
        Some(match &around.nodes {
            Ok(nodes) => Ok(nodes),
            Err(absent) if *absent == Absent::not_looked_at() => Err(absent),
            Err(absent) if absent.why == Absence::Missing => Ok(&[]),
            Err(absent) => Err(absent),
        })
    }

    /// `MemTotal`.
    pub fn ram_bytes(&self) -> Option<u64> {
        self.facts.meminfo.as_ref().ok()?.total_bytes
    }

    /// `MemAvailable`.
    pub fn available_bytes(&self) -> Option<u64> {
        let around = self.around.as_ref()?;
        around.host.usage.as_ref().ok()?.available
    }

    /// Bytes in the pools of all sizes, used or not.
    pub fn pools_bytes(&self) -> u64 {
        let pools = self.facts.pools.iter().flatten();
        pools
            .map(|pool| pool.total.saturating_mul(pool.page_bytes))
            .fold(0, u64::saturating_add)
    }

    /// The size that the kernel takes where none is named.
    pub(crate) fn default_page_bytes(&self) -> Option<u64> {
        self.facts.meminfo.as_ref().ok()?.default_huge_page_bytes
    }

    /// Whether the main segment is on huge pages. `None`: unknown.
    pub fn is_on_huge_pages(&self) -> Option<bool> {
        self.facts.lies_on().is_huge()
    }
}

/// A container can have a `/proc/meminfo` of its own (lxcfs), which has less than the pools hold or
/// the nodes have, as these are the host's.
fn sees_memory_of_host(machine: &Machine) -> bool {
    let nodes = machine.around.iter().flat_map(|around| &around.nodes);
    let nodes = nodes.flatten().map(|node| node.memory);
    let (of_nodes, free) = nodes.fold((0_u64, 0_u64), |(total, free), node| {
        (
            total.saturating_add(node.total.unwrap_or(0)),
            free.saturating_add(node.free.unwrap_or(0)),
        )
    });
    // What is free is available but for watermarks and reserves, which the kernel keeps.
    let is_less = |bytes: Option<u64>, least: u64| bytes.is_some_and(|bytes| bytes < least);
    !is_less(
        machine.ram_bytes(),
        machine.pools_bytes().max(of_nodes / 5 * 4),
    ) && !is_less(
        machine.available_bytes(),
        (free / 2).saturating_sub(of_nodes / 20),
    )
}

fn sum_up(processes: &[ProcessFigures]) -> Vec<ProcessFigures> {
    let (mut some, others): (Vec<_>, Vec<_>) = processes
        .iter()
        .copied()
        .partition(|process| process.is_postmaster);
    // A fork counts what its parent has swapped out once more.
    let of_postmaster = some.first().and_then(|first| first.swap).unwrap_or(0);
    let together = others.into_iter().reduce(|sum, one| {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        let own = one.swap.map(|swap| swap.saturating_sub(of_postmaster));
        let so_far = sum.swap.map(|swap| swap.max(of_postmaster));
        ProcessFigures {
            page_tables: add(sum.page_tables, one.page_tables),
            rss_anon: add(sum.rss_anon, one.rss_anon),
            rss_shmem: sum.rss_shmem.max(one.rss_shmem),
            swap: match (so_far, own) {
                (Some(so_far), Some(own)) => Some(so_far.saturating_add(own)),
                (None, Some(own)) => Some(own.saturating_add(of_postmaster)),
                (so_far, None) => so_far,
            },
            major_faults: sum.major_faults.saturating_add(one.major_faults),
            age_seconds: sum.age_seconds.max(one.age_seconds),
            oom_score_adj: match (sum.oom_score_adj, one.oom_score_adj) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            is_postmaster: false,
        }
    });
    some.extend(together);
    some
}
