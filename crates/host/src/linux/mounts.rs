//! `/proc/self/mountinfo`: the mounts of this process (fs/proc_namespace.c `show_mountinfo`).

use std::{
    fs::File,
    io::BufReader,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    linux::{
        error::{Absence, Absent, ReadError},
        mountinfo::{Mount, parse, parse_those, split_line},
        root::Root,
        text::LineReader,
    },
    units::parse_size,
};

pub(crate) const PATH: &str = "/proc/self/mountinfo";
pub(crate) const PATH_OF_FIRST: &str = "/proc/1/mountinfo";

/// Number of files that a [`Watch`] keeps open.
pub const WATCHED: usize = 2;

/// Detects changes to the mounts of this process and of process 1 (fs/proc_namespace.c
/// `mounts_poll`).
#[derive(Debug)]
pub struct Watch([File; WATCHED]);

impl Watch {
    /// Starts watching. Errors: absent if a list of mounts cannot be opened.
    pub fn start(root: &Root) -> Result<Self, ReadError> {
        Ok(Self([root.open(PATH)?, root.open(PATH_OF_FIRST)?]))
    }

    /// True if a mount was added, removed or changed since the start or the previous call.
    pub fn has_changed(&self) -> bool {
        let mut files = self
            .0
            .each_ref()
            .map(|file| PollFd::new(file, PollFlags::PRI));
        let changed = PollFlags::PRI | PollFlags::ERR;
        match poll(&mut files, Some(&Timespec::default())) {
            Ok(_) => files.iter().any(|file| file.revents().intersects(changed)),
            Err(_) => true,
        }
    }
}

/// The file system types that callers of [`each`] look for.
const OF_INTEREST: [&[u8]; 4] = [b"cgroup", b"cgroup2", b"hugetlbfs", b"proc"];

/// Calls `look` for each mount of a file system type, until it breaks.
pub fn each(
    root: &Root,
    filesystem: &str,
    look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    debug_assert!(OF_INTEREST.contains(&filesystem.as_bytes()));
    match root.steady() {
        Some(steady) => parse(&steady.mounts[..], filesystem, look),
        // The kernel generates the text as it is read, so stopping early saves the rest.
        None => parse(open(root)?, filesystem, look),
    }
    .map_err(|error| error.in_file(root.path(PATH)))
}

/// Reads the lines of these file system types.
pub(crate) fn of_interest(root: &Root) -> Result<Vec<u8>, ReadError> {
    let failed = |error| ReadError::from_io(root.path(PATH), error);
    let mut lines = LineReader::new(open(root)?);
    let mut kept = Vec::new();
    while let Some((_, line)) = lines.next().map_err(failed)? {
        if split_line(line).is_some_and(|(_, filesystem, _)| OF_INTEREST.contains(&filesystem)) {
            kept.try_reserve(line.len() + 1)?;
            kept.extend_from_slice(line);
            kept.push(b'\n');
        }
    }
    Ok(kept)
}

fn open(root: &Root) -> Result<BufReader<File>, ReadError> {
    Ok(BufReader::with_capacity(4096, root.open(PATH)?))
}

/// Calls `look` for all mounts in such a file.
pub(crate) fn all(root: &Root, path: &str, mut look: impl FnMut(Mount)) -> Result<(), ReadError> {
    let file = BufReader::with_capacity(4096, root.open(path)?);
    let every = |_: &[u8]| true;
    parse_those(file, every, |mount| {
        look(mount);
        ControlFlow::Continue(())
    })
    .map_err(|error| error.in_file(root.path(path)))
}

/// The error for a file system that is not mounted.
pub(crate) fn missing(root: &Root, filesystem: &'static str) -> ReadError {
    ReadError::absent(root.path(PATH), Absence::NoEntry(filesystem))
}

/// The mount of `/proc`. `None`: it cannot be read.
pub fn of_proc(root: &Root) -> Option<Mount> {
    let mut found = None;
    let looked = each(root, "proc", |mount| {
        // The last of several mounts on one directory counts.
        if mount.point == Path::new("/proc") {
            found = Some(mount);
        }
        ControlFlow::Continue(())
    });
    found.filter(|_| looked.is_ok())
}

/// The contents of a file of `/proc` that is about the whole machine. If a mount option hides it,
/// that is the reason why it is absent.
pub(crate) fn of_machine<T>(root: &Root, read: Result<T, ReadError>) -> Result<T, ReadError> {
    let is_hidden = || of_proc(root).is_some_and(|proc| proc.option("subset") == Some(b"pid"));
    read.map_err(|error| match error {
        ReadError::Absent(Absent {
            path,
            why: Absence::Missing,
        }) if is_hidden() => ReadError::absent(path, Absence::SubsetPid),
        other => other,
    })
}

/// A hugetlbfs mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugetlbfs {
    /// Mount point.
    pub point: PathBuf,
    /// `pagesize` in bytes. `None`: not reported.
    pub page_bytes: Option<u64>,
    /// `size` in bytes: the limit on its files. `None`: no limit.
    pub size_bytes: Option<u64>,
    /// `min_size` in bytes, which is reserved. `None`: nothing.
    pub min_size_bytes: Option<u64>,
}

/// Reads the mounts of hugetlbfs (fs/hugetlbfs/inode.c `hugetlbfs_show_options`). A file system
/// with several mount points is listed for each.
pub fn hugetlbfs(root: &Root) -> Result<Vec<Hugetlbfs>, ReadError> {
    let mut all = Vec::new();
    each(root, "hugetlbfs", |mount| {
        all.push(Hugetlbfs::of(mount));
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

impl Hugetlbfs {
    /// Bytes that its files use. The kernel counts them only if the size is limited
    /// (`hugetlbfs_statfs`). `None`: unknown.
    pub fn used_bytes(&self, root: &Root) -> Option<u64> {
        self.size_bytes?;
        let room = rustix::fs::statfs(root.path(&self.point)).ok()?;
        let block = u64::try_from(room.f_bsize).ok()?;
        // Another mount can cover it.
        let is_own = self.page_bytes.is_none_or(|page_bytes| page_bytes == block);
        let blocks = room.f_blocks.checked_sub(room.f_bfree)?;
        blocks.checked_mul(block).filter(|_| is_own)
    }

    /// Parses the options of a mount.
    pub fn of(mount: Mount) -> Self {
        let bytes = |name| parse_size(str::from_utf8(mount.option(name)?).ok()?, 1);
        Self {
            page_bytes: bytes("pagesize"),
            size_bytes: bytes("size"),
            min_size_bytes: bytes("min_size"),
            point: mount.point,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;
    use crate::linux::{meminfo, sysvipc};

    #[test]
    fn files_on_huge_pages() {
        let text = b"\
            25 30 0:23 / /sys rw - sysfs sysfs rw\n\
            40 30 0:36 / /dev/hugepages rw,nosuid shared:17 - hugetlbfs hugetlbfs rw,gid=5,pagesize=2M\n\
            41 30 0:37 / /mnt/\xff\\040x rw - hugetlbfs none rw,pagesize=1024M,size=4294967296,min_size=1073741824\n";
        let mut all = Vec::new();
        parse(&text[..], "hugetlbfs", |mount| {
            all.push(Hugetlbfs::of(mount));
            ControlFlow::Continue(())
        })
        .expect("mounts");
        let first = Hugetlbfs {
            point: PathBuf::from("/dev/hugepages"),
            page_bytes: Some(2 << 20),
            size_bytes: None,
            min_size_bytes: None,
        };
        let second = Hugetlbfs {
            point: PathBuf::from(OsStr::from_bytes(b"/mnt/\xff x")),
            page_bytes: Some(1 << 30),
            size_bytes: Some(4 << 30),
            min_size_bytes: Some(1 << 30),
        };
        assert_eq!(all, [first, second]);
    }

    #[test]
    fn reason_of_an_absent_file_is_the_mount_option_that_hides_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path());
        let own = root.path("proc/self");
        std::fs::create_dir_all(&own).expect("created");
        for (options, reason) in [
            ("rw", "is missing"),
            (
                "rw,hidepid=invisible,subset=pid",
                "is hidden: /proc is mounted with subset=pid (in a systemd unit, set \
                 ProcSubset=all)",
            ),
        ] {
            let text = format!("36 35 0:31 / /proc rw - proc proc {options}\n");
            std::fs::write(own.join("mountinfo"), text).expect("written");
            for (file, read) in [
                ("meminfo", meminfo::read_lines(&root).map(drop)),
                ("sysvipc/shm", sysvipc::read(&root).map(drop)),
            ] {
                let path = root.path("proc").join(file);
                let error = read.expect_err("absent").to_string();
                assert_eq!(error, format!("{} {reason}", path.display()));
            }
        }
    }
}
