//! `PROCMAP_QUERY`, an ioctl on `/proc/PID/maps` that returns one mapping without formatting text
//! or walking page tables (include/uapi/linux/fs.h, fs/proc/task_mmu.c `do_procmap_query`; Linux
//! 6.11).

use std::fs::File;

use rustix::{
    io::Errno,
    ioctl::{Opcode, Updater, ioctl, opcode},
};

use crate::linux::process::maps::{Device, Extent};

/// `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const PROCMAP_QUERY: Opcode = opcode::read_write::<ProcmapQuery>(b'f', 17);

/// Returns the mapping that contains `address`, and its page size in bytes.
///
/// Errors: `ENOENT` if nothing is mapped there, `ESRCH` if the process has ended, and others
/// (`ENOTTY` before Linux 6.11) if the kernel or a sandbox does not support the call.
#[allow(unsafe_code)]
pub(crate) fn covering(maps: &File, address: u64) -> Result<(Extent, u64), Errno> {
    let mut query = ProcmapQuery {
        size: size_of::<ProcmapQuery>() as u64,
        query_addr: address,
        ..ProcmapQuery::default()
    };
    // SAFETY: this ioctl reads and writes this structure, and the structure contains its size. With
    // name and build ID sizes of 0, the kernel does not follow its pointers.
    unsafe { ioctl(maps, Updater::<PROCMAP_QUERY, _>::new(&mut query))? };
    let mapping = Extent {
        start: query.vma_start,
        end: query.vma_end,
        offset: query.vma_offset,
        device: Device {
            major: query.dev_major,
            minor: query.dev_minor,
        },
        inode: query.inode,
    };
    Ok((mapping, query.vma_page_size))
}
