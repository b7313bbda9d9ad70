//! Dynamic shared memory of a server that lies in files: parallel queries, statistics, extensions
//! (storage/ipc/dsm.c, dsm_impl.c).
//!
//! All servers of a host have theirs in one directory, under names that don't tell whose they are.
//! One of them is the list of a server, and the server knows which.

use crate::linux::{
    error::{ReadError, absent_or},
    root::Root,
};

/// What is in front of the numbers in the names of POSIX shared memory (`SEGMENT_NAME_PREFIX`).
pub const POSIX: &str = "/dev/shm/PostgreSQL.";

/// The same below the data directory, with `dynamic_shared_memory_type = mmap`.
pub const MMAP: &str = "pg_dynshmem/mmap.";

/// Bytes of all segments that the list of number `control` has, and of the list itself. `None`: the
/// list has a form that this version doesn't know.
///
/// Errors: absent if there is no such list, or it may not be read.
pub fn read(root: &Root, prefix: &str, control: u32) -> Result<Option<u64>, ReadError> {
    let file = |handle: u32| format!("{prefix}{handle}");
    let Some(handles) = parse(&root.read(file(control))?) else {
        return Ok(None);
    };
    let mut bytes = root.allocated(file(control))?;
    for handle in handles {
        // A small one can lie in the main segment, and any can be gone by now.
        let of_file = absent_or(root.allocated(file(handle)))?;
        bytes = bytes.saturating_add(of_file.unwrap_or(0));
    }
    Ok(Some(bytes))
}

/// The numbers of the segments in a list (`dsm_control_header`, as it is in PostgreSQL 15 to 19).
/// `None`: it is no such list.
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
    // Without references it is gone.
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
    fn what_is_gone_is_left_out() {
        let bytes = list(5, &[(7, 2), (8, 0), (9, 1)]);
        assert_eq!(parse(&bytes), Some(vec![7, 9]));
        assert_eq!(parse(&list(0, &[])), Some(Vec::new()));
    }

    #[test]
    fn another_form_is_not_taken_for_a_list() {
        let bytes = list(5, &[(7, 2)]);
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(parse(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(parse(&[&[0], &bytes[1..]].concat()), None);
        assert_eq!(parse(&list(1, &[(7, 2), (8, 2)])), None);
        assert_eq!(parse(b""), None);
    }
}
