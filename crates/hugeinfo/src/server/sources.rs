//! Each kernel source that is read here: whether it is there and may be read, by trying.
//!
//! What it costs doesn't grow with anything: a file is opened, and of most a first byte is read,
//! since some permissions show only there. Of files for which the kernel walks page tables that
//! byte makes it walk the first mapping alone, and `smaps_rollup`, where it would walk all, is only
//! opened: the permission for these is asked for at `open` (fs/proc/task_mmu.c `proc_maps_open`).

use std::{io::Read, path::PathBuf};

use crate::{
    linux::{
        cgroup,
        error::{Absence, Absent, ReadError},
        hugepages,
        numa::nodes,
        process::{Process, segment},
        root::Root,
        sysctl, transparent_hugepage,
    },
    server::facts::Subject,
};

/// A source, as it was when it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// A short name that stays: that of the file, of the system call, or of what the directory is
    /// for.
    pub name: &'static str,
    /// Where it was looked for.
    pub path: PathBuf,
    /// What came of it.
    pub status: Status,
    /// The SQL objects that need it, or use it where a better one is missing.
    pub used_for: &'static [&'static str],
}

/// What came of trying a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It can be read.
    Ok,
    /// It may not be read.
    Denied,
    /// This kernel, container or sandbox does not have it.
    Missing,
    /// The kernel failed to read it, or it has an unknown form.
    Failed,
}

impl Status {
    /// As it is shown in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }

    /// `Ok(false)`: what was there says nothing.
    fn of(result: Result<bool, ReadError>) -> Self {
        match result {
            Ok(true) => Self::Ok,
            Ok(false) => Self::Missing,
            Err(error) => Self::of_error(&error),
        }
    }

    fn of_error(error: &ReadError) -> Self {
        match error {
            ReadError::Absent(absent) => match absent.why {
                Absence::Missing => Self::Missing,
                Absence::Denied => Self::Denied,
            },
            ReadError::Io { .. }
            | ReadError::TooLarge { .. }
            | ReadError::NoMemory(_)
            | ReadError::Malformed { .. } => Self::Failed,
        }
    }
}

/// How a file of a process is tried.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Opened only: reading would walk all page tables.
    Open,
    /// Opened, and a first byte read.
    Byte,
    /// The same, but no byte is no sign.
    ByteOrNone,
    /// A link, followed by name.
    Link,
    /// Asked for the mapping of the main segment.
    Query,
}

type Entry = (&'static str, &'static str, Way, &'static [&'static str]);

/// Name, file, way, use. Those that need the rights to look into a process first.
const INSIDE: [Entry; 5] = [
    ("PROCMAP_QUERY", "maps", Way::Query, SEGMENT_QUERY),
    ("maps", "maps", Way::Byte, MAPS),
    ("smaps", "smaps", Way::Byte, SMAPS),
    (
        "smaps_rollup",
        "smaps_rollup",
        Way::Open,
        &["hugeinfo_memory"],
    ),
    ("numa_maps", "numa_maps", Way::Byte, NUMA_MAPS),
];
const OUTSIDE: [Entry; 10] = [
    ("status", "status", Way::Byte, STATUS),
    ("stat", "stat", Way::Byte, PROCESSES),
    ("children", "children", Way::ByteOrNone, PROCESSES),
    ("oom_score", "oom_score", Way::Byte, BACKENDS),
    ("oom_score_adj", "oom_score_adj", Way::Byte, BACKENDS),
    ("cmdline", "cmdline", Way::Byte, COMMAND_LINES),
    ("exe", "exe", Way::Link, PROCESSES),
    ("cwd", "cwd", Way::Link, COMMAND_LINES),
    ("cgroup", "cgroup", Way::Byte, CGROUP),
    ("limits", "limits", Way::Byte, &["hugeinfo_checks"]),
];

const SEGMENT_QUERY: &[&str] = &[
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_memory",
    "hugeinfo_fault_rates",
    "hugeinfo_backends",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const MAPS: &[&str] = &[
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_memory",
    "hugeinfo_fault_rates",
    "hugeinfo_backends",
    "hugeinfo_mappings",
    "hugeinfo_numa",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const SMAPS: &[&str] = &[
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_memory",
    "hugeinfo_mappings",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const NUMA_MAPS: &[&str] = &[
    "hugeinfo_numa",
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const STATUS: &[&str] = &[
    "hugeinfo_backends",
    "hugeinfo_page_tables",
    "hugeinfo_numa",
    "hugeinfo_instances",
    "hugeinfo_checks",
];
const PROCESSES: &[&str] = &[
    "hugeinfo_backends",
    "hugeinfo_fault_rates",
    "hugeinfo_memory",
    "hugeinfo_mappings",
    "hugeinfo_page_tables",
    "hugeinfo_numa",
    "hugeinfo_checks",
];
const BACKENDS: &[&str] = &["hugeinfo_backends", "hugeinfo_checks"];
const COMMAND_LINES: &[&str] = &[
    "hugeinfo_backends",
    "hugeinfo_fault_rates",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const CGROUP: &[&str] = &[
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const MEMINFO: &[&str] = &[
    "hugeinfo_meminfo",
    "hugeinfo_host",
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_instances",
    "hugeinfo_plan",
    "hugeinfo_checks",
];
const POOLS: &[&str] = &[
    "hugeinfo_status",
    "hugeinfo_pools",
    "hugeinfo_page_tables",
    "hugeinfo_plan",
    "hugeinfo_checks",
];

/// Tries each source: for the postmaster and, where looking into a process takes rights, for this
/// process as well, by which the segment is found where the postmaster can't be looked into.
pub fn probe(root: &Root, subject: &Subject) -> Vec<Source> {
    let number = subject.postmaster.unwrap_or_else(std::process::id);
    let postmaster = (number.to_string(), Process::open(root, number));
    let this = ("self".to_owned(), Process::this(root));
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
    let file = |name, path: &str, used_for| Source {
        name,
        path: root.path(path),
        status: Status::of(first_byte(root, path)),
        used_for,
    };
    sources.push(file("mountinfo", "proc/self/mountinfo", CGROUP));
    sources.push(file("meminfo", "proc/meminfo", MEMINFO));
    sources.push(file(
        "vmstat",
        "proc/vmstat",
        &["hugeinfo_vmstat", "hugeinfo_checks"],
    ));
    sources.push(file("buddyinfo", "proc/buddyinfo", &["hugeinfo_checks"]));
    sources.push(file(
        "kernel command line",
        "proc/cmdline",
        &["hugeinfo_checks"],
    ));
    sources.push(file("uptime", "proc/uptime", &["hugeinfo_checks"]));

    let directory = |name, path, result, used_for| Source {
        name,
        path: root.path(path),
        status: Status::of(result),
        used_for,
    };
    sources.push(directory(
        "vm settings",
        sysctl::DIRECTORY,
        first_byte(root, &format!("{}/overcommit_memory", sysctl::DIRECTORY)),
        &["hugeinfo_host", "hugeinfo_checks"],
    ));
    sources.push(file(
        "zone_reclaim_mode",
        "proc/sys/vm/zone_reclaim_mode",
        &["hugeinfo_checks"],
    ));
    sources.push(directory(
        "sysctl files",
        "/etc/sysctl.d",
        root.names("etc/sysctl.d").map(|_| true),
        &["hugeinfo_checks"],
    ));
    let page_sizes = page_sizes(root);
    let sizes = page_sizes.as_deref().unwrap_or_default().to_vec();
    sources.push(directory(
        "pools",
        hugepages::DIRECTORY,
        page_sizes.map(|sizes| !sizes.is_empty()),
        POOLS,
    ));
    sources.push(directory(
        "transparent huge pages",
        transparent_hugepage::DIRECTORY,
        first_byte(
            root,
            &format!("{}/enabled", transparent_hugepage::DIRECTORY),
        ),
        &["hugeinfo_host", "hugeinfo_checks"],
    ));
    sources.push(directory(
        "nodes",
        nodes::DIRECTORY,
        nodes::read(root).map(|_| true),
        &["hugeinfo_numa", "hugeinfo_host", "hugeinfo_checks"],
    ));
    sources.push(file(
        "processors",
        "sys/devices/system/cpu/online",
        &["hugeinfo_host"],
    ));
    sources.push(limits(root, &postmaster, &sizes));
    sources
}

/// A directory in `/proc` by its name, opened or not.
type Opened = (String, Result<Process, ReadError>);

fn of_process(root: &Root, (pid, process): &Opened, entry: &Entry, subject: &Subject) -> Source {
    let &(name, file, way, used_for) = entry;
    // The only one that lies deeper.
    let file = match name {
        "children" => format!("task/{pid}/children"),
        _ => file.to_owned(),
    };
    let status = match process {
        Ok(process) => Status::of(way.tried(process, &file, subject)),
        Err(error) => Status::of_error(error),
    };
    Source {
        name,
        path: root.path(format!("proc/{pid}/{file}")),
        status,
        used_for,
    }
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

fn first_byte(root: &Root, path: &str) -> Result<bool, ReadError> {
    let read = root.open(path)?.read(&mut [0]);
    read.map(|bytes| bytes > 0)
        .map_err(|error| ReadError::from_io(root.path(path), error))
}

fn page_sizes(root: &Root) -> Result<Vec<u64>, ReadError> {
    let names = root.names(hugepages::DIRECTORY)?;
    Ok(names
        .iter()
        .filter_map(|name| hugepages::parse_name(name))
        .collect())
}

/// The limits on huge pages of the control group that the process is in, or of the nearest above it
/// that has some.
fn limits(root: &Root, (pid, process): &Opened, page_sizes: &[u64]) -> Source {
    let read = match process {
        Ok(process) => cgroup::read(root, process, page_sizes),
        Err(_) => Err(ReadError::missing(root.path(format!("proc/{pid}")))),
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
    Source {
        name: "hugetlb control group",
        path: path.unwrap_or_else(|| root.path(format!("proc/{pid}/cgroup"))),
        status: Status::of(read.map(|hugetlb| hugetlb.groups.iter().any(|g| is_limited(&g)))),
        used_for: CGROUP,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_the_kernel_answers_has_a_word() {
        let answer = |code| {
            let error = io::Error::from_raw_os_error(code);
            Status::of(Err(ReadError::from_io(
                PathBuf::from("/proc/1/maps"),
                error,
            )))
        };
        for (code, status) in [
            (rustix::io::Errno::ACCESS, Status::Denied),
            (rustix::io::Errno::PERM, Status::Denied),
            (rustix::io::Errno::NOENT, Status::Missing),
            (rustix::io::Errno::SRCH, Status::Missing),
            (rustix::io::Errno::IO, Status::Failed),
        ] {
            assert_eq!(answer(code.raw_os_error()), status, "{code}");
        }
        assert_eq!(Status::of(Ok(true)), Status::Ok);
        assert_eq!(Status::of(Ok(false)), Status::Missing);
    }
}
