//! `/proc/spl/kstat/zfs/arcstats`: the memory in which ZFS caches files (arcstats of OpenZFS).

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_counter, words},
};

pub(crate) const PATH: &str = "proc/spl/kstat/zfs/arcstats";

/// The ARC of ZFS. The kernel counts it neither as file cache nor in `MemAvailable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZfsCache {
    /// `size`.
    pub bytes: u64,
    /// `c_max`: the size up to which it grows.
    pub max_bytes: u64,
}

/// Reads the file. Errors: missing without ZFS.
pub fn read(root: &Root) -> Result<ZfsCache, ReadError> {
    root.parse(PATH, "the counters size and c_max were expected", |text| {
        parse(text).ok_or(1)
    })
}

/// Parses lines with a name, a type and a value.
pub fn parse(text: &[u8]) -> Option<ZfsCache> {
    let value = |name: &str| {
        lines(text).find_map(|(_, line)| {
            let mut words = words(line);
            let is_named = words.next() == Some(name.as_bytes());
            words.nth(1).filter(|_| is_named).and_then(parse_counter)
        })
    };
    Some(ZfsCache {
        bytes: value("size")?,
        max_bytes: value("c_max")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_by_exact_name() {
        let text = b"13 1 0x01 147 39984 6226862 1187\nname                            type data\n\
            hits                            4    931\nc_max                           4    33285996544\n\
            size                            4    33285990000\ncompressed_size                 4    7\n";
        let expected = ZfsCache {
            bytes: 33_285_990_000,
            max_bytes: 33_285_996_544,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse(b"size 4 -1\nc_max 4 7\n"), None);
        assert_eq!(parse(b"size 4\n"), None);
    }
}
