//! Reads the facts that checks need in addition to those of `hugeinfo_status`.

use advice::shared_thp_may_be_used;
use host::{
    linux::{
        boot::NextBoot,
        buddyinfo,
        cgroup::memory,
        container,
        error::{Absence, Absent, fact},
        growth::TryPush,
        numa::node,
        process::{
            Process,
            maps::Extent,
            oom_score, segment,
            status::{self, Memory},
            through,
        },
        root::Root,
        sysctl, transparent_hugepage,
    },
    server::{
        connection::Connection,
        facts::Facts,
        instances::Instance,
        state::{Backing, NextSettings, ProcessFigures, State},
        visibility::{self, Visibility},
    },
};

use crate::{
    cached,
    error::Error,
    others::{Scope, Search},
    postgres::{
        self,
        interrupts::check_for_interrupts,
        server, setting_source,
        settings::{self, max_connections},
    },
    processes::{self, Member},
};

/// Receives the facts about each process as it is read, so that a caller can use more of them
/// without reading them again.
pub(crate) type Watcher<'w> = dyn FnMut(&Member, &Memory, &mut Vec<u8>) -> Result<(), Error> + 'w;

/// Adds everything that checks need. `next_settings` reads the configuration files.
pub(crate) fn read(
    facts: Facts,
    next_settings: impl FnOnce(&Facts) -> NextSettings,
    watcher: &mut Watcher<'_>,
) -> Result<Facts, Error> {
    let root = cached::root();
    let postmaster = postmaster(&root)?;
    let facts = facts.with_postmaster(&root, postmaster.as_ref())?;
    let nodes = fact(node::read(&root, check_for_interrupts))?;
    let has_several_nodes = nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
    let may_be_transparent = facts.state.backing() == Backing::SmallPages
        && facts.state.thp.as_ref().is_ok_and(shared_thp_may_be_used);

    // Meanwhile, this backend reads the processes of this server.
    let search = OtherServers::start(&root, postmaster.as_ref(), Scope::Host)?;
    let mut faulted_in = Vec::new();
    let processes = process_figures(&mut |member, memory, buffer| {
        faulted_in.try_push((memory.shared_faulted_in(), member.process.pid()))?;
        watcher(member, memory, buffer)
    })?;
    let (other_servers, visibility) = search.finish(&root)?;
    let state = State {
        next: NextSettings {
            settings: setting_source::in_effect(),
            ..next_settings(&facts)
        },
        other_servers,
        next_boot: next_boot(&root, &facts)?,
        processes,
        segment_nodes: if has_several_nodes {
            processes::segment_pages_by_node(facts.state.backing(), &faulted_in)?
        } else {
            None
        },
        segment_thp_bytes: if may_be_transparent {
            Some(processes::segment_thp_bytes(&faulted_in)?)
        } else {
            None
        },
        ..facts.state
    };
    Ok(Facts {
        state,
        is_whole: true,
        nodes,
        is_segment_aligned: is_segment_aligned(&root)?,
        is_container: cached::is_container(&root)?,
        visibility,
        max_connections: max_connections(),
        shared_buffers_bytes: settings::shared_buffers_bytes(),
        allows_alter_system: settings::allows_alter_system(),
        ..facts
    })
}

/// Which processes of this server [`for_status`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfProcesses {
    All,
    /// A few, and only if memory is limited.
    Few,
}

/// Adds the facts that `hugeinfo_status` needs; the rest counts as missing. The cost does not grow
/// with the number of processes, unless `scope` is the host or all are read. `None`: do not search
/// for other servers.
///
/// If pages are idle and servers in other IPC namespaces are not searched, `visibility` records
/// that there can be more servers.
pub(crate) fn for_status(
    facts: Facts,
    scope: Option<Scope>,
    of_processes: OfProcesses,
    is_idle: bool,
    next: NextSettings,
) -> Result<Facts, Error> {
    let root = cached::root();
    let postmaster = postmaster(&root)?;
    let memory_limits = through(postmaster.as_ref(), |postmaster| {
        memory::read(&root, postmaster)
    })?;
    let search = match scope {
        None => None,
        Some(scope) => Some(OtherServers::start(&root, postmaster.as_ref(), scope)?),
    };
    let processes = match (of_processes, memory_limits.as_deref()) {
        (OfProcesses::All, _) => process_figures(&mut |_, _, _| Ok(()))?,
        // A memory limit makes it relevant how much of the segment has been faulted in.
        (OfProcesses::Few, Ok([_, ..])) => oldest_processes(&root)?,
        (OfProcesses::Few, _) => Vec::new(),
    };
    let (other_servers, visibility) = match search {
        None => (Ok(Vec::new()), Visibility::Host),
        Some(search) => search.finish(&root)?,
    };
    let visibility = match visibility {
        Visibility::Host if is_idle && scope != Some(Scope::Host) => Visibility::Namespace,
        visibility => visibility,
    };
    let state = State {
        next,
        other_servers,
        processes,
        memory_limits,
        vm: sysctl::read_overcommit(&root)?,
        ..facts.state
    };
    Ok(Facts {
        state,
        is_whole: true,
        nodes: fact(node::read_memory_of_all(&root, check_for_interrupts))?,
        is_container: cached::is_container(&root)?,
        has_systemd: container::has_systemd(&root)?,
        visibility,
        max_connections: max_connections(),
        shared_buffers_bytes: settings::shared_buffers_bytes(),
        allows_alter_system: settings::allows_alter_system(),
        ..facts
    })
}

/// Adds the facts that a remedy needs: the boot configuration, free blocks, the sources of
/// settings, how much of the segment is in use, and how to connect to the server.
pub(crate) fn for_remedy(facts: Facts) -> Result<Facts, Error> {
    let root = cached::root();
    let postmaster = postmaster(&root)?;
    let next_boot = next_boot(&root, &facts)?;
    let processes = match &postmaster {
        Ok(_) if facts.state.processes.is_empty() => oldest_processes(&root)?,
        _ => facts.state.processes,
    };
    let connection = match &postmaster {
        Ok(postmaster) => Connection::read(&root, postmaster, &mut Vec::new())?,
        Err(_) => Connection::default(),
    };
    let state = State {
        processes,
        next_boot,
        next: NextSettings {
            settings: setting_source::in_effect(),
            ..facts.state.next
        },
        ..facts.state
    };
    Ok(Facts {
        state,
        connection,
        free_blocks: fact(buddyinfo::read(&root))?,
        ..facts
    })
}

/// Reads the boot configuration.
fn next_boot(root: &Root, facts: &Facts) -> Result<Result<NextBoot, Absent>, Error> {
    let is_etc_kept = cached::is_etc_kept(root)?;
    Ok(NextBoot::read(root, facts.state.kernel(), is_etc_kept)?)
}

/// A search for the other servers of this host.
struct OtherServers {
    own: Option<u32>,
    search: Search,
}

impl OtherServers {
    fn start(
        root: &Root,
        postmaster: Result<&Process, &Absent>,
        scope: Scope,
    ) -> Result<Self, Error> {
        let own = postmaster.ok().map(Process::pid);
        Ok(Self {
            own,
            search: Search::start(root, own, scope)?,
        })
    }

    /// Returns the servers, and whether there can be hidden ones.
    fn finish(self, root: &Root) -> Result<(Result<Vec<Instance>, Absent>, Visibility), Error> {
        let visibility = visibility::read(root)?;
        let others = self.search.finish()?.map(|all| {
            let others = all.into_iter();
            others
                .filter(|server| Some(server.pid) != self.own)
                .collect()
        });
        Ok((others, visibility))
    }
}

/// The postmaster's directory in `/proc`. Missing if the PID belongs to another process, because
/// `/proc` belongs to another PID namespace.
fn postmaster(root: &Root) -> Result<Result<Process, Absent>, Error> {
    let pid = postgres::processes::parent_pid();
    Ok(match cached::is_ours(root, pid)? {
        Ok(true) => fact(Process::open(root, pid))?,
        Ok(false) => Err(Absent {
            path: format!("/proc/{pid} of this PID namespace").into(),
            why: Absence::Missing,
        }),
        Err(absent) => Err(absent),
    })
}

/// Whether the main segment starts where a transparent huge page can start. The address is the same
/// in all processes of the server, so this reads its own, which never has to wait.
fn is_segment_aligned(root: &Root) -> Result<Option<bool>, Error> {
    let Ok(pmd_bytes) = fact(transparent_hugepage::pmd_bytes(root))? else {
        return Ok(None);
    };
    let address = server::subject().address;
    let object = Process::this(root).and_then(|this| segment::object(&this, address));
    let aligned = |extent: Extent| extent.origin().is_multiple_of(pmd_bytes);
    Ok(fact(object)?.ok().map(aligned))
}

/// Reads the processes with the lowest PIDs, to estimate how much of the segment has been faulted
/// in. One of them is the checkpointer, which faults in all modified pages. Only backends fault in
/// other pages, and the oldest backends fault in most of them.
fn oldest_processes(root: &Root) -> Result<Vec<ProcessFigures>, Error> {
    let parent = postgres::processes::parent_pid();
    let mut figures = Vec::new();
    for pid in postgres::processes::lowest_pids()? {
        if let Ok(Some(memory)) = fact(status::read_memory_of_member(root, parent, pid))? {
            figures.push(ProcessFigures {
                rss_shmem: memory.rss_shmem,
                ..ProcessFigures::default()
            });
        }
    }
    Ok(figures)
}

pub(crate) fn process_figures(watcher: &mut Watcher<'_>) -> Result<Vec<ProcessFigures>, Error> {
    // Not /proc/uptime, which lxcfs replaces with the age of the container.
    let uptime = u64::try_from(rustix::system::sysinfo().uptime).ok();
    let types = postgres::processes::backend_types()?;
    processes::all(|member, buffer| {
        let process = &member.process;
        let Ok(memory) = fact(status::read_memory(process, buffer))? else {
            return Ok(None);
        };
        watcher(&member, &memory, buffer)?;
        let process = &member.process;
        Ok::<_, Error>(Some(ProcessFigures {
            oom_score_adj: fact(oom_score::score_adj(process, buffer))?.ok(),
            is_postmaster: process.pid() == postgres::processes::parent_pid(),
            is_client_backend: postgres::processes::is_client_backend(&types, process.pid()),
            ..ProcessFigures::of(&memory, &member.stat, uptime)
        }))
    })
}
