//! `/proc/PID/maps`: the mappings of a process (fs/proc/task_mmu.c, `show_map_vma`).

use std::collections::TryReserveError;

use serde::{Deserialize, Serialize};

use crate::linux::{
    growth::try_collect,
    text::{lines, parse_hex, parse_number, split_once},
};

/// A device number, as in the `major:minor` of `maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Device {
    /// Number of the driver.
    pub major: u32,
    /// Number of the device within the driver.
    pub minor: u32,
}

/// The address range and the object of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// First address.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Device of the file.
    pub device: Device,
    /// Inode of the file; 0 for private anonymous memory.
    pub inode: u64,
}

impl Extent {
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// True if the address is in the mapping.
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The address at which the mapped object would start.
    pub fn origin(&self) -> u64 {
        self.start.wrapping_sub(self.offset)
    }

    /// True if both extents are parts of one mapping of a shared object.
    ///
    /// Device and inode are not enough: System V segments and shared anonymous memory are on the
    /// same internal file system of the kernel, and the inode of a System V segment is its ID
    /// (ipc/shm.c `newseg`). One `mmap` also has a constant difference of address and offset, and
    /// two objects cannot share addresses. Private anonymous memory has inode 0, for which equal
    /// numbers mean nothing.
    pub fn is_same_object(&self, other: &Self) -> bool {
        self == other || self.inode != 0 && self.object() == other.object()
    }

    /// Device, inode, and [`origin`](Self::origin): equal for mappings of one shared object.
    pub fn object(&self) -> (Device, u64, u64) {
        (self.device, self.inode, self.origin())
    }
}

/// A line of `maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Address range and object.
    pub extent: Extent,
    /// Permissions, such as `rwxp`; `s` in the last position for shared mappings.
    pub permissions: String,
    /// Path as the kernel writes it: a line feed is `\012`, and ` (deleted)` can follow; or a name
    /// such as `[heap]`; empty for anonymous memory. Not always UTF-8.
    pub path: Vec<u8>,
}

impl Mapping {
    /// True if writes are visible to other processes that map the object.
    pub fn is_shared(&self) -> bool {
        self.permissions.ends_with('s')
    }
}

/// The expected format, for errors.
pub const EXPECTED: &str = "a mapping was expected: START-END PERMS OFFSET MAJOR:MINOR INODE";

/// Parses the extents in the text of `maps`. Lines that are not a mapping are skipped.
///
/// Errors: out of memory.
pub fn parse_extents(bytes: &[u8]) -> Result<Vec<Extent>, TryReserveError> {
    let mappings = lines(bytes).filter_map(|(_, line)| parse_line(line));
    try_collect(mappings.map(|mapping| Ok(mapping.extent)))
}

/// Parses a line such as `7f00-7f10 rw-s 00000000 00:01 1042   /dev/zero (deleted)`, which is also
/// the first line of an entry in `smaps`.
pub fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |&b| b == b' ');
    let (start, end) = split_once(fields.next()?, b'-')?;
    let permissions = str::from_utf8(fields.next()?).ok()?.to_owned();
    let offset = parse_hex(fields.next()?)?;
    let (major, minor) = split_once(fields.next()?, b':')?;
    let inode = parse_number(fields.next()?)?;
    let extent = Extent {
        start: parse_hex(start)?,
        end: parse_hex(end)?,
        offset,
        device: Device {
            major: u32::try_from(parse_hex(major)?).ok()?,
            minor: u32::try_from(parse_hex(minor)?).ok()?,
        },
        inode,
    };
    // The kernel pads the line with blanks up to a column. A name begins with a slash or bracket,
    // and can contain more blanks.
    let path = fields
        .next()
        .map_or(&[][..], <[u8]>::trim_ascii_start)
        .to_vec();
    (extent.start < extent.end).then_some(Mapping {
        extent,
        permissions,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_and_inodes_are_not_truncated() {
        let line =
            "7f1e4c000000-7f1e4c200000 r--s 00000000 103:02 18446744073709551615  /data base/x y";
        let mapping = parse_line(line.as_bytes()).expect("a mapping");
        assert_eq!(
            mapping.extent.device,
            Device {
                major: 0x103,
                minor: 2
            }
        );
        assert_eq!(mapping.extent.inode, u64::MAX);
        assert_eq!(mapping.extent.bytes(), 2 << 20);
    }

    #[test]
    fn names_that_are_not_utf8_are_kept() {
        let mapping =
            parse_line(b"1000-2000 r--p 00000000 fe:00 12  /\xff\xfe/SYSV0").expect("a mapping");
        assert_eq!(mapping.path, b"/\xff\xfe/SYSV0");
    }

    #[test]
    fn other_lines_are_not_mappings() {
        for line in [
            "",
            "1000",
            "1000-2000",
            "1000-2000 rw-p 0 00:00",
            "1000-2000 rw-p 0 0000 0",
            "2000-1000 rw-p 0 00:00 0",
            "1000-1000 rw-p 0 00:00 0",
            "+1000-2000 rw-p 0 00:00 0",
            "1000-2000 rw-p 0 00:00 -1",
            "1000-2000 rw-p 0 00:00 18446744073709551616",
            "1000-2000 rw-p 0 100000000:00 0",
        ] {
            assert_eq!(parse_line(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn private_mappings_are_different_objects() {
        let heap = parse_line(b"1000-2000 rw-p 00000000 00:00 0  [heap]")
            .expect("a mapping")
            .extent;
        let other = parse_line(b"2000-3000 rw-p 00000000 00:00 0")
            .expect("a mapping")
            .extent;
        assert!(!heap.is_same_object(&other));
        assert!(heap.is_same_object(&heap));
    }

    #[test]
    fn shim_with_the_same_inode_is_another_object() {
        // Addresses of a server on Linux 6.1, shortly after boot; then with the shim directly after
        // or before the main segment.
        for (main, shim) in [
            ("7f3c53200000-7f3c5be00000", "7f3c5c8f0000-7f3c5c8f1000"),
            ("7f3c53200000-7f3c5be00000", "7f3c5be00000-7f3c5be01000"),
            ("7f3c53200000-7f3c5be00000", "7f3c531ff000-7f3c53200000"),
        ] {
            let extent = |range: &str, offset: &str, name: &str| {
                let line = format!("{range} rw-s {offset} 00:01 1026   {name} (deleted)");
                parse_line(line.as_bytes()).expect("a mapping").extent
            };
            let main = extent(main, "00000000", "/dev/zero");
            let shim = extent(shim, "00000000", "/SYSV0052e2c1");
            assert!(!main.is_same_object(&shim) && !shim.is_same_object(&main));
            let upper = extent("7f3c5be00000-7f3c5bf00000", "08c00000", "/dev/zero");
            assert!(main.is_same_object(&upper) && !shim.is_same_object(&upper));
        }
    }
}
