//! The shared memory object that is mapped at an address of a process: its size and its pages.

use std::{
    fs::File,
    io::{BufRead, BufReader},
};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::linux::{
    error::{ParseError, ReadError, absent_or},
    pages::base_page_bytes,
    process::{
        Process,
        maps::{self, Extent},
        procmap_query,
    },
    text::{LineReader, lines, parse_hex, parse_number, words},
};

const MAPS: &str = "maps";

/// A shared memory object as one process maps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Sum over its mappings. The kernel can split one object into several (NUMA policy, madvise).
    pub bytes: u64,
    /// Size of the pages that back it (`KernelPageSize`). Only hugetlb memory has larger pages than
    /// the base page; transparent huge pages do not count. `None`: not reported.
    pub page_bytes: Option<u64>,
    pub mappings: usize,
}

/// Reads the segment that contains `address` in a process.
///
/// Uses `PROCMAP_QUERY` if the kernel has it, which takes a few system calls for any size.
/// Otherwise reads the extent from `maps`, and the page size from `smaps` or `numa_maps`, up to the
/// mapping. Shared anonymous memory on small pages is recognized by its name instead, because the
/// walk of its page tables takes time in proportion to its size.
pub fn read(process: &Process, address: u64) -> Result<Segment, ReadError> {
    match by_query(process, address)? {
        Some(segment) => Ok(segment),
        None => by_text(process, address),
    }
}

/// [`read`] with `PROCMAP_QUERY` only. `None`: the kernel does not support it.
pub fn by_query(process: &Process, address: u64) -> Result<Option<Segment>, ReadError> {
    let maps = process.file(MAPS)?;
    let ask = |address| match procmap_query::covering(&maps, address) {
        Ok(answer) => Ok(Some(answer)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    };
    let whole = || -> Result<Option<Segment>, Errno> {
        let Some((first, page_bytes)) = ask(address)? else {
            return Ok(None);
        };
        let mut segment = Segment {
            bytes: first.bytes(),
            page_bytes: Some(page_bytes),
            mappings: 1,
        };
        let mut add = |mapping: &Extent| {
            segment.bytes += mapping.bytes();
            segment.mappings += 1;
        };
        let (mut start, mut end) = (first.start, first.end);
        while let Some((below, _)) = ask(start.saturating_sub(1))?
            && below.end == start
            && below.is_same_object(&first)
        {
            add(&below);
            start = below.start;
        }
        while let Some((above, _)) = ask(end)?
            && above.start == end
            && above.is_same_object(&first)
        {
            add(&above);
            end = above.end;
        }
        Ok(Some(segment))
    };
    match whole() {
        Ok(Some(segment)) => Ok(Some(segment)),
        Ok(None) => Err(not_mapped(process)),
        Err(Errno::SRCH) => Err(process.missing(MAPS)),
        Err(_) => Ok(None),
    }
}

/// [`read`] with text files only, as on kernels before 6.11.
pub fn by_text(process: &Process, address: u64) -> Result<Segment, ReadError> {
    let mut text = Vec::new();
    let mappings = mappings(process, address, &mut text)?;
    let page_bytes = if is_on_small_pages(&text, address) {
        Some(base_page_bytes())
    } else {
        walked_page_size(process, address, &mappings)?
    };
    Ok(Segment {
        bytes: mappings
            .iter()
            .map(Extent::bytes)
            .fold(0, u64::saturating_add),
        page_bytes,
        mappings: mappings.len(),
    })
}

/// True if `maps` has the name of shared anonymous memory that is not hugetlb memory (mm/shmem.c
/// `shmem_zero_setup`). Hugetlb memory is `/anon_hugepage` (mm/mmap.c `ksys_mmap_pgoff`). A System
/// V segment has one name for both (ipc/shm.c `newseg`), but PostgreSQL never requests huge pages
/// for it (port/sysv_shmem.c `InternalIpcMemoryCreate`).
fn is_on_small_pages(maps: &[u8], address: u64) -> bool {
    lines(maps)
        .filter_map(|(_, line)| maps::parse_line(line))
        .find(|mapping| mapping.extent.holds(address))
        .is_some_and(|mapping| {
            let is_anonymous = mapping.path == b"/dev/zero (deleted)" && mapping.is_shared();
            is_anonymous || mapping.path.starts_with(b"/SYSV")
        })
}

fn walked_page_size(
    process: &Process,
    address: u64,
    mappings: &[Extent],
) -> Result<Option<u64>, ReadError> {
    let read = page_size(process, "smaps", |text| parse_smaps(text, address));
    if let Ok(page_bytes) = absent_or(read)? {
        return Ok(page_bytes);
    }
    let read = page_size(process, "numa_maps", |text| parse_numa_maps(text, mappings));
    Ok(absent_or(read)?.unwrap_or_default())
}

fn page_size(
    process: &Process,
    name: &str,
    parse: impl FnOnce(BufReader<File>) -> Result<Option<u64>, ParseError>,
) -> Result<Option<u64>, ReadError> {
    parse(BufReader::new(process.file(name)?)).map_err(|error| process.unparsed(name, error))
}

/// Reads the mappings of the object that is mapped at `address`, from an opened `maps`.
///
/// Errors: absent if nothing is mapped there, or access is denied.
pub fn mappings(
    process: &Process,
    address: u64,
    buffer: &mut Vec<u8>,
) -> Result<Vec<Extent>, ReadError> {
    let mut mappings = maps::parse_extents(process.read(MAPS, buffer)?)?;
    let Some(first) = mappings.iter().find(|m| m.holds(address)).copied() else {
        return Err(not_mapped(process));
    };
    mappings.retain(|m| m.is_same_object(&first));
    Ok(mappings)
}

/// Reads the mapping that contains `address`. Compare it by [`Extent::is_same_object`] with that of
/// another process.
///
/// Errors: absent if nothing is mapped there, or if access to `maps` is denied.
pub fn object(process: &Process, address: u64) -> Result<Extent, ReadError> {
    match procmap_query::covering(&process.file(MAPS)?, address) {
        Ok((extent, _)) => Ok(extent),
        Err(Errno::NOENT) => Err(not_mapped(process)),
        Err(Errno::SRCH) => Err(process.missing(MAPS)),
        Err(_) => object_by_text(process, address),
    }
}

/// [`object`] with the text of `maps`, as on kernels before 6.11.
pub fn object_by_text(process: &Process, address: u64) -> Result<Extent, ReadError> {
    mappings(process, address, &mut Vec::new())?
        .into_iter()
        .find(|mapping| mapping.holds(address))
        .ok_or_else(|| not_mapped(process))
}

fn not_mapped(process: &Process) -> ReadError {
    process.no_entry(MAPS, "mapping at the address of the segment")
}

/// Parses `KernelPageSize` of the mapping that contains `address`, in bytes. Reads no further than
/// necessary, because the kernel walks page tables for each mapping in `smaps`.
pub fn parse_smaps(text: impl BufRead, address: u64) -> Result<Option<u64>, ParseError> {
    let mut lines = LineReader::new(text);
    let mut is_inside = false;
    while let Some((number, line)) = lines.next()? {
        let mut words = words(line);
        match words.next() {
            Some(b"KernelPageSize:") if is_inside => return kilobytes(number, words.next()),
            Some(name) if name.ends_with(b":") => {}
            _ => is_inside = maps::parse_line(line).is_some_and(|m| m.extent.holds(address)),
        }
    }
    Ok(None)
}

/// Parses `kernelpagesize_kB`, in bytes, of the first of these mappings with a page that was
/// faulted in. The kernel does not show it for other mappings.
pub fn parse_numa_maps(text: impl BufRead, mappings: &[Extent]) -> Result<Option<u64>, ParseError> {
    let mut lines = LineReader::new(text);
    while let Some((number, line)) = lines.next()? {
        let mut words = words(line);
        let start = words.next().and_then(parse_hex);
        if !start.is_some_and(|start| mappings.iter().any(|m| m.start == start)) {
            continue;
        }
        let size = words.find_map(|word| word.strip_prefix(b"kernelpagesize_kB="));
        if size.is_some() {
            return kilobytes(number, size);
        }
    }
    Ok(None)
}

fn kilobytes(line: usize, digits: Option<&[u8]>) -> Result<Option<u64>, ParseError> {
    let bytes = digits.and_then(|digits| parse_number(digits)?.checked_mul(1024));
    bytes.map(Some).ok_or(ParseError::Malformed {
        line,
        problem: "a page size in kB was expected",
    })
}
