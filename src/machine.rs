//! Reads this server and its machine, in as much detail as a query needs.

use std::{
    cell::Cell,
    mem::ManuallyDrop,
    sync::Arc,
    time::{Duration, Instant},
};

use advice::{answer, model::machine::Machine};
use host::{
    linux::{
        error::{Absence, Absent, fact},
        root::Root,
        sysvipc,
    },
    server::{facts::Facts, state::NextSettings},
};

use crate::{
    cached,
    environment::{self, OfProcesses, Watcher},
    error::Error,
    files,
    others::Scope,
    plan::{
        next_start::{NextStart, next_start_while},
        settings::Planned,
    },
    postgres::{
        catalog::may_plan, clock, muted_checks::muted_checks, processes::parent_pid,
        reload::something_may_wait, roles, server,
    },
};

/// The facts about the server itself: some small files, and the environment inherited from the
/// postmaster.
pub(crate) fn facts() -> Result<Facts, Error> {
    let facts = Facts::read(&cached::root(), server::server()?, &server::subject())?;
    Ok(facts.with_pod_limits(|name| std::env::var_os(name)))
}

/// Reads everything that the checks need. The configuration files cost a child process.
pub(crate) fn whole() -> Result<Machine, Error> {
    whole_watched(&mut |_, _, _| Ok(()))
}

/// Like [`whole`], and passes the facts about each process to the watcher.
pub(crate) fn whole_watched(watcher: &mut Watcher<'_>) -> Result<Machine, Error> {
    let next = |facts: &Facts| next_settings(facts, something_may_wait() || may_plan());
    Ok(machine(environment::read(facts()?, next, watcher)?))
}

/// Reads the facts that `hugeinfo_status` needs. If the server is healthy by its own facts and no
/// setting is pending a restart, these suffice, and other servers are ignored (see
/// [`QuickFacts::is_enough`]). Otherwise, reads all facts that could change the status, so that it is
/// that of `hugeinfo_checks`.
pub(crate) fn for_status() -> Result<Machine, Error> {
    let quick = QuickFacts::read()?;
    if quick.is_enough() {
        return Ok(quick.machine);
    }
    // Idle pages that are worth releasing might be meant for servers in other IPC namespaces.
    let has_unused_pages = answer::has_unused_pages(&quick.machine);
    let mut read = quick.with_environment(has_unused_pages, OfProcesses::Few)?;
    if answer::depends_on_boot(&read) {
        read = with_boot(read)?;
    }
    if answer::depends_on_all_processes(&read) {
        read = with_all_processes(read)?;
    }
    Ok(read)
}

/// Reads the facts that `hugeinfo_pools` needs: those for a remedy of `hugeinfo_status`, all servers
/// of the host, and all processes of this server.
pub(crate) fn for_pools() -> Result<Machine, Error> {
    with_boot(QuickFacts::read()?.with_pools()?)
}

/// Like [`for_pools`], with the next start for these settings. Both are read at the same time.
pub(crate) fn planning(planned: &Planned) -> Result<(Machine, NextStart), Error> {
    let (next, mut read) = next_start_while(planned, || {
        let quick = QuickFacts {
            next: NextSettings::default(),
            has_pending_restart: something_may_wait(),
            machine: machine(facts()?),
        };
        quick.with_pools()
    })?;
    Arc::make_mut(&mut read.facts).state.next.server = Some(next.server.clone());
    Ok((with_boot(read)?, next))
}

/// The facts about the server itself, and the settings that are pending a restart.
struct QuickFacts {
    machine: Machine,
    has_pending_restart: bool,
    next: NextSettings,
}

impl QuickFacts {
    fn read() -> Result<Self, Error> {
        let machine = machine(facts()?);
        let has_pending_restart = something_may_wait();
        Ok(Self {
            next: next_settings(&machine.facts, has_pending_restart),
            has_pending_restart,
            machine,
        })
    }

    /// Whether these facts suffice for `hugeinfo_status`. While this server is healthy, other
    /// servers that run on small pages are ignored, because reading them takes many times as long
    /// as reading all other facts.
    fn is_enough(&self) -> bool {
        answer::is_healthy_by_facts(&self.machine)
            && !self.has_pending_restart
            && self.next == NextSettings::default()
    }

    /// Adds the environment. `searches_host`: also searches for servers in other IPC namespaces.
    fn with_environment(
        self,
        searches_host: bool,
        of_processes: OfProcesses,
    ) -> Result<Machine, Error> {
        let scope = match searches_host {
            true => Some(Scope::Host),
            false if is_alone()? => None,
            false => Some(Scope::Segments),
        };
        let mut pools = self.machine.state.pools.iter().flatten();
        let is_idle = pools.any(|pool| pool.free > pool.reserved);
        let facts = environment::for_status(
            Arc::unwrap_or_clone(self.machine.facts),
            scope,
            of_processes,
            is_idle,
            self.next,
        )?;
        Ok(machine(facts))
    }

    /// Adds the facts of the environment that determine the numbers of a pool.
    fn with_pools(self) -> Result<Machine, Error> {
        self.with_environment(true, OfProcesses::All)
    }
}

/// A machine that needs a remedy. Reused only in the same statement and by the same role, because
/// privileges determine some facts.
struct LastMachine {
    since: Instant,
    statement: i64,
    role: u32,
    machine: Machine,
}

thread_local! {
    // Without a destructor, like the cache in [`cached`].
    static LAST_MACHINE: ManuallyDrop<Cell<Option<LastMachine>>> =
        const { ManuallyDrop::new(Cell::new(None)) };
}

/// Stores the machine for [`for_remedy`] in the same statement. `None` clears it.
pub(crate) fn keep_for_remedy(machine: Option<Machine>) {
    let kept = machine.map(|machine| LastMachine {
        since: Instant::now(),
        statement: clock::statement_start(),
        role: roles::caller(),
        machine,
    });
    LAST_MACHINE.with(|slot| slot.set(kept));
}

/// Returns the machine that `hugeinfo_status()` read in this statement, or reads it now, and adds
/// the facts that a remedy needs.
pub(crate) fn for_remedy() -> Result<Machine, Error> {
    // A statement can take hours, such as a procedure.
    const LONGEST: Duration = Duration::from_secs(1);
    let kept = LAST_MACHINE.with(|slot| slot.take()).filter(|kept| {
        kept.statement == clock::statement_start()
            && kept.role == roles::caller()
            && kept.since.elapsed() < LONGEST
    });
    match kept {
        Some(kept) => with_boot(kept.machine),
        None => with_boot(for_status()?),
    }
}

pub(crate) fn with_all_processes(read: Machine) -> Result<Machine, Error> {
    let mut facts = Arc::unwrap_or_clone(read.facts);
    facts.state.processes = environment::process_figures(&mut |_, _, _| Ok(()))?;
    Ok(machine(facts))
}

/// Adds the boot configuration, and the other facts that commands need, unless they have been read.
fn with_boot(read: Machine) -> Result<Machine, Error> {
    let facts = Arc::unwrap_or_clone(read.facts);
    let is_read = facts.state.next_boot != Err(Absent::not_looked_at());
    Ok(machine(match facts.is_whole && !is_read {
        true => environment::for_remedy(facts)?,
        false => facts,
    }))
}

fn machine(facts: Facts) -> Machine {
    Machine {
        muted: muted_checks(),
        ..Machine::new(facts)
    }
}

/// True if no other server uses our IPC namespace. Each server has a System V segment with any
/// `shared_memory_type` (port/sysv_shmem.c `PGSharedMemoryCreate`). Other programs can have such
/// segments, too.
fn is_alone() -> Result<bool, Error> {
    let own = u64::from(parent_pid());
    Ok(match fact(sysvipc::read(&Root::system()))? {
        Ok(segments) => !segments
            .iter()
            .any(|segment| segment.attached > 0 && segment.creator != own),
        Err(absent) => matches!(absent.why, Absence::Missing | Absence::Denied),
    })
}

/// A plan costs a child process. For roles that cannot plan, it runs only if settings might be
/// pending a restart.
fn next_settings(facts: &Facts, is_worth_a_plan: bool) -> NextSettings {
    if is_worth_a_plan {
        files::next_settings(facts)
    } else {
        NextSettings::default()
    }
}
