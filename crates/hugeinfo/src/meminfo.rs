//! `/proc/meminfo` (fs/proc/meminfo.c; Documentation/filesystems/proc.rst).
//!
//! A parser of our own: the one of `procfs` refuses the whole file where one line is missing, as in sandboxes such as gVisor.

use crate::{
    error::ReadError,
    root::Root,
    text::{lines, parse_kilobytes, split_once},
};

/// What of the file bears on huge pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// `MemTotal`: usable RAM in bytes.
    pub total_bytes: Option<u64>,
    /// `Hugepagesize`: the default size in bytes. Absent where the kernel has no huge pages.
    pub default_huge_page_bytes: Option<u64>,
}

/// Reads the file.
pub fn read(root: &Root) -> Result<Meminfo, ReadError> {
    const PATH: &str = "proc/meminfo";
    parse(&root.read(PATH)?).map_err(|line| ReadError::Malformed {
        path: root.path(PATH),
        line,
        problem: "a name and a number of kB were expected",
    })
}

/// Lines of other names are passed over. Errors: the number of a line that has no number of kB.
pub fn parse(bytes: &[u8]) -> Result<Meminfo, usize> {
    let mut meminfo = Meminfo::default();
    for (number, line) in lines(bytes) {
        let Some((name, value)) = split_once(line, b':') else {
            continue;
        };
        let field = match name {
            b"MemTotal" => &mut meminfo.total_bytes,
            b"Hugepagesize" => &mut meminfo.default_huge_page_bytes,
            _ => continue,
        };
        let bytes = parse_kilobytes(value).ok_or(number)?;
        // The kernel prints "Hugepagesize: 0 kB" where the processor has none.
        *field = Some(bytes).filter(|&bytes| bytes > 0);
    }
    Ok(meminfo)
}
