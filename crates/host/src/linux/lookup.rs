//! Looks up files of users without waiting for a program of a user.
//!
//! Any user can serve a file system with a program (FUSE), which might never answer. A process that
//! waits for it cannot even be killed. The kernel asks the program when a name is looked up, and
//! for most other operations. It does not ask when a mount point is opened with `O_PATH`
//! (fs/namei.c `do_o_path`), nor for the mount ID of an open file (fs/stat.c `vfs_statx` with
//! `AT_STATX_DONT_SYNC`). [`Guard`] therefore opens one name at a time, and checks the mount before
//! it looks up the next one.

use std::{
    collections::{HashMap, VecDeque},
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufReader, Read, Take},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{AtFlags, FileType, FsWord, Mode, OFlags, ResolveFlags, StatxFlags},
    io::Errno,
};

use crate::linux::{
    file::{LARGEST_SMALL, Patience, WRITTEN, if_regular, read_written},
    mountinfo,
};

/// The present process.
pub(crate) const SELF: &str = "/proc/self";

/// include/uapi/linux/magic.h
const AUTOFS_SUPER_MAGIC: FsWord = 0x0187;

/// The limit of the kernel (include/linux/namei.h `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Attempts to find a name in memory. Each one fails if a mount anywhere on the host changes at that
/// moment (fs/namei.c `legitimize_mnt`), and any user can mount file systems all the time.
const ATTEMPTS: usize = 50;

/// Bytes of the mounts in user namespaces that are read in all. Any user can have a hundred thousand
/// mounts there (`fs.mount-max`), which take the kernel 0.3 s.
const MOST_OF_USERS: u64 = 8 << 20;

/// The mounts of this process. An empty guard reads the list of mounts again for each check.
#[derive(Debug, Default)]
pub struct Guard {
    /// Whether a program of a user serves the file system of the mount with this ID.
    own: HashMap<u64, bool>,
    /// Bytes of the mounts in user namespaces that were read. One thread reads at a time.
    read: Mutex<u64>,
    /// For files of other processes.
    pub(crate) patience: Patience,
}

/// A file or directory that was looked up.
#[derive(Debug)]
pub struct Found {
    /// Opened with `O_PATH`.
    pub file: OwnedFd,
    /// The path without symbolic links.
    pub path: PathBuf,
}

/// The symbolic links that a lookup follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Followed,
    /// Links to directories on the way. A link in place of the file is an error.
    OnlyToDirectories,
    /// None: a link is an error.
    Refused,
}

/// A root directory in which paths are looked up: that of a process.
#[derive(Debug)]
pub struct Lookup {
    pub(crate) root: OwnedFd,
    /// With [`Root::guarded`](crate::linux::root::Root::guarded).
    pub(crate) guard: Option<Arc<Guard>>,
    /// The `/proc/PID` of the process.
    pub(crate) process: PathBuf,
}

impl Lookup {
    /// For reading what was found, if only names are found that the kernel has in memory (see
    /// [`Guard::look_up`]).
    pub(crate) fn patience(&self) -> Option<&Patience> {
        let guard = self.guard.as_ref();
        let guard = guard.filter(|_| self.process != Path::new(SELF));
        guard.map(|guard| &guard.patience)
    }

    /// Opens an absolute path with `O_PATH`. Errors: with
    /// [`Root::guarded`](crate::linux::root::Root::guarded), as for [`Guard::look_up`].
    pub fn open(&self, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
        if let Some(guard) = &self.guard {
            let root = self.root.try_clone();
            let found = root.and_then(|root| guard.look_up(root, path, links, &self.process));
            let file = found.map(|found| found.file);
            return file.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        let (links, follow) = match links {
            Links::Followed => (ResolveFlags::NO_MAGICLINKS, OFlags::empty()),
            Links::OnlyToDirectories => (ResolveFlags::NO_MAGICLINKS, OFlags::NOFOLLOW),
            Links::Refused => (ResolveFlags::NO_SYMLINKS, OFlags::NOFOLLOW),
        };
        let resolve = ResolveFlags::IN_ROOT | links;
        rustix::fs::openat2(&self.root, path, WRITTEN | follow, Mode::empty(), resolve)
    }
}

impl Guard {
    /// Reads the mounts of this process. Errors: the list cannot be read.
    pub fn new() -> io::Result<Self> {
        let file = File::open("/proc/self/mountinfo")?;
        Ok(Self {
            own: mounts_in(file, false)?,
            ..Self::default()
        })
    }

    /// Looks up an absolute path in this root directory, which ".." does not leave.
    ///
    /// `process`: the `/proc/PID` of the process that can see these mounts. Unless this is the
    /// present process, only names that the kernel has in memory are found, because a user can hold
    /// the lock of a directory for any time.
    ///
    /// Errors: those of the kernel; `EXDEV`: a program of a user serves a file system on the way,
    /// or the mount is unknown; `EAGAIN`: the name is not in memory.
    pub fn look_up(
        &self,
        root: OwnedFd,
        path: &Path,
        links: Links,
        process: &Path,
    ) -> io::Result<Found> {
        self.check(&root, process)?;
        let mut reached: Vec<(OwnedFd, OsString)> = Vec::new();
        let mut left: VecDeque<OsString> = names(path);
        let mut followed = 0;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                reached.pop();
                continue;
            }
            let parent = reached.last().map_or(&root, |(file, _)| file);
            let flags = WRITTEN | OFlags::NOFOLLOW;
            let mut file = match process == Path::new(SELF) {
                true => rustix::fs::openat(parent, &name, flags, Mode::empty())?,
                false => open_cached(parent, &name)?,
            };
            self.check(&file, process)?;
            // Lets the automounter mount the directory, which it serves until then.
            if rustix::fs::fstatfs(&file)?.f_type == AUTOFS_SUPER_MAGIC {
                let flags = flags | OFlags::DIRECTORY;
                file = rustix::fs::openat(parent, &name, flags, Mode::empty())?;
                self.check(&file, process)?;
            }
            let found = rustix::fs::fstat(&file)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
                reached.push((file, name));
                continue;
            }
            followed += 1;
            let is_refused = match links {
                Links::Followed => false,
                Links::OnlyToDirectories => left.is_empty(),
                Links::Refused => true,
            };
            if is_refused || followed > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = rustix::fs::readlinkat(&file, "", Vec::new())?.into_bytes();
            let target = PathBuf::from(OsString::from_vec(target));
            if target.is_absolute() {
                reached.clear();
            }
            for name in names(&target).into_iter().rev() {
                left.push_front(name);
            }
        }
        let mut path = PathBuf::from("/");
        path.extend(reached.iter().map(|(_, name)| name));
        let file = reached.pop().map_or(root, |(file, _)| file);
        Ok(Found { file, path })
    }

    /// Errors: as for [`Self::look_up`].
    pub(crate) fn check(&self, file: impl AsFd, process: &Path) -> io::Result<()> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = rustix::fs::statx(&file, "", flags, StatxFlags::MNT_ID)?;
        let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        let own = self.own.get(&found.stx_mnt_id).copied();
        let is_served = match own.filter(|_| is_known) {
            Some(is_served) => is_served,
            // A mount in another namespace. Not cached, because its owner can replace it by a
            // file system that gets the same ID, once the file is closed.
            None => {
                let root_user = std::fs::read_link("/proc/self/ns/user").ok();
                let is_of_user = std::fs::read_link(process.join("ns/user")).ok() != root_user;
                let file = File::open(process.join("mountinfo"))?;
                let mounts = match is_of_user {
                    true => self.mounts_of_user(file)?,
                    false => mounts_in(file, false)?,
                };
                mounts.get(&found.stx_mnt_id).copied().unwrap_or(true)
            }
        };
        if is_served {
            Err(Errno::XDEV.into())
        } else {
            Ok(())
        }
    }

    /// The first mounts in such a file of a user namespace, up to [`MOST_OF_USERS`].
    fn mounts_of_user(&self, file: impl Read) -> io::Result<HashMap<u64, bool>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = file.take(MOST_OF_USERS - *read);
        let mounts = mounts_in(&mut file, true);
        *read = MOST_OF_USERS - file.limit();
        mounts
    }
}

/// Opens a name in a directory with `O_PATH`, if the kernel has it in memory (`RESOLVE_CACHED`,
/// Linux 5.12). Does not follow a link.
pub(crate) fn open_cached(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
) -> io::Result<OwnedFd> {
    let flags = WRITTEN | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS;
    let name = name.into_c_str()?;
    let open = || rustix::fs::openat2(&directory, &*name, flags, Mode::empty(), resolve);
    let mut attempts = (1..ATTEMPTS).map(|_| open());
    let found = attempts.find(|found| !matches!(found, Err(Errno::AGAIN)));
    Ok(found.unwrap_or_else(open)?)
}

/// The mounts in such a file. `is_of_user`: a user can have made them, in a user namespace.
fn mounts_in(file: impl Read, is_of_user: bool) -> io::Result<HashMap<u64, bool>> {
    let mut all = HashMap::new();
    let file = BufReader::with_capacity(4096, file);
    mountinfo::each_type(file, |id, filesystem, options| {
        let is_fuse = filesystem.starts_with(b"fuse") && filesystem != b"fusectl";
        let mut options = options.split(|&byte| byte == b',');
        let is_of_root = options.any(|option| option == b"user_id=0");
        // In a user namespace, a user can be root, and the lower layer of an overlay can be FUSE.
        let is_served = match is_of_user {
            true => is_fuse || matches!(filesystem, b"autofs" | b"overlay"),
            false => is_fuse && !is_of_root,
        };
        all.insert(id, is_served);
    })?;
    Ok(all)
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsStr::from_bytes(b"..").to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

impl Found {
    /// The user ID and the mode of the file.
    pub fn owner_and_mode(&self) -> io::Result<(u32, u32)> {
        let found = rustix::fs::fstat(&self.file)?;
        Ok((found.st_uid, found.st_mode))
    }

    /// Opens the file, if it is a regular one. Errors: it is not.
    pub fn open(self) -> io::Result<File> {
        let file = if_regular(self.file)?.map(Take::into_inner);
        file.ok_or_else(|| io::Error::other("not a regular file"))
    }

    /// Reads the file (see [`read_written`]). Errors: it has more than [`LARGEST_SMALL`] bytes.
    pub fn read(self) -> io::Result<Vec<u8>> {
        read_written(self.file, LARGEST_SMALL, None)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn lookups_follow_links_and_stay_below_their_root() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| directory.path().join(name);
        fs::create_dir_all(place("a/b")).expect("created");
        fs::write(place("a/b/file"), "").expect("written");
        for (target, link) in [("/a/b", "absolute"), ("../a", "a/up"), ("loop", "loop")] {
            symlink(target, place(link)).expect("a link");
        }
        let guard = Guard::new().expect("mounts");
        let look_up = |path: &str, links| {
            let root = rustix::fs::open(directory.path(), WRITTEN, Mode::empty()).expect("opened");
            let found = guard.look_up(root, Path::new(path), links, Path::new("/proc/self"));
            found
                .map(|found| found.path)
                .map_err(|error| error.raw_os_error())
        };
        let code = |errno: Errno| Err(Some(errno.raw_os_error()));
        // A link to a file is followed only in full.
        symlink("a/b/file", place("link")).expect("a link");
        assert_eq!(
            look_up("/absolute/file", Links::OnlyToDirectories),
            Ok("/a/b/file".into())
        );
        assert_eq!(
            look_up("/link", Links::OnlyToDirectories),
            Err(Some(Errno::LOOP.raw_os_error()))
        );
        for (path, followed, refused) in [
            ("/", Ok("/"), Ok("/")),
            ("/link", Ok("/a/b/file"), code(Errno::LOOP)),
            ("/a/./b/file", Ok("/a/b/file"), Ok("/a/b/file")),
            ("/../../a/b/../b", Ok("/a/b"), Ok("/a/b")),
            ("/absolute/file", Ok("/a/b/file"), code(Errno::LOOP)),
            ("/a/up/up/b", Ok("/a/b"), code(Errno::LOOP)),
            ("/loop", code(Errno::LOOP), code(Errno::LOOP)),
            ("/none", code(Errno::NOENT), code(Errno::NOENT)),
            ("/a/b/file/x", code(Errno::NOTDIR), code(Errno::NOTDIR)),
        ] {
            assert_eq!(
                look_up(path, Links::Followed),
                followed.map(PathBuf::from),
                "{path}"
            );
            assert_eq!(
                look_up(path, Links::Refused),
                refused.map(PathBuf::from),
                "{path}"
            );
        }
    }

    #[test]
    fn names_of_other_processes_are_looked_up_in_memory_only() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("file"), "").expect("written");
        let guard = Guard::new().expect("mounts");
        let this = format!("/proc/{}", std::process::id());
        for (process, name, expected) in [
            (SELF, "/file", None),
            (&this, "/file", None),
            // A file system that does not answer, or a locked directory, could delay this answer.
            (&this, "/none", Some(Errno::AGAIN)),
            (SELF, "/none", Some(Errno::NOENT)),
            // Now the kernel knows.
            (&this, "/none", Some(Errno::NOENT)),
        ] {
            let root = rustix::fs::open(directory.path(), WRITTEN, Mode::empty()).expect("opened");
            let found = guard.look_up(root, Path::new(name), Links::Refused, Path::new(process));
            let error = found.err().and_then(|error| Errno::from_io_error(&error));
            assert_eq!(error, expected, "{process} {name}");
        }
    }

    #[test]
    fn programs_of_users_serve_some_mounts() {
        let text = "\
            21 1 254:0 / / rw - ext4 /dev/vda rw\n\
            22 21 0:30 / /fuse rw - fuse x rw,user_id=1000,group_id=0\n\
            23 21 0:31 / /gluster rw - fuse.glusterfs x rw,user_id=0,group_id=0\n\
            24 21 0:32 / /sys/fs/fuse rw - fusectl x rw\n\
            25 21 0:33 / /auto rw - autofs x rw\n\
            26 21 0:34 / /merged rw - overlay x rw,lowerdir=/a\n";
        for is_of_user in [false, true] {
            let found = mounts_in(text.as_bytes(), is_of_user).expect("mounts");
            let mut served: Vec<_> = found.into_iter().filter(|(_, served)| *served).collect();
            served.sort_unstable();
            let expected: &[u64] = match is_of_user {
                true => &[22, 23, 25, 26],
                false => &[22],
            };
            assert!(served.iter().map(|(id, _)| id).eq(expected), "{served:?}");
        }
    }

    #[test]
    fn many_mounts_of_users_are_not_all_read() {
        let line = "22 21 0:30 / /a rw - tmpfs none rw\n";
        let guard = Guard::default();
        let mut endless = io::repeat(0).chain(io::empty());
        let found = guard.mounts_of_user(line.as_bytes().chain(&mut endless));
        assert_eq!(found.expect("mounts"), HashMap::from([(22, false)]));
        let found = guard.mounts_of_user(line.as_bytes());
        assert_eq!(found.expect("no mounts"), HashMap::new());
    }
}
