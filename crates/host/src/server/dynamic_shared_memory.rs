//! Dynamic shared memory of a server in files: parallel queries, statistics, extensions
//! (storage/ipc/dsm.c, dsm_impl.c).
//!
//! All servers of a host use the same directory, and file names do not identify the server. One of
//! the files is the control segment of a server, whose handle the server knows.

use crate::linux::{
    error::{ReadError, absent_or},
    root::Root,
};

/// Prefix of the file names of POSIX shared memory (`SEGMENT_NAME_PREFIX`).
pub const POSIX: &str = "/dev/shm/PostgreSQL.";

/// Prefix below the data directory, with `dynamic_shared_memory_type = mmap`.
pub const MMAP: &str = "pg_dynshmem/mmap.";

/// Total size in bytes of the control segment with this handle and of all segments in it. `None`:
/// this version does not know the format of the control segment.
///
/// Errors: absent if the file does not exist or cannot be read.
pub fn read(root: &Root, prefix: &str, control: u32) -> Result<Option<u64>, ReadError> {
    let file = |handle: u32| format!("{prefix}{handle}");
    let Some(handles) = parse(&root.read(file(control))?) else {
        return Ok(None);
    };
    let mut bytes = root.allocated(file(control))?;
    for handle in handles {
        // A small segment can be part of the main segment, and any segment can have been removed
        // since.
        let of_file = absent_or(root.allocated(file(handle)))?;
        bytes = bytes.saturating_add(of_file.unwrap_or(0));
    }
    Ok(Some(bytes))
}

/// Parses the handles in a control segment (`dsm_control_header` of PostgreSQL 15 to 19). `None`:
/// not a control segment.
pub fn parse(bytes: &[u8]) -> Option<Vec<u32>> {
    const MAGIC: u32 = 0x9a50_3d32;
    const HEADER: usize = 16;
    const ITEM: usize = 40;
    let number = |bytes: &[u8], at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_ne_bytes(four.try_into().ok()?))
    };
    let (used, room) = (number(bytes, 4)?, number(bytes, 8)?);
    let room = usize::try_from(room).ok()?;
    let used = usize::try_from(used).ok()?;
    let is_list = number(bytes, 0)? == MAGIC
        && used <= room
        && room.checked_mul(ITEM)?.checked_add(HEADER)? == bytes.len();
    if !is_list {
        return None;
    }
    let items = bytes[HEADER..].chunks_exact(ITEM).take(used);
    // A slot without references is free.
    let there = items.filter(|item| number(item, 4).is_some_and(|references| references > 0));
    there.map(|item| number(item, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(room: u32, items: &[(u32, u32)]) -> Vec<u8> {
        let used = u32::try_from(items.len()).unwrap_or_default();
        let header = [0x9a50_3d32, used, room, 0];
        let mut bytes: Vec<u8> = header.into_iter().flat_map(u32::to_ne_bytes).collect();
        for (handle, references) in items {
            bytes.extend(handle.to_ne_bytes());
            bytes.extend(references.to_ne_bytes());
            bytes.extend([0xff; 32]);
        }
        let size = 16 + 40 * usize::try_from(room).unwrap_or_default();
        bytes.resize(size, 0xff);
        bytes
    }

    #[test]
    fn removed_segments_are_left_out() {
        let bytes = list(5, &[(7, 2), (8, 0), (9, 1)]);
        assert_eq!(parse(&bytes), Some(vec![7, 9]));
        assert_eq!(parse(&list(0, &[])), Some(Vec::new()));
    }

    #[test]
    fn unknown_format_has_no_list() {
        let bytes = list(5, &[(7, 2)]);
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(parse(&[&[0], &bytes[1..]].concat()), None);
        assert_eq!(parse(&list(1, &[(7, 2), (8, 2)])), None);
        assert_eq!(parse(b""), None);
    }
}
