//! What of the kernel decides how it reads its command line.

use super::command_line::parameters;
use crate::linux::{
    error::{ReadError, fact},
    hugepages, meminfo,
    numa::nodes,
    root::Root,
    text::{lines, parse_number, split_once},
};

/// The kernel that boots next, taken to be the one that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its version, such as 6.1. If it is unknown, the newest rules hold.
    pub version: (u64, u64),
    /// The sizes of huge pages that it has. `None`: any power of two may be one.
    pub sizes: Option<Vec<u64>>,
    /// The size of one entry of the last but one level of page tables (`HPAGE_SIZE`): the default
    /// size, unless the command line names another. Larger pages come from boot-time memory.
    pub hpage_bytes: u64,
    /// The nodes that are online. `None`: any may be.
    pub nodes: Option<Vec<u32>>,
    /// How many sizes the architecture provides for (`HUGE_MAX_HSTATE`).
    pub most_sizes: usize,
    /// Whether it was built to set memory apart (`CONFIG_CMA`): else `hugetlb_cma=` says nothing.
    pub has_cma: bool,
}

impl Kernel {
    /// Of a root: the kernel that runs.
    pub fn read(root: &Root) -> Result<Self, ReadError> {
        let release = fact(root.read_filled("proc/sys/kernel/osrelease"))?.ok();
        let sizes = fact(root.names(hugepages::DIRECTORY))?.ok();
        let memory = fact(root.read_filled("proc/meminfo"))?.ok();
        let default = memory.as_ref().and_then(|text| meminfo::parse(text).ok());
        let default = default.and_then(|m| m.default_huge_page_bytes);
        let command_line = fact(root.read_filled("proc/cmdline"))?.unwrap_or_default();
        let is_named = parameters(&command_line).any(|p| p.is("default_hugepagesz"));
        Ok(Self {
            version: release.and_then(|r| parse_version(&r)).unwrap_or(NEWEST),
            sizes: sizes.map(|names| {
                let sizes = names.iter().filter_map(|name| hugepages::parse_name(name));
                sizes.collect()
            }),
            hpage_bytes: default
                .filter(|_| !is_named)
                .unwrap_or_else(usual_hpage_bytes),
            nodes: fact(nodes::read(root))?.ok(),
            has_cma: memory.is_none_or(|text| lines(&text).any(|l| l.1.starts_with(b"CmaTotal:"))),
            most_sizes: if cfg!(target_arch = "x86_64") { 2 } else { 4 },
        })
    }

    /// The architecture has pages of this size (`arch_hugetlb_valid_size`).
    pub(super) fn has_size(&self, bytes: u64) -> bool {
        match &self.sizes {
            Some(sizes) => bytes == self.hpage_bytes || sizes.contains(&bytes),
            None => bytes.is_power_of_two() && bytes > 4096,
        }
    }

    pub(super) fn has_node(&self, node: u64) -> Option<u32> {
        /// As many as the largest kernels know (`MAX_NUMNODES`).
        const MOST: u32 = 1024;
        let node = u32::try_from(node).ok().filter(|&node| node < MOST)?;
        let is_online = self.nodes.as_ref().is_none_or(|n| n.contains(&node));
        is_online.then_some(node)
    }

    /// Larger than what the page allocator has in one piece (`hstate_is_gigantic`).
    pub fn is_gigantic(&self, page_bytes: u64) -> bool {
        page_bytes > self.hpage_bytes
    }

    /// `hugepages=0:7,1:9` (Linux 5.16).
    pub(super) fn knows_nodes(&self) -> bool {
        self.version >= (5, 16)
    }

    /// `sysctl.NAME=VALUE` (Linux 5.8).
    pub(super) fn takes_sysctl(&self) -> bool {
        self.version >= (5, 8)
    }

    /// Linux 6.15 notes the words about huge pages first, and works them off later.
    pub(super) fn notes_words(&self) -> bool {
        self.version >= (6, 15)
    }

    /// How many words 6.15 and later note (`HUGE_MAX_CMDLINE_ARGS`).
    pub(super) fn most_words(&self) -> usize {
        2 * self.most_sizes + 1
    }
}

const NEWEST: (u64, u64) = (u64::MAX, 0);

/// A page of page tables has an eighth as many entries as it has bytes, on every architecture that
/// PostgreSQL meets but s390.
fn usual_hpage_bytes() -> u64 {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    page.saturating_mul(page / 8)
}

/// `6.1.0-56-amd64`.
fn parse_version(release: &[u8]) -> Option<(u64, u64)> {
    let (major, rest) = split_once(release, b'.')?;
    let end = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    Some((parse_number(major)?, parse_number(&rest[..end])?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions() {
        for (release, version) in [
            ("6.1.0-56-amd64\n", Some((6, 1))),
            ("5.10", Some((5, 10))),
            ("7.2-rc1", Some((7, 2))),
            ("6", None),
            ("", None),
        ] {
            assert_eq!(super::parse_version(release.as_bytes()), version);
        }
    }
}
