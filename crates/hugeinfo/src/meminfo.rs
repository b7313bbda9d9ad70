//! `/proc/meminfo` (fs/proc/meminfo.c; Documentation/filesystems/proc.rst).
//!
//! A parser of our own: the one of `procfs` refuses the whole file where one line is missing, as in sandboxes such as gVisor.

use crate::{
    error::ReadError,
    root::{Root, parse_number},
};

/// What of the file bears on huge pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// `MemTotal`: usable RAM in bytes.
    pub total_bytes: Option<u64>,
    /// `Hugepagesize`: the default size in bytes. Absent where the kernel has no huge pages.
    pub default_huge_page_bytes: Option<u64>,
}

/// Reads the file; lines of other names are passed over.
pub fn read(root: &Root) -> Result<Meminfo, ReadError> {
    const PATH: &str = "proc/meminfo";
    let mut meminfo = Meminfo::default();
    for (index, line) in root.read(PATH)?.split(|&b| b == b'\n').enumerate() {
        let field = if line.starts_with(b"MemTotal:") {
            &mut meminfo.total_bytes
        } else if line.starts_with(b"Hugepagesize:") {
            &mut meminfo.default_huge_page_bytes
        } else {
            continue;
        };
        let bytes = kilobytes(line).ok_or_else(|| ReadError::Malformed {
            path: root.path(PATH),
            line: index + 1,
            problem: "a name and a number of kB were expected",
        })?;
        // The kernel prints "Hugepagesize: 0 kB" where the processor has none.
        *field = Some(bytes).filter(|&bytes| bytes > 0);
    }
    Ok(meminfo)
}

fn kilobytes(line: &[u8]) -> Option<u64> {
    let mut words = line
        .split(|&b| b == b' ')
        .filter(|word| !word.is_empty())
        .skip(1);
    let number = parse_number(words.next()?)?;
    (words.next()? == b"kB").then(|| number.checked_mul(1024))?
}
