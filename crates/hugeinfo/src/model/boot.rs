//! The pools that the next boot starts with (mm/hugetlb.c `hugetlb_hstate_alloc_pages`,
//! `set_max_huge_pages`).

use std::collections::{BTreeMap, BTreeSet, TryReserveError};

use crate::linux::{
    boot::{Asked, Doubt, Doubtful, Dropped, NextBoot, Phase, Place, What, Why},
    growth::TryPush,
};

/// The memory of each node, where it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// By the node's number; `None`: it may have any amount. Empty: the nodes are not known.
    pub nodes: BTreeMap<u32, Option<u64>>,
}

/// One pool after the next boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolAtBoot {
    /// The size of its pages.
    pub page_bytes: u64,
    /// Persistent pages that are asked for.
    pub asked: u64,
    /// As many of them as the nodes' memory has room for. The kernel may find fewer.
    pub pages: u64,
    /// Those by node, one more or less. Empty where nodes are neither known nor named.
    pub by_node: BTreeMap<u32, u64>,
    /// How many surplus pages the kernel may make.
    pub overcommit: u64,
    /// Who asks for the pages. Several, where nodes are named.
    pub by: Vec<Asked>,
    /// Who allows the surplus pages.
    pub overcommit_by: Option<Place>,
    /// What has no effect on this pool.
    pub dropped: Vec<Dropped>,
    /// Unknown things that may change it.
    pub doubts: Vec<Doubt>,
}

impl PoolAtBoot {
    /// The file with the last word on its pages; empty where nobody asks for any.
    pub fn source(&self) -> &str {
        self.by.last().map_or("", |asked| asked.place.file.as_str())
    }

    /// Unknown things that may change its pages.
    pub(crate) fn doubt_of_pages(&self) -> Option<&Doubt> {
        self.doubts
            .iter()
            .find(|doubt| doubt.of != What::Overcommit)
    }
}

/// Each pool of the kernel, smallest pages first, and those of sizes that it doesn't have but that
/// somebody asks for.
pub fn pools(next: &NextBoot, machine: &NodeMemory) -> Result<Vec<PoolAtBoot>, TryReserveError> {
    let mut simulation = Simulation::new(next, machine);
    let mut requests: Vec<&Asked> = Vec::new();
    requests.try_reserve(next.asked.len())?;
    requests.extend(&next.asked);
    // Pages that are larger than any block of the page allocator are made before it starts.
    let is_late = |a: &Asked| {
        let is_gigantic = next.sources.kernel.is_gigantic(a.page_bytes.unwrap_or(0));
        a.phase != Phase::CommandLine || !is_gigantic
    };
    requests.sort_by_key(|a| is_late(a));
    for request in requests {
        simulation.take(request)?;
    }
    simulation.finish()
}

struct Simulation<'n> {
    next: &'n NextBoot,
    machine: &'n NodeMemory,
    nodes: BTreeMap<u32, Option<u64>>,
    pools: BTreeMap<u64, State>,
}

#[derive(Default)]
struct State {
    pool: PoolAtBoot,
    /// What sysctl sets in the end.
    by_sysctl: Option<u64>,
    /// With all the memory that is asked for.
    asked: BTreeMap<u32, u64>,
    /// With what there is.
    made: BTreeMap<u32, u64>,
}

impl<'n> Simulation<'n> {
    fn new(next: &'n NextBoot, machine: &'n NodeMemory) -> Self {
        let mut nodes = machine.nodes.clone();
        if nodes.is_empty() {
            let named = next.asked.iter().filter_map(|a| match a.what {
                What::PagesOfNode(node) => Some((node, None)),
                _ => None,
            });
            nodes = named.chain([(0, None)]).collect();
        }
        let sizes = next.sources.kernel.sizes.iter().flatten().copied();
        let sizes: BTreeSet<u64> = sizes.chain([next.default_size()]).collect();
        let pools = sizes.into_iter().map(|size| (size, State::default()));
        Self {
            next,
            machine,
            nodes,
            pools: pools.collect(),
        }
    }

    fn take(&mut self, request: &Asked) -> Result<(), TryReserveError> {
        let bytes = request.page_bytes.unwrap_or(self.next.default_size());
        let has_size = match &self.next.sources.kernel.sizes {
            Some(_) => self.pools.contains_key(&bytes),
            None => true,
        };
        let limits = self.limits(bytes);
        let state = self.pools.entry(bytes).or_default();
        let missing = match request.what {
            _ if !has_size => Some(Why::NoSuchSize),
            What::PagesOfNode(node) if !self.nodes.contains_key(&node) => Some(Why::NoSuchNode),
            _ => None,
        };
        if let Some(why) = missing {
            return drop_asked(&mut state.pool.dropped, request, why);
        }
        if request.what == What::Overcommit {
            state.pool.overcommit = request.pages;
            let older = state.pool.overcommit_by.replace(request.place.clone());
            return match older {
                Some(place) => state.pool.dropped.try_push(Dropped {
                    place,
                    page_bytes: Some(bytes),
                    why: Why::Overridden(request.place.clone()),
                }),
                None => Ok(()),
            };
        }
        if request.phase == Phase::Sysctl {
            state.by_sysctl = Some(request.pages);
        }
        let unlimited = self.nodes.keys().map(|&node| (node, u64::MAX)).collect();
        set(&mut state.asked, request, &unlimited);
        set(&mut state.made, request, &limits);
        state.pool.replace(request)
    }

    /// How many pages of one size each node has room for, beside those of other sizes.
    fn limits(&self, bytes: u64) -> BTreeMap<u32, u64> {
        let taken = |node: &u32| {
            let others = self.pools.iter().filter(|(size, _)| **size != bytes);
            others.fold(0_u64, |sum, (size, state)| {
                let pages = state.made.get(node).copied().unwrap_or(0);
                sum.saturating_add(pages.saturating_mul(*size))
            })
        };
        let room = |node: &u32, memory: &Option<u64>| match memory {
            Some(memory) => memory.saturating_sub(taken(node)) / bytes.max(1),
            None => u64::MAX,
        };
        self.nodes
            .iter()
            .map(|(node, memory)| (*node, room(node, memory)))
            .collect()
    }

    fn finish(self) -> Result<Vec<PoolAtBoot>, TryReserveError> {
        let default = self.next.default_size();
        let mut all = Vec::new();
        for (bytes, state) in self.pools {
            let mut pool = state.pool;
            pool.page_bytes = bytes;
            pool.asked = total(&state.asked);
            pool.pages = total(&state.made);
            let names_nodes = |a: &Asked| matches!(a.what, What::PagesOfNode(_));
            if !self.machine.nodes.is_empty() || pool.by.iter().any(names_nodes) {
                pool.by_node = state.made;
            }
            for dropped in &self.next.dropped {
                if dropped.page_bytes.unwrap_or(default) == bytes {
                    pool.dropped.try_push(dropped.clone())?;
                }
            }
            let last = pool.by.last().filter(|last| last.phase == Phase::Tmpfiles);
            let other = state.by_sysctl.filter(|pages| *pages != pool.asked);
            if let (Some(last), Some(_)) = (last, other) {
                pool.doubts.try_push(Doubt {
                    phase: Phase::Tmpfiles,
                    of: What::Pages,
                    file: last.place.file.clone(),
                    what: Doubtful::Unordered,
                })?;
            }
            for doubt in &self.next.doubts {
                // Whatever the command line says, a file comes after it.
                let is_settled = doubt.phase == Phase::CommandLine
                    && pool
                        .by
                        .last()
                        .is_some_and(|by| by.phase != Phase::CommandLine && by.what == What::Pages);
                if !is_settled && (doubt.phase != Phase::Sysctl || bytes == default) {
                    pool.doubts.try_push(doubt.clone())?;
                }
            }
            all.try_push(pool)?;
        }
        Ok(all)
    }
}

impl PoolAtBoot {
    /// The request counts from now on, instead of those that it makes void.
    fn replace(&mut self, request: &Asked) -> Result<(), TryReserveError> {
        // One word of the command line can ask for several nodes.
        let adds = request.phase == Phase::CommandLine;
        let is_void =
            |older: &Asked| !adds && (request.what == What::Pages || request.what == older.what);
        let (void, mut valid): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.by).into_iter().partition(is_void);
        for older in void {
            let why = Why::Overridden(request.place.clone());
            drop_asked(&mut self.dropped, &older, why)?;
        }
        valid.try_push(request.clone())?;
        self.by = valid;
        Ok(())
    }
}

fn drop_asked(dropped: &mut Vec<Dropped>, asked: &Asked, why: Why) -> Result<(), TryReserveError> {
    dropped.try_push(Dropped {
        place: asked.place.clone(),
        page_bytes: asked.page_bytes,
        why,
    })
}

/// Carries out one request.
fn set(pages: &mut BTreeMap<u32, u64>, request: &Asked, limits: &BTreeMap<u32, u64>) {
    let adds = request.phase == Phase::CommandLine;
    match request.what {
        What::PagesOfNode(node) => {
            let limit = limits.get(&node).copied().unwrap_or(0);
            let there = pages.entry(node).or_default();
            let base = if adds { *there } else { 0 };
            *there = base.saturating_add(request.pages).min(limit);
        }
        What::Pages => {
            let there = if adds { 0 } else { total(pages) };
            match request.pages.checked_sub(there) {
                Some(more) => grow(pages, more, limits),
                None => shrink(pages, there - request.pages),
            }
        }
        What::Overcommit => {}
    }
}

fn total(pages: &BTreeMap<u32, u64>) -> u64 {
    pages.values().fold(0, |sum, &n| sum.saturating_add(n))
}

/// Round the nodes; what one has no room for, the others give.
fn grow(pages: &mut BTreeMap<u32, u64>, mut more: u64, limits: &BTreeMap<u32, u64>) {
    while more > 0 {
        let has_room = |&(node, limit): &(&u32, &u64)| pages.get(node).is_none_or(|n| n < limit);
        let open: Vec<(u32, u64)> = limits
            .iter()
            .filter(has_room)
            .filter(|(_, limit)| **limit > 0)
            .map(|(node, limit)| (*node, *limit))
            .collect();
        let Some(share) = share(more, open.len()) else {
            return;
        };
        for (node, limit) in open {
            let there = pages.entry(node).or_default();
            let given = share.min(limit - *there).min(more);
            *there += given;
            more -= given;
        }
    }
}

/// Round the nodes that have some.
fn shrink(pages: &mut BTreeMap<u32, u64>, mut fewer: u64) {
    while fewer > 0 {
        let open = pages.values().filter(|n| **n > 0).count();
        let Some(share) = share(fewer, open) else {
            return;
        };
        for there in pages.values_mut() {
            let taken = share.min(*there).min(fewer);
            *there -= taken;
            fewer -= taken;
        }
    }
}

/// What each of them gets, at least 1.
fn share(pages: u64, count: usize) -> Option<u64> {
    let count = u64::try_from(count).ok()?;
    Some(pages.checked_div(count)?.max(1))
}
