//! All visible PostgreSQL servers of the host, including those of other users, from `/proc`.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::linux::{
    cgroup,
    error::{Absence, Absent, ReadError, absent_or, fact},
    growth::TryPush,
    hugepages, pages,
    passwd::{self, Users},
    process::{
        FileId, Process, children,
        maps::{self, Mapping},
        segment::{self, Segment},
        stat, status,
    },
    root::Root,
    sysvipc,
    text::{lines, parse_number},
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::server::{
    configuration::{self, RequestedPages},
    postmaster_arguments::{directory_argument, looks_like_server},
    postmaster_pid,
    state::{HugePages, SharedMemoryType},
};

/// One server. Facts that cannot be read, such as most facts of another user's server, are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// PID of the postmaster.
    pub pid: u32,
    /// Start time of the postmaster, in clock ticks since boot.
    pub start_ticks: u64,
    /// User that the server runs as.
    pub owner_uid: Option<u32>,
    /// Name of that user in `/etc/passwd`.
    pub owner: Option<String>,
    /// Working directory of the postmaster, which is the data directory.
    pub data_directory: Option<Vec<u8>>,
    /// The absolute path in option `-D`, which every user can read. It can be a directory with only
    /// the configuration files.
    pub directory_argument: Option<Vec<u8>>,
    /// From `postmaster.pid`.
    pub port: Option<u16>,
    /// The main shared memory segment.
    pub segment: Option<Segment>,
    /// The object that its first mapping maps, with its allocated bytes. `None`: unknown, as to
    /// users other than root.
    pub allocated: Option<(FileId, u64)>,
    /// The type of the main segment.
    pub shared_memory_type: Option<SharedMemoryType>,
    /// `huge_pages` at the server's next start.
    pub huge_pages: RequestedPages,
    /// The largest `RssShmem` of the oldest children, in bytes. A lower bound of how much of a
    /// segment on small pages has been faulted in.
    pub rss_shmem_bytes: Option<u64>,
    /// The major version, from `PG_VERSION`.
    pub major_version: Option<u32>,
    /// For each page size, the lowest limit in bytes of its cgroups on huge pages faulted in.
    /// Empty: no limits, or not read, because the server does not ask for huge pages or has some.
    pub fault_limits: Vec<(u64, u64)>,
    /// True for a server that does not run, which no search finds: it could want idle pages.
    pub is_stopped: bool,
    /// True if this is a server of another user, and root has not named it. Any user can run a
    /// program that looks like a server. Set by the program for root.
    pub is_foreign: bool,
    /// False if the search ended before the facts that take long to read.
    pub is_examined: bool,
}

impl Instance {
    /// Whether at least half of its segment is allocated. Anyone can map an empty one, and several
    /// processes can map the same.
    pub fn is_in_use(&self) -> bool {
        let bytes = self.segment.as_ref().map_or(0, |segment| segment.bytes);
        self.allocated
            .is_some_and(|(_, allocated)| allocated >= bytes / 2)
    }

    /// True if the pages that the server requests are counted. For a foreign server, its segment
    /// has to be in use.
    pub fn is_credible(&self) -> bool {
        !self.is_foreign || self.is_in_use()
    }

    /// The process of the postmaster. `None`: it has ended.
    fn process(&self, root: &Root) -> Result<Option<Process>, ReadError> {
        let Ok(process) = absent_or(Process::open(root, self.pid))? else {
            return Ok(None);
        };
        let start = absent_or(stat::read(&process, &mut Vec::new()))?;
        let is_same = start.is_ok_and(|stat| stat.start_ticks == self.start_ticks);
        Ok(is_same.then_some(process))
    }
}

/// Updates the memory usage of a server. Does not read `maps` again, which could wait for its
/// `mmap_lock`. `None`: the server has ended since the search.
pub fn refreshed(root: &Root, server: &Instance) -> Result<Option<Instance>, ReadError> {
    if server.process(root)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Instance {
        rss_shmem_bytes: rss_shmem_bytes(root, server.pid)?,
        ..server.clone()
    }))
}

/// A step of the search for servers. Details can take long, because a process can hold the lock of
/// its memory. A caller that stops waiting keeps the servers without details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// A server without the facts that take that lock.
    Found(Instance),
    /// All servers were found.
    AllFound,
    /// A server with all facts.
    Detailed(Instance),
    /// The server with this PID ended meanwhile.
    Ended(u32),
}

/// The servers of a search, in the order of their PIDs. `None`: it ended before all were found.
pub fn collect(steps: impl IntoIterator<Item = Progress>) -> Option<Vec<Instance>> {
    let mut servers = BTreeMap::new();
    let mut is_complete = false;
    for step in steps {
        match step {
            Progress::Found(server) | Progress::Detailed(server) => {
                servers.insert(server.pid, server);
            }
            Progress::AllFound => is_complete = true,
            Progress::Ended(pid) => {
                servers.remove(&pid);
            }
        }
    }
    is_complete.then(|| servers.into_values().collect())
}

/// A search that ended with this error number before all servers were found. `EAGAIN`: it could not
/// be started in a process or thread of its own.
pub fn unfinished(errno: i32) -> Absent {
    let why = match errno == Errno::AGAIN.raw_os_error() {
        true => Absence::NoProcess,
        false => Absence::Failed(errno),
    };
    Absent {
        path: "/proc/PID of other processes".into(),
        why,
    }
}

/// PIDs of processes that created a System V segment that is in use, without duplicates.
///
/// Every server has such a segment, with any `shared_memory_type` (port/sysv_shmem.c
/// `PGSharedMemoryCreate`). Servers in other IPC or PID namespaces, such as containers, are
/// missing, or have the number 0. Reads one file.
///
/// Errors: absent if the kernel has no System V shared memory.
pub fn candidates(root: &Root) -> Result<Vec<u32>, ReadError> {
    let segments = sysvipc::read(root)?;
    let used = segments.iter().filter(|segment| segment.attached > 0);
    let mut creators: Vec<u32> = used
        .filter_map(|segment| u32::try_from(segment.creator).ok())
        .collect();
    creators.sort_unstable();
    creators.dedup();
    Ok(creators)
}

/// Finds all servers of the host, and reports each step.
///
/// `own` is known to be a server. `children` are known not to be servers and are not opened.
/// Servers of the users in `first` are examined first, then one server of each user in turn,
/// because any user can run programs that look like servers and take long to examine.
///
/// A server is a process whose working directory has a `postmaster.pid` that names the process and
/// its shared memory. Names of programs do not matter. `initdb`, `postgres --single` and
/// `postgres -C` do not write such a file, and backends are not named in it.
///
/// The working directory of another user's process cannot be read. Nor can one on a file system
/// that fails, or one whose path is too long. Such a process is a server if its arguments look like
/// a server's, and if it created a System V segment or runs in a separate PID namespace. This
/// misses servers of other users whose program has neither `postgres` nor `postmaster` in its name,
/// and servers of other users that share our PID namespace but not our IPC namespace. Processes of
/// other users that `hidepid` hides are also missing.
///
/// Errors: a kernel file is malformed or fails to be read, apart from the working directory of
/// another process, which counts as hidden. A process that ends meanwhile is skipped.
pub fn read(
    root: &Root,
    own: Option<u32>,
    children: &HashSet<u32>,
    first: &[u32],
    report: impl FnMut(Progress),
) -> Result<(), ReadError> {
    let mut pids = Process::numbers(root)?;
    pids.retain(|pid| !children.contains(pid));
    pids.extend(own);
    let creators = absent_or(candidates(root))?.unwrap_or_default();
    read_each(root, own, pids, creators, first, report)
}

/// Like [`read`], but examines only these [`candidates`]. The cost does not depend on the number of
/// processes of the host.
pub fn read_candidates(
    root: &Root,
    candidates: Vec<u32>,
    report: impl FnMut(Progress),
) -> Result<(), ReadError> {
    read_each(root, None, candidates.clone(), candidates, &[], report)
}

fn read_each(
    root: &Root,
    own: Option<u32>,
    mut pids: Vec<u32>,
    creators: Vec<u32>,
    first: &[u32],
    mut report: impl FnMut(Progress),
) -> Result<(), ReadError> {
    pids.sort_unstable();
    pids.dedup();
    let mut search = Search {
        root,
        own,
        directories: Vec::new(),
        creators,
        users: absent_or(passwd::read(root))?.unwrap_or_default(),
    };
    let mut buffer = Vec::with_capacity(4096);
    let mut servers = Vec::new();
    let mut of_owner = HashMap::new();
    for pid in pids {
        let process = absent_or(Process::open(root, pid))?;
        let Ok(process) = process else { continue };
        if let Ok(Some(mut instance)) = absent_or(search.server(&process, &mut buffer))? {
            search.directories.extend(process.working_directory());
            let start = stat::read(&process, &mut buffer).map(|stat| stat.start_ticks);
            instance.start_ticks = absent_or(start)?.unwrap_or_default();
            report(Progress::Found(instance.clone()));
            of_owner.try_reserve(1)?;
            let before: &mut usize = of_owner.entry(instance.owner_uid).or_default();
            *before += 1;
            let is_first = instance.owner_uid.is_some_and(|uid| first.contains(&uid));
            servers.try_push(((!is_first, *before, pid), instance))?;
        }
    }
    report(Progress::AllFound);
    servers.sort_unstable_by_key(|(order, _)| *order);
    for (_, mut instance) in servers {
        // Not kept open: any user can run more such processes than this one can open files.
        let Some(process) = instance.process(root)? else {
            report(Progress::Ended(instance.pid));
            continue;
        };
        // The facts before the first error are kept.
        let _ = fact(look_inside(root, &process, &mut instance, &mut buffer))?;
        // The kernel shows no working directory of a process that has ended.
        report(match fact(process.link("cwd"))? {
            Err(absent) if absent.why == Absence::Missing => Progress::Ended(instance.pid),
            _ => Progress::Detailed(Instance {
                is_examined: true,
                ..instance
            }),
        });
    }
    Ok(())
}

/// The facts that distinguish servers from other processes.
struct Search<'r> {
    root: &'r Root,
    own: Option<u32>,
    /// Data directories of the servers found so far. Their other processes, which can be thousands,
    /// are not servers.
    directories: Vec<FileId>,
    creators: Vec<u32>,
    users: Users,
}

impl Search<'_> {
    /// Returns the process as a server. `None`: it is another program. Reads only files that do not
    /// need the lock of the process's memory, except for the arguments of another user's process.
    fn server(
        &self,
        process: &Process,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Instance>, ReadError> {
        let pid = process.pid();
        let is_own = self.own == Some(pid);
        // Any user can have a process whose directory fails, such as one with too long a path.
        let directory = match is_own {
            true => absent_or(process.link("cwd"))?,
            false => fact(process.link("cwd"))?,
        };
        // Most daemons. A server works in its data directory.
        if directory.as_ref().is_ok_and(|path| path == b"/") && !is_own {
            return Ok(None);
        }
        let mut place = match &directory {
            Ok(_) => fact(process.working_directory())?,
            Err(absent) => Err(absent.clone()),
        };
        let mut lock_file = None;
        if let Ok(found) = &place {
            if !is_own && self.directories.contains(found) {
                return Ok(None);
            }
            // Not a kernel file: any other error means that there is no such file.
            let file = fact(process.read_regular("cwd/postmaster.pid"))?;
            let is_guarded = |why| {
                [Errno::XDEV, Errno::AGAIN]
                    .map(|errno| Absence::Failed(errno.raw_os_error()))
                    .contains(&why)
            };
            match file {
                Err(absent) if is_guarded(absent.why) => place = Err(absent),
                file => {
                    lock_file = file.ok().and_then(|bytes| postmaster_pid::parse(&bytes));
                    if lock_file.is_none() && !is_own {
                        return Ok(None);
                    }
                }
            }
        }
        let identity = status::read_identity(process, buffer)?;
        let own_number = identity.numbers.last().copied().unwrap_or(pid);
        let lock_file = lock_file.filter(|file| file.pid == own_number);
        let is_server = match &place {
            _ if is_own => true,
            Ok(_) => lock_file
                .as_ref()
                .is_some_and(|file| file.has_shared_memory),
            // Hidden, or on a file system that fails.
            Err(absent) if absent.why != Absence::Missing => {
                let may_be = self.creators.contains(&pid) || identity.numbers.len() > 1;
                may_be && self.looks_like_server(process, buffer)?
            }
            Err(_) => false,
        };
        if !is_server {
            return Ok(None);
        }
        let name = identity.uid.and_then(|uid| self.users.name(uid));
        Ok(Some(Instance {
            pid,
            owner_uid: identity.uid,
            owner: name.map(str::to_owned),
            data_directory: directory.ok(),
            port: lock_file.map(|file| file.port),
            rss_shmem_bytes: rss_shmem_bytes(self.root, pid)?,
            ..Instance::default()
        }))
    }

    /// Judges a process by its arguments. A child that was just forked has those of its parent.
    fn looks_like_server(
        &self,
        process: &Process,
        buffer: &mut Vec<u8>,
    ) -> Result<bool, ReadError> {
        let own = process.raw_command_line(buffer)?.to_vec();
        if !looks_like_server(&own) {
            return Ok(false);
        }
        let parent = stat::read(process, buffer)?.parent;
        let parent = absent_or(Process::open(self.root, parent))?;
        Ok(
            match parent.map(|parent| parent.raw_command_line(buffer).map(<[u8]>::to_vec)) {
                Ok(parents) => absent_or(parents)?.map_or(true, |parents| parents != own),
                Err(_) => true,
            },
        )
    }
}

/// The largest `RssShmem` of the postmaster's oldest children. One of the oldest is the
/// checkpointer, which faults in all modified buffers. I/O workers can be older.
fn rss_shmem_bytes(root: &Root, postmaster: u32) -> Result<Option<u64>, ReadError> {
    const MOST: usize = 16;
    let path = format!("proc/{postmaster}/task/{postmaster}/children");
    let bytes = absent_or(root.read(&path))?.unwrap_or_default();
    let mut largest = None;
    for pid in children::parse_children(&bytes).take(MOST) {
        let memory = status::read_memory_of_member(root, postmaster, pid)?;
        largest = largest.max(memory.and_then(|memory| memory.rss_shmem));
    }
    Ok(largest)
}

/// Adds the facts that are read with the lock of the process's memory, which the process can hold
/// for long, or from files in its data directory, which can be on a file system that hangs.
fn look_inside(
    root: &Root,
    process: &Process,
    instance: &mut Instance,
    buffer: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let command_line = absent_or(process.raw_command_line(buffer).map(<[u8]>::to_vec))?.ok();
    let command_line = command_line.as_deref().filter(|bytes| !bytes.is_empty());
    let directory = command_line.and_then(directory_argument);
    instance.directory_argument = directory.map(<[u8]>::to_vec);
    if instance.data_directory.is_some() {
        let version = process.read_regular("cwd/PG_VERSION").ok();
        let version = version.and_then(|bytes| parse_number(bytes.trim_ascii()));
        instance.major_version = version.and_then(|version| u32::try_from(version).ok());
    }
    let is_own_user = instance.owner_uid == Some(rustix::process::geteuid().as_raw());
    instance.huge_pages = configuration::requested_pages(process, is_own_user, command_line);

    let main = process.parse_whole("maps", buffer, maps::EXPECTED, main_segment);
    if let Ok(Some((address, made_by))) = absent_or(main)? {
        instance.segment = absent_or(segment::read(process, address))?.ok();
        if rustix::process::geteuid().is_root()
            && let Ok(extent) = absent_or(segment::object(process, address))?
        {
            let object = fact(process.allocated(extent.start, extent.end))?;
            instance.allocated = object.ok().flatten();
        }
        instance.shared_memory_type = Some(made_by);
    }
    let is_asking = matches!(
        instance.huge_pages,
        RequestedPages::Known(HugePages::Try | HugePages::On, _)
    );
    let base = pages::base_page_bytes();
    let is_small = |segment: &Segment| segment.page_bytes.is_none_or(|bytes| bytes == base);
    if is_asking && instance.segment.as_ref().is_some_and(is_small) {
        instance.fault_limits = fault_limits(root, process)?;
    }
    Ok(())
}

/// [`Instance::fault_limits`]. A start can reserve pages beyond such a limit, and the server then
/// dies of SIGBUS (mm/hugetlb_cgroup.c).
fn fault_limits(root: &Root, process: &Process) -> Result<Vec<(u64, u64)>, ReadError> {
    let sizes = absent_or(hugepages::page_sizes(root))?.unwrap_or_default();
    let Ok(cgroups) = absent_or(cgroup::read(root, process, &sizes))? else {
        return Ok(Vec::new());
    };
    let lowest = |size: &u64| {
        let limits = cgroups.groups.iter().flat_map(|group| &group.limits);
        let limits = limits.filter(|limits| limits.page_bytes == *size);
        Some((*size, limits.filter_map(|limits| limits.fault_limit).min()?))
    };
    Ok(sizes.iter().filter_map(lowest).collect())
}

/// Finds the main segment of a postmaster in its `maps`: the largest shared memory object, with all
/// of its mappings. Returns an address in it and its type. `None`: there is none.
///
/// Size decides because there are other objects, such as the small System V segment that guards the
/// data directory. Errors: the number of a line that is not a mapping.
pub fn main_segment(maps: &[u8]) -> Result<Option<(u64, SharedMemoryType)>, usize> {
    // Any process can have thousands of objects.
    let mut objects = HashMap::new();
    for (number, line) in lines(maps) {
        let mapping = maps::parse_line(line).ok_or(number)?;
        if !is_shared_memory(&mapping) {
            continue;
        }
        let extent = mapping.extent;
        let (_, bytes) = objects.entry(extent.object()).or_insert((mapping, 0_u64));
        *bytes = bytes.saturating_add(extent.bytes());
    }
    // The last one of several that are equally large.
    let rank = |(first, bytes): &(Mapping, u64)| (*bytes, first.extent.start);
    let largest = objects.into_values().max_by_key(rank);
    Ok(largest.map(|(first, _)| {
        let made_by = match first.path.starts_with(SYSTEM_V) {
            true => SharedMemoryType::Sysv,
            false => SharedMemoryType::Mmap,
        };
        (first.extent.start, made_by)
    }))
}

/// Prefix of the names of System V segments in `maps` (ipc/shm.c `newseg`).
const SYSTEM_V: &[u8] = b"/SYSV";

fn is_shared_memory(mapping: &Mapping) -> bool {
    let name = mapping.path.as_slice();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let is_named = name == b"/anon_hugepage" || name == b"/dev/zero" || name.starts_with(SYSTEM_V);
    is_named && mapping.is_shared()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_shared_object_is_the_main_segment() {
        let maps = "\
            55cbefb1f000-55cbf0000000 r--p 00000000 fe:00 12 /usr/bin/postgres\n\
            7f0000000000-7f0000100000 rw-s 00000000 00:01 42 /dev/zero (deleted)\n\
            7f0000100000-7f0000300000 rw-s 00100000 00:01 42 /dev/zero (deleted)\n\
            7f0000300000-7f0000500000 rw-s 00000000 00:01 9 /SYSV5f02e2c1 (deleted)\n\
            7f0000500000-7f0000501000 rw-s 00000000 00:01 3 /SYSV0052e2c1 (deleted)\n\
            7f0001000000-7f0011000000 rw-p 00000000 00:01 7 /dev/zero (deleted)\n\
            7f0011000000-7f0021000000 rw-s 00000000 00:19 5 /dev/shm/PostgreSQL.1\n";
        let by_mmap = (0x7f00_0000_0000, SharedMemoryType::Mmap);
        assert_eq!(main_segment(maps.as_bytes()), Ok(Some(by_mmap)));
        let system_v = maps.lines().skip(3).take(2).collect::<Vec<_>>().join("\n");
        let by_system_v = (0x7f00_0030_0000, SharedMemoryType::Sysv);
        assert_eq!(main_segment(system_v.as_bytes()), Ok(Some(by_system_v)));
        assert_eq!(main_segment(b""), Ok(None));
        assert_eq!(main_segment(b"\nnonsense\n"), Err(2));
    }

    #[test]
    fn many_shared_objects_do_not_delay_a_search() {
        const OBJECTS: u64 = 200_000;
        let objects = (1..=OBJECTS).map(|number| {
            let start = number << 13;
            let end = start + 4096;
            format!("{start:x}-{end:x} rw-s 00000000 00:01 {number} /dev/zero (deleted)\n")
        });
        let maps: String = objects.collect();
        // In quadratic time, this would not end.
        let found = main_segment(maps.as_bytes());
        assert_eq!(found, Ok(Some((OBJECTS << 13, SharedMemoryType::Mmap))));
    }
}
