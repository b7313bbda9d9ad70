//! The processes of this server, and no others.

use std::collections::{BTreeMap, HashSet};

use hugeinfo::{
    linux::{
        error::{Absent, ReadError, absent_or},
        growth::TryPush,
        process::{
            FileId, Process, children,
            maps::Extent,
            numa_maps, segment,
            stat::{self, Stat},
            status,
        },
        root::Root,
    },
    server::facts::LiesOn,
};
use pgrx::warning;

use crate::{
    error::Error,
    postgres::{self, interrupts::check_for_interrupts, server::subject},
};

/// A process of this server, opened and verified, with its `stat` at that time.
pub(crate) struct Member {
    /// Directory in `/proc`.
    pub(crate) process: Process,
    /// Page faults and start.
    pub(crate) stat: Stat,
    /// True if the process has a slot in shared memory.
    has_slot: bool,
}

impl Member {
    /// Types that `pg_stat_activity` does not show: of a background worker without a database, of
    /// the postmaster, and of the logger (by its title).
    pub(crate) fn type_beyond_activity(&self, buffer: &mut Vec<u8>) -> Option<String> {
        let pid = self.process.pid();
        if self.has_slot {
            postgres::processes::worker_type(pid)
        } else if pid == postgres::processes::parent_pid() {
            Some("postmaster".to_owned())
        } else {
            has_loggers_title(&self.process, buffer).then(postgres::processes::logger_type)
        }
    }
}

/// Distinguishes the processes of the server from others.
pub(crate) struct Server {
    root: Root,
    parent: u32,
    with_slot: HashSet<u32>,
}

impl Server {
    /// `None`: `/proc` belongs to another PID namespace, where our PIDs mean other processes.
    pub(crate) fn new() -> Result<Option<Self>, Error> {
        let root = Root::system();
        let Some(parent) = postmaster(&root)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            root,
            parent,
            with_slot: postgres::processes::pids_in_shared_memory()?,
        }))
    }

    /// The process with this PID, if it belongs to this server.
    ///
    /// Not every child of the postmaster does: as process 1 of a container, the postmaster inherits
    /// orphans, which may even be other servers.
    fn member(&self, pid: u32, buffer: &mut Vec<u8>) -> Result<Option<Member>, Error> {
        let Some((process, stat)) = children::member(&self.root, self.parent, pid, buffer)? else {
            return Ok(None);
        };
        // The PID of a dead postmaster can be reused. If ours is alive now, the PID was still its
        // own when we opened the process.
        if !postgres::processes::has_parent() {
            return Ok(None);
        }
        let has_slot = self.with_slot.contains(&pid);
        let is_own = pid == self.parent
            || has_slot
            || self.maps_main_segment(&process)?
            || self.is_logger(&process, buffer)?;
        Ok(is_own.then_some(Member {
            process,
            stat,
            has_slot,
        }))
    }

    /// The process with this PID and start, if it belongs to this server. Never another process
    /// that reuses the PID.
    pub(crate) fn born(
        &self,
        pid: u32,
        start_ticks: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Process>, Error> {
        let member = self.member(pid, buffer)?;
        let same = member.filter(|member| member.stat.start_ticks == start_ticks);
        Ok(same.map(|member| member.process))
    }

    /// True if the process maps our main segment. It must have inherited the mapping from the
    /// postmaster, because `exec` drops mappings. This includes processes without a slot in shared
    /// memory, which are starting, ending, or only rejecting a client.
    fn maps_main_segment(&self, process: &Process) -> Result<bool, Error> {
        let address = subject().address;
        let Ok(theirs) = absent_or(segment::object(process, address))? else {
            return Ok(false);
        };
        let ours = Process::open(&self.root, std::process::id())
            .and_then(|this| segment::object(&this, address));
        Ok(absent_or(ours)?.is_ok_and(|ours| ours.is_same_object(&theirs)))
    }

    /// True if a child of the postmaster is its logger, which detaches from shared memory. The
    /// logger has its own title and the postmaster's data directory, which other programs cannot
    /// share. If the kernel shows neither directory, only the title counts.
    fn is_logger(&self, process: &Process, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        if !has_loggers_title(process, buffer) {
            return Ok(false);
        }
        let Ok(parent) = absent_or(Process::open(&self.root, self.parent))? else {
            return Ok(false);
        };
        let alike = |read: fn(&Process) -> Result<FileId, ReadError>| {
            let why = |absent: Absent| absent.why;
            let (own, parents) = (absent_or(read(process))?, absent_or(read(&parent))?);
            Ok::<_, Error>(own.map_err(why) == parents.map_err(why))
        };
        Ok(alike(Process::program)? && alike(Process::working_directory)?)
    }
}

/// Calls the function for each process of this server, except those that end meanwhile.
pub(crate) fn all<T>(
    mut row: impl FnMut(Member, &mut Vec<u8>) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    let Some(server) = Server::new()? else {
        return Ok(Vec::new());
    };
    let mut buffer = Vec::with_capacity(4096);
    let mut rows = Vec::new();
    for pid in children::pids(
        &server.root,
        server.parent,
        server.with_slot.iter().copied(),
        check_for_interrupts,
    )? {
        check_for_interrupts();
        if let Some(member) = server.member(pid, &mut buffer)?
            && let Some(row) = row(member, &mut buffer)?
        {
            rows.try_push(row)?;
        }
    }
    Ok(rows)
}

/// Calls `answer` with the process that has faulted in most of the main segment, and with its
/// mappings of the segment. `RssShmem` and `HugetlbPages` identify this process cheaply. If there
/// is no answer, tries the next process.
///
/// Does not access shared memory, and thus faults in no page of it. A child of another server does
/// not map the segment.
pub(crate) fn that_touched_most<T>(
    mut answer: impl FnMut(&Process, &[Extent]) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let root = Root::system();
    let Some(parent) = postmaster(&root)? else {
        return Ok(None);
    };
    let address = subject().address;
    let mut buffer = Vec::with_capacity(4096);
    let mut candidates = Vec::new();
    for pid in children::pids(&root, parent, [], check_for_interrupts)? {
        check_for_interrupts();
        let Some((process, _)) = children::member(&root, parent, pid, &mut buffer)? else {
            continue;
        };
        if let Ok(memory) = absent_or(status::read_memory(&process, &mut buffer))? {
            let on_small_pages = memory.rss_shmem.unwrap_or_default();
            let touched = on_small_pages.saturating_add(memory.hugetlb.unwrap_or_default());
            candidates.try_push((touched, pid))?;
        }
    }
    candidates.sort_unstable_by(|a, b| b.cmp(a));

    let mut mappings = |process: &Process| -> Result<Option<Vec<Extent>>, Error> {
        Ok(absent_or(segment::mappings(process, address, &mut buffer))?.ok())
    };
    let Some((postmaster, _)) = children::member(&root, parent, parent, &mut Vec::new())? else {
        return Ok(None);
    };
    let Some(segment) = mappings(&postmaster)? else {
        return Ok(None);
    };
    for (_, pid) in candidates {
        check_for_interrupts();
        let Some((process, _)) = children::member(&root, parent, pid, &mut Vec::new())? else {
            continue;
        };
        let Some(own) = mappings(&process)? else {
            continue;
        };
        if own[0].is_same_object(&segment[0])
            && let Some(found) = answer(&process, &own)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Number of processes that are read for a segment on huge pages.
const MOST_ASKED: usize = 8;

/// Returns the pages of the main segment by node, as a lower bound.
///
/// On huge pages, returns the maximum of several processes: processes share page tables
/// (mm/hugetlb.c `huge_pmd_share`), so one process can show pages that others have faulted in, and
/// `HugetlbPages` counts only pages that it faulted in first. Does not read all processes: there
/// can be thousands, and each walk takes time in proportion to the size of the segment.
pub(crate) fn segment_pages_by_node(lies_on: LiesOn) -> Result<Option<BTreeMap<u32, u64>>, Error> {
    let sum = |pages: &BTreeMap<u32, u64>| pages.values().copied().fold(0, u64::saturating_add);
    let mut most: Option<BTreeMap<u32, u64>> = None;
    let mut asked = 0;
    let first = that_touched_most(|process, mappings| {
        let pages = numa_maps::pages_by_node(process, mappings, check_for_interrupts);
        let pages = absent_or(pages)?.ok();
        if lies_on.is_huge() != Some(true) {
            return Ok(pages);
        }
        let has_more =
            |pages: &BTreeMap<_, _>| most.as_ref().is_none_or(|most| sum(pages) > sum(most));
        if let Some(pages) = pages.filter(has_more) {
            most = Some(pages);
        }
        asked += 1;
        Ok((asked >= MOST_ASKED).then(|| most.take()).flatten())
    })?;
    Ok(first.or(most))
}

/// The process with this PID. If it does not belong to this server, there is a warning and no row,
/// as with PostgreSQL's own functions, so that a query over many PIDs goes on.
pub(crate) fn one(pid: i32) -> Result<Option<Process>, Error> {
    let member = match (u32::try_from(pid), Server::new()?) {
        (Ok(number), Some(server)) => server.member(number, &mut Vec::new())?,
        _ => None,
    };
    if member.is_none() {
        warning!("PID {pid} is not a process of this server");
    }
    Ok(member.map(|member| member.process))
}

/// True if a process that was opened has ended.
pub(crate) fn has_ended(process: &Process) -> Result<bool, Error> {
    Ok(absent_or(stat::read(process, &mut Vec::new()))?.is_err())
}

/// True for the title `postgres: logger`, with `cluster_name` in between if it is set.
fn has_loggers_title(process: &Process, buffer: &mut Vec<u8>) -> bool {
    let end = format!(": {}", postgres::processes::logger_type());
    process
        .command_line(buffer)
        .is_ok_and(|title| title.starts_with(b"postgres: ") && title.ends_with(end.as_bytes()))
}

/// The PID of this backend's parent, if `/proc` uses the same PID. `None`: `/proc` belongs to
/// another PID namespace, where the PID means another process.
pub(crate) fn postmaster(root: &Root) -> Result<Option<u32>, Error> {
    let pid = postgres::processes::parent_pid();
    Ok(children::is_ours(root, pid)?.then_some(pid))
}
