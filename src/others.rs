//! Facts about other processes, most of which do not belong to this server.
//!
//! A read of `maps`, `smaps` or `cmdline` in `/proc/PID` waits as long as that process holds the
//! lock of its memory, for example while it allocates a large segment on huge pages. A file in its
//! working directory can be on a file system that hangs. Only the end of the reading process ends
//! such a wait: not a cancel, and not `statement_timeout`. Therefore a copy of this backend reads,
//! and this backend waits for the copy for a limited time.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read, Write},
    os::fd::AsFd,
    path::Path,
    time::{Duration, Instant},
};

use host::{
    linux::{
        error::{Absence, Absent, ReadError, fact},
        growth::try_collect,
        hugepages::Pool,
        root::Root,
    },
    server::{
        holders::{self, HugeMapping},
        instances::{self, Instance},
    },
};
use rustix::io::Errno;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::Error,
    postgres::{
        self,
        child::{Started, start_copy},
        latch::wait_readable,
        processes::parent_pid,
    },
};

/// Reading a host with a thousand processes takes about 50 ms.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of the output, more than the facts about thousands of servers.
const MOST_BYTES: usize = 16 << 20;

/// The path in error messages.
const OTHERS: &str = "/proc/PID of other processes";

/// Where to look for servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All processes of the host.
    Host,
    /// The processes that created a System V segment in this IPC namespace.
    Segments(Vec<u32>),
}

impl Scope {
    /// The processes other than the postmaster that created a System V segment, as each server does
    /// with any `shared_memory_type` (port/sysv_shmem.c `PGSharedMemoryCreate`). Other programs can
    /// have such segments, too. `None`: there are none.
    pub(crate) fn of_segments() -> Result<Option<Self>, Error> {
        Ok(match fact(instances::candidates(&Root::system()))? {
            Ok(mut creators) => {
                creators.retain(|&creator| creator != parent_pid());
                (!creators.is_empty()).then_some(Self::Segments(creators))
            }
            Err(absent) if matches!(absent.why, Absence::Missing | Absence::Denied) => None,
            Err(_) => Some(Self::Host),
        })
    }
}

/// Searches for servers. `own` is the result of [`crate::processes::postmaster`]. A server that
/// could not be examined in time has no details. Absent: not all processes could be examined.
pub(crate) fn servers(
    root: &Root,
    own: Option<u32>,
    scope: Scope,
) -> Result<Result<Vec<Instance>, Absent>, Error> {
    Search::start(root, own, scope)?.finish()
}

/// A search for servers that runs while this backend does something else.
pub(crate) struct Search(Result<Running, Absent>);

impl Search {
    /// Like [`servers`], without waiting for the result.
    pub(crate) fn start(root: &Root, own: Option<u32>, scope: Scope) -> Result<Self, Error> {
        // The postmaster can have many children, which need not be examined.
        let mut children = match own {
            Some(_) => postgres::processes::pids_in_shared_memory()?,
            None => HashSet::new(),
        };
        children.retain(|pid| Some(*pid) != own);
        let running = Running::start(TIME_LIMIT, |report| match scope {
            Scope::Host => instances::read(root, own, &children, &[], report),
            Scope::Segments(creators) => instances::read_candidates(root, creators, report),
        });
        match running {
            Ok(running) => Ok(Self(Ok(running))),
            // The copy could not be started.
            Err(Error::File { source, .. }) => {
                let unknown = Errno::IO.raw_os_error();
                Ok(Self(Err(instances::unfinished(
                    source.raw_os_error().unwrap_or(unknown),
                ))))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn finish(self) -> Result<Result<Vec<Instance>, Absent>, Error> {
        let running = match self.0 {
            Ok(running) => running,
            Err(absent) => return Ok(Err(absent)),
        };
        let unfinished = || instances::unfinished(Errno::TIMEDOUT.raw_os_error());
        Ok(match running.steps() {
            Ok(steps) => instances::collect(steps).ok_or_else(unfinished),
            Err(Error::File { .. }) => Err(instances::unfinished(Errno::IO.raw_os_error())),
            Err(error) => return Err(error),
        })
    }
}

/// The mappings of huge pages of processes that are not in `own`, by PID. Processes that could not
/// be examined in time are missing.
pub(crate) fn huge_mappings(
    root: &Root,
    pools: &[Pool],
    own: &HashSet<u32>,
) -> Result<HashMap<u32, Vec<HugeMapping>>, Error> {
    let steps = steps(TIME_LIMIT, |report| {
        holders::huge_mappings(root, pools, own, |pid, mappings| report((pid, mappings)))
    })?;
    Ok(steps.into_iter().collect())
}

/// The steps that a copy of this backend reports until it ends or time is up.
///
/// Errors: the copy cannot be made. An error of the copy ends the steps.
fn steps<T: Serialize + DeserializeOwned>(
    limit: Duration,
    task: impl FnOnce(&mut dyn FnMut(T)) -> Result<(), ReadError>,
) -> Result<Vec<T>, Error> {
    Running::start(limit, task)?.steps()
}

/// A copy of this backend that reports steps.
struct Running {
    started: Started,
    deadline: Instant,
}

impl Running {
    fn start<T: Serialize>(
        limit: Duration,
        task: impl FnOnce(&mut dyn FnMut(T)) -> Result<(), ReadError>,
    ) -> Result<Self, Error> {
        let started = start_copy(|out| {
            // If the reader has stopped, SIGPIPE ends the copy.
            let mut report = |step: T| {
                let mut line = serde_json::to_vec(&step).unwrap_or_default();
                line.push(b'\n');
                let _ = out.write_all(&line);
            };
            task(&mut report).ok()
        });
        Ok(Self {
            started: started.map_err(|e| Error::file("read", Path::new(OTHERS), e))?,
            deadline: Instant::now() + limit,
        })
    }

    fn steps<T: DeserializeOwned>(self) -> Result<Vec<T>, Error> {
        let text = read_until(self.started, self.deadline)?;
        // Time can end within a line.
        let lines = text.split(|&b| b == b'\n');
        try_collect(
            lines
                .map_while(|line| serde_json::from_slice(line).ok())
                .map(Ok),
        )
    }
}

/// Like [`steps`], but returns no steps if the copy cannot be made.
pub(crate) fn steps_so_far<T: Serialize + DeserializeOwned>(
    limit: Duration,
    task: impl FnOnce(&mut dyn FnMut(T)) -> Result<(), ReadError>,
) -> Result<Vec<T>, Error> {
    match steps(limit, task) {
        Err(Error::File { .. }) => Ok(Vec::new()),
        steps => steps,
    }
}

/// The output of a copy until it ends or time is up. The copy is killed then.
fn read_until(mut started: Started, deadline: Instant) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    while text.len() < MOST_BYTES {
        match started.out.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                text.try_reserve(count)?;
                text.extend_from_slice(&chunk[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                wait_readable(started.out.as_fd(), left);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::file("read", Path::new(OTHERS), error)),
        }
    }
    Ok(text)
}
