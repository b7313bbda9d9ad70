//! A server and its machine, as they are or as they would be after some steps.

use std::{collections::BTreeSet, sync::Arc};

use host::server::{
    configuration::RequestedPages,
    facts::Facts,
    setting::{FileLine, SettingSource},
    state::{AllowedNodes, Backing, Files, HugePages, Server, SharedMemoryType, State},
    unit::OomPolicy,
};
use host::{
    linux::{
        boot::NextBoot,
        error::{Absence, Absent},
        hugepages::Pool,
        meminfo::Usage,
        numa::node::Node,
        process::segment::Segment,
    },
    units::{Bytes, PageSize, Pages},
};

use crate::{
    model::{
        allowed_part::{AllowedPart, allowed_parts},
        faulted_in::FaultedIn,
        step::{ServiceChange, SettingPlace},
    },
    thresholds::{
        AVAILABLE_OF_FREE_PERCENT, KERNEL_RESERVES_OF_NODES_PERCENT, RAM_OF_NODES_PERCENT,
    },
};

/// Whether the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It runs.
    Running,
    /// It was stopped, or has not been started.
    Stopped,
    /// There is no data directory yet.
    NotCreated,
}

/// A server and its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The facts, as they were read.
    pub facts: Arc<Facts>,
    /// The state after the steps that have been applied.
    pub state: State,
    /// Whether the server runs.
    pub server_state: ServerState,
    /// The part of each pool on the nodes that the server is allowed to use. Empty: it is not
    /// bound.
    pub allowed_parts: Vec<AllowedPart>,
    /// Bytes of the segment that have been faulted in.
    pub faulted_in: FaultedIn,
    /// Whether `/proc/meminfo` shows the memory of the host.
    pub shows_host_memory: bool,
    /// Whether memory has been compacted.
    pub is_compacted: bool,
    /// Changes of the service that take effect at the next start.
    pub service: Vec<ServiceChange>,
    /// Names of muted checks.
    pub muted: BTreeSet<&'static str>,
}

impl Machine {
    /// The machine as it was read.
    pub fn new(facts: Facts) -> Self {
        let state = facts.state.clone();
        let mut machine = Self {
            allowed_parts: allowed_parts(&facts),
            faulted_in: FaultedIn::of(&state),
            facts: Arc::new(facts),
            state,
            server_state: ServerState::Running,
            shows_host_memory: false,
            is_compacted: false,
            service: Vec::new(),
            muted: BTreeSet::new(),
        };
        machine.shows_host_memory = machine.is_memory_of_host();
        machine
    }

    /// All facts. `None`: only those of [`Facts::read`] were read.
    pub fn whole(&self) -> Option<&Facts> {
        self.facts.is_whole.then_some(&*self.facts)
    }

    /// The state, if all of it was read.
    pub(crate) fn whole_state(&self) -> Option<&State> {
        self.facts.is_whole.then_some(&self.state)
    }

    pub(crate) fn whole_state_mut(&mut self) -> Option<&mut State> {
        self.facts.is_whole.then_some(&mut self.state)
    }

    /// Whether the server ran when the facts were read.
    pub fn did_run(&self) -> bool {
        let segment = self.facts.state.segment.as_ref();
        segment.map_or(true, |segment| segment.bytes > 0)
    }

    /// The boot configuration that this boot found, before any step changed it.
    pub fn this_boot(&self) -> Option<&NextBoot> {
        self.facts.state.next_boot.as_ref().ok()
    }

    /// This machine as it was read, before any step.
    #[must_use]
    pub(crate) fn before_steps(&self) -> Self {
        Self {
            faulted_in: FaultedIn::of(&self.facts.state),
            state: self.facts.state.clone(),
            ..self.clone()
        }
    }

    /// This machine with other settings of the next start.
    #[must_use]
    pub fn with_next_start(&self, next: Server) -> Self {
        let mut machine = self.clone();
        if next != self.next_start() {
            machine.state.next.server = Some(next);
        }
        machine
    }

    /// This machine, if the next start is one from the files alone. `None`: the same, or unknown.
    pub fn next_start_from_files(&self) -> Option<Self> {
        let files = self.state.next.from_files.clone()?;
        Some(self.with_next_start(files))
    }

    /// This machine without the requests of other servers. The pool does not grow for them, but
    /// idle pages stay.
    #[must_use]
    pub fn without_requests(&self) -> Self {
        let mut machine = self.clone();
        for server in machine.state.other_servers.iter_mut().flatten() {
            if server.huge_pages.value() != Some(HugePages::Off) {
                server.huge_pages = RequestedPages::Unknown(None);
            }
        }
        machine
    }

    /// The settings of the next start, with the exact size of the segment as far as it is known.
    pub fn next_start(&self) -> Server {
        Server {
            shared_memory_bytes: self.state.needed_bytes(),
            ..self.state.next_start().clone()
        }
    }

    /// The settings of the next start, changed so that it asks for huge pages of a size that the
    /// kernel has.
    pub fn next_start_on_huge_pages(&self) -> Server {
        let state = &self.state;
        let next = self.next_start();
        let has_size = state.target_pool().is_some() || state.pools.is_err();
        Server {
            huge_pages: match next.huge_pages {
                HugePages::Off => HugePages::Try,
                on_or_try => on_or_try,
            },
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: next.huge_page_size_bytes.filter(|_| has_size),
            ..next
        }
    }

    /// The huge page size that a start with these settings asks for. `None`: the kernel names none.
    pub fn size_asked_for(&self, server: &Server) -> Option<PageSize> {
        self.state.huge_page_of(server).map(PageSize)
    }

    /// The huge page size that a start with these settings tries to map. `None`: it does not ask
    /// for huge pages, or the kernel names no size.
    pub fn size_to_map(&self, server: &Server) -> Option<PageSize> {
        self.size_asked_for(server)
            .filter(|_| server.asks_for_huge_pages())
    }

    pub fn pool(&self, size: PageSize) -> Option<&Pool> {
        self.state.pool(size.0)
    }

    pub(crate) fn pool_mut(&mut self, size: PageSize) -> Option<&mut Pool> {
        let mut pools = self.state.pools.iter_mut().flatten();
        pools.find(|pool| pool.page_bytes == size.0)
    }

    /// The part of that pool on the nodes that the server is allowed to use. `None`: the server is
    /// not bound, or it is unknown.
    pub fn allowed_part(&self, size: PageSize) -> Option<&AllowedPart> {
        self.allowed_parts.iter().find(|part| part.size == size)
    }

    pub(crate) fn allowed_part_mut(&mut self, size: PageSize) -> Option<&mut AllowedPart> {
        let mut parts = self.allowed_parts.iter_mut();
        parts.find(|part| part.size == size)
    }

    /// Why the use of a pool by this server and others is unknown.
    pub fn why_use_is_unknown(&self, size: PageSize) -> String {
        match self.pool(size).and_then(Pool::bad_counter) {
            Some(absent) => absent.to_string(),
            None => "the main shared memory segment cannot be read".to_owned(),
        }
    }

    /// All pools that can be seen, smallest page first.
    pub fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.state.pools.iter().flatten()
    }

    /// The size that the kernel uses where none is named.
    pub fn default_size(&self) -> Option<PageSize> {
        let meminfo = self.state.meminfo.as_ref().ok()?;
        meminfo.default_huge_page_bytes.map(PageSize)
    }

    pub fn base_size(&self) -> PageSize {
        PageSize(self.state.base_page_bytes)
    }

    /// The pages that back the segment.
    pub fn backing(&self) -> Backing {
        self.state.backing()
    }

    /// Whether the segment is on huge pages. `None`: unknown.
    pub fn is_on_huge_pages(&self) -> Option<bool> {
        self.backing().is_huge()
    }

    /// The lowest `oom_score_adj` of the children of the postmaster. `None`: unknown.
    pub(crate) fn least_oom_score_of_children(&self) -> Option<i32> {
        let processes = self.state.processes.iter();
        let children = processes.filter(|process| !process.is_postmaster);
        children.filter_map(|process| process.oom_score_adj).min()
    }

    /// `oom_score_adj` of new backends in remedies. Not below the present one, and not below that
    /// of the postmaster, which it keeps if only the backends are changed.
    pub fn oom_score_of_backends(&self) -> i32 {
        let postmaster = self.state.oom_score_adj.as_ref().ok().copied();
        let present = self.least_oom_score_of_children().max(postmaster);
        present.map_or(0, |score| score.max(0))
    }

    /// Whether systemd stops the server after the OOM killer has killed one of its processes, as
    /// far as known.
    pub(crate) fn stops_after_kill(&self) -> bool {
        let unit = self.state.unit.as_ref();
        unit.is_some_and(|unit| unit.oom_policy != Ok(OomPolicy::Continue))
    }

    /// The segment. `None`: it cannot be read.
    pub fn segment(&self) -> Option<&Segment> {
        self.state.segment.as_ref().ok()
    }

    /// Pages of that size that the running server has, faulted in or reserved. `None`: unknown.
    pub fn pages_held(&self, size: PageSize) -> Option<Pages> {
        let segment = self.segment()?;
        let is_on = segment.page_bytes? == size.0;
        Some(if is_on {
            Bytes(segment.bytes).whole_pages(size)
        } else {
            Pages(0)
        })
    }

    /// Pages of that size that a start with these settings maps.
    ///
    /// PostgreSQL states its need in whole MB. Where that is rounded up to a `huge_page_size` that
    /// is not a power of two, it can be a page more than the running server has.
    pub fn pages_mapped(&self, next: &Server, size: PageSize) -> Pages {
        let pages = Pages(next.pages(size.0));
        let is_unchanged = self.state.next.server.is_none()
            && next.huge_page_size_bytes == self.state.server.huge_page_size_bytes;
        match self.pages_held(size) {
            Some(held) if is_unchanged && held > Pages(0) && held + Pages(1) == pages => held,
            _ => pages,
        }
    }

    /// Memory of the host by use. `None`: unknown.
    pub fn usage(&self) -> Option<&Usage> {
        self.state.usage.as_ref().ok()
    }

    /// The boot configuration. `None`: not read, or it cannot be read.
    pub fn next_boot(&self) -> Option<&NextBoot> {
        self.whole_state()?.next_boot.as_ref().ok()
    }

    /// `MemTotal`.
    pub fn ram(&self) -> Option<Bytes> {
        let meminfo = self.state.meminfo.as_ref().ok()?;
        meminfo.total_bytes.map(Bytes)
    }

    /// Whether `/proc/meminfo` is that of the host. A container can have one of its own (lxcfs),
    /// with less memory than the host's pools or nodes hold.
    fn is_memory_of_host(&self) -> bool {
        let Some(ram) = self.ram() else {
            return false;
        };
        let pools = self.pools();
        let pools = pools.map(|pool| Pages(pool.total) * PageSize(pool.page_bytes));
        let nodes = self.nodes().unwrap_or_default().iter();
        let (of_nodes, free) = nodes.fold((Bytes(0), Bytes(0)), |(total, free), node| {
            (
                total + Bytes(node.memory.total.unwrap_or(0)),
                free + Bytes(node.memory.free.unwrap_or(0)),
            )
        });
        let is_whole = ram >= pools.sum() && ram >= of_nodes.percent(RAM_OF_NODES_PERCENT);
        // Free memory is available, apart from reserves of the kernel.
        let available = self.usage().and_then(|usage| usage.available);
        let is_available = available.is_none_or(|bytes| {
            Bytes(bytes)
                >= free.percent(AVAILABLE_OF_FREE_PERCENT)
                    - of_nodes.percent(KERNEL_RESERVES_OF_NODES_PERCENT)
        });
        is_whole && is_available
    }

    /// The NUMA nodes; empty where the kernel knows none. `None`: not read, or unknown.
    pub fn nodes(&self) -> Option<&[Node]> {
        match &self.whole()?.nodes {
            Ok(nodes) => Some(nodes),
            Err(absent) if *absent == Absent::not_looked_at() => None,
            Err(absent) if absent.why == Absence::Missing => Some(&[]),
            Err(_) => None,
        }
    }

    /// Whether the server is restricted to some of the NUMA nodes.
    pub fn is_bound_to_nodes(&self) -> bool {
        matches!(self.facts.allowed_nodes, AllowedNodes::Only(_))
    }

    pub fn is_muted(&self, check: &str) -> bool {
        self.muted.contains(check)
    }

    /// The settings of the next start, if a restart would change the segment or its pages.
    pub fn pending(&self) -> Option<&Server> {
        let next = self.state.next.server.as_ref();
        let is_running = self.server_state == ServerState::Running;
        next.filter(|next| is_running && !self.state.is_as_now(next))
    }

    /// The command that computes whether a server on small pages asks for huge pages, if nothing
    /// else shows it.
    pub fn unknown_request(&self) -> Option<&str> {
        let next = &self.whole_state()?.next;
        let setting = next.settings.get("huge_pages");
        let is_known = setting.is_some_and(|known| known.source == SettingSource::CommandLine);
        match &next.files {
            Files::NotNamed(command) if !is_known && self.backing() == Backing::SmallPages => {
                Some(command)
            }
            _ => None,
        }
    }

    /// Whether an administrator turned huge pages off: the default is `try`.
    pub fn is_turned_off(&self) -> bool {
        self.state.next_start().huge_pages == HugePages::Off
    }

    /// Whether settings that an administrator chose keep the next start off huge pages: `sysv` is
    /// never a default. PostgreSQL does not start with `sysv` and `huge_pages = on`.
    pub fn is_kept_off(&self) -> bool {
        let next = self.state.next_start();
        let is_sysv = next.shared_memory_type == SharedMemoryType::Sysv;
        self.is_turned_off() || is_sysv && next.huge_pages != HugePages::On
    }

    /// Whether a change that is pending or planned keeps the next start off huge pages.
    pub(crate) fn will_turn_off(&self) -> bool {
        self.is_kept_off() && !self.state.next_start().asks_alike(&self.state.server)
    }

    /// The place where a setting can be changed so that the next start uses it. `source`: `None` if
    /// it is that of the running server.
    pub fn setting_place(&self, name: &str, source: Option<&SettingSource>) -> SettingPlace {
        let known = self.state.next.settings.get(name);
        let source = source.or(known.map(|setting| &setting.source));
        let is_forbidden = self.whole().is_some_and(|facts| !facts.allows_alter_system);
        match source {
            Some(SettingSource::CommandLine) => SettingPlace::CommandLine,
            Some(SettingSource::File(line)) if is_forbidden => SettingPlace::File(line.clone()),
            // Takes precedence over the other files, even if no session can write it.
            Some(SettingSource::AutoConf) if is_forbidden => SettingPlace::File(Some(FileLine {
                path: "postgresql.auto.conf".into(),
                line: 0,
            })),
            _ if is_forbidden => SettingPlace::File(None),
            _ => SettingPlace::AlterSystem,
        }
    }
}
