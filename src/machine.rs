//! Reads this server and its machine, in as much detail as a query needs.

use std::sync::Arc;

use advice::{
    answer::{self, Answer, Verdict},
    check::Remedy,
    model::machine::Machine,
};
use host::server::{facts::Facts, state::NextSettings};

use crate::{
    error::Error,
    facts::{self, Extent, Watcher},
    files,
    others::Scope,
    plan::{
        next_start::{NextStart, has_options, next_start_while},
        settings::Planned,
    },
    postgres::{catalog::may_plan, muted_checks::muted_checks, reload::something_may_wait},
};

/// Reads everything that the checks need. The configuration files cost a child process.
pub(crate) fn whole() -> Result<Machine, Error> {
    whole_watched(&mut |_, _, _| Ok(()))
}

/// Like [`whole`], and passes the facts about each process to the watcher.
pub(crate) fn whole_watched(watcher: &mut Watcher<'_>) -> Result<Machine, Error> {
    let few = facts::few()?;
    let may_plan = may_plan();
    let next = next_settings(&few, something_may_wait() || may_plan, may_plan);
    Ok(machine(facts::with(few, next, Extent::Checks(watcher))?))
}

/// The machine, the verdict and its remedy.
///
/// If the server is healthy by its own facts and no setting is pending a restart, few facts
/// suffice. Other servers that run on small pages are then ignored, because reading them takes many
/// times as long as reading all other facts. Otherwise, reads all facts that could change the
/// verdict or the remedy, so that they are those of `hugeinfo_checks`.
pub(crate) fn status() -> Result<(Machine, Verdict, Remedy), Error> {
    let few = machine(facts::few()?);
    let may_wait = something_may_wait();
    if !may_wait && let Some(verdict) = answer::verdict_if_healthy(&few) {
        return Ok((few, verdict, Remedy::Nothing));
    }
    let scope = match answer::has_unused_pages(&few) {
        true => Some(Scope::Host),
        false => Scope::of_segments()?,
    };
    let few = Arc::unwrap_or_clone(few.facts);
    let next = next_settings_for_pools(&few, may_wait);
    let read = with_processes(facts::with(few, next, Extent::Plan(scope))?)?;
    let answer = Answer::of(&read);
    let remedy = answer.remedy();
    Ok((read, answer.verdict, remedy))
}

/// Reads the facts that `hugeinfo_pools` needs: those of [`status`], with all servers of the host.
pub(crate) fn for_pools() -> Result<Machine, Error> {
    let few = facts::few()?;
    let next = next_settings_for_pools(&few, something_may_wait());
    with_processes(facts::with(few, next, Extent::Plan(Some(Scope::Host)))?)
}

/// Like [`for_pools`], with the next start for these settings. Both are read at the same time.
pub(crate) fn planning(planned: &Planned) -> Result<(Machine, NextStart), Error> {
    let (next, mut facts) = next_start_while(planned, || {
        let extent = Extent::Plan(Some(Scope::Host));
        facts::with(facts::few()?, NextSettings::default(), extent)
    })?;
    facts.state.next.server = Some(next.server.clone());
    Ok((with_processes(facts)?, next))
}

/// Adds the processes of the server if the answer depends on them.
fn with_processes(facts: Facts) -> Result<Machine, Error> {
    let read = machine(facts);
    if !answer::depends_on_processes(&read) {
        return Ok(read);
    }
    let mut facts = Arc::unwrap_or_clone(read.facts);
    facts.state.processes = facts::process_figures(&mut |_, _, _| Ok(()))?;
    Ok(machine(facts))
}

fn machine(facts: Facts) -> Machine {
    Machine {
        muted: muted_checks(),
        ..Machine::new(facts)
    }
}

/// Idle pages could be needed by a start from the files alone.
fn next_settings_for_pools(facts: &Facts, may_wait: bool) -> NextSettings {
    let has_options = has_options() && may_plan();
    next_settings(facts, may_wait || has_options, has_options)
}

/// A plan costs a child process. For roles that cannot plan, it runs only if settings might be
/// pending a restart.
fn next_settings(facts: &Facts, is_worth_a_plan: bool, without_command_line: bool) -> NextSettings {
    match is_worth_a_plan {
        true => files::next_settings(facts, without_command_line),
        false => NextSettings::default(),
    }
}
