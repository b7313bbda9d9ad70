//! `/proc/PID/maps`: the mappings of a process (fs/proc/task_mmu.c, `show_map_vma`).
//!
//! A parser of our own: the one of `procfs` takes names for UTF-8, which the kernel does not promise,
//! and panics on a file named `/SYSV` with fewer than eight digits behind it.

use std::path::Path;

use crate::{
    error::ReadError,
    root::{Root, parse_number},
};

/// A device number, as in the `major:minor` of `maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device {
    pub major: u32,
    pub minor: u32,
}

/// Where a mapping lies and what it maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub device: Device,
    pub inode: u64,
}

impl Mapping {
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether both are pieces of one shared object. Private anonymous memory has inode 0, where
    /// equal numbers say nothing.
    pub fn is_same_object(&self, other: &Self) -> bool {
        self == other || self.inode != 0 && self.inode == other.inode && self.device == other.device
    }
}

/// All mappings of a process, in the order of their addresses.
pub(crate) fn read(root: &Root, path: &Path) -> Result<Vec<Mapping>, ReadError> {
    root.read(path)?
        .split(|&b| b == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            parse_line(line).ok_or_else(|| ReadError::Malformed {
                path: root.path(path),
                line: index + 1,
                problem: "a mapping was expected: START-END PERMS OFFSET MAJOR:MINOR INODE",
            })
        })
        .collect()
}

/// `7f00-7f10 rw-s 00000000 00:01 1042   /dev/zero (deleted)`; also the first line of an entry in `smaps`.
pub(crate) fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |&b| b == b' ');
    let (start, end) = split(fields.next()?, b'-')?;
    let _permissions = fields.next()?;
    let _offset = fields.next()?;
    let (major, minor) = split(fields.next()?, b':')?;
    let inode = parse_number(fields.next()?)?;
    let mapping = Mapping {
        start: parse_hex(start)?,
        end: parse_hex(end)?,
        device: Device {
            major: u32::try_from(parse_hex(major)?).ok()?,
            minor: u32::try_from(parse_hex(minor)?).ok()?,
        },
        inode,
    };
    (mapping.start < mapping.end).then_some(mapping)
}

pub(crate) fn parse_hex(digits: &[u8]) -> Option<u64> {
    if digits.first().is_none_or(|b| !b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

fn split(field: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = field.iter().position(|&b| b == separator)?;
    Some((&field[..at], &field[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_and_inodes_are_not_cut() {
        let line =
            "7f1e4c000000-7f1e4c200000 r--s 00000000 103:02 18446744073709551615  /data base/x y";
        let mapping = parse_line(line.as_bytes()).expect("a mapping");
        assert_eq!(
            mapping.device,
            Device {
                major: 0x103,
                minor: 2
            }
        );
        assert_eq!(mapping.inode, u64::MAX);
        assert_eq!(mapping.bytes(), 2 << 20);
    }

    #[test]
    fn names_need_not_be_utf8() {
        assert!(parse_line(b"1000-2000 r--p 00000000 fe:00 12  /\xff\xfe/SYSV0").is_some());
    }

    #[test]
    fn what_is_not_a_mapping_is_refused() {
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
    fn private_memory_is_not_one_object() {
        let heap = parse_line(b"1000-2000 rw-p 00000000 00:00 0  [heap]").expect("a mapping");
        let other = parse_line(b"2000-3000 rw-p 00000000 00:00 0").expect("a mapping");
        assert!(!heap.is_same_object(&other));
        assert!(heap.is_same_object(&heap));
    }
}
