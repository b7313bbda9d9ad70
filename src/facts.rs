//! Reads the facts about this server and its machine: few of them, or all that a query needs.

use advice::shared_thp_may_be_used;
use host::{
    linux::{
        boot::NextBoot,
        buddyinfo,
        cgroup::memory,
        container,
        error::{Absence, Absent, Fact, fact},
        growth::TryPush,
        meminfo,
        numa::node,
        process::{
            Process,
            maps::Extent as Mapping,
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
        state::{NextSettings, ProcessFigures, State},
        visibility::Visibility,
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

/// The facts to add to those of [`few`].
pub(crate) enum Extent<'w> {
    /// All facts on which the verdict, the plan and the pools depend, except processes. Searches
    /// for other servers in this scope. `None`: there are none. The cost depends on the size of the
    /// host only if the scope is the host.
    Plan(Option<Scope>),
    /// All facts on which checks depend.
    Checks(&'w mut Watcher<'w>),
}

/// Reads some small files about the server itself, and the environment inherited from the
/// postmaster.
pub(crate) fn few() -> Result<Facts, Error> {
    let facts = Facts::read(&cached::root(), server::server()?, &server::subject())?;
    Ok(facts.with_pod_limits(|name| std::env::var_os(name)))
}

/// Adds the facts of this extent, and these settings of the next start.
pub(crate) fn with(facts: Facts, next: NextSettings, extent: Extent<'_>) -> Result<Facts, Error> {
    let root = cached::root();
    let postmaster = postmaster(&root)?;
    let own = postmaster.as_ref().ok().map(Process::pid);
    let (scope, watcher) = match extent {
        Extent::Plan(scope) => (scope, None),
        Extent::Checks(watcher) => (Some(Scope::Host), Some(watcher)),
    };
    let is_whole_host = matches!(scope, Some(Scope::Host));
    let search = scope.map(|scope| Search::start(&root, own, scope));
    let search = search.transpose()?;

    // Meanwhile, this backend reads the other facts.
    let facts = match watcher {
        None => with_plan(facts, &root, postmaster.as_ref())?,
        Some(watcher) => with_checks(facts, &root, postmaster.as_ref(), watcher)?,
    };
    let next_boot = next_boot(&root, &facts)?;
    let (mut other_servers, mut visibility) = match search {
        None => (Ok(Vec::new()), Visibility::Host),
        Some(search) => (search.finish()?, cached::visibility(&root)?),
    };
    if let Ok(servers) = &mut other_servers {
        servers.retain(|server: &Instance| Some(server.pid) != own);
    }
    // Idle pages could be meant for servers in other IPC namespaces.
    let mut pools = facts.state.pools.iter().flatten();
    if visibility == Visibility::Host
        && !is_whole_host
        && pools.any(|pool| pool.free > pool.reserved)
    {
        visibility = Visibility::Namespace;
    }
    let state = State {
        next: NextSettings {
            settings: setting_source::in_effect(),
            ..next
        },
        next_boot,
        other_servers,
        ..facts.state
    };
    Ok(Facts {
        state,
        is_whole: true,
        is_container: cached::is_container(&root)?,
        visibility,
        max_connections: max_connections(),
        shared_buffers_bytes: settings::shared_buffers_bytes(),
        allows_alter_system: settings::allows_alter_system(),
        ..facts
    })
}

/// Adds the facts about the host and the postmaster on which a plan depends.
fn with_plan(
    facts: Facts,
    root: &Root,
    postmaster: Result<&Process, &Absent>,
) -> Result<Facts, Error> {
    let state = State {
        memory_limits: through(postmaster, |postmaster| memory::read(root, postmaster))?,
        vm: sysctl::read_overcommit(root)?,
        ..facts.state
    };
    Ok(Facts {
        nodes: fact(node::read_memory_of_all(root, check_for_interrupts))?,
        has_systemd: container::has_systemd(root)?,
        connection: match postmaster {
            Ok(postmaster) => Connection::read(root, postmaster, &mut Vec::new())?,
            Err(_) => Connection::default(),
        },
        free_blocks: fact(buddyinfo::read(root))?,
        free_zram_bytes: meminfo::read_free_zram(root, state.usage.as_ref().ok())?,
        state,
        ..facts
    })
}

/// Adds the facts of [`with_plan`], and those that only checks use: about each process, nodes, and
/// more files of the host.
fn with_checks(
    facts: Facts,
    root: &Root,
    postmaster: Result<&Process, &Absent>,
    watcher: &mut Watcher<'_>,
) -> Result<Facts, Error> {
    let facts = facts.with_postmaster(root, postmaster)?;
    let nodes = fact(node::read(root, check_for_interrupts))?;
    let has_several_nodes = nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
    let may_be_transparent = shared_thp_may_be_used(&facts.state);
    let mut faulted_in = Vec::new();
    let processes = process_figures(&mut |member, memory, buffer| {
        faulted_in.try_push((memory.shared_faulted_in(), member.process.pid()))?;
        watcher(member, memory, buffer)
    })?;
    let state = State {
        processes,
        segment_nodes: match has_several_nodes {
            true => processes::segment_pages_by_node(facts.state.backing(), &faulted_in)?,
            false => None,
        },
        segment_thp_bytes: match may_be_transparent {
            true => Some(processes::segment_thp_bytes(&faulted_in)?),
            false => None,
        },
        ..facts.state
    };
    Ok(Facts {
        state,
        nodes,
        is_segment_aligned: is_segment_aligned(root)?,
        ..facts
    })
}

/// Reads the boot configuration.
fn next_boot(root: &Root, facts: &Facts) -> Result<Fact<NextBoot>, Error> {
    let is_etc_kept = cached::is_etc_kept(root)?;
    Ok(NextBoot::read(root, facts.state.kernel(), is_etc_kept)?)
}

/// The postmaster's directory in `/proc`. Missing if the PID belongs to another process, because
/// `/proc` belongs to another PID namespace.
fn postmaster(root: &Root) -> Result<Fact<Process>, Error> {
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
    let aligned = |mapping: Mapping| mapping.origin().is_multiple_of(pmd_bytes);
    Ok(fact(object)?.ok().map(aligned))
}

/// Reads the figures of each process of this server.
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
