//! `/proc/PID/smaps` and `smaps_rollup`: memory of each mapping and of all mappings, for which the
//! kernel walks page tables (fs/proc/task_mmu.c `__show_smap`).

use std::{
    fs::File,
    io::{BufRead, BufReader},
    mem,
    path::PathBuf,
};

use crate::linux::{
    error::{ParseError, ReadError, absent_or},
    process::{
        Process,
        maps::{self, Extent, Mapping},
    },
    text::{LineReader, parse_kilobytes, split_once, words},
};

macro_rules! figures {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// Memory in bytes. `None`: the kernel has no such line.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Figures {
            $($(#[$doc])* pub $field: Option<u64>,)*
        }

        impl Figures {
            fn of_name(&mut self, name: &[u8]) -> Option<&mut Option<u64>> {
                $(if name == $name.as_bytes() { return Some(&mut self.$field); })*
                None
            }
        }
    };
}

figures! {
    /// `KernelPageSize`: size of the pages that back the mapping, ignoring transparent huge pages.
    page_size = "KernelPageSize",
    /// `Rss`: in RAM, without hugetlb pages.
    rss = "Rss",
    /// `Pss`: resident, each page divided by the number of processes that map it.
    pss = "Pss",
    /// `Pss_Anon`, in `smaps_rollup`.
    pss_anon = "Pss_Anon",
    /// `Pss_File`, in `smaps_rollup`.
    pss_file = "Pss_File",
    /// `Pss_Shmem`, in `smaps_rollup`.
    pss_shmem = "Pss_Shmem",
    /// `Private_Clean`.
    private_clean = "Private_Clean",
    /// `Private_Dirty`.
    private_dirty = "Private_Dirty",
    /// `AnonHugePages`: private memory on transparent huge pages.
    anon_huge_pages = "AnonHugePages",
    /// `ShmemPmdMapped`: shared memory on transparent huge pages.
    shmem_pmd_mapped = "ShmemPmdMapped",
    /// `Shared_Hugetlb`: hugetlb pages that other processes map, too; no other figure includes
    /// them.
    shared_hugetlb = "Shared_Hugetlb",
    /// `Private_Hugetlb`: hugetlb pages that no other process maps; no other figure includes them.
    private_hugetlb = "Private_Hugetlb",
    /// `Swap`: swapped-out private memory, and swapped-out shared memory that this process had
    /// mapped.
    swap = "Swap",
    /// `SwapPss`: `Swap` divided by the number of processes that share it.
    swap_pss = "SwapPss",
}

impl Figures {
    /// Unique set size: memory that would be freed if only this process ended.
    pub fn uss(&self) -> Option<u64> {
        Some(self.private_clean?.saturating_add(self.private_dirty?))
    }
}

/// One mapping of a process with its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Address range and object.
    pub mapping: Mapping,
    /// Memory. All values are `None` if the kernel has no `smaps` (`CONFIG_PROC_PAGE_MONITOR`).
    pub figures: Figures,
}

/// Reads all mappings of a process from `smaps`, or else from `maps` without figures. Returns an
/// iterator, because a process can have hundreds of thousands of mappings.
///
/// `check_for_interrupts` is called for each mapping, so that a caller can stop. The kernel walks
/// page tables during each read.
pub fn read<P: FnMut()>(
    process: &Process,
    check_for_interrupts: P,
) -> Result<OfProcess<P>, ReadError> {
    let (name, file) = match absent_or(process.file("smaps"))? {
        Ok(file) => ("smaps", file),
        Err(_) => ("maps", process.file("maps")?),
    };
    Ok(OfProcess {
        entries: parse(BufReader::new(file), check_for_interrupts),
        path: process.path_of(name),
    })
}

/// The mappings of a process while they are read. Errors: absent if the process has ended.
pub struct OfProcess<P> {
    entries: Entries<BufReader<File>, P>,
    path: PathBuf,
}

impl<P: FnMut()> Iterator for OfProcess<P> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        Some(entry.map_err(|error| error.in_file(self.path.clone())))
    }
}

/// Bytes of these mappings of shared memory on transparent huge pages.
pub fn thp_bytes(process: &Process, mappings: &[Extent]) -> Result<u64, ReadError> {
    let mut bytes = 0_u64;
    for entry in read(process, || ())? {
        let entry = entry?;
        if mappings.contains(&entry.mapping.extent) {
            bytes = bytes.saturating_add(entry.figures.shmem_pmd_mapped.unwrap_or_default());
        }
    }
    Ok(bytes)
}

/// The sum over all mappings, from `smaps_rollup`.
///
/// Errors: absent if the file does not exist or access is denied.
pub fn total(process: &Process, check_for_interrupts: impl FnMut()) -> Result<Figures, ReadError> {
    const NAME: &str = "smaps_rollup";
    let file = BufReader::new(process.file(NAME)?);
    let entry = parse(file, check_for_interrupts).next().transpose();
    let entry = entry.map_err(|error| process.unparsed(NAME, error))?;
    Ok(entry.map_or_else(Figures::default, |entry| entry.figures))
}

/// Parses the entries in the text of `smaps`, `smaps_rollup` or `maps`.
pub fn parse<R: BufRead, P: FnMut()>(text: R, check_for_interrupts: P) -> Entries<R, P> {
    Entries {
        lines: LineReader::new(text),
        check_for_interrupts,
        begun: None,
        has_failed: false,
    }
}

/// An iterator over entries. It ends after the first error.
pub struct Entries<R, P> {
    lines: LineReader<R>,
    check_for_interrupts: P,
    /// The entry whose figures are being read.
    begun: Option<Entry>,
    has_failed: bool,
}

impl<R: BufRead, P: FnMut()> Entries<R, P> {
    /// Returns the next entry, which ends where another one starts or at the end of the text.
    fn read(&mut self) -> Result<Option<Entry>, ParseError> {
        while let Some((_, line)) = self.lines.next()? {
            if is_figure(line) {
                if let Some(entry) = &mut self.begun {
                    add_figure(entry, line);
                }
                continue;
            }
            (self.check_for_interrupts)();
            // The figures after a mapping that cannot be parsed belong to no entry.
            let next = maps::parse_line(line).map(|mapping| Entry {
                mapping,
                figures: Figures::default(),
            });
            if let Some(entry) = mem::replace(&mut self.begun, next) {
                return Ok(Some(entry));
            }
        }
        Ok(self.begun.take())
    }
}

impl<R: BufRead, P: FnMut()> Iterator for Entries<R, P> {
    type Item = Result<Entry, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read();
        self.has_failed = read.is_err();
        read.transpose()
    }
}

/// True for a figure such as `Rss:   12 kB`. The first word of an entry's first line has no colon.
fn is_figure(line: &[u8]) -> bool {
    words(line).next().is_some_and(|word| word.ends_with(b":"))
}

fn add_figure(entry: &mut Entry, line: &[u8]) {
    let Some((name, value)) = split_once(line, b':') else {
        return;
    };
    if let Some(figure) = entry.figures.of_name(name) {
        *figure = parse_kilobytes(value);
    }
}
