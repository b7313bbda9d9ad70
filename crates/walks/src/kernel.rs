//! What the kernel shows, read here and nowhere else: nothing of this comes from our own readers.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

const POOLS: &str = "/sys/kernel/mm/hugepages";
const NODES: &str = "/sys/devices/system/node";

/// Counters and limits by name.
pub type Shown = BTreeMap<String, Option<u64>>;

/// Where it all lies.
#[derive(Clone)]
pub struct Kernel {
    pub sizes_kb: Vec<u64>,
    pub nodes: Vec<u32>,
    /// Control groups, parents first.
    pub groups: Vec<PathBuf>,
    pub version: u32,
}

pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| named(path, &error))
}

pub fn number(path: impl AsRef<Path>) -> io::Result<u64> {
    let path = path.as_ref();
    let text = read(path)?;
    (text.trim().parse()).map_err(|_| io::Error::other(format!("{}: {text}", path.display())))
}

/// The error of the kernel's answer itself: 16 is EBUSY, 22 EINVAL.
pub fn write(path: impl AsRef<Path>, value: impl ToString) -> Result<(), i32> {
    fs::write(path, value.to_string()).map_err(|error| error.raw_os_error().unwrap_or(-1))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Numbers at the end of the names of a directory.
fn numbers<T: std::str::FromStr + Ord>(directory: &str, before: &str, after: &str) -> Vec<T> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<T> = names
        .filter_map(|name| name.strip_prefix(before)?.strip_suffix(after)?.parse().ok())
        .collect();
    numbers.sort();
    numbers
}

impl Kernel {
    pub fn new(version: u32, groups: Vec<PathBuf>) -> Self {
        let nodes = numbers::<u32>(NODES, "node", "").into_iter();
        let has_pools = |node: &u32| Path::new(&format!("{NODES}/node{node}/hugepages")).is_dir();
        Self {
            sizes_kb: numbers(POOLS, "hugepages-", "kB"),
            nodes: nodes.filter(has_pools).collect(),
            groups,
            version,
        }
    }

    /// Groups that processes can be in: with version 2 only those without children.
    pub fn places(&self) -> Vec<usize> {
        let is_parent = |group: &PathBuf| {
            let mut parents = self.groups.iter().filter_map(|group| group.parent());
            parents.any(|parent| parent == group)
        };
        let groups = self.groups.iter().enumerate();
        let places = groups.filter(|(_, group)| self.version == 1 || !is_parent(group));
        places.map(|(place, _)| place).collect()
    }

    pub fn pool_file(kb: u64, name: &str) -> String {
        format!("{POOLS}/hugepages-{kb}kB/{name}")
    }

    pub fn node_file(node: u32, kb: u64, name: &str) -> String {
        format!("{NODES}/node{node}/hugepages/hugepages-{kb}kB/{name}")
    }

    /// A file of the controller: 2048 is named 2MB.
    pub fn group_file(&self, group: usize, kb: u64, name: &str) -> PathBuf {
        let size = match kb {
            0..1024 => format!("{kb}KB"),
            1024..1_048_576 => format!("{}MB", kb >> 10),
            _ => format!("{}GB", kb >> 20),
        };
        self.groups[group].join(format!("hugetlb.{size}.{name}"))
    }

    pub fn limit_file(&self, group: usize, kb: u64, is_reservation: bool) -> PathBuf {
        let before = if is_reservation { "rsvd." } else { "" };
        let after = if self.version == 2 {
            "max"
        } else {
            "limit_in_bytes"
        };
        self.group_file(group, kb, &format!("{before}{after}"))
    }

    /// No limit, as it is written.
    pub fn no_limit(&self) -> &'static str {
        if self.version == 2 { "max" } else { "-1" }
    }

    /// A limit in pages.
    fn limit(path: &Path, kb: u64) -> io::Result<Option<u64>> {
        let text = read(path)?;
        // no limit is the largest multiple of the page below 2^63 in version 1
        let bytes = text.trim().parse::<u64>().ok();
        Ok(bytes
            .filter(|&bytes| bytes < 1 << 62)
            .map(|bytes| bytes / (kb << 10)))
    }

    /// Everything that the model knows, too.
    pub fn shown(&self) -> io::Result<Shown> {
        let mut shown = Shown::new();
        for &kb in &self.sizes_kb {
            for (name, file) in [
                ("total", "nr_hugepages"),
                ("free", "free_hugepages"),
                ("reserved", "resv_hugepages"),
                ("surplus", "surplus_hugepages"),
                ("overcommit", "nr_overcommit_hugepages"),
            ] {
                let value = number(Self::pool_file(kb, file))?;
                shown.insert(format!("{kb} kB {name}"), Some(value));
                for &node in self
                    .nodes
                    .iter()
                    .filter(|_| name != "reserved" && name != "overcommit")
                {
                    let value = number(Self::node_file(node, kb, file))?;
                    shown.insert(format!("{kb} kB node {node} {name}"), Some(value));
                }
            }
            for group in 0..self.groups.len() {
                self.show_group(group, kb, &mut shown)?;
            }
        }
        shown.insert("CommitLimit kB".into(), Some(meminfo("CommitLimit")?));
        Ok(shown)
    }

    fn show_group(&self, group: usize, kb: u64, shown: &mut Shown) -> io::Result<()> {
        let name = |what: &str| format!("{kb} kB group {group} {what}");
        let current = if self.version == 2 {
            "current"
        } else {
            "usage_in_bytes"
        };
        for (kind, before) in [("fault", ""), ("reservation", "rsvd.")] {
            let used = number(self.group_file(group, kb, &format!("{before}{current}")))?;
            shown.insert(name(&format!("{kind} used")), Some(used / (kb << 10)));
            let limit = self.limit_file(group, kb, kind == "reservation");
            shown.insert(name(&format!("{kind} limit")), Self::limit(&limit, kb)?);
            if self.version == 1 {
                let refusals = number(self.group_file(group, kb, &format!("{before}failcnt")))?;
                shown.insert(name(&format!("{kind} refusals")), Some(refusals));
            }
        }
        if self.version == 2 {
            for file in ["events", "events.local"] {
                let text = read(self.group_file(group, kb, file))?;
                let count = text
                    .trim()
                    .strip_prefix("max ")
                    .and_then(|text| text.parse().ok());
                shown.insert(name(file), count);
            }
        }
        Ok(())
    }

    /// The node's first processor, which not every node has, and all nodes by their distance.
    pub fn home(node: u32, nodes: &[u32]) -> Option<(String, Vec<u32>)> {
        let list = read(format!("{NODES}/node{node}/cpulist")).ok()?;
        let first = list.trim().split(['-', ',']).next()?.to_owned();
        first.parse::<u32>().ok()?;
        let online = numbers::<u32>(NODES, "node", "");
        let distances = read(format!("{NODES}/node{node}/distance")).ok()?;
        let distances = distances
            .split_whitespace()
            .filter_map(|text| text.parse::<u64>().ok());
        let mut near: Vec<(u64, u32)> = distances.zip(online).collect();
        near.retain(|(_, node)| nodes.contains(node));
        near.sort_unstable();
        Some((first, near.into_iter().map(|(_, node)| node).collect()))
    }
}

/// A line of /proc/meminfo, in kB.
pub fn meminfo(key: &str) -> io::Result<u64> {
    let text = read("/proc/meminfo")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let value = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    value.ok_or_else(|| io::Error::other(format!("/proc/meminfo: no {key}")))
}

/// The largest block that the kernel's allocator has, in kB: larger pages are gigantic.
pub fn largest_block_kb(base_kb: u64) -> io::Result<u64> {
    let text = read("/proc/buddyinfo")?;
    let line = text.lines().next().unwrap_or_default();
    let orders = line.split_whitespace().skip(4).count();
    Ok(base_kb << orders.saturating_sub(1))
}

/// Processes that have huge pages: strangers, where nobody of ours is left.
pub fn strangers() -> Vec<String> {
    let has_pages = |pid: &u32| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.contains("hugepage")
    };
    let name = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{} {pid}", name.trim())
    };
    let pids = numbers::<u32>("/proc", "", "").into_iter();
    pids.filter(has_pages).map(name).collect()
}

/// Whether the running kernel is that version or a later one.
pub fn is_since(major: u32, minor: u32) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
    (number(), number()) >= (Some(major), Some(minor))
}
