//! The effect of a step on a machine, and the hazards that advice has to avoid.

use host::server::{
    state::{Backing, Files, Server},
    unit::OomPolicy,
};
use host::{
    linux::{boot::Edit, hugepages::Pool, process::segment::Segment},
    units::{Bytes, PageSize, Pages},
};

use crate::model::{
    demand::{self, Hidden, Name},
    faulted_in::FaultedIn,
    limits,
    machine::{Machine, ServerState},
    memory::{self, CommitLimit},
    numa, page_tables,
    pool_change::{release, set_persistent},
    start::{self, Fit, Reason, StartOutcome},
    step::{LimitChange, Pending, ServiceChange, SettingChange, SettingPlace, Step},
};

/// Why a step is impossible or hazardous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// The step does not fit the state of the machine, or the facts that it needs are unknown.
    Inapplicable,
    /// Available memory is too small for the pool and the reserve, counting what small pages have
    /// yet to fault in.
    Memory {
        missing: Bytes,
    },
    /// The memory of the host is unknown, for example because `/proc/meminfo` is that of a
    /// container, or the memory that other servers have yet to fault in is unknown.
    UnknownMemory {
        size: PageSize,
        /// Pages that the pool should have.
        pages: Pages,
        /// The reason.
        why: String,
    },
    /// Free memory is too fragmented for the pool, and has not been compacted.
    Fragmented,
    /// The server is bound to some NUMA nodes, and the kernel chooses the nodes that get or lose
    /// pages of a pool, so the effect on the nodes of the server is unknown.
    UnknownNodes {
        size: PageSize,
        /// Pages that are missing in the whole pool.
        missing: Pages,
    },
    /// Committed memory would exceed the strict commit limit, which the larger pools lower. `fork`
    /// and `malloc` would fail.
    CommitLimit(CommitLimit),
    /// A smaller pool could take reserved pages from the node that a process is bound to, which
    /// would raise SIGBUS: the kernel reserves pages from the whole pool, not per node.
    ReservedPages,
    /// The server would have huge pages that a cgroup does not let it fault in (SIGBUS).
    FaultLimit,
    /// The limit belongs to somebody outside of the container.
    SetOutside,
    /// A memory limit of a cgroup is too low for the segment.
    CgroupMemory {
        /// By how much the limit has to be raised.
        to_raise: Bytes,
    },
    WouldNotStart(Reason, Option<Fit>),
    /// The server would start on small pages that have not enough memory.
    WouldNotFit(Fit),
    /// A start from the files alone would not have enough memory, or would exceed a limit of a
    /// cgroup.
    FromFiles,
    /// The server would lose huge pages that it has.
    LosesHugePages(Reason),
    /// Only a start shows whether the server gets huge pages.
    OnlyAStartShows(Reason),
    /// The configuration files keep the server from starting.
    ConfigurationFiles,
}

impl Machine {
    /// Applies all steps.
    ///
    /// Errors: the first hazard.
    pub fn apply_all<'s>(
        &self,
        steps: impl IntoIterator<Item = &'s Step>,
    ) -> Result<Self, Blocked> {
        let mut after = self.clone();
        for step in steps {
            after.apply_step(step)?;
        }
        Ok(after)
    }

    /// Applies a step.
    ///
    /// Errors: the hazard.
    pub fn apply(&self, step: &Step) -> Result<Self, Blocked> {
        self.apply_all([step])
    }

    fn apply_step(&mut self, step: &Step) -> Result<(), Blocked> {
        match step {
            Step::Compact => self.is_compacted = true,
            Step::SetPool { size, pages } => self.set_pool(*size, *pages)?,
            Step::Demote { from, into, pages } => self.demote(*from, *into, *pages)?,
            Step::SetPoolAtBoot { edit, .. } => self.edit_boot(edit)?,
            Step::RaiseLimit(change) => self.raise_limit(change)?,
            Step::ChangeSetting(change) => self.change_setting(change),
            // The settings that a reload makes effective do not change the segment.
            Step::Reload | Step::CheckPool { .. } => {}
            Step::ChangeService(change) => self.service.push(*change),
            Step::Stop => self.stop()?,
            Step::Start => self.start()?,
            Step::Restart => {
                self.stop()?;
                self.start()?;
            }
            Step::RestartOther {
                server,
                size,
                pages,
            } => self.restart_other(*server, *size, *pages),
            Step::SetThp { file, mode } => self.set_thp(file, mode),
        }
        Ok(())
    }

    fn set_pool(&mut self, size: PageSize, pages: Pages) -> Result<(), Blocked> {
        let before = self.clone();
        let pool = self.pool(size).ok_or(Blocked::Inapplicable)?.clone();
        let growth = pages - Pages(pool.total);
        if Pages(pool.persistent()) > pages {
            self.can_shrink_on_any_node(size)?;
        }
        self.write_pool(size, pages);
        let is_compacted = self.is_compacted && !before.has_too_few_blocks(size);
        if growth > Pages(0) && !is_compacted && growth > ready_pages(&before, size) {
            return Err(Blocked::Fragmented);
        }
        if let Some(why) = before.unknown_memory().filter(|_| growth > Pages(0)) {
            return Err(Blocked::UnknownMemory { size, pages, why });
        }
        self.account_pools(&before)?;
        if self.is_bound_to_nodes() && growth > Pages(0) {
            let missing = growth;
            return Err(Blocked::UnknownNodes { size, missing });
        }
        // Memory that the next start needs on small pages, or must not use on huge pages. A surplus
        // page that becomes persistent can be the one that the next start lacks.
        if pages > Pages(pool.persistent()) {
            keep_start(&before.at_next_start(), &self.at_next_start())?;
            let from_files = self.next_start_from_files();
            if let Some((was, is)) = before.next_start_from_files().zip(from_files) {
                keep_start(&was, &is).map_err(|_| Blocked::FromFiles)?;
            }
        }
        match (before.would_keep_huge_pages(), self.would_keep_huge_pages()) {
            (Ok(()), Err(reason)) => Err(Blocked::LosesHugePages(reason)),
            _ => Ok(()),
        }
    }

    /// Whether no command is likely to allocate more pages: they are larger than all blocks that
    /// the kernel keeps, and even this boot, with nearly all memory free, allocated fewer than
    /// requested.
    fn has_too_few_blocks(&self, size: PageSize) -> bool {
        let is_larger = self.whole().is_some_and(|facts| {
            let blocks = facts.free_blocks.as_ref();
            blocks.is_ok_and(|free| {
                free.huge_pages(size.0, self.state.base_page_bytes)
                    .is_none()
            })
        });
        let request = self.this_boot().and_then(|boot| boot.pages(size.0));
        let pool = self.pool(size).map_or(0, Pool::persistent);
        is_larger && request.is_some_and(|request| request.pages > pool)
    }

    /// Why the free memory of the host is unknown. Another host is known by its RAM at most.
    fn unknown_memory(&self) -> Option<String> {
        self.whole()?;
        let available = self.usage().and_then(|usage| usage.available);
        if memory::host_ram(self).and(available).is_none() {
            return Some("its memory is unknown here".to_owned());
        }
        if let Some(why) = CommitLimit::unknown(self) {
            return Some(why.to_owned());
        }
        match demand::hidden_servers(self) {
            Some(hidden @ Hidden::Servers(_)) => Some(hidden.to_string()),
            _ => None,
        }
    }

    /// Sets the pages of a pool, and updates all counters. For a bound server, a number that adds
    /// or removes pages is blocked ([`Blocked::UnknownNodes`]).
    fn write_pool(&mut self, size: PageSize, pages: Pages) {
        let Some(pool) = self.pool_mut(size) else {
            return;
        };
        let had = Pages(pool.total);
        set_persistent(pool, pages.0);
        if let Some(part) = self.allowed_part_mut(size).filter(|_| pages >= had) {
            part.surplus = Pages(0);
        }
    }

    /// The kernel chooses the nodes that lose pages, on which other processes could have reserved
    /// pages, or which this server could be bound to.
    fn can_shrink_on_any_node(&self, size: PageSize) -> Result<(), Blocked> {
        if self.is_bound_to_nodes() {
            let missing = Pages(0);
            return Err(Blocked::UnknownNodes { size, missing });
        }
        let is_numa = self.nodes().is_none_or(|nodes| nodes.len() > 1);
        let has_reserved = self.pool(size).is_some_and(|pool| pool.reserved > 0);
        if is_numa && has_reserved && numa::reserved_by_others(self, size) != Some(Pages(0)) {
            return Err(Blocked::ReservedPages);
        }
        Ok(())
    }

    fn demote(&mut self, from: PageSize, into: PageSize, pages: Pages) -> Result<(), Blocked> {
        self.can_shrink_on_any_node(from)?;
        let pool = self.pool(from).ok_or(Blocked::Inapplicable)?;
        let idle = Pages(pool.free) - Pages(pool.reserved);
        if idle.min(Pages(pool.persistent())) < pages {
            return Err(Blocked::Inapplicable);
        }
        let left = Pages(pool.persistent()) - pages;
        let gained = (pages * from).whole_pages(into);
        let target = self.pool(into).ok_or(Blocked::Inapplicable)?;
        let grown = Pages(target.persistent()) + gained;
        for (size, pages) in [(from, left), (into, grown)] {
            self.write_pool(size, pages);
        }
        Ok(())
    }

    /// Moves memory between the pools and the rest of RAM, and refuses if the rest gets too small.
    fn account_pools(&mut self, before: &Self) -> Result<(), Blocked> {
        let (had, has) = (memory::in_pools(before), memory::in_pools(self));
        let growth = has - had;
        let missing = memory::missing_for_pools(before, growth).unwrap_or_default();
        if growth > Bytes(0) && missing > Bytes(0) {
            return Err(Blocked::Memory { missing });
        }
        let by_pools = |bytes: u64| (Bytes(bytes) + had - has).0;
        if let Some(Ok(usage)) = self.whole_state_mut().map(|state| &mut state.usage) {
            usage.available = usage.available.map(by_pools);
            usage.free = usage.free.map(by_pools);
            usage.hugetlb = usage.hugetlb.map(|bytes| (Bytes(bytes) + has - had).0);
        }
        let Some(limit) = CommitLimit::with_pools(self, has) else {
            return Ok(());
        };
        if let Some(Ok(usage)) = self.whole_state_mut().map(|state| &mut state.usage) {
            usage.commit_limit = Some(limit.limit.0);
        }
        match growth > Bytes(0) && limit.missing() > Bytes(0) {
            true => Err(Blocked::CommitLimit(limit)),
            false => Ok(()),
        }
    }

    /// The machine with the settings of the command line for the next start.
    pub fn at_next_start(&self) -> Self {
        match &self.state.next.on_command_line {
            Some(next) => self.with_next_start(next.clone()),
            None => self.clone(),
        }
    }

    /// Whether cgroups let the next start use the huge pages that it maps, if it maps any.
    pub(crate) fn can_use_huge_pages(&self) -> Result<(), Blocked> {
        let StartOutcome::HugePages(size) = start::outcome(self) else {
            return Ok(());
        };
        let pages = self.pages_mapped(&self.next_start(), size);
        if limits::exceed_fault_limit(self, size, pages) {
            return Err(Blocked::FaultLimit);
        }
        match memory::missing_for_huge_pages(self, pages * size) {
            Some(to_raise) => Err(Blocked::CgroupMemory { to_raise }),
            None => Ok(()),
        }
    }

    /// Whether the running server would have its huge pages again if it started now with the
    /// settings that it runs with, as after the crash of a backend.
    fn would_keep_huge_pages(&self) -> Result<(), Reason> {
        if self.server_state != ServerState::Running || self.is_on_huge_pages() != Some(true) {
            return Err(Reason::Off);
        }
        let mut as_it_runs = self.clone();
        as_it_runs.state.next.server = None;
        match start::outcome(&as_it_runs) {
            StartOutcome::HugePages(_) => Ok(()),
            StartOutcome::SmallPages(reason, _)
            | StartOutcome::Fails(reason, _)
            | StartOutcome::Unknown(reason) => Err(reason),
        }
    }

    fn edit_boot(&mut self, edit: &Edit) -> Result<(), Blocked> {
        if !self.facts.is_whole {
            return Ok(());
        }
        let next = self
            .state
            .next_boot
            .as_mut()
            .map_err(|_| Blocked::Inapplicable)?;
        *next = next.after(edit);
        Ok(())
    }

    fn raise_limit(&mut self, change: &LimitChange) -> Result<(), Blocked> {
        if limits::is_set_outside(self, change) {
            return Err(Blocked::SetOutside);
        }
        limits::set(self, change);
        Ok(())
    }

    fn change_setting(&mut self, change: &SettingChange) {
        let before = self.at_next_start().next_start();
        // The figures of the running server are exact, which those of PostgreSQL might not be.
        let is_new = change.next.as_ref() != Ok(&self.next_start());
        let next = &mut self.state.next;
        if change.pending == Pending::Restart && !next.pending.contains(&change.name) {
            next.pending.push(change.name.clone());
        }
        if let Ok(server) = &change.next {
            next.gives_up_huge_pages = !server.asks_for_huge_pages();
        }
        if change.place == SettingPlace::CommandLine {
            next.on_command_line = change.next.clone().ok();
            if change.next.is_ok() && next.files.stop_a_start() {
                next.files = Files::Valid;
            }
            return;
        }
        if let Ok(server) = &change.next
            && is_new
        {
            next.server = Some(server.clone());
            let from_files = next.from_files.take();
            next.from_files = from_files.map(|files| changed_alike(files, &before, server));
        }
        // Other pending settings stay unknown. Otherwise, PostgreSQL has judged the files with this
        // change and those before it.
        if !next.files.hide_pending_settings() {
            next.files = match &change.next {
                Ok(_) => Files::Valid,
                Err(message) => Files::Refused(message.clone()),
            };
        }
    }

    fn stop(&mut self) -> Result<(), Blocked> {
        if self.server_state != ServerState::Running {
            return Err(Blocked::Inapplicable);
        }
        let was_on_huge_pages = self.is_on_huge_pages() == Some(true);
        let next = self.next_start();
        let committed = memory::segment_on_small_pages(self);
        let faulted_in = self.faulted_in;
        let page_tables = match next.asks_for_huge_pages() {
            true => page_tables::saved_on_huge_pages(self),
            false => Bytes(0),
        };
        let before = self.clone();
        match self.backing() {
            Backing::HugePages(size) => self.release_huge_pages(size),
            Backing::SmallPages | Backing::Unknown => {
                if let Some(Ok(usage)) = self.whole_state_mut().map(|state| &mut state.usage) {
                    let less = |bytes: u64| (Bytes(bytes) - committed).0;
                    usage.committed = usage.committed.map(less);
                    let released = faulted_in.least + page_tables;
                    usage.available = (usage.available).map(|bytes| (Bytes(bytes) + released).0);
                }
            }
        }
        let limits = self
            .whole_state_mut()
            .into_iter()
            .flat_map(|state| &mut state.memory_limits);
        for limit in limits.flatten() {
            if !was_on_huge_pages || limit.counts_hugetlb {
                limit.use_bytes = (Bytes(limit.use_bytes) - faulted_in.least).0;
            }
        }
        self.faulted_in = FaultedIn {
            least: Bytes(0),
            most: faulted_in.most - faulted_in.least,
        };
        self.state.next.server = Some(next);
        self.state.segment = Ok(Segment {
            bytes: 0,
            page_bytes: Some(self.state.base_page_bytes),
            mappings: 0,
        });
        self.server_state = ServerState::Stopped;
        // A stop releases memory only.
        let _ = self.account_pools(&before);
        self.state.next.gives_up_huge_pages |= !was_on_huge_pages;
        Ok(())
    }

    fn release_huge_pages(&mut self, size: PageSize) {
        let (Some(held), Some(pool)) = (self.pages_held(size), self.pool(size)) else {
            return;
        };
        let faulted_in = held - Pages(pool.reserved);
        if let Some(pool) = self.pool_mut(size) {
            release(pool, held.0, faulted_in.0);
        }
        if let Some(part) = self.allowed_part_mut(size) {
            part.release(faulted_in);
        }
        let bytes = held * size;
        limits::count(self, size, |limits| {
            let less = |used: u64| (Bytes(used) - bytes).0;
            limits.reservation_use = limits.reservation_use.map(less);
            limits.fault_use = (limits.fault_use).map(|used| (Bytes(used) - faulted_in * size).0);
        });
    }

    fn start(&mut self) -> Result<(), Blocked> {
        if self.server_state == ServerState::Running {
            return Err(Blocked::Inapplicable);
        }
        if self
            .whole_state()
            .is_some_and(|state| state.next.files.stop_a_start())
        {
            return Err(Blocked::ConfigurationFiles);
        }
        if let Some(next) = self.state.next.on_command_line.take() {
            self.state.next.server = Some(next);
        }
        let next = self.next_start();
        match start::outcome(self) {
            StartOutcome::HugePages(size) => {
                self.can_use_huge_pages()?;
                self.map_huge_pages(size, &next)?;
            }
            StartOutcome::SmallPages(reason, Fit::Fits) => {
                let is_off = matches!(reason, Reason::Off | Reason::Sysv) && !self.did_run();
                if !self.state.next.gives_up_huge_pages && !is_off {
                    return Err(Blocked::LosesHugePages(reason));
                }
                self.map_small_pages(&next);
                self.keep_room_to_commit()?;
            }
            StartOutcome::SmallPages(_, fit) => return Err(Blocked::WouldNotFit(fit)),
            StartOutcome::Fails(reason, fit) => return Err(Blocked::WouldNotStart(reason, fit)),
            StartOutcome::Unknown(reason) => return Err(Blocked::OnlyAStartShows(reason)),
        }
        self.state.server = next;
        self.state.next.started();
        self.server_state = ServerState::Running;
        self.faulted_in.least = Bytes(0);
        self.update_processes();
        Ok(())
    }

    fn map_huge_pages(&mut self, size: PageSize, next: &Server) -> Result<(), Blocked> {
        let pages = self.pages_mapped(next, size);
        let pool = self.pool_mut(size).ok_or(Blocked::Inapplicable)?;
        pool.reserved = pool.reserved.saturating_add(pages.0);
        let bytes = pages * size;
        limits::count(self, size, |limits| {
            let more = |used: u64| (Bytes(used) + bytes).0;
            limits.reservation_use = limits.reservation_use.map(more);
        });
        self.state.segment = Ok(Segment {
            bytes: bytes.0,
            page_bytes: Some(size.0),
            mappings: 1,
        });
        Ok(())
    }

    /// Moves another server from small pages to the pool, if the pool has enough idle pages.
    fn restart_other(&mut self, name: Name, size: PageSize, pages: Pages) {
        let idle = |pool: &Pool| Pages(pool.free) - Pages(pool.reserved);
        if self.pool(size).is_none_or(|pool| idle(pool) < pages) {
            return;
        }
        let servers = self.state.other_servers.as_deref_mut().unwrap_or_default();
        let Some(server) = servers.iter_mut().find(|server| name.is_of(server)) else {
            return;
        };
        let Some(segment) = &mut server.segment else {
            return;
        };
        let bytes = Bytes(segment.bytes);
        segment.page_bytes = Some(size.0);
        let released = Bytes(server.rss_shmem_bytes.take().unwrap_or(0));
        if let Some(pool) = self.pool_mut(size) {
            pool.reserved += pages.0;
        }
        if let Some(Ok(usage)) = self.whole_state_mut().map(|state| &mut state.usage) {
            usage.available = usage.available.map(|now| (Bytes(now) + released).0);
            usage.committed = usage.committed.map(|now| (Bytes(now) - bytes).0);
        }
    }

    fn map_small_pages(&mut self, next: &Server) {
        let base = self.base_size();
        let bytes = Bytes(next.shared_memory_bytes).in_pages(base) * base;
        if let Some(Ok(usage)) = self.whole_state_mut().map(|state| &mut state.usage) {
            usage.committed = usage.committed.map(|all| (Bytes(all) + bytes).0);
        }
        self.state.segment = Ok(Segment {
            bytes: bytes.0,
            page_bytes: Some(base.0),
            mappings: 1,
        });
    }

    /// With strict overcommit, whether enough can still be committed, or no less than before all
    /// steps.
    fn keep_room_to_commit(&self) -> Result<(), Blocked> {
        let Some(limit) = CommitLimit::of(self) else {
            return Ok(());
        };
        let before = CommitLimit::of(&self.before_steps());
        let missing = before.map_or(Bytes(0), |before| before.missing());
        match limit.missing() > missing {
            true => Err(Blocked::CommitLimit(limit)),
            false => Ok(()),
        }
    }

    /// New processes have faulted in nothing of the segment, and have the new service settings.
    fn update_processes(&mut self) {
        let backing = self.backing();
        let segment = self
            .segment()
            .map_or(Bytes(0), |segment| Bytes(segment.bytes));
        let base = self.base_size();
        let services = std::mem::take(&mut self.service);
        let of_backends = self.oom_score_of_backends();
        if !self.facts.is_whole {
            return;
        }
        self.state.segment_thp_bytes = None;
        let state = &mut self.state;
        let nodes = state
            .segment_nodes
            .iter_mut()
            .flat_map(|nodes| nodes.values_mut());
        nodes.for_each(|pages| *pages = 0);
        if let Backing::HugePages(size) = backing {
            page_tables::move_to(&mut self.state.processes, segment, base, size);
        }
        for process in &mut self.state.processes {
            process.rss_shmem = process.rss_shmem.map(|_| 0);
            // Only its children are assumed to fault in the segment again.
            if process.is_postmaster {
                process.page_tables = process.page_tables.map(|_| 0);
            }
        }
        for service in services {
            match service {
                ServiceChange::ProtectPostmaster => {
                    self.state.oom_score_adj = self
                        .state
                        .oom_score_adj
                        .as_ref()
                        .map(|_| -900)
                        .map_err(Clone::clone);
                    for process in &mut self.state.processes {
                        process.oom_score_adj = Some(match process.is_postmaster {
                            true => -900,
                            false => of_backends,
                        });
                    }
                    self.continue_after_kill();
                }
                ServiceChange::ExposeBackends => {
                    for process in self.state.processes.iter_mut().filter(|p| !p.is_postmaster) {
                        process.oom_score_adj = Some(of_backends);
                    }
                    self.continue_after_kill();
                }
                ServiceChange::ContinueAfterKill => self.continue_after_kill(),
                ServiceChange::Interleave => {}
            }
        }
    }

    fn continue_after_kill(&mut self) {
        if let Some(unit) = &mut self.state.unit {
            unit.oom_policy = Ok(OomPolicy::Continue);
        }
    }

    fn set_thp(&mut self, file: &str, mode: &str) {
        let Some(Ok(modes)) = self.whole_state_mut().map(|state| &mut state.thp) else {
            return;
        };
        let mode = Some(mode.to_owned());
        match file {
            "enabled" => modes.enabled = mode,
            "shmem_enabled" => modes.shmem_enabled = mode,
            _ => {
                for size in &mut modes.sizes {
                    let directory = format!("hugepages-{}kB", size.page_bytes >> 10);
                    if file == format!("{directory}/enabled") {
                        size.enabled.clone_from(&mode);
                    } else if file == format!("{directory}/shmem_enabled") {
                        size.shmem_enabled.clone_from(&mode);
                    }
                }
            }
        }
    }
}

/// Judges a start after a pool has grown. Errors: the start has too little memory, or exceeds a
/// limit, and did not before.
fn keep_start(before: &Machine, after: &Machine) -> Result<(), Blocked> {
    let had = start::misfit(before);
    let is_worse = |fit: &Fit| match &had {
        None => true,
        Some(had) => fit.is_certain() && !had.is_certain(),
    };
    if let Some(fit) = start::misfit(after).filter(is_worse) {
        return Err(Blocked::WouldNotFit(fit));
    }
    match before.can_use_huge_pages() {
        Ok(()) => after.can_use_huge_pages(),
        Err(_) => Ok(()),
    }
}

/// The settings of a start from the files alone, after a change of the files that also changes the
/// next start from `before` to `after`.
fn changed_alike(mut files: Server, before: &Server, after: &Server) -> Server {
    if after.huge_pages != before.huge_pages {
        files.huge_pages = after.huge_pages;
    }
    if after.shared_memory_type != before.shared_memory_type {
        files.shared_memory_type = after.shared_memory_type;
    }
    if after.huge_page_size_bytes != before.huge_page_size_bytes {
        files.huge_page_size_bytes = after.huge_page_size_bytes;
    }
    // Each setting adds its part to the segment.
    let bytes = Bytes(files.shared_memory_bytes) + Bytes(after.shared_memory_bytes);
    files.shared_memory_bytes = (bytes - Bytes(before.shared_memory_bytes)).0;
    files
}

/// Pages for which free memory has whole blocks. Unknown counts as enough.
pub fn ready_pages(machine: &Machine, size: PageSize) -> Pages {
    let blocks = machine.whole().map(|facts| &facts.free_blocks);
    match blocks {
        Some(Ok(blocks)) => {
            let base = machine.state.base_page_bytes;
            Pages(blocks.huge_pages(size.0, base).unwrap_or(0))
        }
        _ => Pages(u64::MAX),
    }
}
