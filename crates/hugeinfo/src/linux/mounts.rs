//! `/proc/self/mountinfo`: what is mounted where (fs/proc_namespace.c `show_mountinfo`).

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    ops::ControlFlow,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use crate::linux::{
    error::{ParseError, ReadError},
    root::Root,
    text::{LineReader, parse_number, split_once, words},
};

const PATH: &str = "proc/self/mountinfo";

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The file system's device: two numbers and a colon between them.
    pub device: Vec<u8>,
    /// What of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// Whether it is read-only.
    pub is_read_only: bool,
    /// The type of the file system.
    filesystem: Vec<u8>,
    /// The options of the file system, between commas.
    options: Vec<u8>,
}

impl Mount {
    /// Whether an option stands among those of the file system.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options().any(|option| option == name.as_bytes())
    }

    /// The text after `NAME=`.
    pub(crate) fn option(&self, name: &str) -> Option<&[u8]> {
        self.options()
            .filter_map(|option| split_once(option, b'='))
            .find_map(|(key, value)| (key == name.as_bytes()).then_some(value))
    }

    /// Whether files can be written that are there after a boot.
    pub(crate) fn is_kept(&self) -> bool {
        let is_memory = matches!(&*self.filesystem, b"tmpfs" | b"ramfs" | b"rootfs");
        !is_memory && !self.is_read_only
    }

    fn options(&self) -> impl Iterator<Item = &[u8]> {
        self.options.split(|&b| b == b',')
    }
}

/// Shows `look` the mounts of that type of file system, until it breaks off.
pub(crate) fn each(
    root: &Root,
    filesystem: &str,
    look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    // The kernel makes up the text as it is read: what stands behind the mount that is looked for
    // is never asked for.
    let file = BufReader::with_capacity(4096, root.open(PATH)?);
    parse(file, filesystem, look).map_err(|error| error.in_file(root.path(PATH)))
}

/// Shows `look` all mounts that such a file lists.
pub(crate) fn all(root: &Root, path: &str, mut look: impl FnMut(Mount)) -> Result<(), ReadError> {
    let file = BufReader::with_capacity(4096, root.open(path)?);
    let every = |_: &[u8]| true;
    parse_those(file, every, |mount| {
        look(mount);
        ControlFlow::Continue(())
    })
    .map_err(|error| error.in_file(root.path(path)))
}

/// That no mount is as it should be.
pub(crate) fn missing(root: &Root) -> ReadError {
    ReadError::missing(root.path(PATH))
}

/// `36 35 0:31 /below /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate` in each
/// line, where `below` is what of the file system is mounted.
///
/// Errors: a line that is not a mount, among those of that type.
pub fn parse(
    text: impl BufRead,
    filesystem: &str,
    look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ParseError> {
    parse_those(text, |of| of == filesystem.as_bytes(), look)
}

fn parse_those(
    text: impl BufRead,
    is_wanted: impl Fn(&[u8]) -> bool,
    mut look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ParseError> {
    let mut lines = LineReader::new(text);
    while let Some((number, line)) = lines.next()? {
        // A host can have thousands of mounts. Only those of interest are parsed.
        let Some(at) = line.windows(3).position(|window| window == b" - ") else {
            continue;
        };
        let Some((filesystem, behind)) = split_once(&line[at + 3..], b' ') else {
            continue;
        };
        if !is_wanted(filesystem) {
            continue;
        }
        let mount = parse_mount(&line[..at], filesystem, behind).ok_or(ParseError::Malformed {
            line: number,
            problem: "a mount was expected",
        })?;
        if look(mount).is_break() {
            break;
        }
    }
    Ok(())
}

/// Of what stands before and behind the type of the file system.
fn parse_mount(before: &[u8], filesystem: &[u8], behind: &[u8]) -> Option<Mount> {
    let mut words = words(before);
    let (id, parent) = (words.next()?, words.next()?);
    parse_number(id).and(parse_number(parent))?;
    let device = words.next()?;
    split_once(device, b':')?;
    let (root, point) = (words.next()?, words.next()?);
    // Options of the mount; those of the file system, behind its type, hold as well.
    let of_mount = words.next()?;
    // The source may be empty, but not the blank behind it.
    let (_, options) = split_once(behind, b' ')?;
    Some(Mount {
        device: device.to_vec(),
        filesystem: filesystem.to_vec(),
        root: unescape(root),
        point: unescape(point),
        is_read_only: [of_mount, options].iter().any(|options| {
            let mut options = options.split(|&b| b == b',');
            options.any(|option| option == b"ro")
        }),
        options: options.to_vec(),
    })
}

/// Undoes the kernel's `\040` for a blank (fs/proc_namespace.c `mangle`).
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.first_chunk::<3>().filter(|_| byte == b'\\');
        let code = octal
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsStr::from_bytes(&plain))
}

/// A mount of files on huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugetlbfs {
    /// Where.
    pub point: PathBuf,
    /// `pagesize`. `None`: the kernel (before 4.4) doesn't say.
    pub page_bytes: Option<u64>,
    /// `size`: as much its files may take. `None`: no limit.
    pub size_bytes: Option<u64>,
    /// `min_size`: as much is reserved for them. `None`: nothing.
    pub min_size_bytes: Option<u64>,
}

/// The mounts of `hugetlbfs` (fs/hugetlbfs/inode.c `hugetlbfs_show_options`). One that is mounted
/// at several places is shown at each.
pub fn hugetlbfs(root: &Root) -> Result<Vec<Hugetlbfs>, ReadError> {
    let mut all = Vec::new();
    each(root, "hugetlbfs", |mount| {
        all.push(Hugetlbfs::of(mount));
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

impl Hugetlbfs {
    /// What its files take, which the kernel counts only where their size has a limit
    /// (`hugetlbfs_statfs`). `None`: unknown.
    pub(crate) fn used_bytes(&self, root: &Root) -> Option<u64> {
        self.size_bytes?;
        let room = rustix::fs::statfs(root.path(&self.point)).ok()?;
        let block = u64::try_from(room.f_bsize).ok()?;
        // Of another file system if something else is mounted over it.
        let is_own = self.page_bytes.is_none_or(|page_bytes| page_bytes == block);
        let blocks = room.f_blocks.checked_sub(room.f_bfree)?;
        blocks.checked_mul(block).filter(|_| is_own)
    }

    /// Of its options.
    pub fn of(mount: Mount) -> Self {
        let bytes = |name| mount.option(name).and_then(parse_bytes);
        Self {
            page_bytes: bytes("pagesize"),
            size_bytes: bytes("size"),
            min_size_bytes: bytes("min_size"),
            point: mount.point,
        }
    }
}

/// `2M`, `64K`, `1024M`, or a number of bytes.
fn parse_bytes(text: &[u8]) -> Option<u64> {
    let (digits, factor) = match text {
        [digits @ .., b'K'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1 << 30),
        digits => (digits, 1),
    };
    parse_number(digits)?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn mount_points_are_unescaped() {
        for (field, path) in [
            (&br"/sys/fs/c\040group\134x"[..], r"/sys/fs/c group\x"),
            (br"/odd\04", r"/odd\04"),
            (br"/odd\999", r"/odd\999"),
        ] {
            assert_eq!(unescape(field), Path::new(path));
        }
    }

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
    fn what_is_cut_short_is_named() {
        let line = "40 30 0:36 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let read = |line: &str| {
            let text = format!("1 2 x\n{line}\n");
            parse(text.as_bytes(), "cgroup2", |_| ControlFlow::Break(()))
        };
        assert!(read(line).is_ok());
        for cut in ["40 30 0:36 / /sys/fs/cgroup rw", "40 30 0:36"] {
            let error =
                read(&line.replace("40 30 0:36 / /sys/fs/cgroup rw", &cut[..cut.len() - 3]));
            assert!(
                matches!(error, Err(ParseError::Malformed { line: 2, .. })),
                "{cut}"
            );
        }
    }
}
