//! Runs this program as the owner of a data directory, for root.
//!
//! The configuration of a server names libraries, which PostgreSQL loads to compute the size of
//! shared memory. The process therefore gets nothing of the session of root that it does not need,
//! and nothing that it starts survives it. SECURITY.md lists what it inherits.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    escape,
    linux::{
        lookup::Found,
        passwd,
        process::{Process, status},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FileType,
    io::{Errno, FdFlags, fcntl_setfd},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
        fsopen,
    },
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, getpriority_process, pidfd_open,
        set_parent_process_death_signal, setpriority_process, setsid, waitpid,
    },
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
        set_capabilities, unshare_unsafe,
    },
};

use crate::{Done, command, error::Error, root};

/// For a user without an entry in `/etc/passwd` whose server does not run: `nogroup` of Debian,
/// and the overflow ID of the kernel.
const NO_GROUP: u32 = 65534;

/// A backstop. The programs that the process starts have limits of their own.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

const HINT: &str = "Run this as the user of the server";

/// The user of the packages of PostgreSQL.
const USER: &str = "postgres";

/// A data directory, and the user that owns it.
pub(crate) struct Owned {
    /// The path without symbolic links. `None`: there is no directory yet.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) uid: u32,
}

impl Owned {
    /// A server without a data directory, for the user who would own it.
    pub(crate) fn new_server() -> Result<Self, Error> {
        let users = passwd::read(&root())?;
        let uid = users.uid(USER).filter(|uid| *uid != 0).ok_or_else(|| {
            Error::with_hint(
                format!("PostgreSQL does not run as root, and there is no user {USER}"),
                "Run this as an ordinary user",
            )
        })?;
        Ok(Self {
            directory: None,
            uid,
        })
    }

    /// Looks up a data directory. Only root and the owner can replace it: another user could
    /// exchange it between two lookups of its path, and PostgreSQL would read files of this user
    /// with the rights of the owner.
    pub(crate) fn find(data: &Path) -> Result<Self, Error> {
        const STICKY: u32 = 0o1000;
        const OTHERS_WRITE: u32 = 0o022;
        let root = root();
        let look_up = |path: &Path| root.look_up(path).map_err(|error| unreachable(path, error));
        let Found { path: real, file } = look_up(data)?;
        let failed = |error| Error::file("open", data, error);
        let uid = rustix::fs::fstat(&file)
            .map_err(|errno| failed(errno.into()))?
            .st_uid;
        if uid == 0 {
            let data = escape::name(data);
            return Err(Error::new(format!(
                "{data} is not a data directory: it belongs to root, and PostgreSQL does not run as root"
            )));
        }
        // From the root, because the others can be exchanged until their parents are known to be
        // safe.
        let all: Vec<_> = real.ancestors().collect();
        for directory in all.into_iter().rev() {
            let found = look_up(directory)?;
            let (owner, mode) = found.owner_and_mode().map_err(failed)?;
            let is_data = directory == real;
            let can_be_changed = mode & OTHERS_WRITE != 0 && (mode & STICKY == 0 || is_data);
            let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
            let is_safe = found.path == directory && is_directory && [0, uid].contains(&owner);
            if !is_safe || can_be_changed {
                return Err(Error::with_hint(
                    format!(
                        "{} can be changed by users other than root and the owner of {}",
                        escape::name(directory),
                        escape::name(&real)
                    ),
                    "Correct its owner and its permissions, or run this as the user of the server",
                ));
            }
        }
        Ok(Self {
            directory: Some(real),
            uid,
        })
    }

    /// The group of the running server, or that of the owner in `/etc/passwd`. Never that of a
    /// file, which the owner might not belong to.
    fn gid(&self, postmaster: Option<u32>) -> u32 {
        let of_server = || {
            let process = Process::open(&root(), postmaster?).ok()?;
            let identity = status::read_identity(&process, &mut Vec::new()).ok()?;
            identity
                .only_gid
                .filter(|_| identity.only_uid == Some(self.uid))
        };
        let of_user = || passwd::read(&root()).ok()?.group(self.uid);
        of_server().or_else(of_user).unwrap_or(NO_GROUP)
    }

    /// Runs a verb of this program as the owner. Messages of that process are one line.
    pub(crate) fn run(
        &self,
        verb: &str,
        arguments: Vec<std::ffi::OsString>,
        postmaster: Option<u32>,
    ) -> Result<Done, Error> {
        let gid = self.gid(postmaster);
        let failed = |error: io::Error| {
            let text = format!("could not isolate the programs of PostgreSQL: {error}");
            Error::with_hint(text, format!("{HINT}. As root, this needs CAP_SYS_ADMIN"))
        };
        leave_session().map_err(failed)?;
        let scratch = scratch(self.uid, gid).map_err(failed)?;
        become_init().map_err(failed)?;
        let mut command = command::this(verb);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TMPDIR", format!("/proc/self/fd/{}", scratch.as_raw_fd()))
            .uid(self.uid)
            .gid(gid)
            .process_group(0);
        command::restrict(&mut command, command::LARGEST_FILE);
        let output = command::run(command, TIME_LIMIT)?;
        if output.status.success() {
            return Ok(output.out.into());
        }
        let message = match output.err.trim() {
            "" => match output.status.signal() {
                Some(signal) => format!("hugeinfo was ended by signal {signal}"),
                None => format!("hugeinfo ended with {}", output.status),
            },
            text => text.to_owned(),
        };
        let message = message.strip_prefix("hugeinfo: ").unwrap_or(&message);
        Err(Error::new(attributed(self.uid, message)))
    }
}

/// Longer messages of other users are truncated, because a person reads them. Messages of
/// PostgreSQL with their hints are shorter.
const LONGEST_MESSAGE: usize = 1000;

/// A message of a process of another user, as one line that says whose it is.
pub(crate) fn attributed(uid: u32, message: &str) -> String {
    let lines = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join("; ");
    let text = escape::shortened(&escape::name(text), LONGEST_MESSAGE);
    format!("as user {}: {text}", name_of(uid))
}

fn name_of(uid: u32) -> String {
    let users = passwd::read(&root()).unwrap_or_default();
    users.name(uid).map_or(uid.to_string(), str::to_owned)
}

/// The error for a directory that cannot be looked up.
pub(crate) fn unreachable(path: &Path, error: io::Error) -> Error {
    match Errno::from_io_error(&error) {
        Some(Errno::XDEV) => Error::with_hint(
            format!(
                "{} is on a file system that a program of a user serves (FUSE): root does not open it",
                escape::name(path)
            ),
            HINT,
        ),
        _ => Error::file("open", path, error),
    }
}

/// Forks, and continues as process 1 of a new PID namespace. When it ends, the kernel kills all
/// processes in the namespace. It runs as root, so no process of the owner can change it. The
/// calling process waits for it, and exits with its status.
fn become_init() -> io::Result<()> {
    let parent = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: this process shares no memory or files with its children.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    // SAFETY: this process has no other thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It might have ended before.
            let mut ended = [PollFd::new(&parent, PollFlags::IN)];
            match poll(&mut ended, Some(&Timespec::default()))? {
                0 => Ok(()),
                _ => Err(Errno::SRCH.into()),
            }
        }
        child => {
            let status = waitpid(Pid::from_raw(child), WaitOptions::empty())?;
            let code = status.and_then(|(_, status)| status.exit_status());
            std::process::exit(code.unwrap_or(3))
        }
    }
}

/// Detaches this process, and so its children, from the session of root.
fn leave_session() -> io::Result<()> {
    setsid()?;
    close_at_exec()?;
    join_session_keyring()?;
    drop_capabilities()?;
    lower_limits()?;
    match setpriority_process(None, 0) {
        // Lacking CAP_SYS_NICE, the process keeps its low priority.
        Err(Errno::ACCESS | Errno::PERM) if getpriority_process(None)? > 0 => {}
        done => done?,
    }
    // musl has no such function. The kernel reads the priority.
    // SAFETY: the number is valid for the time of the call.
    let policy =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &0_i32) };
    if policy != 0 {
        return Err(io::Error::last_os_error());
    }
    // A value below 0 would protect the process from the OOM killer.
    let score = "/proc/self/oom_score_adj";
    if fs::read_to_string(score)?.starts_with('-') {
        fs::write(score, "0")?;
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    Ok(())
}

/// Files that root has opened before this program, such as a log, must not reach the owner.
fn close_at_exec() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if number > 2 {
            // SAFETY: the descriptor is only used in the next line, and this process has no other
            // thread that closes files.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// Joins a new, empty session keyring: processes that share the one of root can read its keys
/// (security/keys/process_keys.c `join_session_keyring`).
fn join_session_keyring() -> io::Result<()> {
    // linux/keyctl.h
    const GET_KEYRING_ID: libc::c_long = 0;
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    const SESSION_KEYRING: libc::c_long = -3;
    let no_name = std::ptr::null::<libc::c_char>();
    // SAFETY: both calls take numbers and a null pointer only.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, no_name) };
    let error = io::Error::last_os_error();
    // SAFETY: as above.
    let reachable =
        || unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) };
    // A kernel without keys, or a seccomp filter, which the children inherit.
    if joined >= 0 || reachable() < 0 {
        return Ok(());
    }
    Err(error)
}

/// Drops the capabilities that the owner would keep. Changing the user clears the others, unless
/// `SECBIT_NO_SETUID_FIXUP` is set (capabilities(7)).
fn drop_capabilities() -> io::Result<()> {
    const NO_SETUID_FIXUP: libc::c_long = 1 << 2;
    let call = |option: libc::c_int, bits: libc::c_long| {
        // SAFETY: both calls take and return numbers only.
        match unsafe { libc::prctl(option, bits) } {
            ..0 => Err(io::Error::last_os_error()),
            result => Ok(libc::c_long::from(result)),
        }
    };
    let bits = call(libc::PR_GET_SECUREBITS, 0)?;
    if bits & NO_SETUID_FIXUP != 0 {
        call(libc::PR_SET_SECUREBITS, bits & !NO_SETUID_FIXUP)?;
    }
    clear_ambient_capability_set()?;
    let sets = CapabilitySets {
        inheritable: CapabilitySet::empty(),
        ..capabilities(None)?
    };
    Ok(set_capabilities(None, sets)?)
}

/// Lowers each limit to that of process 1, which a service starts with, and allows no core dump.
fn lower_limits() -> io::Result<()> {
    // RLIM_NLIMITS. The type differs between C libraries.
    for resource in (0_u8..16).map(Into::into) {
        let read = |pid| {
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: the structure is valid for the time of the call.
            match unsafe { libc::prlimit(pid, resource, std::ptr::null(), &mut limit) } {
                0 => Ok(limit),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let (own, first) = (read(0)?, read(1)?);
        let most = match libc::RLIMIT_CORE == resource {
            true => 0,
            false => libc::RLIM_INFINITY,
        };
        let limit = libc::rlimit {
            rlim_cur: own.rlim_cur.min(first.rlim_cur).min(most),
            rlim_max: own.rlim_max.min(first.rlim_max).min(most),
        };
        // SAFETY: as above.
        if unsafe { libc::prlimit(0, resource, &limit, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Creates a tmpfs for the private directory. It is not attached to any path, so only processes
/// with this descriptor can reach it. The size limit keeps it from filling the memory of the host.
fn scratch(uid: u32, gid: u32) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let (uid, gid) = (uid.to_string(), gid.to_string());
    for (name, value) in [
        ("size", "64m"),
        ("nr_inodes", "10000"),
        ("mode", "0700"),
        ("uid", &uid),
        ("gid", &gid),
    ] {
        fsconfig_set_string(&context, name, value)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    // The programs of PostgreSQL inherit it and use it by its number, so no FSMOUNT_CLOEXEC.
    Ok(fsmount(&context, FsMountFlags::empty(), attributes)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn directories_that_others_can_replace_are_refused() {
        let parent = tempfile::tempdir().expect("a directory");
        let (shared, link) = (parent.path().join("shared"), parent.path().join("link"));
        let data = shared.join("data");
        fs::create_dir_all(&data).expect("created");
        symlink(&shared, &link).expect("a link");
        if crate::is_root() {
            chown(&data, Some(65534), None).expect("not a directory of root");
        }
        let set = |path: &Path, mode| {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(path, permissions).expect("permissions");
        };
        let is_found = || {
            let found = Owned::find(&link.join("data"));
            found.is_ok_and(|found| found.directory.as_ref() == Some(&data))
        };
        for (mode, expected) in [
            (0o755, true),
            (0o777, false),
            (0o775, false),
            (0o1777, true),
        ] {
            set(&shared, mode);
            assert_eq!(is_found(), expected, "{mode:o}");
        }
        // Others could put files of their own into the data directory itself.
        for (mode, expected) in [(0o750, true), (0o1777, false), (0o770, false)] {
            set(&data, mode);
            assert_eq!(is_found(), expected, "{mode:o}");
        }
    }

    #[test]
    fn owner_keeps_no_capabilities() {
        // Each thread has its own sets.
        let thread = std::thread::spawn(|| {
            let own = capabilities(None).expect("readable");
            let inheritable = own.permitted;
            let with = CapabilitySets { inheritable, ..own };
            set_capabilities(None, with).expect("a set");
            drop_capabilities().expect("dropped");
            capabilities(None).expect("readable").inheritable
        });
        let left = thread.join().expect("an end");
        assert_eq!(left, CapabilitySet::empty());
    }

    #[test]
    fn messages_of_other_users_are_one_line() {
        let text = attributed(65533, "a\nHINT: run\n\n    rm -rf /\u{1b}[2J\n");
        assert_eq!(text, r"as user 65533: a; HINT: run; rm -rf /\033[2J");
        let text = attributed(65533, &"x".repeat(1 << 20));
        assert!(text.len() < 2 * LONGEST_MESSAGE);
    }
}
