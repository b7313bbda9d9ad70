//! Pages that `ensure` has reserved for servers that have not started yet, so that servers which
//! start at the same time do not count the same free pages. The kernel knows nothing about them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use advice::model::machine::Machine;
use host::{
    linux::{
        error::{absent_or, of_start},
        process::{Process, status},
    },
    next_start::failed_start::FailedStart,
    units::{PageSize, Pages},
};
use rustix::{
    fs::{FlockOperation, OFlags},
    io::Errno,
    time::ClockId,
};
use serde::{Deserialize, Serialize};

use crate::{
    command::{is_interrupted, within},
    error::Error,
    postgres::{self, works_for},
    root,
};

/// Only root can use it.
const DIRECTORY: &str = "/run/hugeinfo";
const FILE: &str = "/run/hugeinfo/reservations.json";
/// Renamed once it is complete, because a run can be killed.
const NEW_FILE: &str = "/run/hugeinfo/reservations.new";

/// Time to look for a server, while other runs wait for the lock.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// How long pages are set aside for a server that has not started.
const LIFETIME: Duration = Duration::from_secs(120);

/// Pages for the next start of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Reservation {
    data_directory: PathBuf,
    /// The user of the server.
    owner: Option<u32>,
    page_size_bytes: u64,
    pages: u64,
    /// The postmaster that is to be restarted, and the pages that it holds until then.
    to_restart: Option<(u32, u64)>,
    /// Seconds since boot.
    since: u64,
}

impl Reservation {
    /// Whether it is for this server. The owner is compared, too, because a server of another user
    /// can have the same path in its own mount namespace.
    fn is_for(&self, data_directory: &Path, owner: Option<u32>) -> bool {
        self.data_directory == data_directory && self.owner == owner
    }

    /// Pages of the pool that are neither held nor reserved yet. `None`: the server has started.
    fn open_pages(&self) -> Option<u64> {
        let reservation = self.clone();
        within(READ_LIMIT, move || reservation.read_open_pages()).unwrap_or(Some(self.pages))
    }

    fn read_open_pages(&self) -> Option<u64> {
        match self.to_restart {
            // Until it ends.
            Some((pid, held)) if works_for(pid, &self.data_directory, self.owner) => {
                Some(self.pages.saturating_sub(held))
            }
            _ => {
                let holders = holders(&self.data_directory, self.owner);
                holders.unwrap_or_default().is_empty().then_some(self.pages)
            }
        }
    }
}

/// Whether a server of this user runs in this directory and has its shared memory, which it
/// allocates after it has written its lock file and loaded libraries.
///
/// Errors: PostgreSQL refuses to start, because the postmaster has ended, and other processes of
/// the server still have its shared memory; a process or a file of the user makes the read wait.
pub(crate) fn has_started(data: &Path, owner: Option<u32>) -> Result<bool, Error> {
    let data = data.to_owned();
    let read = move || {
        let holders = holders(&data, owner)?;
        match holders.is_empty() || postgres::running(&data).is_some() {
            true => Ok(!holders.is_empty()),
            false => Err(still_held(&holders)),
        }
    };
    within(READ_LIMIT, read).unwrap_or_else(|errno| {
        Err(Error::new(format!(
            "its processes could not be read: {}",
            of_start(&errno.into())
        )))
    })
}

/// The error about processes without a postmaster.
fn still_held(holders: &[u32]) -> Error {
    const MOST: usize = 5;
    let shown: Vec<_> = holders.iter().take(MOST).map(u32::to_string).collect();
    let more = if holders.len() > MOST { ", …" } else { "" };
    let pids = shown.join(", ");
    Error::Refused(FailedStart {
        message: format!(
            "processes of this server still run (PID {pids}{more}) and hold its memory"
        ),
        hint: Some("End them, then start the server. Until then, each start fails".into()),
        is_of_configuration: true,
        ..FailedStart::default()
    })
}

/// The processes of this user that work in this directory and have shared memory. Reads no file of
/// the user.
fn holders(data: &Path, owner: Option<u32>) -> Result<Vec<u32>, Error> {
    let root = root();
    let mut buffer = Vec::new();
    let mut holders = Vec::new();
    for pid in Process::numbers(&root)? {
        if !works_for(pid, data, owner) {
            continue;
        }
        let memory = Process::open(&root, pid)
            .and_then(|process| status::read_memory(&process, &mut buffer));
        let has_pages = |memory: status::Memory| {
            let shared = memory.rss_shmem.max(memory.hugetlb);
            shared.is_some_and(|bytes| bytes > 0)
        };
        if absent_or(memory)?.is_ok_and(has_pages) {
            holders.push(pid);
        }
    }
    Ok(holders)
}

/// All reservations, locked against other runs.
pub(crate) struct Reservations {
    /// `None`: they are not written.
    lock: Option<File>,
    all: Vec<Reservation>,
}

impl Reservations {
    /// No reservations, and no lock.
    pub(crate) fn none() -> Self {
        Self {
            lock: None,
            all: Vec::new(),
        }
    }

    /// Waits for the lock, and reads the reservations that are still open.
    pub(crate) fn lock(deadline: Instant) -> Result<Self, Error> {
        let path = Path::new(DIRECTORY);
        let failed = |what: &str, error: io::Error| Error::file(what, path, error);
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed("create", error));
            }
            _ => {}
        }
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits();
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(flags.cast_signed())
            .open(path)
            .map_err(|error| failed("open", error))?;
        let found = (directory.metadata()).map_err(|error| failed("open", error))?;
        // A user who can open the directory can hold the lock.
        if found.uid() != 0 || found.mode() & 0o077 != 0 {
            return Err(Error::with_hint(
                format!("{DIRECTORY} is accessible to users other than root"),
                format!("Remove it: rm -r {DIRECTORY}"),
            ));
        }
        while let Err(errno) =
            rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)
        {
            if is_interrupted() {
                return Err(Error::new("interrupted by a signal"));
            }
            if errno != Errno::WOULDBLOCK || Instant::now() > deadline {
                return Err(Error::with_hint(
                    format!("could not lock {DIRECTORY}: {errno}"),
                    "Another run of ensure might still be waiting for memory",
                ));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let now = seconds_since_boot();
        let mut all = read().unwrap_or_default();
        all.retain(|reservation| {
            let age = now.checked_sub(reservation.since);
            age.is_some_and(|age| age < LIFETIME.as_secs()) && reservation.open_pages().is_some()
        });
        Ok(Self {
            lock: Some(directory),
            all,
        })
    }

    /// Removes the reservations of servers that have mapped their pages. Returns whether there were
    /// any.
    pub(crate) fn forget_started(&mut self) -> bool {
        let before = self.all.len();
        self.all
            .retain(|reservation| reservation.open_pages().is_some());
        self.all.len() < before
    }

    /// Counts the pages of other servers as reserved.
    pub(crate) fn count_others(&self, machine: &mut Machine, own: &Path, owner: Option<u32>) {
        let others = (self.all.iter()).filter(|reservation| !reservation.is_for(own, owner));
        for reservation in others {
            let pages = reservation.open_pages().unwrap_or_default();
            let pools = machine.state.pools.iter_mut().flatten();
            for pool in pools.filter(|pool| pool.page_bytes == reservation.page_size_bytes) {
                pool.reserved = pool.free.min(pool.reserved.saturating_add(pages));
            }
        }
    }

    /// Adds a reservation, or replaces that of the same server.
    pub(crate) fn add(
        &mut self,
        data_directory: PathBuf,
        owner: Option<u32>,
        size: PageSize,
        pages: Pages,
        to_restart: Option<(u32, Pages)>,
    ) {
        self.all
            .retain(|reservation| !reservation.is_for(&data_directory, owner));
        self.all.push(Reservation {
            data_directory,
            owner,
            page_size_bytes: size.0,
            pages: pages.0,
            to_restart: to_restart.map(|(pid, held)| (pid, held.0)),
            since: seconds_since_boot(),
        });
    }

    /// Writes the reservations.
    pub(crate) fn save(&self) -> Result<(), Error> {
        if self.lock.is_none() {
            return Ok(());
        }
        let written = serde_json::to_vec(&self.all)
            .map_err(io::Error::from)
            .and_then(|json| fs::write(NEW_FILE, json))
            .and_then(|()| fs::rename(NEW_FILE, FILE));
        written.map_err(|error| Error::file("write", Path::new(FILE), error))
    }
}

fn read() -> Option<Vec<Reservation>> {
    let mut bytes = Vec::new();
    let file = File::open(FILE).ok()?;
    file.take(1 << 20).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn seconds_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn reservations_end_when_shared_memory_is_in_use() {
        let directory = tempfile::tempdir().expect("a directory");
        let data = fs::canonicalize(directory.path()).expect("a path");
        let mut reservations = Reservations::none();
        reservations.add(data.clone(), None, PageSize(2 << 20), Pages(7), None);
        // A process that is starting, and one with shared memory.
        for (script, expected) in [
            ("sleep 60", false),
            (
                "use IPC::SysV; $id = shmget(0, 4096, 0600); $at = IPC::SysV::shmat($id, undef, 0); shmctl($id, 0, 0); IPC::SysV::memwrite($at, 'x', 0, 1); sleep 60",
                true,
            ),
        ] {
            let mut server = Command::new("perl")
                .args(["-e", script])
                .current_dir(&data)
                .spawn()
                .expect("a process");
            let deadline = Instant::now() + Duration::from_secs(20);
            let limit = if expected { deadline } else { Instant::now() };
            // Not the postmaster, which a lock file would name.
            let is_refused = || matches!(has_started(&data, None), Err(Error::Refused(_)));
            while !is_refused() && Instant::now() < limit {
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(is_refused(), expected);
            assert_eq!(reservations.forget_started(), expected);
            server.kill().expect("ended");
            server.wait().expect("ended");
        }
        assert!(reservations.all.is_empty());
    }

    #[test]
    fn user_does_not_replace_reservations_of_others() {
        let mut reservations = Reservations::none();
        let mut add = |owner, pages| {
            let path = PathBuf::from("/nowhere");
            reservations.add(path, Some(owner), PageSize(2 << 20), Pages(pages), None);
            let all = reservations.all.iter();
            all.map(|found| found.pages).collect::<Vec<_>>()
        };
        assert_eq!(add(1, 7), [7]);
        assert_eq!(add(2, 1), [7, 1]);
        assert_eq!(add(1, 8), [1, 8]);
    }

    #[test]
    fn directories_of_containers_are_others() {
        if !crate::is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let data = fs::canonicalize(directory.path()).expect("a path");
        // A process whose directory has this path in a root directory of its own.
        let script = "mount --make-rprivate / && mount -t tmpfs none /mnt && cd /mnt || exit
            for name in bin lib lib64 proc usr; do
                ! [ -e /$name ] || { mkdir $name && mount --rbind /$name $name; }
            done
            mkdir -p ./$1 old && pivot_root . old && umount -l old && cd $1 && exec sleep 60";
        let mut container = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(&data)
            .spawn()
            .expect("a process");
        let process = format!("/proc/{}", container.id());
        let is_inside = || {
            let runs = fs::read_to_string(format!("{process}/comm"));
            let place = fs::read_link(format!("{process}/cwd"));
            runs.is_ok_and(|name| name == "sleep\n") && place.is_ok_and(|place| place == data)
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_inside() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        let (is_inside, works) = (is_inside(), works_for(container.id(), &data, None));
        container.kill().expect("ended");
        container.wait().expect("ended");
        assert!(is_inside && !works, "{is_inside} {works}");
    }
}
