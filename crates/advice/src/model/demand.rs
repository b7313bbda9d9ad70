//! Demands of servers and other programs on the huge pages of a pool. Single source of truth: every
//! page count shown to users is a sum of demands.

use std::fmt;

use host::server::{
    configuration::RequestedPages,
    instances::Instance,
    state::{Backing, Files, HugePages, Server, SharedMemoryType},
    visibility::Visibility,
};
use host::{
    linux::{error::Absent, hugepages::Pool},
    units::{Bytes, PageSize, Pages},
};

use crate::model::{
    limits,
    machine::{Machine, ServerState},
    memory::{self, CommitLimit},
};

/// The check that, muted, keeps the requests of other servers from counting.
const OTHER_SERVERS: &str = "other_servers";

/// Pages that a server or other programs need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The server or the programs that need them.
    pub who: Who,
    pub pages: Pages,
}

/// A server, or other programs, that need pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    ThisServer,
    /// This server, in addition, if it starts from its files alone.
    FromFiles,
    /// Another server on huge pages.
    OtherServer(Name),
    /// Another server on small pages that asks for huge pages when it starts.
    Asking(Name, HugePages),
    /// Processes that are not visible PostgreSQL servers, or the kernel.
    OtherPrograms,
}

/// Identifies a server for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The port. `None`: `postmaster.pid` cannot be read.
    pub port: Option<u16>,
    /// The postmaster. 0: the server does not run.
    pub pid: u32,
    /// The user ID of a foreign server ([`Instance::is_foreign`]).
    pub foreign_uid: Option<u32>,
    /// Whether another server uses the same port, with another socket directory or address.
    pub is_port_shared: bool,
}

impl Name {
    pub fn of(machine: &Machine, server: &Instance) -> Self {
        let address = machine.facts.connection.address.as_ref();
        let own = address.map(|(_, port)| *port);
        let mut others = memory::other_servers(machine).iter();
        let has_same = |other: &Instance| other.port == server.port && other.pid != server.pid;
        Self {
            port: server.port,
            pid: server.pid,
            foreign_uid: server.owner_uid.filter(|_| server.is_foreign),
            is_port_shared: own == server.port || others.any(has_same),
        }
    }

    /// Whether this is the name of that server.
    pub fn is_of(&self, server: &Instance) -> bool {
        (self.port, self.pid) == (server.port, server.pid)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.is_port_shared && self.pid > 0 => {
                write!(f, "the server on port {port} with pid {}", self.pid)
            }
            Some(port) => write!(f, "the server on port {port}"),
            None if self.pid == 0 => write!(f, "a server that does not run"),
            None => write!(f, "the server with pid {}", self.pid),
        }?;
        match self.foreign_uid {
            Some(uid) => write!(f, " of user {uid}"),
            None => Ok(()),
        }
    }
}

/// When pages are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Now, and for the next start: the running server keeps its pages until then.
    Now,
    /// Once the server has been restarted.
    AfterRestart,
}

/// All demands on one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demands {
    pub size: PageSize,
    /// All demands. No entry is zero.
    pub all: Vec<Demand>,
}

impl Demands {
    /// The demands on a pool if the server starts with these settings.
    ///
    /// Other servers that ask for huge pages and do not have them count only as long as the host
    /// has the memory for all of them in addition to their present segments, because they get their
    /// pages when they restart. Otherwise, these servers do not count yet. They never count if
    /// `other_servers` is muted.
    ///
    /// `None`: the pools, or the pages of the running server, are unknown.
    pub fn of(machine: &Machine, size: PageSize, next: &Server, when: When) -> Option<Self> {
        if machine.is_muted(OTHER_SERVERS) {
            return Self::without_asking(machine, size, next, when);
        }
        let all = Self::with_asking(machine, size, next, when)?;
        if all.growth(machine) == Bytes(0) || Self::all_fit(machine, next, when)? {
            Some(all)
        } else {
            Self::without_asking(machine, size, next, when)
        }
    }

    /// Whether the host has the memory for the demands on all pools.
    fn all_fit(machine: &Machine, next: &Server, when: When) -> Option<bool> {
        let mut growth = Bytes(0);
        for pool in machine.pools() {
            let demands = Self::with_asking(machine, PageSize(pool.page_bytes), next, when);
            // A counter of this pool is below zero, so its demands are unknown.
            let Some(demands) = demands else {
                return Some(false);
            };
            growth = growth + demands.growth(machine);
        }
        let size = machine.size_to_map(next);
        let small = match size.filter(|size| machine.pool(*size).is_some()) {
            Some(_) => Bytes(0),
            None => Bytes(next.shared_memory_bytes),
        };
        let missing = memory::missing_once_stopped(machine, growth, small);
        Some(missing.unwrap_or_default() == Bytes(0))
    }

    /// Memory that the pool takes if it grows to all demands.
    fn growth(&self, machine: &Machine) -> Bytes {
        let pool = machine.pool(self.size).map_or(0, |pool| pool.total);
        (self.total() - Pages(pool)) * self.size
    }

    /// The demands at boot: those of [`Self::with_all`]. Other servers that request huge pages, and
    /// a start of this server from its files alone, count only if they fit in addition to the
    /// memory that other programs use now.
    ///
    /// Of the pages that no visible server holds, as many count as the boot line has room for. The
    /// kernel could have lost the others.
    pub fn at_boot(machine: &Machine, size: PageSize, next: &Server) -> Option<Self> {
        let mut all = Self::with_all(machine, size, next)?;
        let is_asking = |who: &Who| matches!(who, Who::Asking(..));
        let is_of_files = |who: &Who| *who == Who::FromFiles;
        if machine.is_muted(OTHER_SERVERS) {
            all = all.without(is_asking);
        }
        for demand in &mut all.all {
            if demand.who == Who::OtherPrograms {
                demand.pages = explained_by_line(machine, size, demand.pages);
            }
        }
        all.all.retain(|demand| demand.pages > Pages(0));
        let least = all.without(|who| is_asking(who) || is_of_files(who));
        let choices = [all.without(is_asking), all.without(is_of_files)];
        let fits = |demands: &Self| {
            let missing = demands.missing_at_boot(machine, demands.total());
            missing.unwrap_or_default() == Bytes(0)
        };
        let mut choices = std::iter::once(all).chain(choices);
        Some(choices.find(fits).unwrap_or(least))
    }

    /// The demands but these.
    fn without(&self, is_left_out: impl Fn(&Who) -> bool) -> Self {
        let mut fewer = self.clone();
        fewer.all.retain(|demand| !is_left_out(&demand.who));
        fewer
    }

    /// Bytes that are missing if the next boot sets this many pages, in addition to the pools of
    /// other sizes that it sets. `None`: unknown.
    pub fn missing_at_boot(&self, machine: &Machine, pages: Pages) -> Option<Bytes> {
        self.missing(machine, self.pools_at_boot(machine, pages))
    }

    /// Like [`Self::missing_at_boot`], now, once the servers on small pages have stopped, in
    /// addition to the present pools of other sizes.
    pub fn missing_now(&self, machine: &Machine) -> Option<Bytes> {
        let pool = machine.pool(self.size).map_or(0, |pool| pool.total);
        let others = memory::in_pools(machine) - Pages(pool) * self.size;
        self.missing(machine, self.total() * self.size + others)
    }

    /// Bytes in all pools if the next boot sets this many pages.
    pub fn pools_at_boot(&self, machine: &Machine, pages: Pages) -> Bytes {
        memory::in_pools_at_boot(machine, Some((self.size, pages)))
    }

    fn missing(&self, machine: &Machine, in_pools: Bytes) -> Option<Bytes> {
        memory::missing_at_boot(machine, in_pools, |server| self.moves(machine, server))
    }

    /// The present commit limit, if the pools were those of a boot that sets this many pages, and
    /// the servers that get these pages had left their small pages. `None`: there is none, pools do
    /// not lower it, or it is unknown.
    pub fn commit_limit_at_boot(&self, machine: &Machine, pages: Pages) -> Option<CommitLimit> {
        let limit = CommitLimit::with_pools(machine, self.pools_at_boot(machine, pages))?;
        let moved = memory::segments_on_small_pages(machine, |server| self.moves(machine, server));
        Some(CommitLimit {
            committed: limit.committed - moved,
            ..limit
        })
    }

    /// Whether a server on small pages gets pages of this pool. `None`: this server.
    fn moves(&self, machine: &Machine, server: Option<&Instance>) -> bool {
        let Some(server) = server else {
            return machine.size_to_map(&machine.next_start()).is_some();
        };
        let name = Name::of(machine, server);
        self.sum(|who| matches!(who, Who::Asking(asking, _) if *asking == name)) > Pages(0)
    }

    /// Like [`Self::with_asking`], after a restart or a boot. This server needs the larger of both
    /// starts: with its present options, and from its files alone.
    pub fn with_all(machine: &Machine, size: PageSize, next: &Server) -> Option<Self> {
        let mut all = Self::with_asking(machine, size, next, When::AfterRestart)?;
        all.raise_to(pages_from_files(
            machine,
            size,
            files_at_boot(machine, next),
        ));
        Some(all)
    }

    /// Raises the pages of this server to those of a start from its files alone.
    fn raise_to(&mut self, from_files: Pages) {
        if from_files <= self.of_this_server() {
            return;
        }
        let is_own = |demand: &Demand| demand.who == Who::ThisServer;
        let at = usize::from(self.all.first().is_some_and(is_own));
        self.all.retain(|demand| demand.who != Who::FromFiles);
        let who = Who::FromFiles;
        let pages = from_files - self.of_this_server();
        self.all.insert(at, Demand { who, pages });
    }

    /// Like [`Self::of`], with all servers that request huge pages, even if memory is too small for
    /// all of them. They get pages in addition to those that the pool has for a start of this
    /// server from its files alone.
    pub(crate) fn with_asking(
        machine: &Machine,
        size: PageSize,
        next: &Server,
        when: When,
    ) -> Option<Self> {
        let mut demands = Self::without_asking(machine, size, next, when)?;
        let asking = on_small_pages(machine, size).filter_map(|server| {
            let who = Who::Asking(server.name, server.setting?);
            let pages = server.pages;
            Some(Demand { who, pages })
        });
        let asking: Vec<_> = asking.collect();
        // As it was read: pages that a step adds for other servers are theirs.
        let had = machine.facts.state.pool(size.0);
        let had = Pages(had.map_or(0, Pool::persistent)) - demands.held_by_others();
        let files = pages_from_files(machine, size, files_at_boot(machine, next));
        if files <= had && !asking.is_empty() {
            demands.raise_to(files);
        }
        demands.all.extend(asking);
        Some(demands)
    }

    fn without_asking(
        machine: &Machine,
        size: PageSize,
        next: &Server,
        when: When,
    ) -> Option<Self> {
        let held = machine.pages_held(size)?;
        let own_next = pages_of_next_start(machine, size, next);
        let own = match when {
            When::Now => own_next.max(held),
            When::AfterRestart => own_next,
        };
        machine.state.pools.as_ref().ok()?;
        let committed = match machine.pool(size) {
            Some(pool) => pool.committed()?,
            None => 0,
        };
        let mut others = Pages(committed) - held;
        let mut all = vec![Demand {
            who: Who::ThisServer,
            pages: own,
        }];
        for server in memory::other_servers(machine) {
            let segment = server.segment.as_ref();
            let on_pool = segment.filter(|segment| segment.page_bytes == Some(size.0));
            let pages = on_pool.map_or(Pages(0), |segment| {
                Bytes(segment.bytes).in_pages(size).min(others)
            });
            others = others - pages;
            all.push(Demand {
                who: Who::OtherServer(Name::of(machine, server)),
                pages,
            });
        }
        all.push(Demand {
            who: Who::OtherPrograms,
            pages: others,
        });
        all.retain(|demand| demand.pages > Pages(0));
        let demands = Self { size, all };
        Some(demands.for_both_starts(machine, next).unwrap_or(demands))
    }

    /// A pool that has to grow for this server grows for both of its starts, if they fit.
    fn for_both_starts(&self, machine: &Machine, next: &Server) -> Option<Self> {
        let files = files_at_boot(machine, next)?;
        let files = pages_from_files(machine, self.size, Some(files));
        let had = machine.facts.state.pool(self.size.0)?;
        let mut both = self.clone();
        both.raise_to(files);
        let growth = both.growth(machine);
        let missing = memory::missing_once_stopped(machine, growth, Bytes(0));
        // As it was read: steps do not change whether it has to grow.
        let others = Pages(had.committed()?) - machine.before_steps().pages_held(self.size)?;
        let grows = Pages(had.total) < self.of_this_server() + others;
        (grows && missing.unwrap_or_default() == Bytes(0)).then_some(both)
    }

    /// Pages that all of them need.
    pub fn total(&self) -> Pages {
        self.all.iter().map(|demand| demand.pages).sum()
    }

    /// Pages that this server needs.
    pub fn of_this_server(&self) -> Pages {
        self.sum(|who| matches!(who, Who::ThisServer | Who::FromFiles))
    }

    /// Pages in use or reserved by others.
    pub fn held_by_others(&self) -> Pages {
        self.sum(|who| matches!(who, Who::OtherServer(_) | Who::OtherPrograms))
    }

    /// Pages that other servers on small pages ask for.
    pub fn asked_by_others(&self) -> Pages {
        self.sum(|who| matches!(who, Who::Asking(..)))
    }

    /// The servers on small pages that ask for pages.
    pub fn asking(&self) -> impl Iterator<Item = (Name, Pages)> {
        self.all.iter().filter_map(|demand| match demand.who {
            Who::Asking(name, _) => Some((name, demand.pages)),
            _ => None,
        })
    }

    /// Pages of the demands that `is_meant` selects.
    pub fn sum(&self, is_meant: impl Fn(&Who) -> bool) -> Pages {
        let all = self.all.iter().filter(|demand| is_meant(&demand.who));
        all.map(|demand| demand.pages).sum()
    }
}

impl fmt::Display for Demands {
    /// The end of a sentence: `72 are needed`, or `needed: 212 = 72 for this server + 140 for the
    /// server on port 5433 (huge_pages = try)`. Many servers are summed up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 4;
        match self.all.as_slice() {
            [] => return write!(f, "none is needed"),
            [
                Demand {
                    who: Who::ThisServer,
                    pages: Pages(1),
                },
            ] => return write!(f, "1 is needed"),
            [
                Demand {
                    who: Who::ThisServer,
                    pages,
                },
            ] => return write!(f, "{pages} are needed"),
            [Demand { who, pages }] => return write!(f, "needed: {pages} {who}"),
            _ => write!(f, "needed: {}", self.total())?,
        }
        let shown = match self.all.len() {
            few if few <= MOST => few,
            _ => MOST - 1,
        };
        for (index, demand) in self.all[..shown].iter().enumerate() {
            let sign = if index == 0 { " =" } else { " +" };
            write!(f, "{sign} {} {}", demand.pages, demand.who)?;
        }
        let rest = &self.all[shown..];
        if !rest.is_empty() {
            let pages: Pages = rest.iter().map(|demand| demand.pages).sum();
            write!(f, " + {pages} for {} others", rest.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Who {
    /// The words that follow a number of pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisServer => write!(f, "for this server"),
            Self::FromFiles => write!(
                f,
                "if this server starts without the options of its command line"
            ),
            Self::OtherServer(name) => write!(f, "for {name}"),
            Self::Asking(name, setting) => {
                write!(f, "for {name} (huge_pages = {})", setting.as_str())
            }
            Self::OtherPrograms => write!(f, "that no visible server holds"),
        }
    }
}

/// The part of `held`, the pages that no visible server holds, for which the boot line is large
/// enough in addition to the rest of the pool. The pool and the line are those that were read, so
/// that no step of a plan changes the answer.
fn explained_by_line(machine: &Machine, size: PageSize, held: Pages) -> Pages {
    let line = machine.this_boot().and_then(|boot| boot.pages(size.0));
    let line = Pages(line.map_or(0, |line| line.pages));
    let pool = machine.facts.state.pool(size.0);
    let rest = Pages(pool.map_or(0, |pool| pool.total)) - held;
    held.min(line - rest)
}

/// Pages that no visible server holds and that no boot line explains.
pub(crate) fn unexplained(machine: &Machine, size: PageSize) -> Pages {
    let next = machine.next_start();
    let held = Demands::without_asking(machine, size, &next, When::AfterRestart);
    let held = held.map_or(Pages(0), |held| held.sum(|who| *who == Who::OtherPrograms));
    held - explained_by_line(machine, size, held)
}

/// Pages of that size that a start with these settings takes.
pub fn pages_of_next_start(machine: &Machine, size: PageSize, next: &Server) -> Pages {
    if machine.size_to_map(next) == Some(size) {
        machine.pages_mapped(next, size)
    } else {
        Pages(0)
    }
}

/// Pages of that size that a start from the files alone takes. `files`: `None` if it is like the
/// next start, or does not count.
pub(crate) fn pages_from_files(machine: &Machine, size: PageSize, files: Option<&Server>) -> Pages {
    files.map_or(Pages(0), |files| {
        // The number of pages that the running server holds is not that of these settings.
        pages_of_next_start(&machine.with_next_start(files.clone()), size, files)
    })
}

/// The settings of a start from the files alone, if the next boot needs huge pages for it. A server
/// whose options keep huge pages off, or are for pages of another size, needs none, unless its
/// files set `huge_pages = on`.
fn files_at_boot<'m>(machine: &'m Machine, next: &Server) -> Option<&'m Server> {
    let files = machine.state.next.from_files.as_ref();
    let own = machine.size_to_map(next);
    files.filter(|files| {
        let size = machine.size_to_map(files);
        let has_same_size = own.is_some() && size == own;
        // Limits that are too low for the files do not keep this server from its own pages.
        let is_allowed = size.is_none_or(|size| {
            let pages = pages_from_files(machine, size, Some(files));
            limits::to_raise(machine, size, pages).is_empty()
                && memory::missing_for_huge_pages(machine, pages * size).is_none()
        });
        (has_same_size || files.huge_pages == HugePages::On) && is_allowed
    })
}

/// The sizes of the pages that the next boot needs for this server.
pub(crate) fn sizes_at_boot(machine: &Machine, next: &Server) -> Vec<PageSize> {
    let own = machine.size_to_map(next);
    let from_files = files_at_boot(machine, next).and_then(|files| machine.size_to_map(files));
    let from_files = from_files.filter(|size| {
        let is_needed = || {
            let demands = Demands::at_boot(machine, *size, next);
            demands.is_none_or(|demands| demands.total() > Pages(0))
        };
        machine.pool(*size).is_some() && own != Some(*size) && is_needed()
    });
    own.into_iter().chain(from_files).collect()
}

/// Another server on small pages that asks for huge pages, or could.
#[derive(Debug, Clone)]
pub struct OnSmallPages {
    pub name: Name,
    /// `huge_pages` of the server. `None`: unknown, not credible ([`Instance::is_credible`]), or a
    /// limit keeps it from using huge pages.
    pub setting: Option<HugePages>,
    /// The pages it would need.
    pub pages: Pages,
    /// Whether a cgroup allows it fewer pages: its next start would succeed, and the server would
    /// crash later.
    pub is_limited: bool,
    /// The file that makes `huge_pages` unknown.
    pub look_at: Option<Vec<u8>>,
}

/// Other servers on small pages of which it is unknown whether they ask for huge pages of that
/// size and can use them.
pub fn with_unknown_request(machine: &Machine, size: PageSize) -> Vec<OnSmallPages> {
    on_small_pages(machine, size)
        .filter(|server| server.setting.is_none() && server.pages > Pages(0))
        .collect()
}

/// Other servers on small pages that ask for huge pages of that size, or could.
fn on_small_pages(machine: &Machine, size: PageSize) -> impl Iterator<Item = OnSmallPages> {
    let asks = move |requested: &RequestedPages| match requested {
        RequestedPages::Known(HugePages::Off, _) => None,
        RequestedPages::Known(setting, Some(bytes)) => {
            let named = Some(*bytes).filter(|bytes| *bytes > 0);
            let asked = machine.state.huge_page_of_setting(named);
            (asked == Some(size.0)).then_some(Some(*setting))
        }
        RequestedPages::Known(_, None) | RequestedPages::Unknown(_) => Some(None),
    };
    let servers = memory::other_servers(machine).iter();
    servers
        .filter(move |_| machine.pool(size).is_some())
        .filter(|server| server.shared_memory_type != Some(SharedMemoryType::Sysv))
        .filter_map(move |server| {
            let segment = server.segment.as_ref()?;
            let page_bytes = segment.page_bytes;
            let is_huge = page_bytes.is_some_and(|bytes| bytes > machine.state.base_page_bytes);
            let setting = asks(&server.huge_pages).filter(|_| !is_huge)?;
            let is_limited = (server.fault_limits.iter())
                .any(|&(bytes, limit)| bytes == size.0 && limit < segment.bytes);
            Some(OnSmallPages {
                name: Name::of(machine, server),
                // With an unknown page size, it could have its huge pages already.
                setting: setting
                    .filter(|_| page_bytes.is_some() && !is_limited && server.is_credible()),
                pages: Bytes(segment.bytes).in_pages(size),
                is_limited,
                look_at: match &server.huge_pages {
                    RequestedPages::Unknown(file) => file.clone(),
                    RequestedPages::Known(..) => None,
                },
            })
        })
}

/// Servers that could want huge pages and cannot be judged from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Processes of other users are hidden, or the list of processes cannot be read.
    Processes,
    /// Servers in other PID namespaces, such as containers.
    OtherNamespaces,
    /// This many servers are visible, but their memory cannot be read.
    Servers(usize),
}

/// Whether idle pages could be meant for servers that are not visible. `None`: all are visible, or
/// not all facts were read.
pub fn hidden_servers(machine: &Machine) -> Option<Hidden> {
    let facts = machine.whole()?;
    let Ok(servers) = &machine.state.other_servers else {
        return Some(Hidden::Processes);
    };
    if facts.visibility == Visibility::Hidden {
        return Some(Hidden::Processes);
    }
    let unreadable = servers.iter().filter(|server| server.segment.is_none());
    match (unreadable.count(), facts.visibility) {
        (0, Visibility::Namespace) => Some(Hidden::OtherNamespaces),
        (0, _) => None,
        (count, _) => Some(Hidden::Servers(count)),
    }
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processes => write!(f, "processes of other users are not visible"),
            Self::OtherNamespaces => {
                write!(f, "servers in other containers are not visible from here")
            }
            Self::Servers(1) => write!(f, "the memory of another server cannot be read"),
            Self::Servers(count) => {
                write!(f, "the memory of {count} other servers cannot be read")
            }
        }
    }
}

/// Idle pages that no known boot configuration explains: a person or the service of another program
/// set them up. It is unknown whether somebody needs them.
pub(crate) fn idle_of_unknown_owner(machine: &Machine, size: PageSize) -> Pages {
    let is_read = machine.state.next_boot != Err(Absent::not_looked_at());
    let Some(pool) = machine
        .pool(size)
        .filter(|_| is_read && machine.whole().is_some())
    else {
        return Pages(0);
    };
    let by_line = pages_in_line(at_boot(machine, size).as_ref());
    let used = Pages(pool.committed().unwrap_or(pool.total));
    Pages(pool.persistent()) - used.max(by_line)
}

/// Pages of the pool that are needed, or that the boot configuration explains. `None`: unknown.
pub(crate) fn without_unknown_owner(machine: &Machine, size: PageSize) -> Option<Pages> {
    let demands = Demands::of(machine, size, &machine.next_start(), When::AfterRestart)?;
    let has = Pages(machine.pool(size)?.persistent());
    let by_line = pages_in_line(at_boot(machine, size).as_ref());
    Some(demands.total().max(by_line.min(has)))
}

/// The number of pages that a pool should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolTarget {
    /// Demands while the server runs.
    pub now: Demands,
    /// Demands once it has been restarted.
    pub after: Demands,
    /// Pages that this server asked for when it started and did not get. The boot line could be for
    /// them.
    pub missed: Pages,
    /// Persistent pages of the pool.
    pub persistent: Pages,
    /// Pages that the boot configuration asks for, and where. They are not idle, because they could
    /// be meant for programs that do not run now.
    pub at_boot: Option<(Pages, String)>,
    /// Servers that could want the pages beyond the demands. `None`: there are none.
    pub idle_for: Option<IdleFor>,
}

/// Why idle pages are not free to be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleFor {
    /// Servers that are not visible could want them.
    Hidden(Hidden),
    /// This server on small pages could be meant to use them.
    Server(Name),
    /// Settings are pending, and the pages that they need are unknown.
    PendingSettings(String),
    /// The pages that the next start needs are unknown until this command computes them.
    NotNamed(String),
    /// The boot configuration could ask for them, which is unknown.
    UnknownBoot(String),
    /// A start without the options of the command line needs this many in all.
    Files(Pages),
}

impl PoolTarget {
    /// The target of a pool if the server starts with these settings. `None`: unknown.
    pub fn of(machine: &Machine, size: PageSize, next: &Server) -> Option<Self> {
        let pool = machine.pool(size)?;
        let after = Demands::of(machine, size, next, When::AfterRestart)?;
        // Pages that a restart leaves to other servers are not idle before it.
        let now = match after.asked_by_others() {
            Pages(0) => Demands::without_asking(machine, size, next, When::Now)?,
            _ => Demands::with_asking(machine, size, next, When::Now)?,
        };
        let asked = match machine.backing() {
            Backing::SmallPages if machine.server_state == ServerState::Running => {
                pages_of_next_start(machine, size, &machine.state.server)
            }
            _ => Pages(0),
        };
        let mut target = Self {
            missed: asked - now.of_this_server(),
            now,
            after,
            persistent: Pages(pool.persistent()),
            at_boot: at_boot(machine, size),
            idle_for: None,
        };
        target.idle_for = idle_for(machine, &target);
        Some(target)
    }

    /// The targets of all pools whose demands are known.
    pub(crate) fn each(machine: &Machine, next: &Server) -> impl Iterator<Item = Self> {
        let sizes = machine.pools().map(|pool| PageSize(pool.page_bytes));
        sizes.filter_map(|size| Self::of(machine, size, next))
    }

    /// The target until the restart: the pool keeps the pages that the server asked for.
    pub(crate) fn until_restart(self) -> Self {
        let missed = Pages(0);
        Self { missed, ..self }
    }

    /// The demands for which the boot line could have been made.
    fn present(&self) -> Pages {
        self.now.total() + self.missed
    }

    /// Pages that are not in use, not requested at boot, and not needed by the next start.
    pub fn idle(&self) -> Pages {
        self.persistent - self.now.total().max(self.asked_at_boot())
    }

    /// Pages that are not in use, but that the boot configuration requests.
    pub fn unused_at_boot(&self) -> Pages {
        self.persistent.min(self.asked_at_boot()) - self.now.total()
    }

    /// The number to set: the demands after a restart, existing pages that the boot configuration
    /// asks for and that are not only for present demands, and idle pages that a server might need.
    pub fn recommended(&self) -> Pages {
        let least = self.without_shrunk(self.persistent.min(self.asked_at_boot()));
        match self.idle_for {
            Some(IdleFor::Files(_)) => least.max(self.persistent.min(self.with_files())),
            Some(_) => self.persistent.max(least),
            None => least,
        }
    }

    /// The demands after a restart, or after a start from the files alone.
    pub(crate) fn with_files(&self) -> Pages {
        let own = match self.idle_for {
            Some(IdleFor::Files(pages)) => pages,
            _ => Pages(0),
        };
        self.after.total() + (own - self.after.of_this_server())
    }

    /// The pages that the boot configuration keeps once a demand has shrunk. A line was made for
    /// the present demands if it differs from them by less than half of the pages by which they
    /// shrink. The purpose of pages beyond the demands is unknown, so they stay. A line that has
    /// been lowered differs by more, so it is not lowered again.
    pub(crate) fn without_shrunk(&self, at_boot: Pages) -> Pages {
        let present = self.present();
        let shrunk = present - self.after.total();
        let half = Pages(shrunk.0 / 2);
        let is_for_them = (present - half..present + half).contains(&self.asked_at_boot());
        let shrunk = if is_for_them { shrunk } else { Pages(0) };
        self.after.total().max(at_boot - shrunk)
    }

    pub(crate) fn asked_at_boot(&self) -> Pages {
        pages_in_line(self.at_boot.as_ref())
    }
}

fn at_boot(machine: &Machine, size: PageSize) -> Option<(Pages, String)> {
    let boot = machine.next_boot()?;
    let request = boot.pages(size.0)?;
    Some((Pages(request.pages), request.place.to_string()))
}

fn pages_in_line(line: Option<&(Pages, String)>) -> Pages {
    line.map_or(Pages(0), |(pages, _)| *pages)
}

fn idle_for(machine: &Machine, target: &PoolTarget) -> Option<IdleFor> {
    machine.whole()?;
    // Pages that the server has now are idle once its demand has shrunk.
    let shrinks = target.present() > target.after.total();
    let is_idle = target.idle() > Pages(0) || shrinks;
    if let Some(hidden) = hidden_servers(machine).filter(|_| is_idle) {
        return Some(IdleFor::Hidden(hidden));
    }
    if is_idle
        && let Ok(boot) = &machine.state.next_boot
        && let Some(unknown) = boot.unknown_of(target.after.size.0).next()
    {
        return Some(IdleFor::UnknownBoot(unknown.to_string()));
    }
    if is_idle
        && let Ok(boot) = &machine.state.next_boot
        && let Some(line) = &boot.ineffective
        && line.request.page_bytes == Some(target.after.size.0)
        && line.request.pages > 0
    {
        return Some(IdleFor::UnknownBoot(line.to_string()));
    }
    if is_idle
        && let Err(absent) = &machine.state.next_boot
        && *absent != Absent::not_looked_at()
    {
        return Some(IdleFor::UnknownBoot(absent.to_string()));
    }
    // Servers count only if memory is enough for all of them.
    let is_demand = target.after.asked_by_others() > Pages(0);
    let servers = on_small_pages(machine, target.after.size)
        .filter(|server| server.setting.is_none() || !is_demand);
    // One that is known to ask for them, rather than one whose settings are unknown.
    if target.persistent > target.after.total()
        && let Some(server) = servers.min_by_key(|server| server.setting.is_none())
    {
        return Some(IdleFor::Server(server.name));
    }
    let size = target.after.size;
    let of_files = machine.state.next.from_files.as_ref();
    let of_files = pages_from_files(machine, size, of_files);
    match &machine.state.next.files {
        _ if !is_idle => None,
        _ if of_files > target.after.of_this_server() => Some(IdleFor::Files(of_files)),
        Files::Unknown {
            why,
            is_pending: true,
        }
        | Files::Refused(why) => Some(IdleFor::PendingSettings(why.clone())),
        Files::NotNamed(command) => Some(IdleFor::NotNamed(command.clone())),
        _ => None,
    }
}
