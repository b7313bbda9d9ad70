//! The processes of this server, and no others.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use host::{
    linux::{
        error::{Absence, Absent, ReadError, absent_or, fact},
        growth::TryPush,
        process::{
            FileId, Process, children,
            maps::Extent,
            numa_maps, segment, smaps,
            stat::{self, Stat},
            status,
        },
        root::Root,
    },
    server::state::Backing,
};
use pgrx::warning;
use rustix::io::Errno;

use crate::{
    error::Error,
    others,
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
    ///
    /// `maps` and `cmdline` of a process without a slot are read directly: it is starting or
    /// ending, or is the logger, and holds the lock of its memory for moments. A copy of this
    /// backend, as for other servers, would cost more than the read.
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

    /// Whether a process maps our main segment. It must have inherited that from the postmaster,
    /// since `exec` drops mappings. This also finds processes without a slot in shared memory: they
    /// are starting or ending, or only refuse a client.
    fn maps_main_segment(&self, process: &Process) -> Result<bool, Error> {
        let address = subject().address;
        let Ok(theirs) = absent_or(segment::object(process, address))? else {
            return Ok(false);
        };
        let ours = Process::open(&self.root, std::process::id())
            .and_then(|this| segment::object(&this, address));
        Ok(absent_or(ours)?.is_ok_and(|ours| ours.is_same_object(&theirs)))
    }

    /// Whether a child of the postmaster is its logger, which detaches from shared memory. It has
    /// the title of the logger, and the program and data directory of the postmaster, which other
    /// programs cannot share. If the kernel shows the directory of neither, the title alone
    /// decides.
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

/// All processes of this server, one after the other, without those that end meanwhile.
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

/// Bytes of shared memory and huge pages that a process of this server has faulted in, and its PID.
pub(crate) type FaultedIn = (u64, u32);

/// Reads how much each process of this server has faulted in.
pub(crate) fn faulted_in_by_each() -> Result<Vec<FaultedIn>, Error> {
    all(|member, buffer| {
        let memory = absent_or(status::read_memory(&member.process, buffer))?.ok();
        Ok::<_, Error>(memory.map(|memory| (memory.shared_faulted_in(), member.process.pid())))
    })
}

/// Passes processes that map the main segment, and their mappings of it, to `answer` until it
/// returns true. The process that has faulted in most of the segment comes first.
///
/// For a copy of this backend, because reading mappings can wait for the process (see [`others`]).
/// Does not access shared memory, so it faults in no page of it. A child of another server does not
/// map the segment.
fn that_touched_most(
    root: &Root,
    address: u64,
    candidates: &[FaultedIn],
    mut answer: impl FnMut(&Process, &[Extent]) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    let mut candidates = candidates.to_vec();
    candidates.sort_unstable_by(|a, b| b.cmp(a));

    let parent = postgres::processes::parent_pid();
    let mut buffer = Vec::with_capacity(4096);
    let mut mappings = |process: &Process| -> Result<Option<Vec<Extent>>, ReadError> {
        Ok(absent_or(segment::mappings(process, address, &mut buffer))?.ok())
    };
    let Some((postmaster, _)) = children::member(root, parent, parent, &mut Vec::new())? else {
        return Ok(());
    };
    let Some(segment) = mappings(&postmaster)? else {
        return Ok(());
    };
    for (_, pid) in candidates {
        let Some((process, _)) = children::member(root, parent, pid, &mut Vec::new())? else {
            continue;
        };
        let Some(own) = mappings(&process)? else {
            continue;
        };
        if own[0].is_same_object(&segment[0]) && answer(&process, &own)? {
            break;
        }
    }
    Ok(())
}

/// Number of processes that are read for a segment on huge pages.
const MOST_ASKED: usize = 8;

/// Time limit for the page tables of a few processes. A walk takes time in proportion to the size
/// of the segment: several seconds for a terabyte on small pages.
const WALK_LIMIT: Duration = Duration::from_secs(10);

/// Pages of the main segment by node, as far as one process sees them. `None`: no process could be
/// read in time.
///
/// On huge pages, returns the maximum of several processes: processes share page tables
/// (mm/hugetlb.c `huge_pmd_share`), so one process can show pages that others have faulted in, and
/// `HugetlbPages` counts only pages that it faulted in first. Does not read all processes: there
/// can be thousands, and each walk takes time in proportion to the size of the segment.
pub(crate) fn segment_pages_by_node(
    backing: Backing,
    candidates: &[FaultedIn],
) -> Result<Option<BTreeMap<u32, u64>>, Error> {
    if candidates.is_empty() {
        return Ok(None);
    }
    let root = Root::system();
    let address = subject().address;
    let is_huge = backing.is_huge() == Some(true);
    let found = others::steps_so_far(WALK_LIMIT, |report| {
        let mut left = if is_huge { MOST_ASKED } else { 1 };
        that_touched_most(&root, address, candidates, |process, mappings| {
            let pages = numa_maps::pages_by_node(process, mappings, || ());
            if let Ok(pages) = absent_or(pages)? {
                report(pages);
                left -= 1;
            }
            Ok(left == 0)
        })
    })?;
    let sum = |pages: &BTreeMap<u32, u64>| pages.values().copied().fold(0, u64::saturating_add);
    Ok(found.into_iter().max_by_key(sum))
}

/// Bytes of the main segment on transparent huge pages, from the process that has faulted in most
/// of it. A lower bound, because each process shows only pages that it has faulted in itself.
pub(crate) fn segment_thp_bytes(candidates: &[FaultedIn]) -> Result<Result<u64, Absent>, Error> {
    if candidates.is_empty() {
        return Ok(Ok(0));
    }
    let root = Root::system();
    let address = subject().address;
    let found = others::steps_so_far(WALK_LIMIT, |report| {
        let mut is_asked = false;
        that_touched_most(&root, address, candidates, |process, mappings| {
            is_asked = true;
            report(fact(smaps::thp_bytes(process, mappings))?.ok());
            Ok(true)
        })?;
        if !is_asked {
            report(Some(0));
        }
        Ok(())
    })?;
    let why = match found.first() {
        Some(Some(bytes)) => return Ok(Ok(*bytes)),
        Some(None) => Absence::Denied,
        None => Absence::Failed(Errno::TIMEDOUT.raw_os_error()),
    };
    Ok(Err(Absent {
        path: "/proc/PID/smaps of this server".into(),
        why,
    }))
}

/// The process with this PID. Raises a warning if it does not belong to this server, like
/// PostgreSQL's own functions, so that a query over many PIDs does not fail.
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

/// The PID of this backend's parent. `None`: `/proc` belongs to another PID namespace, where the
/// PID means another process.
pub(crate) fn postmaster(root: &Root) -> Result<Option<u32>, Error> {
    let pid = postgres::processes::parent_pid();
    Ok(children::is_ours(root, pid)?.then_some(pid))
}
