//! Tries each kernel source that this crate reads.
//!
//! The cost is constant: each file is opened, and in most files one byte is read, because the
//! kernel checks some permissions only then. For files that make the kernel walk page tables, that
//! byte costs a walk of the first mapping. `smaps_rollup`, which would walk all mappings, is only
//! opened, because its permission is checked at `open` (fs/proc/task_mmu.c `proc_maps_open`).

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use crate::linux::{
    boot, buddyinfo,
    cgroup::{self, memory_events},
    error::{Absence, Absent, ReadError, fact},
    hugepages, meminfo, mounts,
    namespace::{self, Kind},
    numa::nodes,
    passwd,
    process::{Process, segment},
    processors,
    root::Root,
    sysctl, sysvipc, transparent_hugepage, vmstat, zfs,
};

use crate::server::{facts::Subject, unit};

/// A source and the result of trying it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Stable short name: that of the file, of the system call, or of the purpose of the directory.
    pub name: &'static str,
    /// Path of the source.
    pub path: PathBuf,
    pub status: Availability,
    /// Why it cannot be read. `None`: it can.
    pub reason: Option<String>,
}

impl Source {
    /// `Ok(false)`: the file has no valid contents.
    fn new(name: &'static str, path: PathBuf, result: Result<bool, ReadError>) -> Self {
        let (status, reason) = match result {
            Ok(true) => (Availability::Ok, None),
            Ok(false) => {
                let reason = "this kernel, container or sandbox does not have it";
                (Availability::Missing, Some(reason.to_owned()))
            }
            Err(error) => (Availability::of_error(&error), Some(error.to_string())),
        };
        Self {
            name,
            path,
            status,
            reason,
        }
    }
}

/// The result of trying a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It can be read.
    Ok,
    /// Permission denied.
    Denied,
    /// This kernel, container or sandbox does not have it.
    Missing,
    /// The kernel failed to read it, or it has an unknown form.
    Failed,
}

impl Availability {
    /// The value shown in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }

    fn of_error(error: &ReadError) -> Self {
        match error {
            ReadError::Absent(absent) => match absent.why {
                Absence::Missing
                | Absence::NoEntry(_)
                | Absence::SubsetPid
                | Absence::NotMounted
                | Absence::OfAnotherRoot => Self::Missing,
                Absence::Denied => Self::Denied,
                Absence::Failed(_)
                | Absence::NoProcess
                | Absence::TooLarge
                | Absence::BelowZero
                | Absence::Malformed { .. } => Self::Failed,
            },
            ReadError::Io { .. }
            | ReadError::TooLarge { .. }
            | ReadError::NoMemory(_)
            | ReadError::Malformed { .. } => Self::Failed,
        }
    }
}

/// How to try a file of a process.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Opened only: reading would walk all page tables.
    Open,
    /// Opened, and a first byte read.
    Byte,
    /// Opened, and a first byte read. An empty file is not an error.
    ByteOrNone,
    /// A link, followed by name.
    Link,
    /// Queried for the mapping of the main segment.
    Query,
}

/// Name, file and way. Files that need permission to inspect the process come first.
const INSIDE: [Entry; 5] = [
    ("PROCMAP_QUERY", "maps", Way::Query),
    ("maps", "maps", Way::Byte),
    ("smaps", "smaps", Way::Byte),
    ("smaps_rollup", "smaps_rollup", Way::Open),
    ("numa_maps", "numa_maps", Way::Byte),
];
const OUTSIDE: [Entry; 10] = [
    ("status", "status", Way::Byte),
    ("stat", "stat", Way::Byte),
    ("children", "children", Way::ByteOrNone),
    ("oom_score", "oom_score", Way::Byte),
    ("oom_score_adj", "oom_score_adj", Way::Byte),
    ("cmdline", "cmdline", Way::Byte),
    ("exe", "exe", Way::Link),
    ("cwd", "cwd", Way::Link),
    ("cgroup", "cgroup", Way::Byte),
    ("uid_map", "uid_map", Way::Byte),
];

type Entry = (&'static str, &'static str, Way);

/// Files of the host.
const OF_HOST: [(&str, &str); 12] = [
    ("mountinfo", mounts::PATH),
    ("mountinfo of process 1", mounts::PATH_OF_FIRST),
    ("meminfo", meminfo::PATH),
    ("swap", meminfo::SWAPS),
    ("vmstat", vmstat::PATH),
    ("buddyinfo", buddyinfo::PATH),
    ("System V segments", sysvipc::PATH),
    ("kernel command line", boot::COMMAND_LINE),
    ("processors", processors::PATH),
    ("nodes with memory", nodes::WITH_MEMORY),
    ("users", passwd::PATH),
    ("ZFS", zfs::PATH),
];

/// Tries each source for the postmaster. Files that need permission to inspect a process are also
/// tried for this process, from which the segment is read if the postmaster cannot be inspected.
///
/// Errors: only out of memory.
pub fn probe(root: &Root, subject: &Subject) -> Result<Vec<Source>, ReadError> {
    let number = subject.postmaster.unwrap_or_else(std::process::id);
    let postmaster = (number.to_string(), fact(Process::open(root, number))?);
    let this = ("self".to_owned(), fact(Process::this(root))?);
    let mut sources = Vec::new();
    for entry in &INSIDE {
        sources.push(of_process(root, &postmaster, entry, subject));
        if subject.postmaster.is_some() {
            sources.push(of_process(root, &this, entry, subject));
        }
    }
    for entry in &OUTSIDE {
        sources.push(of_process(root, &postmaster, entry, subject));
    }
    for (name, path) in OF_HOST {
        let read = mounts::of_machine(root, first_byte(root, path));
        sources.push(Source::new(name, root.path(path), read));
    }
    let page_sizes = hugepages::page_sizes(root);
    let sizes = page_sizes.as_deref().unwrap_or_default().to_vec();
    let first_byte_in = |directory, file| first_byte(root, format!("{directory}/{file}"));
    for (name, path, result) in [
        (
            "vm settings",
            sysctl::DIRECTORY,
            first_byte_in(sysctl::DIRECTORY, "overcommit_memory"),
        ),
        (
            "sysctl files",
            "/etc/sysctl.d",
            root.names("etc/sysctl.d").map(|_| true),
        ),
        (
            "systemd units",
            unit::DIRECTORY,
            root.names(unit::DIRECTORY).map(|_| true),
        ),
        (
            "PID namespace",
            "/proc/self/ns/pid",
            namespace::look(root, Kind::Pid).map(|_| true),
        ),
        (
            "cgroup namespace",
            "/proc/self/ns/cgroup",
            namespace::look(root, Kind::Cgroup).map(|_| true),
        ),
        (
            "pools",
            hugepages::DIRECTORY,
            page_sizes.map(|sizes| !sizes.is_empty()),
        ),
        (
            "transparent huge pages",
            transparent_hugepage::DIRECTORY,
            first_byte_in(transparent_hugepage::DIRECTORY, "enabled"),
        ),
        ("nodes", nodes::DIRECTORY, nodes::read(root).map(|_| true)),
    ] {
        sources.push(Source::new(name, root.path(path), result));
    }
    sources.push(limits(root, &postmaster, &sizes));
    sources.push(memory_group(root, &postmaster));
    Ok(sources)
}

/// A directory in `/proc` with its name, opened or not.
type Opened = (String, Result<Process, Absent>);

fn of_process(root: &Root, (pid, process): &Opened, entry: &Entry, subject: &Subject) -> Source {
    let &(name, file, way) = entry;
    // The only file in a subdirectory.
    let file = match name {
        "children" => format!("task/{pid}/children"),
        _ => file.to_owned(),
    };
    let result = match process {
        Ok(process) => way.tried(process, &file, subject),
        Err(absent) => Err(ReadError::Absent(absent.clone())),
    };
    Source::new(name, root.path(format!("proc/{pid}/{file}")), result)
}

impl Way {
    fn tried(self, process: &Process, file: &str, subject: &Subject) -> Result<bool, ReadError> {
        match self {
            Self::Open => process.file(file).map(|_| true),
            Self::Byte => process.has_first_byte(file),
            Self::ByteOrNone => process.has_first_byte(file).map(|_| true),
            Self::Link => process.link(file).map(|target| !target.is_empty()),
            Self::Query => segment::by_query(process, subject.address).map(|found| found.is_some()),
        }
    }
}

fn first_byte(root: &Root, path: impl AsRef<Path>) -> Result<bool, ReadError> {
    let path = path.as_ref();
    let read = root.open(path)?.read(&mut [0]);
    read.map(|bytes| bytes > 0)
        .map_err(|error| ReadError::from_io(root.path(path), error))
}

/// The limits on huge pages of the process's cgroup, or of the nearest ancestor that has some.
fn limits(root: &Root, (pid, process): &Opened, page_sizes: &[u64]) -> Source {
    let read = match process {
        Ok(process) => cgroup::read(root, process, page_sizes),
        Err(absent) => Err(ReadError::Absent(absent.clone())),
    };
    let is_limited = |group: &&cgroup::Group| !group.limits.is_empty();
    let path = match &read {
        Ok(hugetlb) => {
            let limited = hugetlb.groups.iter().find(is_limited);
            let shown = limited.or_else(|| hugetlb.groups.first());
            shown.map(|group| group.directory.clone())
        }
        Err(
            ReadError::Absent(Absent { path, .. })
            | ReadError::Io { path, .. }
            | ReadError::TooLarge { path, .. }
            | ReadError::Malformed { path, .. },
        ) => Some(path.clone()),
        Err(ReadError::NoMemory(_)) => None,
    };
    let path = path.unwrap_or_else(|| root.path(format!("proc/{pid}/cgroup")));
    let read = read.map(|hugetlb| hugetlb.groups.iter().any(|group| is_limited(&group)));
    Source::new("hugetlb cgroup", path, read)
}

/// The memory statistics of the process's cgroup, or of the nearest ancestor that has them.
fn memory_group(root: &Root, (pid, process): &Opened) -> Source {
    const NAME: &str = "memory cgroup";
    let files = match process {
        Ok(process) => memory_events::files(root, process),
        Err(absent) => Err(ReadError::Absent(absent.clone())),
    };
    let membership = root.path(format!("proc/{pid}/cgroup"));
    match files {
        Ok(files) => {
            let tried = files.into_iter().map(|file| {
                let read = first_byte(root, &file);
                Source::new(NAME, file, read)
            });
            let mut tried: Vec<_> = tried.collect();
            let is_there = |source: &Source| source.status != Availability::Missing;
            let shown = tried.iter().position(is_there).unwrap_or(0);
            match tried.is_empty() {
                true => Source::new(NAME, membership, Ok(false)),
                false => tried.swap_remove(shown),
            }
        }
        Err(error) => Source::new(NAME, membership, Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn availability_has_a_name_for_each_error() {
        let answer = |code| {
            let error = io::Error::from_raw_os_error(code);
            let path = PathBuf::from("/proc/1/maps");
            let read = Err(ReadError::from_io(path.clone(), error));
            Source::new("maps", path, read).status
        };
        for (code, status) in [
            (rustix::io::Errno::ACCESS, Availability::Denied),
            (rustix::io::Errno::PERM, Availability::Denied),
            (rustix::io::Errno::NOENT, Availability::Missing),
            (rustix::io::Errno::SRCH, Availability::Missing),
            (rustix::io::Errno::OPNOTSUPP, Availability::Missing),
            (rustix::io::Errno::IO, Availability::Failed),
        ] {
            assert_eq!(answer(code.raw_os_error()), status, "{code}");
        }
        let of = |read| Source::new("maps", "/proc/1/maps".into(), Ok(read)).status;
        assert_eq!(
            (of(true), of(false)),
            (Availability::Ok, Availability::Missing)
        );
    }
}
