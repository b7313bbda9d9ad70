//! The holders of the huge pages of this host.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::linux::{
    error::{ReadError, absent_or},
    growth::TryPush,
    hugepages::Pool,
    mounts::{self, Hugetlbfs},
    process::{
        Process,
        maps::{Device, Extent},
        smaps, stat, status,
    },
    root::Root,
};
use serde::{Deserialize, Serialize};

use crate::server::state::State;

/// A holder of huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub kind: HolderKind,
    /// Size of the pages. `None`: unknown, or several sizes.
    pub page_bytes: Option<u64>,
    /// Bytes of huge pages. `None`: unknown.
    pub bytes: Option<u64>,
}

/// Kind of a holder of huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderKind {
    /// A process with the huge pages that it has faulted in, including memory that it shares with
    /// others. The kernel does not count pages behind shared page tables, nor reserved pages.
    Process {
        pid: u32,
        /// Name of the program, at most 15 bytes.
        name: Vec<u8>,
        /// User that the process runs as.
        uid: Option<u32>,
        /// True for a process of this server.
        is_own: bool,
    },
    /// A hugetlbfs mount with the pages reserved for it or, if its size is limited, with the pages
    /// that its files use.
    Mount(Hugetlbfs),
    /// A lower bound of pages in use or reserved that no process or mount above accounts for:
    /// hidden processes and mounts, files without a process, and System V segments that no process
    /// is attached to, whose page size the kernel does not report.
    Unexplained,
}

impl HolderKind {
    /// The value shown in SQL.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Process { .. } => "process",
            Self::Mount(_) => "mount",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A mapping of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugeMapping {
    page_bytes: u64,
    extent: Extent,
    is_shared: bool,
}

/// Reads the mappings of huge pages of the processes that are not in `own`, and reports each
/// process that can be read. Such a read waits for the lock of the process's memory, which the
/// process can hold for a long time.
///
/// Errors: a file that is malformed or fails to be read.
pub fn huge_mappings(
    root: &Root,
    pools: &[Pool],
    own: &HashSet<u32>,
    mut report: impl FnMut(u32, Vec<HugeMapping>),
) -> Result<(), ReadError> {
    let mut buffer = Vec::with_capacity(4096);
    for pid in Process::numbers(root)? {
        if own.contains(&pid) {
            continue;
        }
        let Ok(Some((process, _))) = absent_or(with_huge_pages(root, pid, &mut buffer))? else {
            continue;
        };
        let Ok(entries) = absent_or(smaps::read(&process, || ()))? else {
            continue;
        };
        let mut mappings = Vec::new();
        for entry in entries {
            let Ok(entry) = absent_or(entry)? else { break };
            let size = entry.figures.page_size;
            if let Some(page_bytes) =
                size.filter(|size| pools.iter().any(|p| p.page_bytes == *size))
            {
                mappings.try_push(HugeMapping {
                    page_bytes,
                    extent: entry.mapping.extent,
                    is_shared: entry.mapping.is_shared(),
                })?;
            }
        }
        report(pid, mappings);
    }
    Ok(())
}

/// Each process with huge pages, each hugetlbfs mount, and the unexplained rest of each pool.
///
/// `own` are the processes of this server. `mappings` are those of other processes by PID, if
/// known. `check_for_interrupts` is called for each process of the host, so that a caller can stop.
///
/// Errors: a file that is malformed or fails to be read; never one that is absent. A process that
/// ends meanwhile is left out.
pub fn read(
    root: &Root,
    state: &State,
    own: &HashSet<u32>,
    mappings: &HashMap<u32, Vec<HugeMapping>>,
    mut check_for_interrupts: impl FnMut(),
) -> Result<Vec<Holder>, ReadError> {
    let pools = state.pools.as_deref().unwrap_or_default();
    let mut buffer = Vec::with_capacity(4096);
    let mut holders = Vec::new();
    let mut explained = Explained::default();
    let own_page = state.backing().huge_page().map(|size| size.0);
    if let (Some(page_bytes), Ok(segment)) = (own_page, &state.segment) {
        explained.add(page_bytes, segment.bytes);
    }
    for pid in Process::numbers(root)? {
        check_for_interrupts();
        let Ok(Some((process, bytes))) = absent_or(with_huge_pages(root, pid, &mut buffer))? else {
            continue;
        };
        let Ok((_, name)) = absent_or(stat::read_with_name(&process, &mut buffer))? else {
            continue;
        };
        let is_own = own.contains(&pid);
        let page_bytes = if is_own {
            own_page
        } else {
            explained.process(mappings.get(&pid).map_or(&[], Vec::as_slice), bytes)?
        };
        let identity = absent_or(status::read_identity(&process, &mut buffer))?;
        holders.try_push(Holder {
            kind: HolderKind::Process {
                pid,
                name,
                uid: identity.ok().and_then(|identity| identity.uid),
                is_own,
            },
            page_bytes: page_bytes.or_else(|| only_size(pools)),
            bytes: Some(bytes),
        })?;
    }
    for mount in absent_or(mounts::hugetlbfs(root))?.unwrap_or_default() {
        let bytes = mount.used_bytes(root).max(mount.min_size_bytes);
        if let Some(page_bytes) = mount.page_bytes {
            explained.add(page_bytes, bytes.unwrap_or(0));
        }
        holders.try_push(Holder {
            page_bytes: mount.page_bytes,
            kind: HolderKind::Mount(mount),
            bytes,
        })?;
    }
    for pool in pools {
        let bytes = explained.rest(pool);
        if bytes > 0 {
            holders.try_push(Holder {
                kind: HolderKind::Unexplained,
                page_bytes: Some(pool.page_bytes),
                bytes: Some(bytes),
            })?;
        }
    }
    Ok(holders)
}

/// The process with its `HugetlbPages`, if it has any.
fn with_huge_pages(
    root: &Root,
    pid: u32,
    buffer: &mut Vec<u8>,
) -> Result<Option<(Process, u64)>, ReadError> {
    let process = Process::open(root, pid)?;
    let memory = status::read_memory(&process, buffer)?;
    let bytes = memory.hugetlb.filter(|&bytes| bytes > 0);
    Ok(bytes.map(|bytes| (process, bytes)))
}

/// The page size of all pools, if there is only one with pages.
fn only_size(pools: &[Pool]) -> Option<u64> {
    let mut filled = pools.iter().filter(|pool| pool.total > 0);
    let only = filled.next()?;
    filled.next().is_none().then_some(only.page_bytes)
}

/// Pages that are accounted for, as an upper bound, so that the rest is certain.
#[derive(Debug, Default)]
struct Explained {
    by_size: BTreeMap<u64, u64>,
    /// Pages of processes whose mappings are unknown.
    of_any_size: u64,
    /// Bytes of each shared object that are already counted, because several processes map it.
    objects: HashMap<(Device, u64), u64>,
}

impl Explained {
    fn add(&mut self, page_bytes: u64, bytes: u64) {
        let sum = self.by_size.entry(page_bytes).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// Accounts for a process by its mappings if they are known, which are reserved as a whole,
    /// else by the pages that it has faulted in. Returns the page size, if there is only one.
    fn process(
        &mut self,
        mappings: &[HugeMapping],
        touched: u64,
    ) -> Result<Option<u64>, ReadError> {
        let mut sizes = Vec::new();
        for mapping in mappings {
            let size = mapping.page_bytes;
            self.mapping(size, &mapping.extent, mapping.is_shared)?;
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        if sizes.is_empty() {
            self.of_any_size = self.of_any_size.saturating_add(touched);
        }
        Ok(match sizes.as_slice() {
            [size] => Some(*size),
            _ => None,
        })
    }

    fn mapping(&mut self, size: u64, extent: &Extent, is_shared: bool) -> Result<(), ReadError> {
        if !is_shared {
            self.add(size, extent.bytes());
            return Ok(());
        }
        self.objects.try_reserve(1)?;
        let object = (extent.device, extent.inode);
        let counted = self.objects.entry(object).or_default();
        let end = extent.offset.saturating_add(extent.bytes());
        let more = end.saturating_sub(*counted);
        *counted = end.max(*counted);
        self.add(size, more);
        Ok(())
    }

    /// Pages of a pool that are in use or reserved, and not accounted for.
    fn rest(&self, pool: &Pool) -> u64 {
        let by_size = self.by_size.get(&pool.page_bytes).copied().unwrap_or(0);
        let committed = pool.committed().unwrap_or(0);
        let committed = committed.saturating_mul(pool.page_bytes);
        let rest = committed.saturating_sub(by_size);
        rest.saturating_sub(self.of_any_size)
    }
}
