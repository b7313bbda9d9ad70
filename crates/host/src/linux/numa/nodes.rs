//! `/sys/devices/system/node`: the NUMA nodes of the host
//! (Documentation/ABI/stable/sysfs-devices-node; drivers/base/node.c).

use crate::linux::{
    error::ReadError,
    list::{self, List},
    root::Root,
    text::parse_number,
};

/// The directory that holds one directory for each node.
pub const DIRECTORY: &str = "/sys/devices/system/node";

/// The file with the numbers of the nodes that have memory.
pub(crate) const WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";

/// The numbers of the nodes that are online, ascending; numbers can have gaps.
///
/// Errors: absent if the kernel has no NUMA support, or `/sys` is not mounted or hidden.
pub fn read(root: &Root) -> Result<Vec<u32>, ReadError> {
    let names = root.names_in_sys(DIRECTORY)?;
    let mut nodes: Vec<u32> = names.iter().filter_map(|name| parse_name(name)).collect();
    if nodes.is_empty() {
        return Err(ReadError::missing(root.path(DIRECTORY)));
    }
    nodes.sort_unstable();
    Ok(nodes)
}

/// The nodes with memory. Other nodes have only processors or devices.
///
/// Errors: absent as for [`read`], or if the kernel does not report it.
pub fn with_memory(root: &Root) -> Result<List, ReadError> {
    root.parse(WITH_MEMORY, "a list of numbers was expected", |bytes| {
        list::parse(bytes).ok_or(1)
    })
}

/// The node's directory.
pub fn directory(node: u32) -> String {
    format!("{DIRECTORY}/node{node}")
}

/// The directories of the nodes' parts of the pool with this page size, as a pattern.
pub fn pool_directories(page_bytes: u64) -> String {
    format!(
        "{DIRECTORY}/nodeN/hugepages/hugepages-{}kB",
        page_bytes >> 10
    )
}

/// Parses the number in the name of a node's directory. `None`: not a node.
pub fn parse_name(name: &str) -> Option<u32> {
    u32::try_from(parse_number(name.strip_prefix("node")?.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes() {
        for (name, node) in [
            ("node0", Some(0)),
            ("node255", Some(255)),
            ("node", None),
            ("node-1", None),
            ("node4294967296", None),
            ("nodes", None),
            ("memory0", None),
        ] {
            assert_eq!(parse_name(name), node, "{name}");
        }
    }
}
