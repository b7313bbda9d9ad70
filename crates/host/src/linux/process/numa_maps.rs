//! `/proc/PID/numa_maps`: the NUMA nodes of the pages that a process has faulted in
//! (fs/proc/task_mmu.c `show_numa_map`; `CONFIG_NUMA`).

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
};

use crate::linux::{
    error::{ParseError, ReadError},
    list::{self, List},
    process::{Process, maps::Extent},
    text::{LineReader, parse_counter, parse_hex, parse_number, split_once, words},
};

/// Counts the pages of these mappings on each node, in pages of the size that backs them. A lower
/// bound, because the file shows only pages that this process has faulted in.
///
/// Walks the page tables of the process up to the last of the mappings. `check_for_interrupts` is
/// called for each line, so that a caller can stop.
pub fn pages_by_node(
    process: &Process,
    mappings: &[Extent],
    check_for_interrupts: impl FnMut(),
) -> Result<BTreeMap<u32, u64>, ReadError> {
    const NAME: &str = "numa_maps";
    parse(
        BufReader::new(process.file(NAME)?),
        mappings,
        check_for_interrupts,
    )
    .map_err(|error| process.unparsed(NAME, error))
}

/// Parses lines such as `7f0000000000 default file=/dev/zero\040(deleted) dirty=3 N0=2 N1=1
/// kernelpagesize_kB=4`. `N` is missing if no page has been faulted in. Stops after the last of the
/// mappings.
pub fn parse(
    text: impl BufRead,
    mappings: &[Extent],
    mut check_for_interrupts: impl FnMut(),
) -> Result<BTreeMap<u32, u64>, ParseError> {
    let mut pages = BTreeMap::new();
    let Some(last) = mappings.iter().map(|mapping| mapping.start).max() else {
        return Ok(pages);
    };
    let mut lines = LineReader::new(text);
    while let Some((_, line)) = lines.next()? {
        check_for_interrupts();
        let mut words = words(line);
        let start = words.next().and_then(parse_hex);
        let Some(start) = start.filter(|&start| mappings.iter().any(|m| m.start == start)) else {
            continue;
        };
        // The kernel escapes blanks and equal signs in file names.
        for (node, count) in words.filter_map(pages_on_node) {
            let sum: &mut u64 = pages.entry(node).or_default();
            *sum = sum.saturating_add(count);
        }
        if start == last {
            break;
        }
    }
    Ok(pages)
}

/// Reads the nodes that a process is bound to, as by `numactl --membind` (mm/mempolicy.c
/// `mpol_to_str`). `None`: it is not bound. It can still prefer nodes or interleave.
///
/// Reads only the first mapping, which is that of the program's file and has no separate policy, so
/// that the kernel walks no other page table.
pub fn bound_nodes(process: &Process) -> Result<Option<List>, ReadError> {
    const NAME: &str = "numa_maps";
    // The kernel starts another line only if the buffer has room left.
    let file = BufReader::with_capacity(64, process.file(NAME)?);
    parse_bound_nodes(file).map_err(|error| process.unparsed(NAME, error))
}

/// Parses `bind:0-1` or `bind=static:0-1` in the second column of the first line.
pub fn parse_bound_nodes(text: impl BufRead) -> Result<Option<List>, ParseError> {
    let mut lines = LineReader::new(text);
    let Some((_, line)) = lines.next()? else {
        return Ok(None);
    };
    let policy = words(line).nth(1).unwrap_or_default();
    let Some((mode, nodes)) = split_once(policy, b':') else {
        return Ok(None);
    };
    match split_once(mode, b'=').map_or(mode, |(mode, _)| mode) {
        b"bind" => list::parse(nodes).map(Some).ok_or(ParseError::Malformed {
            line: 1,
            problem: "a list of nodes was expected",
        }),
        _ => Ok(None),
    }
}

/// Parses a node and its number of pages, such as `N0=12`.
fn pages_on_node(word: &[u8]) -> Option<(u32, u64)> {
    let (node, pages) = split_once(word.strip_prefix(b"N")?, b'=')?;
    Some((
        u32::try_from(parse_number(node)?).ok()?,
        parse_counter(pages)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::process::maps::Device;

    #[test]
    fn bound_nodes_are_parsed() {
        for (policy, nodes) in [
            ("default", None),
            ("prefer:1", None),
            ("interleave:0-1", None),
            ("bind:1", Some("1")),
            ("bind:0-1,4", Some("0-1,4")),
            ("bind=static:0", Some("0")),
            ("bind=static|balancing:0-1", Some("0-1")),
            ("weighted interleave:0,2-3", None),
            ("prefer (many)=static:0-1", None),
        ] {
            let text = format!("55cbefb1f000 {policy} file=/a:b mapped=2 N0=2\nx bind:7\n");
            let read = parse_bound_nodes(text.as_bytes()).expect("a policy");
            assert_eq!(read, nodes.and_then(|nodes| list::parse(nodes.as_bytes())));
        }
        assert!(parse_bound_nodes(&b"1000 bind:x\n"[..]).is_err());
        assert_eq!(parse_bound_nodes(&b""[..]).expect("nothing"), None);
    }

    fn mappings(starts: &[u64]) -> Vec<Extent> {
        let extent = |&start| Extent {
            start,
            end: start + 4096,
            offset: 0,
            device: Device { major: 0, minor: 1 },
            inode: 42,
        };
        starts.iter().map(extent).collect()
    }

    const TEXT: &str = "\
        55cbefb1f000 default file=/srv/N0=9 mapped=2 N0=2 kernelpagesize_kB=4\n\
        7f0000000000 prefer:1 file=/dev/zero\\040(deleted) dirty=7 active=0 N0=3 N255=4 kernelpagesize_kB=4\n\
        7f0000100000 default file=/dev/zero\\040(deleted)\n\
        7f0000200000 interleave:0-1 file=/dev/zero\\040(deleted) dirty=2 N1=1 N255=1 kernelpagesize_kB=4\n\
        7f0000300000 default anon=1 N0=nonsense N1=18446744073709551615 N2=5\n";

    #[test]
    fn pages_are_summed_over_mappings() {
        let mut lines = 0;
        let mappings = mappings(&[0x7f00_0000_0000, 0x7f00_0010_0000, 0x7f00_0020_0000]);
        let pages = parse(TEXT.as_bytes(), &mappings, || lines += 1).expect("pages");
        assert_eq!(pages, BTreeMap::from([(0, 3), (1, 1), (255, 5)]));
        assert_eq!(lines, 4, "lines after the last mapping are not read");
    }

    #[test]
    fn segment_without_faulted_in_pages_has_no_nodes() {
        let pages = |starts| parse(TEXT.as_bytes(), &mappings(starts), || ()).expect("pages");
        assert_eq!(pages(&[0x7f00_0010_0000]), BTreeMap::new());
        assert_eq!(pages(&[0x1000]), BTreeMap::new());
        assert_eq!(pages(&[]), BTreeMap::new());
    }

    #[test]
    fn invalid_counts_are_skipped() {
        let pages = parse(TEXT.as_bytes(), &mappings(&[0x7f00_0030_0000]), || ()).expect("pages");
        assert_eq!(pages, BTreeMap::from([(2, 5)]));
    }
}
