//! Reads whole files: those of the kernel, and small ones of users.

use std::{
    fs::File,
    io::{self, IoSliceMut, Read, Take},
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, PROC_SUPER_MAGIC},
    io::{Errno, ReadWriteFlags, retry_on_intr},
};

use crate::linux::error::ReadError;

/// Size of the first read. Most kernel files are shorter.
pub(crate) const FIRST_READ: usize = 4096;

/// Maximum size of a kernel file. The largest is `maps` of a process with hundreds of thousands of
/// mappings.
pub(crate) const LARGEST: u64 = 128 << 20;

/// Maximum size of a small file of a user, such as `postmaster.pid` or `postgresql.conf`.
pub(crate) const LARGEST_SMALL: u64 = 256 << 10;

/// Flags for opening a file of a user. Opening a device can have an effect, such as starting a
/// watchdog, and opening a pipe can block: this only looks it up.
pub const WRITTEN: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// True if the kernel generates the files of this file system (include/uapi/linux/magic.h). Such
/// files look regular, but reading one can block or have an effect: `/proc/kmsg` does both.
fn is_of_kernel(file: &File) -> io::Result<bool> {
    Ok(matches!(
        rustix::fs::fstatfs(file)?.f_type,
        PROC_SUPER_MAGIC
            | 0x6265_6572 // sysfs
            | 0x6462_6720 // debugfs
            | 0x7472_6163 // tracefs
            | 0x7363_6673 // securityfs
            | 0x5a3c_69f0 // apparmorfs
            | 0xf97c_ff8c // selinuxfs
            | 0x4341_5d53 // smackfs
            | 0x0027_e0eb // cgroup, version 1
            | 0x6367_7270 // cgroup, version 2
            | 0x0765_5821 // resctrl
            | 0x6265_6570 // configfs
            | 0x6165_676c // pstore
            | 0xde5e_81e4 // efivarfs
            | 0xcafe_4a11 // bpf
            | 0x6e73_6673 // nsfs
    ))
}

/// Opens the file that was looked up with [`WRITTEN`], if it is a regular file of a user, to be
/// read up to its present size. Opening such a file does not block. `None`: another file, such as a
/// symbolic link with `O_NOFOLLOW`, or one of the kernel.
pub fn if_regular(found: OwnedFd) -> io::Result<Option<Take<File>>> {
    let found = File::from(found);
    let metadata = found.metadata()?;
    if !metadata.is_file() || is_of_kernel(&found)? {
        return Ok(None);
    }
    // Saves the read at the end. A file system need not know the size.
    let bytes = match metadata.len() {
        0 => u64::MAX,
        bytes => bytes,
    };
    // Does not wait for the owner of a lease.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let opened = rustix::fs::open(link, flags, Mode::empty())?;
    Ok(Some(File::from(opened).take(bytes)))
}

/// Reads a file of a user that was looked up with [`WRITTEN`]. A file that is not regular counts as
/// missing, because reading a pipe might never end.
///
/// With `patience`, never waits in the kernel: some file systems lock a file while it is written
/// (XFS), and any user can write it from memory that a program never fills.
///
/// Errors: `EFBIG` if it has more than `limit` bytes; with `patience`, `EAGAIN` if its contents are
/// not in memory, as for most files of a server that started long ago, and the disk is slower, or if
/// it is locked.
pub(crate) fn read_written(
    found: OwnedFd,
    limit: u64,
    patience: Option<&Patience>,
) -> io::Result<Vec<u8>> {
    let is_odd = || io::Error::new(io::ErrorKind::NotFound, "not a regular file");
    let opened = if_regular(found)?.ok_or_else(is_odd)?;
    match patience {
        None => read_limited(opened, limit),
        Some(patience) => {
            let file = NoWait {
                file: opened.get_ref(),
                at: 0,
                waits: 0,
                patience,
            };
            read_limited(file, limit)
        }
    }
}

/// Counts how often this process has waited for a disk. It stops after [`Self::MOST`], because any
/// user can lock many files.
#[derive(Debug, Default)]
pub(crate) struct Patience(AtomicU32);

impl Patience {
    const EACH: Duration = Duration::from_millis(1);
    const MOST_FOR_FILE: u32 = 50;
    const MOST: u32 = 500;

    /// Returns false without waiting if it has waited too often.
    fn wait(&self) -> bool {
        let goes_on = self.0.fetch_add(1, Ordering::Relaxed) < Self::MOST;
        if goes_on {
            thread::sleep(Self::EACH);
        }
        goes_on
    }
}

fn read_limited(file: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FIRST_READ);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(Errno::FBIG.into()),
        false => Ok(bytes),
    }
}

/// A file, from this position on.
struct NoWait<'f> {
    file: &'f File,
    at: u64,
    waits: u32,
    patience: &'f Patience,
}

impl Read for NoWait<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = |flags| {
            let mut buffers = [IoSliceMut::new(buffer)];
            rustix::io::preadv2(self.file, &mut buffers, self.at, flags)
        };
        let count = loop {
            match read(ReadWriteFlags::NOWAIT) {
                // Before Linux 5.16, also at the end of a file.
                Err(Errno::AGAIN) if self.at >= self.file.metadata()?.len() => break 0,
                // The kernel has begun to read it from the disk (mm/filemap.c `filemap_get_pages`).
                Err(Errno::AGAIN) if self.waits < Patience::MOST_FOR_FILE => {
                    self.waits += 1;
                    if !self.patience.wait() {
                        return Err(Errno::AGAIN.into());
                    }
                }
                // File systems without NOWAIT, such as tmpfs and network file systems.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break read(ReadWriteFlags::empty())?,
                read => break read?,
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

/// Appends the contents of a file. Errors: it has more than `limit` bytes, out of memory, or it
/// cannot be read.
pub(crate) fn read_all(
    file: &File,
    limit: u64,
    path: impl Fn() -> PathBuf,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    // Without `take`, `File` would query the size, which kernel files do not have.
    let read = file.take(limit + 1).read_to_end(bytes);
    match read.map(u64::try_from) {
        Ok(Ok(count)) if count <= limit => Ok(()),
        Ok(_) => Err(ReadError::TooLarge {
            path: path(),
            limit,
        }),
        Err(error) => Err(ReadError::from_io(path(), error)),
    }
}

/// Appends the contents of a file that the kernel generates as one record (fs/seq_file.c
/// `single_open`, and fs/kernfs/file.c `kernfs_seq_show` for `/sys` and cgroups), such as
/// `/proc/meminfo` and `/proc/PID/status`. Not for `maps`, which has many records.
///
/// If the record is longer than the buffer, the kernel fills the buffer. A read that leaves room
/// and ends with a line feed is therefore complete, which saves a second read.
///
/// Errors: it has more than [`LARGEST`] bytes, out of memory, or it cannot be read.
pub(crate) fn read_record(
    file: &File,
    path: impl Fn() -> PathBuf,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    loop {
        bytes.try_reserve(FIRST_READ)?;
        let room = bytes.capacity() - bytes.len();
        let read = retry_on_intr(|| rustix::io::read(file, spare_capacity(bytes)))
            .map_err(|errno| ReadError::from_io(path(), errno.into()))?;
        if read == 0 || (read < room && bytes.ends_with(b"\n")) {
            return Ok(());
        }
        if bytes.len() as u64 > LARGEST {
            return Err(ReadError::TooLarge {
                path: path(),
                limit: LARGEST,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{Advice, CWD, fadvise, openat};

    use super::*;

    #[test]
    fn files_that_are_not_in_memory_are_waited_for_a_while() {
        const EXT4_SUPER_MAGIC: rustix::fs::FsWord = 0xef53;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"text").expect("written");
        let read = |limit, patience: &Patience| {
            let found = openat(CWD, file.path(), WRITTEN, Mode::empty()).expect("opened");
            read_written(found, limit, Some(patience)).map_err(|error| Errno::from_io_error(&error))
        };
        let none = Patience(AtomicU32::new(Patience::MOST));
        let text = Ok(b"text".to_vec());
        assert_eq!(read(4, &none), text);
        assert_eq!(read(3, &none), Err(Some(Errno::FBIG)));
        // Other file systems keep files in memory, or cannot tell.
        let found = rustix::fs::fstatfs(file.as_file()).expect("a file system");
        if found.f_type != EXT4_SUPER_MAGIC {
            return;
        }
        let read_again = |patience: &Patience| {
            file.as_file().sync_all().expect("on disk");
            fadvise(file.as_file(), 0, None, Advice::DontNeed).expect("advised");
            read(4, patience)
        };
        // The disk could be fast, or slow.
        assert!((0..100).any(|_| read_again(&none) == Err(Some(Errno::AGAIN))));
        let some = Patience::default();
        assert!((0..100).any(|_| {
            let before = some.0.load(Ordering::Relaxed);
            read_again(&some) == text && some.0.load(Ordering::Relaxed) > before
        }));
    }
}
