//! `/proc/meminfo` (fs/proc/meminfo.c; Documentation/filesystems/proc.rst).

use crate::linux::{
    error::{Fact, ReadError, fact},
    mounts::of_machine,
    pages::pages_required,
    root::Root,
    text::{is_below_zero, lines, parse_counter, parse_kilobytes, split_once},
};

pub(crate) const PATH: &str = "/proc/meminfo";

pub(crate) const SWAPS: &str = "/proc/swaps";

/// The values that are needed for huge pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// `MemTotal`: usable RAM in bytes.
    pub total_bytes: Option<u64>,
    /// `Hugepagesize`: the default size in bytes. `None`: the kernel has no huge pages.
    pub default_huge_page_bytes: Option<u64>,
}

/// Reads the file.
///
/// Errors: only out of memory.
pub fn read(root: &Root) -> Result<(Fact<Meminfo>, Fact<Usage>), ReadError> {
    let bytes = match fact(of_machine(root, root.read_record(PATH)))? {
        Ok(bytes) => bytes,
        Err(absent) => return Ok((Err(absent.clone()), Err(absent))),
    };
    let meminfo = parse(&bytes).map_err(|line| ReadError::Malformed {
        path: root.path(PATH),
        line,
        problem: "a number of kB was expected",
    });
    Ok((fact(meminfo)?, Ok(Usage::parse(&bytes))))
}

/// Lines with other names are ignored.
///
/// Errors: the number of a `Hugepagesize` line without a valid size. An absent value would mean
/// that the kernel has no huge pages.
pub fn parse(bytes: &[u8]) -> Result<Meminfo, usize> {
    let mut meminfo = Meminfo::default();
    for (number, line) in lines(bytes) {
        match split_once(line, b':') {
            // The kernel prints 0 kB where the processor has no huge pages.
            Some((b"Hugepagesize", value)) => {
                let bytes = parse_kilobytes(value).ok_or(number)?;
                meminfo.default_huge_page_bytes = Some(bytes).filter(|&bytes| bytes > 0);
            }
            Some((b"MemTotal", value)) => {
                meminfo.total_bytes = parse_kilobytes(value).filter(|&bytes| bytes > 0);
            }
            _ => {}
        }
    }
    Ok(meminfo)
}

/// Free swap on zram, in bytes. zram keeps swapped pages compressed in RAM, so it adds no memory. 0
/// without swap, and if `/proc/swaps` cannot be read.
///
/// Errors: only out of memory.
pub fn read_free_zram(root: &Root, usage: Option<&Usage>) -> Result<u64, ReadError> {
    if usage.and_then(|usage| usage.swap_free).unwrap_or(0) == 0 {
        return Ok(0);
    }
    let text = fact(of_machine(root, root.read_record(SWAPS)))?;
    Ok(text.map_or(0, |text| free_zram(&text)))
}

/// Parses `/proc/swaps` (mm/swapfile.c `swap_show`): the name, the type, and the size and the use
/// in kB.
pub fn free_zram(text: &[u8]) -> u64 {
    let free = lines(text).filter_map(|(_, line)| {
        let words = line.split(u8::is_ascii_whitespace);
        let mut words = words.filter(|word| !word.is_empty());
        let is_zram = words.next()?.starts_with(b"/dev/zram");
        let size = parse_counter(words.nth(1)?)?;
        let free = size.saturating_sub(parse_counter(words.next()?)?);
        is_zram.then(|| free.saturating_mul(1 << 10))
    });
    free.fold(0, u64::saturating_add)
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text before the colon.
    pub name: String,
    /// The value in bytes. `HugePages_Total` and the like count pages of the default size. `None`:
    /// not an amount of memory, or below zero, or pages of unknown size.
    pub bytes: Option<u64>,
    /// Huge pages of the default size that this would fill, rounded up. `None`: `bytes` is not
    /// known, or the kernel has no huge pages.
    pub huge_pages: Option<u64>,
}

/// Reads every line of the file, in the kernel's order.
pub fn read_lines(root: &Root) -> Result<Vec<Line>, ReadError> {
    Ok(parse_lines(&of_machine(root, root.read_record(PATH))?))
}

/// A line that cannot be parsed has no value.
pub fn parse_lines(bytes: &[u8]) -> Vec<Line> {
    let page_bytes = parse(bytes).ok().and_then(|m| m.default_huge_page_bytes);
    let line = |line| {
        let (name, value) = split_once(line, b':').unwrap_or((line, b""));
        let value = value.trim_ascii();
        let bytes = match parse_counter(value) {
            Some(pages) if name.starts_with(b"HugePages_") => page_bytes
                .and_then(|page_bytes| pages.checked_mul(page_bytes))
                .filter(|&bytes| !is_below_zero(bytes)),
            _ => parse_kilobytes(value),
        };
        Line {
            name: String::from_utf8_lossy(name.trim_ascii()).into_owned(),
            bytes,
            huge_pages: bytes.and_then(|bytes| Some(pages_required(bytes, page_bytes?))),
        }
    };
    lines(bytes).map(|(_, text)| line(text)).collect()
}

macro_rules! usage {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// How the host uses its memory, in bytes. `None`: no such line, or below zero.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Usage {
            $($(#[$doc])* pub $field: Option<u64>,)*
        }

        impl Usage {
            /// Parses the values without a copy of the names. A value that cannot be parsed is
            /// absent.
            pub fn parse(bytes: &[u8]) -> Self {
                let mut usage = Self::default();
                for (_, line) in lines(bytes) {
                    let (name, value) = split_once(line, b':').unwrap_or((line, b""));
                    let kilobytes = || parse_kilobytes(value.trim_ascii());
                    match str::from_utf8(name.trim_ascii()) {
                        $(Ok($name) => usage.$field = kilobytes(),)*
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
    /// `MemAvailable`: memory that new programs can get without swapping.
    available = "MemAvailable",
    /// `Shmem`: shared memory and tmpfs, in RAM.
    shmem = "Shmem",
    /// `SwapTotal`.
    swap_total = "SwapTotal",
    /// `SwapFree`.
    swap_free = "SwapFree",
    /// `AnonHugePages`: private memory on transparent huge pages.
    anon_huge_pages = "AnonHugePages",
    /// `ShmemPmdMapped`: shared memory that processes map with transparent huge pages.
    shmem_pmd_mapped = "ShmemPmdMapped",
    /// `PageTables`: page tables of all processes.
    page_tables = "PageTables",
    /// `CommitLimit`: how much the kernel commits with `vm.overcommit_memory = 2`.
    commit_limit = "CommitLimit",
    /// `Committed_AS`: committed memory, without hugetlb memory.
    committed = "Committed_AS",
    /// `Hugetlb`: all pools of huge pages of all sizes, used or not.
    hugetlb = "Hugetlb",
}

impl Usage {
    /// Shared memory on small pages that has been faulted in, at most: in RAM, or swapped out.
    /// `None`: unknown.
    pub fn shared(&self) -> Option<u64> {
        let swapped = self.swap_total?.saturating_sub(self.swap_free?);
        Some(self.shmem?.saturating_add(swapped))
    }
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
        let lines = parse_lines(TEXT);
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
    fn leading_zeros_and_missing_blanks_are_accepted() {
        let text = b"MemTotal: 03944876 kB\nShadowCallStack:10373888 kB\n\
            DirectMap2M: 120354816 kB\nHugepagesize: 2048 kB\n";
        let expected = [
            line("MemTotal", Some(3_944_876 << 10), Some(1927)),
            line("ShadowCallStack", Some(10_373_888 << 10), Some(5066)),
            line("DirectMap2M", Some(123_243_331_584), Some(58_767)),
            line("Hugepagesize", Some(2 << 20), Some(1)),
        ];
        assert_eq!(parse_lines(text), expected);
    }

    #[test]
    fn lines_have_no_page_counts_without_huge_pages() {
        for size in ["", "Hugepagesize: 0 kB\n"] {
            let text = format!("MemTotal: 4 kB\nHugePages_Total: 3\n{size}");
            let lines = parse_lines(text.as_bytes());
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
    fn value_below_zero_is_absent_and_others_are_kept() {
        let text = b"MemTotal: 8 kB\nSwapTotal: 0 kB\nSwapFree: 18446744073709346016 kB\n\
            Cached: 18014396678257232 kB\nHugePages_Total: 2048\nHugePages_Free: 2047\n\
            HugePages_Rsvd: 18446744073709551615\nHugePages_Surp: 18446744073709551616\n\
            HugePages_Odd: 9007199254740991\nHugepagesize: 2048 kB\n";
        let lines = parse_lines(text);
        let expected = [
            line("MemTotal", Some(8 << 10), Some(1)),
            line("SwapTotal", Some(0), Some(0)),
            line("SwapFree", None, None),
            line("Cached", None, None),
            line("HugePages_Total", Some(4 << 30), Some(2048)),
            line("HugePages_Free", Some(2047 << 21), Some(2047)),
            line("HugePages_Rsvd", None, None),
            line("HugePages_Surp", None, None),
            // The counter is valid, but its bytes are not.
            line("HugePages_Odd", None, None),
            line("Hugepagesize", Some(2 << 20), Some(1)),
        ];
        assert_eq!(lines, expected);
        let usage = Usage::parse(text);
        assert_eq!((usage.total, usage.swap_total), (Some(8 << 10), Some(0)));
        assert_eq!(usage.swap_free, None);
        let meminfo = Meminfo {
            total_bytes: Some(8 << 10),
            default_huge_page_bytes: Some(2 << 20),
        };
        assert_eq!(parse(text), Ok(meminfo));
    }

    #[test]
    fn invalid_page_size_is_an_error_and_invalid_memory_is_absent() {
        for size in ["many kB", "2048", "18446744073709551615 kB"] {
            let text = format!("MemTotal: 1 kB\nHugepagesize: {size}\n");
            assert_eq!(parse(text.as_bytes()), Err(2), "{size}");
            let lines = parse_lines(text.as_bytes());
            assert_eq!(lines[0], line("MemTotal", Some(1024), None));
        }
        let text = b"MemTotal: 99999999999999999999 kB\nHugepagesize: 2048 kB\n";
        let meminfo = Meminfo {
            total_bytes: None,
            default_huge_page_bytes: Some(2 << 20),
        };
        assert_eq!(parse(text), Ok(meminfo));
    }

    /// Such as in a sandbox that has the line, but no value for it.
    #[test]
    fn memory_of_0_kb_is_unknown() {
        let meminfo = Meminfo {
            total_bytes: None,
            default_huge_page_bytes: Some(2 << 20),
        };
        let text = b"MemTotal: 0 kB\nHugepagesize: 2048 kB\n";
        assert_eq!(parse(text), Ok(meminfo));
    }

    #[test]
    fn free_zram_is_size_less_use_of_zram_devices() {
        let text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/zram0                              partition\t8388604\t\t4\t\t100\n\
            /dev/vda2 partition 1000 0 -2\n/swap\\040file file 1000 0 -3\n\
            /dev/zram1 partition 10 20 5\n/dev/zram2 partition many 0 5\n/dev/zram3\n";
        assert_eq!(free_zram(text), 8_388_600 << 10);
        assert_eq!(free_zram(b""), 0);
    }

    #[test]
    fn usage_is_picked_from_lines() {
        let usage = Usage::parse(TEXT);
        let expected = Usage {
            total: Some(24_684_092 << 10),
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        let text = b"CommitLimit: 8 kB\nCommitted_AS: 4 kB\nSwapTotal: 0 kB\nHugetlb: 2 kB\n";
        let usage = Usage::parse(text);
        assert_eq!(usage.commit_limit, Some(8192));
        assert_eq!(usage.committed, Some(4096));
        assert_eq!(usage.swap_total, Some(0));
        assert_eq!(usage.hugetlb, Some(2048));
    }
}
