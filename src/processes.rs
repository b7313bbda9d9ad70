//! The processes of this server, and nobody else's.

use hugeinfo::{
    error::absent_or,
    family,
    process::Process,
    root::Root,
    stat::{self, Stat},
};
use pgrx::warning;

use crate::{error::Error, postgres};

/// A process of this server, opened and verified, with what its `stat` said then.
pub(crate) struct Member {
    /// Its directory in `/proc`.
    pub(crate) process: Process,
    /// Faults and start.
    pub(crate) stat: Stat,
}

/// All processes of this server, one after the other; one that ends meanwhile is left out.
pub(crate) fn all<T>(
    mut row: impl FnMut(Member, &mut Vec<u8>) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    let root = Root::system();
    let parent = postgres::parent_pid();
    let mut buffer = Vec::with_capacity(4096);
    let mut rows = Vec::new();
    for pid in family::pids(&root, parent, postgres::pids_in_shared_memory())? {
        postgres::check_for_interrupts();
        if let Some((process, stat)) = family::member(&root, parent, pid, &mut buffer)? {
            rows.extend(row(Member { process, stat }, &mut buffer)?);
        }
    }
    Ok(rows)
}

/// The process of that number. As PostgreSQL's own functions do, one that isn't of this server gets a warning and no row, so that a query over
/// many goes on.
pub(crate) fn one(pid: i32) -> Result<Option<Process>, Error> {
    let parent = postgres::parent_pid();
    let member = match u32::try_from(pid) {
        Ok(number) => family::member(&Root::system(), parent, number, &mut Vec::new())?,
        Err(_) => None,
    };
    if member.is_none() {
        warning!("PID {pid} is not a PostgreSQL server process");
    }
    Ok(member.map(|(process, _)| process))
}

/// Whether a process that was opened is no more.
pub(crate) fn has_ended(process: &Process) -> Result<bool, Error> {
    Ok(absent_or(stat::read(process, &mut Vec::new()))?.is_err())
}

/// The type of a process that has no slot in shared memory: the postmaster, and the logger by its title.
pub(crate) fn type_without_slot(process: &Process, buffer: &mut Vec<u8>) -> Option<&'static str> {
    if process.pid() == postgres::parent_pid() {
        return Some("postmaster");
    }
    let title = process.command_line(buffer).ok()?;
    title.ends_with(b"logger").then_some("logger")
}
