//! The hugetlb controller (Documentation/admin-guide/cgroup-v1/hugetlb.rst, cgroup-v2.rst;
//! mm/hugetlb_cgroup.c).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    hierarchy::{read_keyed, read_limit, shown},
    memory,
    mount::Version,
};
use crate::linux::{
    error::{ReadError, fact},
    mountinfo::Mount,
    namespace::{self, Kind},
    process::Process,
    root::Root,
};

/// Limits and use of one huge page size in one group, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The page size of the limits.
    pub page_bytes: u64,
    /// Limit on pages faulted in. `None`: unlimited.
    pub fault_limit: Option<u64>,
    /// Pages faulted in by this cgroup and its descendants.
    pub fault_use: Option<u64>,
    /// Limit on pages reserved by `mmap`. `None`: unlimited, or the kernel has no such limit.
    pub reservation_limit: Option<u64>,
    /// Pages reserved by this cgroup and its descendants.
    pub reservation_use: Option<u64>,
}

/// The cgroup of a process, or a visible ancestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Directory of the cgroup or, for a limit from the environment, the name of the variable.
    pub directory: PathBuf,
    /// Limits by page size. Empty if the controller is not enabled for the cgroup.
    pub limits: Vec<Limits>,
    /// True if the limits can only be set from outside of the container: it is the outermost cgroup
    /// of a container, or the mount is read-only.
    pub is_set_outside: bool,
    /// True if the cgroup is not visible, and its limits are from the environment.
    pub is_told: bool,
}

/// The cgroup of a process and its ancestors, nearest first. A limit applies to all descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugetlb {
    /// The version of the interface that has the controller.
    pub version: Version,
    /// Nearest first. Empty if nothing can limit the process.
    pub groups: Vec<Group>,
    /// True if memory limits of v2 include huge pages (`memory_hugetlb_accounting`, Linux 6.7).
    pub counts_as_memory: bool,
}

impl Hugetlb {
    /// No limits, because there is no cgroup.
    const UNLIMITED: Self = Self {
        version: Version::V2,
        groups: Vec::new(),
        counts_as_memory: false,
    };
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
        self.hugetlb_file(page_bytes, self.files()[0])
    }

    /// The name of the file that holds the limit on reservations.
    pub fn reservation_limit_file(self, page_bytes: u64) -> String {
        self.hugetlb_file(page_bytes, self.files()[2])
    }

    fn hugetlb_file(self, page_bytes: u64, name: &str) -> String {
        format!("hugetlb.{}.{name}", size_name(page_bytes))
    }
}

/// Reads the limits on a process for these page sizes.
///
/// Limits above a container's own cgroup mount are not visible from inside, so they are left out. A
/// kernel without cgroups has no limits.
///
/// Errors: absent if the cgroup is not visible or access is denied.
pub fn read(root: &Root, process: &Process, page_sizes: &[u64]) -> Result<Hugetlb, ReadError> {
    let Some((version, shown)) = shown(root, process, "hugetlb")? else {
        return Ok(Hugetlb::UNLIMITED);
    };
    let mut groups = Vec::new();
    for directory in shown.directories() {
        let limits = limits(root, version, &directory, page_sizes)?;
        groups.push(Group {
            directory,
            limits,
            is_set_outside: false,
            is_told: false,
        });
    }
    let has_limit =
        |limits: &Limits| limits.fault_limit.is_some() || limits.reservation_limit.is_some();
    if groups.iter().flat_map(|group| &group.limits).any(has_limit)
        && is_container(root, &shown.mount)?
    {
        for group in &mut groups {
            group.is_set_outside = shown.mount.is_read_only || group.directory == shown.mount.point;
        }
    }
    if let Some(own) = groups.first().filter(|own| own.limits.is_empty()) {
        // Distinguishes a cgroup without limits from a directory that another mount covers.
        root.open(own.directory.join("cgroup.procs"))?;
    }
    Ok(Hugetlb {
        version,
        groups,
        counts_as_memory: shown.mount.has_option(memory::COUNTS_HUGETLB),
    })
}

/// How often the kernel has refused pages of each size to the cgroup of a process, faults and
/// reservations alike. Empty if all cgroups above it are visible.
///
/// A refusal by any ancestor counts in the cgroup of the process (`max` of v2
/// `hugetlb.SIZE.events`; mm/hugetlb_cgroup.c `__hugetlb_cgroup_charge_cgroup`). Counters of v1
/// belong to the cgroup with the limit.
pub fn refusals(
    root: &Root,
    process: &Process,
    page_sizes: impl Iterator<Item = u64>,
) -> Result<BTreeMap<u64, u64>, ReadError> {
    let mut refusals = BTreeMap::new();
    let Some((Version::V2, shown)) = shown(root, process, "hugetlb")? else {
        return Ok(refusals);
    };
    let Some(own) = shown.directories().next() else {
        return Ok(refusals);
    };
    if !is_container(root, &shown.mount)? {
        return Ok(refusals);
    }
    for page_bytes in page_sizes {
        let file = own.join(Version::V2.hugetlb_file(page_bytes, "events"));
        if let Some(count) = fact(read_keyed(root, &file, "max"))?.ok().flatten() {
            refusals.insert(page_bytes, count);
        }
    }
    Ok(refusals)
}

/// True if the mount shows only a part of the hierarchy.
fn is_container(root: &Root, mount: &Mount) -> Result<bool, ReadError> {
    Ok(mount.root != Path::new("/") || !namespace::is_first(root, Kind::Cgroup)?)
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
            let file = directory.join(version.hugetlb_file(page_bytes, name));
            match read_limit(root, &file, page_bytes) {
                Err(error) if error.is_missing() => Ok(None),
                other => other.map(Some),
            }
        };
        // Without a valid value, only the usage is unknown.
        let used = |name| Ok::<_, ReadError>(fact(read(name))?.ok().flatten().flatten());
        let [limit, usage, reservation_limit, reservation_use] = version.files();
        let Some(fault_limit) = read(limit)? else {
            // The files exist for all sizes or for none: the controller is not enabled here, as in
            // the root of v2.
            break;
        };
        all.push(Limits {
            page_bytes,
            fault_limit,
            fault_use: used(usage)?,
            reservation_limit: read(reservation_limit)?.flatten(),
            reservation_use: used(reservation_use)?,
        });
    }
    Ok(all)
}

/// Formats a page size for file names (mm/hugetlb_cgroup.c `mem_fmt`).
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
}
