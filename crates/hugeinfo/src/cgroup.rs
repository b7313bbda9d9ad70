//! The hugetlb controller of the control group that a process is in, and of the groups above it
//! (Documentation/admin-guide/cgroup-v1/hugetlb.rst, cgroup-v2.rst; mm/hugetlb_cgroup.c).

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use procfs::{FromBufRead, ProcessCGroups, process::MountInfo};

use crate::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number},
};

/// Limits and use of one huge page size in one group, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The page size that they hold for.
    pub page_bytes: u64,
    /// On pages touched. `None`: unlimited.
    pub fault_limit: Option<u64>,
    /// Pages touched by this group and those below it.
    pub fault_use: Option<u64>,
    /// On pages promised by `mmap`. `None`: unlimited, or the kernel (before 5.7) has no such limit.
    pub reservation_limit: Option<u64>,
    /// Pages promised to this group and those below it.
    pub reservation_use: Option<u64>,
}

/// One group on the way from the process to the root of what we can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its directory.
    pub directory: PathBuf,
    /// A page size each; empty where the controller isn't enabled for the group.
    pub limits: Vec<Limits>,
}

/// The group of a process and its ancestors, nearest first. A limit holds for all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugetlb {
    /// Which of the two interfaces speaks.
    pub version: Version,
    /// Nearest first.
    pub groups: Vec<Group>,
}

/// Control groups have two interfaces; a hybrid host offers each controller through one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `hugetlb.SIZE.limit_in_bytes`.
    V1,
    /// `hugetlb.SIZE.max`.
    V2,
}

impl Version {
    fn files(self) -> [&'static str; 4] {
        match self {
            Self::V1 => [
                "limit_in_bytes",
                "usage_in_bytes",
                "rsvd.limit_in_bytes",
                "rsvd.usage_in_bytes",
            ],
            Self::V2 => ["max", "current", "rsvd.max", "rsvd.current"],
        }
    }

    /// The name of the file that holds the limit on faults.
    pub fn fault_limit_file(self, page_bytes: u64) -> String {
        self.file(page_bytes, self.files()[0])
    }

    /// The name of the file that holds the limit on reservations.
    pub fn reservation_limit_file(self, page_bytes: u64) -> String {
        self.file(page_bytes, self.files()[2])
    }

    fn file(self, page_bytes: u64, name: &str) -> String {
        format!("hugetlb.{}.{name}", size_name(page_bytes))
    }
}

/// The limits on process `pid` (a number or `self`) for these page sizes.
///
/// Limits above a container's own cgroup mount can't be seen from inside and are not in the answer.
///
/// Errors: absent where the kernel has no control groups, or no mount through which the group can be seen.
pub fn read(root: &Root, pid: &str, page_sizes: &[u64]) -> Result<Hugetlb, ReadError> {
    let (version, path) = membership(root, pid)?;
    let (mount_point, below) = mount(root, version, &path)?;
    let groups = below
        .ancestors()
        .map(|group| {
            // Joined to nothing a path would end in a slash.
            let is_mount_point = group.as_os_str().is_empty();
            let directory = if is_mount_point {
                mount_point.clone()
            } else {
                mount_point.join(group)
            };
            let limits = limits(root, version, &directory, page_sizes)?;
            Ok(Group { directory, limits })
        })
        .collect::<Result<Vec<_>, ReadError>>()?;
    if let Some(own) = groups.first().filter(|own| own.limits.is_empty()) {
        // No limits because there are none, or because something else is mounted over the groups?
        root.open(own.directory.join("cgroup.procs"))?;
    }
    Ok(Hugetlb { version, groups })
}

/// The line of `/proc/PID/cgroup` that counts for huge pages: the v1 hierarchy with the hugetlb controller if there is one,
/// else the unified one.
fn membership(root: &Root, pid: &str) -> Result<(Version, PathBuf), ReadError> {
    let path: PathBuf = ["proc", pid, "cgroup"].iter().collect();
    let bytes = root.read(&path)?;
    let mut unified = None;
    for (number, line) in lines(&bytes) {
        let group = ProcessCGroups::from_buf_read(line)
            .ok()
            .and_then(|groups| groups.into_iter().next());
        let Some(group) = group else {
            return Err(ReadError::Malformed {
                path: root.path(path),
                line: number,
                problem: "a control group was expected: ID:CONTROLLERS:PATH",
            });
        };
        if group.controllers.iter().any(|name| name == "hugetlb") {
            return Ok((Version::V1, group.pathname.into()));
        }
        if group.hierarchy == 0 && group.controllers.is_empty() {
            unified = Some((Version::V2, group.pathname.into()));
        }
    }
    unified.ok_or_else(|| ReadError::missing(root.path(path)))
}

/// Where that hierarchy is mounted so that the group can be seen: the mount point, and the group below it.
fn mount(root: &Root, version: Version, path: &Path) -> Result<(PathBuf, PathBuf), ReadError> {
    const PATH: &str = "proc/self/mountinfo";
    let bytes = root.read(PATH)?;
    for (number, line) in lines(&bytes) {
        // A host can have thousands of mounts, with names in any encoding. Only those of interest are parsed.
        let is_cgroup = match version {
            Version::V1 => contains(line, b" - cgroup "),
            Version::V2 => contains(line, b" - cgroup2 "),
        };
        if !is_cgroup {
            continue;
        }
        let mount = str::from_utf8(line)
            .ok()
            .and_then(|line| MountInfo::from_line(line).ok())
            .ok_or_else(|| ReadError::Malformed {
                path: root.path(PATH),
                line: number,
                problem: "a mount was expected",
            })?;
        if version == Version::V1 && !mount.super_options.contains_key("hugetlb") {
            continue;
        }
        let mount_root = unescape(mount.root.as_bytes());
        // A group above the mount or beside it, as `/..` in a namespace, is out of sight.
        let below = path.strip_prefix(&mount_root).ok().filter(|below| {
            below
                .components()
                .all(|c| matches!(c, Component::Normal(_)))
        });
        if let Some(below) = below {
            let mount_point = unescape(mount.mount_point.as_os_str().as_bytes());
            return Ok((mount_point, below.to_path_buf()));
        }
    }
    Err(ReadError::missing(root.path(PATH)))
}

fn limits(
    root: &Root,
    version: Version,
    directory: &Path,
    page_sizes: &[u64],
) -> Result<Vec<Limits>, ReadError> {
    let mut all = Vec::new();
    for &page_bytes in page_sizes {
        let read = |name| {
            let file = directory.join(version.file(page_bytes, name));
            match read_bytes(root, &file, page_bytes) {
                Err(error) if error.is_missing() => Ok(None),
                other => other.map(Some),
            }
        };
        let [limit, usage, reservation_limit, reservation_use] = version.files();
        let Some(fault_limit) = read(limit)? else {
            // All sizes or none: the controller isn't enabled here, as in the root of v2.
            break;
        };
        all.push(Limits {
            page_bytes,
            fault_limit,
            fault_use: read(usage)?.flatten(),
            reservation_limit: read(reservation_limit)?.flatten(),
            reservation_use: read(reservation_use)?.flatten(),
        });
    }
    Ok(all)
}

/// A number of bytes; `None`: unlimited, which is `max` in v2 and, in v1, the largest multiple of the page size.
fn read_bytes(root: &Root, file: &Path, page_bytes: u64) -> Result<Option<u64>, ReadError> {
    const V1_COUNTER_MAX: u64 = i64::MAX.unsigned_abs();
    let text = root.read(file)?;
    let text = text.trim_ascii();
    if text == b"max" {
        return Ok(None);
    }
    let bytes = parse_number(text).ok_or_else(|| ReadError::Malformed {
        path: root.path(file),
        line: 1,
        problem: "a number of bytes or \"max\" was expected",
    })?;
    Ok(Some(bytes).filter(|&bytes| bytes <= V1_COUNTER_MAX - page_bytes))
}

/// As the kernel writes a page size in file names (mm/hugetlb_cgroup.c `mem_fmt`).
fn size_name(page_bytes: u64) -> String {
    let kilobytes = page_bytes >> 10;
    if kilobytes >= 1 << 20 {
        format!("{}GB", kilobytes >> 20)
    } else if kilobytes >= 1 << 10 {
        format!("{}MB", kilobytes >> 10)
    } else {
        format!("{kilobytes}KB")
    }
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// Undoes the kernel's `\040` for a blank (fs/proc_namespace.c `mangle`).
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.first_chunk::<3>().filter(|_| byte == b'\\');
        let code = octal
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsStr::from_bytes(&plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_as_the_kernel_names_them() {
        for (page_bytes, name) in [
            (64 << 10, "64KB"),
            (2 << 20, "2MB"),
            (512 << 20, "512MB"),
            (1 << 30, "1GB"),
            (16 << 30, "16GB"),
        ] {
            assert_eq!(size_name(page_bytes), name);
        }
    }

    #[test]
    fn mount_points_are_unescaped() {
        assert_eq!(
            unescape(br"/sys/fs/c\040group\134x"),
            Path::new(r"/sys/fs/c group\x")
        );
        assert_eq!(unescape(br"/odd\04"), Path::new(r"/odd\04"));
        assert_eq!(unescape(br"/odd\999"), Path::new(r"/odd\999"));
    }
}
