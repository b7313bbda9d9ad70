//! `/proc/meminfo` (fs/proc/meminfo.c; Documentation/filesystems/proc.rst).

use crate::linux::{
    error::ReadError,
    pages::pages_required,
    root::Root,
    text::{lines, parse_kilobytes, parse_number, split_once},
};

const PATH: &str = "proc/meminfo";

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
    root.parse(PATH, EXPECTED, parse)
}

/// Reads the file once for both.
pub(crate) fn read_with_usage(root: &Root) -> Result<(Meminfo, Usage), ReadError> {
    root.parse(PATH, EXPECTED, |bytes| {
        Ok((parse(bytes)?, Usage::of(&parse_lines(bytes)?)))
    })
}

const EXPECTED: &str = "a name and a number of kB below 2^64 bytes were expected";

/// Lines with other names are ignored. Errors: the number of a line that has no number of kB.
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

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text before the colon.
    pub name: String,
    /// The figure in bytes: a number of kB, and for `HugePages_Total` and the like a number of
    /// pages of the default huge page size. `None`: a number of something else, or no number, or a
    /// number of huge pages whose size the file doesn't tell.
    pub bytes: Option<u64>,
    /// Huge pages of the default size that this would fill, rounded up. `None`: `bytes` is not
    /// known, or the kernel has no huge pages.
    pub huge_pages: Option<u64>,
}

/// Reads every line of the file, in the kernel's order.
pub fn read_lines(root: &Root) -> Result<Vec<Line>, ReadError> {
    root.parse(PATH, EXPECTED, parse_lines)
}

/// A line of unknown form is kept, without a figure: those of known form are still worth knowing.
/// Errors: the number of a line whose figure has more than 64 bits, and so would be cut.
pub fn parse_lines(bytes: &[u8]) -> Result<Vec<Line>, usize> {
    let page_bytes = parse(bytes).ok().and_then(|m| m.default_huge_page_bytes);
    let line = |(number, line): (usize, &[u8])| {
        let (name, value) = split_once(line, b':').unwrap_or((line, b""));
        let figure = Figure::parse(name, value).ok_or(number)?;
        let bytes = match figure {
            Figure::Bytes(bytes) => Some(bytes),
            Figure::HugePages(pages) => match page_bytes {
                Some(page_bytes) => Some(pages.checked_mul(page_bytes).ok_or(number)?),
                None => None,
            },
            Figure::Unknown => None,
        };
        Ok(Line {
            name: String::from_utf8_lossy(name.trim_ascii()).into_owned(),
            bytes,
            huge_pages: bytes.and_then(|bytes| Some(pages_required(bytes, page_bytes?))),
        })
    };
    lines(bytes).map(line).collect()
}

/// The text after the colon.
enum Figure {
    Bytes(u64),
    HugePages(u64),
    Unknown,
}

impl Figure {
    /// `None`: more than 64 bits.
    fn parse(name: &[u8], value: &[u8]) -> Option<Self> {
        let value = value.trim_ascii();
        let (digits, unit) = split_once(value, b' ').unwrap_or((value, b""));
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Some(Self::Unknown);
        }
        match unit {
            b"kB" => parse_kilobytes(value).map(Self::Bytes),
            b"" if name.starts_with(b"HugePages_") => parse_number(digits).map(Self::HugePages),
            _ => Some(Self::Unknown),
        }
    }
}

macro_rules! usage {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// How the host uses its memory. Bytes. `None`: this kernel has no such line.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Usage {
            $($(#[$doc])* pub $field: Option<u64>,)*
        }

        impl Usage {
            /// From all lines of the file.
            pub fn of(lines: &[Line]) -> Self {
                let mut usage = Self::default();
                for line in lines {
                    match line.name.as_str() {
                        $($name => usage.$field = line.bytes,)*
                        _ => {}
                    }
                }
                usage
            }
        }
    };
}

usage! {
    /// `MemTotal`: usable RAM.
    total = "MemTotal",
    /// `MemFree`: unused.
    free = "MemFree",
    /// `MemAvailable`, since Linux 3.14: what new programs could get without swapping.
    available = "MemAvailable",
    /// `Cached`: files, and shared memory on small pages.
    cached = "Cached",
    /// `SwapTotal`.
    swap_total = "SwapTotal",
    /// `SwapFree`.
    swap_free = "SwapFree",
    /// `AnonHugePages`: private memory on transparent huge pages.
    anon_huge_pages = "AnonHugePages",
    /// `ShmemHugePages`: shared memory on transparent huge pages.
    shmem_huge_pages = "ShmemHugePages",
    /// `ShmemPmdMapped`: what of it is mapped by whole huge pages.
    shmem_pmd_mapped = "ShmemPmdMapped",
    /// `PageTables`: of all processes.
    page_tables = "PageTables",
    /// `CommitLimit`: what may be committed with `vm.overcommit_memory = 2`.
    commit_limit = "CommitLimit",
    /// `Committed_AS`: what is committed, without hugetlb memory.
    committed = "Committed_AS",
    /// `Hugetlb`, since Linux 4.18: all pools of huge pages of all sizes, used or not.
    hugetlb = "Hugetlb",
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"MemTotal:       24684092 kB\nHugePages_Total:       3\nHugePages_Rsvd:        0\n\
        Hugepagesize:       2048 kB\nDirectMap4k:       26625 kB\nOdd\nThings:  12\nOdder: a few kB\nMore: 7 pages\n";

    fn line(name: &str, bytes: Option<u64>, huge_pages: Option<u64>) -> Line {
        Line {
            name: name.to_owned(),
            bytes,
            huge_pages,
        }
    }

    #[test]
    fn every_line_in_bytes_and_huge_pages() {
        let lines = parse_lines(TEXT).expect("lines");
        let expected = [
            line("MemTotal", Some(24_684_092 << 10), Some(12_053)),
            line("HugePages_Total", Some(6 << 20), Some(3)),
            line("HugePages_Rsvd", Some(0), Some(0)),
            line("Hugepagesize", Some(2 << 20), Some(1)),
            // 13.0005 pages
            line("DirectMap4k", Some(26_625 << 10), Some(14)),
            line("Odd", None, None),
            line("Things", None, None),
            line("Odder", None, None),
            line("More", None, None),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn without_huge_pages_nothing_is_counted_in_them() {
        for size in ["", "Hugepagesize: 0 kB\n"] {
            let text = format!("MemTotal: 4 kB\nHugePages_Total: 3\n{size}");
            let lines = parse_lines(text.as_bytes()).expect("lines");
            assert_eq!(
                lines[..2],
                [
                    line("MemTotal", Some(4096), None),
                    line("HugePages_Total", None, None)
                ]
            );
        }
    }

    #[test]
    fn nothing_is_cut() {
        assert_eq!(parse_lines(b"A: 1 kB\nB: 18014398509481984 kB\n"), Err(2));
        assert_eq!(
            parse_lines(b"HugePages_Total: 18446744073709551615\nHugepagesize: 2048 kB\n"),
            Err(1)
        );
        assert_eq!(parse_lines(b"HugePages_Free: 18446744073709551616"), Err(1));
    }

    #[test]
    fn usage_is_taken_from_the_lines() {
        let usage = Usage::of(&parse_lines(TEXT).expect("lines"));
        let expected = Usage {
            total: Some(24_684_092 << 10),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        let text = b"CommitLimit: 8 kB\nCommitted_AS: 4 kB\nSwapTotal: 0 kB\nHugetlb: 2 kB\n";
        let usage = Usage::of(&parse_lines(text).expect("lines"));
        assert_eq!(usage.commit_limit, Some(8192));
        assert_eq!(usage.committed, Some(4096));
        assert_eq!(usage.swap_total, Some(0));
        assert_eq!(usage.hugetlb, Some(2048));
    }
}
