//! The host: its kernel, its memory and the settings that govern it.

use crate::linux::{
    error::{Absent, ReadError, fact},
    list::List,
    meminfo::{self, Usage},
    numa::nodes,
    pages, processors,
    root::Root,
    sysctl::{self, Vm},
    transparent_hugepage::{self, Modes},
};

/// Unknown facts are [`Absent`] or `None`, never a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -m`.
    pub machine: String,
    /// Size of a small page.
    pub base_page_bytes: u64,
    /// Default size of huge pages. `None`: the kernel has no huge pages, or unknown.
    pub default_huge_page_bytes: Option<u64>,
    /// Memory by use.
    pub usage: Result<Usage, Absent>,
    /// Settings.
    pub vm: Vm,
    /// Modes of transparent huge pages.
    pub thp: Result<Modes, Absent>,
    /// NUMA nodes that are online.
    pub nodes: Result<Vec<u32>, Absent>,
    /// Processors that are online.
    pub processors: Result<List, Absent>,
}

impl Host {
    /// Reads the facts that affect a pool: memory and its settings. The rest counts as missing.
    ///
    /// Errors: as for [`Self::read`].
    pub fn read_memory(root: &Root) -> Result<Self, ReadError> {
        let meminfo = fact(meminfo::read_with_usage(root))?;
        Ok(Self {
            kernel_release: String::new(),
            machine: String::new(),
            base_page_bytes: pages::base_page_bytes(),
            default_huge_page_bytes: meminfo.as_ref().map_or(None, |(bytes, _)| *bytes),
            usage: meminfo.map(|(_, usage)| usage),
            vm: sysctl::read_overcommit(root)?,
            thp: Err(Absent::not_looked_at()),
            nodes: Err(Absent::not_looked_at()),
            processors: Err(Absent::not_looked_at()),
        })
    }

    /// Reads all facts. Name and page size come from the running kernel, whatever the root.
    ///
    /// Errors: only out of memory. Facts that cannot be read or parsed are absent.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let name = rustix::system::uname();
        let meminfo = fact(meminfo::read_with_usage(root))?;
        Ok(Self {
            kernel_release: name.release().to_string_lossy().into_owned(),
            machine: name.machine().to_string_lossy().into_owned(),
            base_page_bytes: pages::base_page_bytes(),
            default_huge_page_bytes: meminfo.as_ref().map_or(None, |(bytes, _)| *bytes),
            usage: meminfo.map(|(_, usage)| usage),
            vm: sysctl::read(root)?,
            thp: fact(transparent_hugepage::read(root))?,
            nodes: fact(nodes::read(root))?,
            processors: fact(processors::online(root))?,
        })
    }
}
