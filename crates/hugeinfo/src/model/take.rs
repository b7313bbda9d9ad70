//! What a step does to a machine, and whether it does harm.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap};

use crate::{
    linux::{
        boot::Edit, buddyinfo::FreeBlocks, hugepages, numa::node::NodeCounters,
        process::segment::Segment,
    },
    model::{
        cgroup::Groups,
        commit::{Commit, Rule},
        landing::{self, Fit, Landing},
        limits::{self, fault_refusals},
        machine::Machine,
        mapping::{Mapping, Place},
        memory_limit::{self, Holds},
        need::own_pages,
        node_memory::{self, SPARE_PERCENT},
        nodes,
        pools::{self, Pool, Resized, Rules},
        step::{By, Counts, Planned, Service, Setting, Step, Waits},
        touched::Bounds,
    },
    server::{
        facts::{AllowedNodes, HugePages, Server, SharedMemoryType},
        surroundings::{Files, ProcessFigures, Surroundings},
    },
};

/// Why a step is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The kernel gives fewer pages.
    Less {
        /// So many fewer, if it has moved together what it can.
        missing: u64,
        /// Their size.
        page_bytes: u64,
    },
    /// It cannot be taken at all.
    Refused,
    /// What it does is unknown.
    Untold,
    /// It does harm.
    Harm(Harm),
}

/// What no advice may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// The pool takes memory that is not available.
    OutOfMemory {
        /// What is missing.
        bytes: u64,
    },
    /// One of the server's control groups may not have that much: whoever touches more dies.
    MemoryLimit {
        /// What is missing.
        bytes: u64,
    },
    /// `CommitLimit` falls below what is promised: `fork` and `malloc` fail on the whole host.
    CommitLimit,
    /// The server runs, and will die of SIGBUS.
    Armed,
    /// The server is down and cannot start.
    Down,
    /// Huge pages are lost that were there.
    LostHugePages,
    /// Pages of a node go that others were promised, perhaps as programs that may use no other
    /// node: these will die of SIGBUS. The kernel keeps promises of the pool as a whole only.
    TakesPromised,
}

/// The machine after a step, and what was wrong with it.
pub fn take(machine: &Machine, step: &Step) -> (Machine, Option<Trouble>) {
    let mut after = machine.clone();
    let trouble = after.take(step).err();
    (after, trouble)
}

/// The machine after all of them, or the first trouble.
pub fn take_all<'s>(
    machine: &Machine,
    steps: impl IntoIterator<Item = &'s Step>,
) -> Result<Machine, Trouble> {
    let mut after = machine.clone();
    for step in steps {
        after.take(step)?;
    }
    if after.is_running {
        Ok(after)
    } else {
        Err(Trouble::Harm(Harm::Down))
    }
}

impl Machine {
    fn take(&mut self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::SetPool {
                page_bytes,
                node,
                pages,
            } => {
                let came_back = self.would_come_back();
                let had = self.at_hand(*page_bytes);
                self.set_pool(*page_bytes, *node, *pages)?;
                if self.at_hand(*page_bytes) < had {
                    return Err(Trouble::Harm(Harm::Armed));
                }
                if came_back && !self.would_come_back() {
                    return Err(Trouble::Harm(Harm::LostHugePages));
                }
                Ok(())
            }
            Step::SetPoolAtBoot { edit, .. } => self.edit_boot(edit),
            Step::RaiseLimit {
                group,
                page_bytes,
                counts,
                bytes,
                ..
            } => {
                if limits::is_fixed(&self.facts, group) {
                    return Err(Trouble::Refused);
                }
                let mut groups = self
                    .facts
                    .hugetlb
                    .iter_mut()
                    .flat_map(|all| &mut all.groups);
                let limits = groups
                    .find(|one| one.directory == *group)
                    .into_iter()
                    .flat_map(|group| &mut group.limits);
                for limits in limits.filter(|limits| limits.page_bytes == *page_bytes) {
                    match counts {
                        Counts::Faults => limits.fault_limit = Some(*bytes),
                        Counts::Reservations => limits.reservation_limit = Some(*bytes),
                    }
                }
                Ok(())
            }
            Step::Change { setting, by } => {
                self.change(*setting, by);
                Ok(())
            }
            Step::Plan(planned) => {
                if !self.is_running && planned.by == By::AlterSystem {
                    return Err(Trouble::Refused);
                }
                self.plan(planned);
                Ok(())
            }
            Step::Reload => {
                if self.waits == Waits::ForReload {
                    self.waits = Waits::ForNothing;
                }
                Ok(())
            }
            Step::ChangeService(service) => {
                self.service.push(*service);
                Ok(())
            }
            Step::Stop => self.stop(),
            Step::Start => self.start(),
            Step::Restart => {
                self.stop()?;
                self.start()
            }
            Step::SetVm {
                name,
                value,
                at_boot,
            } => {
                self.set_vm(name, *value);
                at_boot.iter().try_for_each(|edit| self.edit_boot(edit))
            }
            Step::SetThp { file, mode } => {
                self.set_thp(file, mode);
                Ok(())
            }
            Step::Compact => {
                self.is_compacted = true;
                Ok(())
            }
            Step::Decide(_) => Ok(()),
        }
    }

    /// The pool as mm/hugetlb.c counts it, node by node where the nodes can be seen.
    fn model_of(&self, pool: &hugepages::Pool) -> Pool {
        let counters = pools::Counters {
            total: pool.total,
            free: pool.free,
            reserved: pool.reserved,
            surplus: pool.surplus,
            overcommit: pool.overcommit,
        };
        let nodes = self
            .around
            .iter()
            .flat_map(|around| &around.nodes)
            .flatten();
        let mut nodes: Vec<pools::Node> = nodes
            .filter_map(|node| {
                let part = node.part(pool.page_bytes)?.counters?;
                Some(pools::Node {
                    number: node.number,
                    total: part.total,
                    free: part.free,
                    surplus: part.surplus,
                    room: node_memory::room(node, pool.page_bytes, part.total),
                })
            })
            .collect();
        let whole =
            |of: fn(&pools::Node) -> u64, all: u64| nodes.iter().map(of).sum::<u64>() == all;
        let is_whole =
            whole(|node| node.total, pool.total) && whole(|node| node.surplus, pool.surplus);
        level(&mut nodes, pool.free);
        Pool::new(
            pool.page_bytes,
            &counters,
            if is_whole { nodes } else { Vec::new() },
        )
    }

    /// What has become of it.
    fn write_back(&mut self, model: &Pool) {
        let counters = model.counters();
        let mut pools = self.facts.pools.iter_mut().flatten();
        if let Some(pool) = pools.find(|pool| pool.page_bytes == model.page_bytes) {
            pool.total = counters.total;
            pool.free = counters.free;
            pool.reserved = counters.reserved;
            pool.surplus = counters.surplus;
            pool.overcommit = counters.overcommit;
        }
        let counters = |node: &pools::Node| NodeCounters {
            total: node.total,
            free: node.free,
            surplus: node.surplus,
        };
        let of_nodes = model.nodes.iter();
        let of_nodes: BTreeMap<u32, NodeCounters> =
            of_nodes.map(|node| (node.number, counters(node))).collect();
        let around = self.around.iter_mut().flat_map(|around| &mut around.nodes);
        let all = around.flatten();
        let allowed = match &mut self.facts.allowed_nodes {
            AllowedNodes::Only(nodes) => nodes.iter_mut(),
            AllowedNodes::All | AllowedNodes::Untold(_) => [].iter_mut(),
        };
        let bytes = |pages: u64| pages.saturating_mul(model.page_bytes);
        for node in all.chain(allowed) {
            let mut parts = node.pools.iter_mut();
            let part = parts.find(|part| part.page_bytes == model.page_bytes);
            if let Some((part, after)) = part.zip(of_nodes.get(&node.number)) {
                if let (Some(before), Some(available)) = (part.counters, &mut node.memory.available)
                {
                    *available = available
                        .saturating_add(bytes(before.total))
                        .saturating_sub(bytes(after.total));
                }
                part.counters = Some(*after);
            }
        }
    }

    fn set_pool(&mut self, page_bytes: u64, node: Option<u32>, pages: u64) -> Result<(), Trouble> {
        let before = self.pool(page_bytes).ok_or(Trouble::Refused)?.clone();
        let mut model = self.model_of(&before);
        let promised = self.promised_to_others(&before);
        let own = own_pages(&self.facts, page_bytes).unwrap_or(0);
        let free_for_server = self.free_for_server(&model);
        let least: Vec<u64> = model
            .nodes
            .iter()
            .map(|node| node.free.min(promised))
            .collect();
        let (done, more) = match node {
            None => (model.set(pages), 0),
            Some(number) => {
                let mut before_6_15 = model.clone();
                before_6_15.rules = Rules::BEFORE_6_15;
                let set = |model: &mut Pool| {
                    let done = model.set_on_node(number, pages);
                    done.map_err(|_| Trouble::Refused)
                };
                let (done, worse) = (set(&mut model)?, set(&mut before_6_15)?);
                let more = before_6_15.total().saturating_sub(model.total());
                let missing = done.missing.max(worse.missing);
                (Resized { missing, ..done }, more)
            }
        };
        let less = Err(Trouble::Less {
            missing: done.missing,
            page_bytes,
        });
        let mut nodes = model.nodes.iter().zip(least);
        if nodes.len() > 1 && nodes.any(|(node, least)| node.free < least) {
            return Err(Trouble::Harm(Harm::TakesPromised));
        }
        // The same of its own, all of which may be among those that are promised.
        if self.free_for_server(&model) < free_for_server.min(own.min(before.reserved)) {
            return Err(Trouble::Harm(Harm::Armed));
        }
        if !self.is_compacted && done.fresh > self.ready_pages(node, page_bytes) {
            return less;
        }
        let ram_bytes = self.ram_bytes();
        let pools_before = self.pools_bytes();
        self.write_back(&model);
        let pools_after = self.pools_bytes();
        // With what the nodes do not give: they lack it where the host does. And with what an older
        // kernel would make besides.
        let grown = pools_after
            .saturating_add(done.missing.saturating_add(more).saturating_mul(page_bytes))
            .saturating_sub(pools_before);
        let Some(around) = &mut self.around else {
            return if done.missing > 0 { less } else { Ok(()) };
        };
        if let Ok(usage) = &mut around.host.usage {
            if grown > 0
                && let (Some(available), Some(ram)) = (usage.available, ram_bytes)
            {
                let wanted = grown.saturating_add(ram / 100 * SPARE_PERCENT);
                if available < wanted {
                    let bytes = wanted - available;
                    return Err(Trouble::Harm(Harm::OutOfMemory { bytes }));
                }
            }
            let moved = |bytes: u64| {
                bytes
                    .saturating_add(pools_before)
                    .saturating_sub(pools_after)
            };
            usage.available = usage.available.map(moved);
            usage.free = usage.free.map(moved);
        }
        let base = self.facts.base_page_bytes;
        set_commit_limit(around, ram_bytes, Some(pools_before), pools_after, base)?;
        if done.missing > 0 { less } else { Ok(()) }
    }

    /// Pages that the running server can be given of those that it has mapped: any number, unless
    /// its nodes lack some.
    fn at_hand(&self, page_bytes: u64) -> u64 {
        nodes::most_for_mapped(self, page_bytes).unwrap_or(u64::MAX)
    }

    /// Free pages of the nodes that the server may use.
    fn free_for_server(&self, pool: &Pool) -> u64 {
        let allowed = &self.facts.allowed_nodes;
        let nodes = pool.nodes.iter();
        let nodes = nodes.filter(|node| allowed.allows(node.number) != Some(false));
        nodes.map(|node| node.free).sum()
    }

    /// Whether the running server would have its huge pages again if it ended now by itself: it
    /// starts again with the settings that it has.
    fn would_come_back(&self) -> bool {
        if !self.is_running || self.is_on_huge_pages() != Some(true) {
            return false;
        }
        let mut as_it_runs = Cow::Borrowed(self);
        if self.facts.planned.is_some() {
            as_it_runs.to_mut().facts.planned = None;
        }
        landing::of_next_start(&as_it_runs) == Landing::HugePages
    }

    /// Pages that others were promised and have not touched, as far as that is certain: the server
    /// itself may have touched none.
    fn promised_to_others(&self, pool: &hugepages::Pool) -> u64 {
        let own = own_pages(&self.facts, pool.page_bytes).unwrap_or(0);
        pool.reserved.saturating_sub(own)
    }

    /// Pages for which free memory, of one node or of all, has whole blocks. Where nobody can see
    /// them, all may be there.
    fn ready_pages(&self, node: Option<u32>, page_bytes: u64) -> u64 {
        let blocks = self.around.as_ref().map(|around| &around.free_blocks);
        let is_seen = |blocks: &FreeBlocks| node.is_none_or(|node| blocks.0.contains_key(&node));
        match blocks {
            Some(Ok(blocks)) if is_seen(blocks) => blocks
                .huge_pages(node, page_bytes, self.facts.base_page_bytes)
                .unwrap_or(0),
            _ => u64::MAX,
        }
    }

    fn edit_boot(&mut self, edit: &Edit) -> Result<(), Trouble> {
        let around = self.around.as_mut().ok_or(Trouble::Refused)?;
        let next = around.asked_at_boot.as_mut();
        let next = next.map_err(|_| Trouble::Refused)?;
        *next = next.with(edit).map_err(|_| Trouble::Refused)?;
        Ok(())
    }

    fn change(&mut self, setting: Setting, by: &By) {
        let in_files = Server {
            shared_memory_bytes: self.facts.needed_bytes(),
            ..self.facts.next_start().clone()
        };
        if *by == By::CommandLine || self.on_command_line.is_some() {
            let next = self.on_command_line.get_or_insert(in_files.clone());
            set(next, setting);
        }
        if *by == By::CommandLine {
            return;
        }
        let mut next = in_files;
        set(&mut next, setting);
        let is_as_now = self.facts.is_as_now(&next);
        // What keeps the server from starting stays in the files.
        if let Some(around) = &mut self.around
            && !around.files.stop_a_start()
        {
            around.files = if is_as_now {
                Files::NothingWaits
            } else {
                Files::Planned(next.clone())
            };
        }
        self.facts.planned = Some(next);
    }

    fn plan(&mut self, planned: &Planned) {
        self.waits = self.waits.max(planned.waits);
        if let Ok(next) = &planned.next {
            // Who plans to be without them, loses nothing.
            self.is_given_up = !self.planning(next.clone()).facts.asks_for_huge_pages();
        }
        if planned.by == By::CommandLine {
            self.on_command_line = planned.next.as_ref().ok().cloned();
            // PostgreSQL has tried it with the files: with the other command line it takes them.
            if planned.next.is_ok()
                && let Some(around) = &mut self.around
                && around.files.stop_a_start()
            {
                around.files = Files::NothingWaits;
            }
            return;
        }
        let files = match &planned.next {
            Ok(next) if self.facts.is_as_now(next) => Files::NothingWaits,
            Ok(next) => Files::Planned(next.clone()),
            Err(message) => Files::Refused(message.clone()),
        };
        self.facts.planned = match &files {
            Files::Planned(next) => Some(next.clone()),
            _ => None,
        };
        if let Some(around) = &mut self.around {
            around.files = files;
        }
    }

    fn stop(&mut self) -> Result<(), Trouble> {
        if !self.is_running {
            return Err(Trouble::Refused);
        }
        let next = Server {
            shared_memory_bytes: self.facts.needed_bytes(),
            ..self.facts.next_start().clone()
        };
        self.has_to_come_back = self.is_on_huge_pages() == Some(true);
        self.uncharge();
        self.give_back();
        self.recount_nodes(self.facts.page_bytes(), self.facts.base_page_bytes);
        let committed = landing::own_committed_bytes(self);
        if let Some(around) = &mut self.around {
            let shared = around
                .processes
                .iter()
                .filter_map(|process| process.rss_shmem);
            // As much as one process has touched is there at least.
            let touched = shared.max().unwrap_or(0).min(committed);
            if let Ok(usage) = &mut around.host.usage {
                usage.committed = usage.committed.map(|bytes| bytes.saturating_sub(committed));
                usage.available = usage.available.map(|bytes| bytes.saturating_add(touched));
            }
            node_memory::give_back(self, touched);
        }
        self.facts.planned = Some(next);
        self.facts.segment = Ok(Segment {
            bytes: 0,
            page_bytes: Some(self.facts.base_page_bytes),
            mappings: 0,
        });
        self.is_running = false;
        Ok(())
    }

    /// All that the server has touched is its groups' no more: what is certain of it at once.
    fn uncharge(&mut self) {
        let Bounds { least, most } = std::mem::take(&mut self.touched);
        let around = self.around.iter_mut();
        for limit in around
            .flat_map(|around| &mut around.memory_limits)
            .flatten()
        {
            limit.use_bytes = limit.use_bytes.saturating_sub(least);
        }
        self.touched.most = most.saturating_sub(least);
    }

    /// Other pages do not make it lie elsewhere.
    fn recount_nodes(&mut self, from_bytes: Option<u64>, to_bytes: u64) {
        let Some(from_bytes) = from_bytes else { return };
        let nodes = self.around.iter_mut().flat_map(|a| &mut a.segment_nodes);
        for pages in nodes.flat_map(BTreeMap::values_mut) {
            *pages = pages.saturating_mul(from_bytes) / to_bytes.max(1);
        }
    }

    /// Where that many huge pages lie: on nodes that the server may use, then on any. Those with
    /// surplus pages come first, since what is given back there ceases to exist.
    fn touched_on_nodes(&self, pool: &Pool, mut touched: u64) -> Vec<(u32, u64)> {
        let is_allowed = |number| self.facts.allowed_nodes.allows(number) != Some(false);
        let mut nodes: Vec<&pools::Node> = pool.nodes.iter().collect();
        nodes.sort_by_key(|node| (!is_allowed(node.number), Reverse(node.surplus)));
        let nodes = nodes.into_iter();
        nodes
            .map(|node| {
                let here = touched.min(node.total.saturating_sub(node.free));
                touched -= here;
                (node.number, here)
            })
            .collect()
    }

    /// Huge pages that the server has.
    fn give_back(&mut self) {
        let Some(page_bytes) = self.facts.lies_on().huge_page_bytes() else {
            return;
        };
        let Some(own) = own_pages(&self.facts, page_bytes) else {
            return;
        };
        let Some(pool) = self.pool(page_bytes).cloned() else {
            return;
        };
        let mut model = self.model_of(&pool);
        // Touched at least is what is no longer reserved.
        let touched = own.saturating_sub(pool.reserved);
        let parts = self.touched_on_nodes(&model, touched);
        Mapping::found(own, &parts, None).unmap(&mut model, &mut Groups::default());
        let most_touched = own.min(pool.total.saturating_sub(pool.free));
        let by_command_line = self.on_command_line.clone();
        let by_command_line = by_command_line.map(|next| self.planning(next).facts);
        let facts = by_command_line.as_ref().unwrap_or(&self.facts);
        let will_map_more = limits::will_map_more(facts, page_bytes);
        let total_before = pool.total;
        let pools_before = self.pools_bytes();
        let gone = total_before.saturating_sub(model.total());
        self.write_back(&model);
        for group in self
            .facts
            .hugetlb
            .iter_mut()
            .flat_map(|all| &mut all.groups)
        {
            for limits in &mut group.limits {
                if limits.page_bytes == page_bytes {
                    let less = |pages: u64| {
                        let bytes = pages.saturating_mul(page_bytes);
                        move |used: u64| used.saturating_sub(bytes)
                    };
                    limits.reservation_use = limits.reservation_use.map(less(own));
                    let at_most = limits.fault_use.map(less(touched));
                    let at_least = limits.fault_use.map(less(most_touched));
                    // What others have touched was promised to them. Before Linux 5.7 no promises
                    // are counted.
                    limits.fault_use = if will_map_more && limits.reservation_use.is_none() {
                        at_most
                    } else {
                        at_most.min(at_least.max(limits.reservation_use))
                    };
                }
            }
        }
        let freed = gone.saturating_mul(page_bytes);
        if let Some(Ok(usage)) = self.around.as_mut().map(|around| &mut around.host.usage) {
            usage.available = usage.available.map(|bytes| bytes.saturating_add(freed));
        }
        let (pools_after, ram_bytes) = (self.pools_bytes(), self.ram_bytes());
        let base = self.facts.base_page_bytes;
        if let Some(around) = &mut self.around {
            // It only grows.
            let _ = set_commit_limit(around, ram_bytes, Some(pools_before), pools_after, base);
        }
    }

    fn start(&mut self) -> Result<(), Trouble> {
        if self.is_running {
            return Err(Trouble::Refused);
        }
        let around = self.around.as_ref();
        if around.is_some_and(|around| around.files.stop_a_start()) {
            return Err(Trouble::Harm(Harm::Down));
        }
        if let Some(next) = self.on_command_line.take() {
            self.facts.planned = Some(next);
        }
        let next = self.facts.next_start().clone();
        let bytes = next.shared_memory_bytes;
        let is_on_huge_pages = match landing::of_next_start(self) {
            Landing::HugePages => true,
            Landing::SmallPages(_, Fit::Fits) => false,
            Landing::SmallPages(_, Fit::BeyondMemory { bytes, left_bytes }) => {
                let bytes = bytes - left_bytes;
                return Err(Trouble::Harm(Harm::OutOfMemory { bytes }));
            }
            Landing::SmallPages(_, Fit::BeyondMemoryLimit { to_raise_bytes, .. }) => {
                let bytes = to_raise_bytes;
                return Err(Trouble::Harm(Harm::MemoryLimit { bytes }));
            }
            Landing::SmallPages(_, Fit::BeyondCommitLimit { .. }) | Landing::Fails(..) => {
                return Err(Trouble::Harm(Harm::Down));
            }
            Landing::Untold(_) => return Err(Trouble::Untold),
        };
        if is_on_huge_pages {
            self.map_huge_pages(&next)?;
        } else {
            if self.has_to_come_back && !self.is_given_up {
                return Err(Trouble::Harm(Harm::LostHugePages));
            }
            let base = self.facts.base_page_bytes;
            let bytes = bytes.div_ceil(base).saturating_mul(base);
            if let Some(Ok(usage)) = self.around.as_mut().map(|around| &mut around.host.usage) {
                usage.committed = usage.committed.map(|all| all.saturating_add(bytes));
            }
            self.facts.segment = Ok(Segment {
                bytes,
                page_bytes: Some(base),
                mappings: 1,
            });
        }
        let base = self.facts.base_page_bytes;
        self.recount_nodes(Some(base), self.facts.page_bytes().unwrap_or(base));
        self.facts.server = next;
        self.facts.planned = None;
        self.waits = Waits::ForNothing;
        self.is_running = true;
        self.has_to_come_back = false;
        self.is_given_up = false;
        let services = std::mem::take(&mut self.service);
        if let Some(around) = &mut self.around {
            around.files = Files::NothingWaits;
            around.settings_wait_for_restart = false;
            around.waiting_settings.clear();
            start_service(around, &services, is_on_huge_pages);
        }
        Ok(())
    }

    fn map_huge_pages(&mut self, next: &Server) -> Result<(), Trouble> {
        let pool = self.facts.target_pool().ok_or(Trouble::Refused)?.clone();
        let page_bytes = pool.page_bytes;
        if fault_refusals(&self.facts, page_bytes).is_some_and(|refusals| !refusals.is_empty()) {
            return Err(Trouble::Harm(Harm::Armed));
        }
        let pages = next.pages(page_bytes);
        let bytes = pages.saturating_mul(page_bytes);
        if let Holds::Beyond(excess) = memory_limit::hold(self, bytes, true)
            && !excess.can_swap
        {
            let bytes = excess.raise_bytes();
            return Err(Trouble::Harm(Harm::MemoryLimit { bytes }));
        }
        let mut model = self.model_of(&pool);
        let place = Place {
            group: None,
            nodes: match &self.facts.allowed_nodes {
                AllowedNodes::Only(nodes) => nodes.iter().map(|node| node.number).collect(),
                AllowedNodes::All | AllowedNodes::Untold(_) => model.node_numbers(),
            },
        };
        Mapping::new(pages, true, &place, &mut model, &mut Groups::default())
            .map_err(|_| Trouble::Harm(Harm::Down))?;
        self.write_back(&model);
        for group in self
            .facts
            .hugetlb
            .iter_mut()
            .flat_map(|all| &mut all.groups)
        {
            for limits in &mut group.limits {
                if limits.page_bytes == page_bytes {
                    limits.reservation_use = limits
                        .reservation_use
                        .map(|used| used.saturating_add(bytes));
                }
            }
        }
        self.facts.segment = Ok(Segment {
            bytes,
            page_bytes: Some(page_bytes),
            mappings: 1,
        });
        Ok(())
    }

    fn set_vm(&mut self, name: &str, value: u64) {
        let pools_bytes = self.pools_bytes();
        let ram_bytes = self.ram_bytes();
        let base = self.facts.base_page_bytes;
        let Some(around) = &mut self.around else {
            return;
        };
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        match name {
            "overcommit_ratio" => {
                around.host.vm.overcommit_ratio = Some(value);
                around.host.vm.overcommit_bytes = Some(0);
            }
            "overcommit_kbytes" => {
                around.host.vm.overcommit_bytes = Some(value.saturating_mul(1024));
            }
            "swappiness" => around.host.vm.swappiness = Some(value),
            _ => {}
        }
        // Whatever comes out of it is not the fault of a pool.
        let _ = set_commit_limit(around, ram_bytes, None, pools_bytes, base);
    }

    fn set_thp(&mut self, file: &str, mode: &str) {
        let modes = self.around.as_mut().map(|around| &mut around.host.thp);
        let Some(Ok(modes)) = modes else { return };
        let mode = Some(mode.to_owned());
        match file.split_once('/') {
            None if file == "enabled" => modes.enabled = mode,
            None => modes.shmem_enabled = mode,
            Some((directory, name)) => {
                let bytes = hugepages::parse_name(directory);
                let size = modes
                    .sizes
                    .iter_mut()
                    .find(|size| Some(size.page_bytes) == bytes);
                if let Some(size) = size {
                    match name {
                        "enabled" => size.enabled = mode,
                        _ => size.shmem_enabled = mode,
                    }
                }
            }
        }
    }
}

/// Makes the nodes' free pages add up to the pool's. Somebody may have touched some, or given some
/// back, between two files that were read.
fn level(nodes: &mut [pools::Node], free: u64) {
    let sum: u64 = nodes.iter().map(|node| node.free).sum();
    let (mut more, mut less) = (free.saturating_sub(sum), sum.saturating_sub(free));
    for node in nodes {
        let added = more.min(node.total.saturating_sub(node.free));
        let taken = less.min(node.free);
        node.free = node.free + added - taken;
        more -= added;
        less -= taken;
    }
}

fn set(next: &mut Server, setting: Setting) {
    match setting {
        Setting::HugePagesTry => next.huge_pages = HugePages::Try,
        Setting::SharedMemoryMmap => next.shared_memory_type = SharedMemoryType::Mmap,
        Setting::HugePageSize(bytes) => {
            next.huge_page_size_bytes = Some(bytes).filter(|&bytes| bytes > 0);
        }
    }
}

/// What the pools leave of `CommitLimit`. Errors: less than is promised, where it was more before.
fn set_commit_limit(
    around: &mut Surroundings,
    ram_bytes: Option<u64>,
    pools_before: Option<u64>,
    pools_bytes: u64,
    base_page_bytes: u64,
) -> Result<(), Trouble> {
    let vm = &around.host.vm;
    let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let rule = match (unsigned(vm.overcommit_bytes), unsigned(vm.overcommit_ratio)) {
        (Some(bytes), _) if bytes > 0 => Rule::Kilobytes(bytes / 1024),
        (_, Some(ratio)) => Rule::Ratio(ratio),
        _ => return Ok(()),
    };
    let is_strict = vm.overcommit_memory == Some(2);
    let reserve = landing::admin_reserve_bytes(vm);
    let Ok(usage) = &mut around.host.usage else {
        return Ok(());
    };
    let (Some(ram_bytes), Some(swap_bytes), Some(before)) =
        (ram_bytes, usage.swap_total, usage.commit_limit)
    else {
        return Ok(());
    };
    let commit = Commit {
        ram_bytes,
        swap_bytes,
        rule,
        page_bytes: base_page_bytes,
    };
    let mut after = commit.limit_bytes(pools_bytes);
    if let Some(pools_before) = pools_before {
        let is_of_this_host = commit.limit_bytes(pools_before).abs_diff(before) <= ram_bytes / 100;
        // A container's MemTotal is not what the kernel reckons with.
        if !is_of_this_host && let Rule::Ratio(percent) = rule {
            let part = |bytes: u64| (bytes / 100).saturating_mul(percent);
            let lost = part(pools_bytes.saturating_sub(pools_before));
            let gained = part(pools_before.saturating_sub(pools_bytes));
            after = before.saturating_sub(lost).saturating_add(gained);
        } else if !is_of_this_host {
            after = before;
        }
    }
    usage.commit_limit = Some(after);
    let is_beyond = usage
        .committed
        .is_some_and(|committed| committed.saturating_add(reserve) > after);
    if is_strict && is_beyond && after < before {
        return Err(Trouble::Harm(Harm::CommitLimit));
    }
    Ok(())
}

/// A server that has just been started: its postmaster alone. On small pages it will come to what
/// it came to before.
fn start_service(around: &mut Surroundings, services: &[Service], is_on_huge_pages: bool) {
    let page_tables = around
        .processes
        .iter()
        .filter_map(|process| process.page_tables)
        .reduce(u64::saturating_add)
        .filter(|_| !is_on_huge_pages);
    // Whatever sets children apart from the postmaster does so again.
    let adj = |is_postmaster: bool| {
        let mut processes = around.processes.iter();
        processes
            .find(|process| process.is_postmaster == is_postmaster)?
            .oom_score_adj
    };
    let (of_postmaster, of_child) = (adj(true), adj(false));
    let mut of_children = of_child.filter(|_| of_child != of_postmaster);
    around.processes.clear();
    if services.contains(&Service::Interleave) && around.segment_nodes.is_some() {
        around.segment_nodes = Some(BTreeMap::new());
    }
    for service in services {
        match service {
            Service::ProtectPostmaster => {
                around.oom_score_adj = Ok(-900);
                of_children = Some(0);
            }
            Service::ExposeBackends => of_children = Some(0),
            Service::UnlimitedLockedMemory => around.locked_memory = Ok(None),
            Service::Interleave => {}
        }
    }
    let postmaster = ProcessFigures {
        page_tables: Some(page_tables.unwrap_or(0)),
        rss_anon: Some(0),
        rss_shmem: Some(0),
        swap: Some(0),
        age_seconds: Some(0),
        oom_score_adj: around.oom_score_adj.as_ref().ok().copied(),
        is_postmaster: true,
        ..ProcessFigures::default()
    };
    around.processes.push(postmaster);
    around.processes.push(ProcessFigures {
        oom_score_adj: of_children.or(postmaster.oom_score_adj),
        is_postmaster: false,
        ..postmaster
    });
}
