//! Processes that this backend starts: PostgreSQL's program, and copies of this backend for what
//! may never end.
//!
//! A child dies with this backend, however that dies. It leads a process group of its own, which
//! this backend ends with it, and it has none of this backend's descriptors, above all not the
//! client's connection.

use std::{
    ffi::{CString, OsString, c_char, c_int},
    fmt,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::ffi::OsStringExt,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::Duration,
};

use pgrx::pg_sys;
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process,
        kill_process_group, waitid, waitpid,
    },
};

/// How long a child that was killed is waited for. One that waits for a disk heeds no signal.
const BURIAL: Duration = Duration::from_secs(1);

/// What a child exits with that could not run its program.
pub(crate) const NOT_RUN: i32 = 127;

/// A child that has not been waited for: until it is dropped its number, and its group's, are its
/// own.
pub(crate) struct Child {
    pid: Pid,
    /// Readable once it has ended. `None`: this kernel has no such thing (Linux 5.3).
    end: Option<OwnedFd>,
}

/// A child, and what it writes to its standard output and standard error.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) out: File,
    pub(crate) err: File,
}

/// How a child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Killed(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

/// A program with its arguments, its own name first, and its environment.
pub(crate) struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// Errors: a NUL byte in any of them.
    pub(crate) fn new(
        path: PathBuf,
        arguments: impl IntoIterator<Item = OsString>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let path = c_string(path.into_os_string())?;
        let mut all = vec![path.clone()];
        for argument in arguments {
            all.push(c_string(argument)?);
        }
        let variables = environment.into_iter().map(|(mut variable, value)| {
            variable.push("=");
            variable.push(value);
            c_string(variable)
        });
        Ok(Self {
            environment: variables.collect::<io::Result<_>>()?,
            path,
            arguments: all,
        })
    }

    /// Starts it. That it cannot be run is told by its end, [`NOT_RUN`], and by the four bytes of
    /// `errno` on its standard error.
    pub(crate) fn start(&self) -> io::Result<Started> {
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            let pointers = strings.iter().map(|string| string.as_ptr());
            pointers.chain([std::ptr::null()]).collect()
        };
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        start(|| {
            // SAFETY: null-terminated lists of C strings, which live in this process's copy.
            unsafe {
                libc::execve(self.path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                libc::write(2, libc::__errno_location().cast(), size_of::<c_int>());
            }
            NOT_RUN
        })
    }
}

fn c_string(string: OsString) -> io::Result<CString> {
    CString::new(string.into_vec()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Starts a copy of this backend that does `task` and nothing else; what `task` gives goes to its
/// standard output. `None`: it has failed, which its exit status 1 tells.
///
/// The copy may not wait for locks, look into catalogs or write to shared memory: the server knows
/// nothing of it. What raises an error, or panics, gives nothing.
pub(crate) fn start_copy(task: impl FnOnce() -> Option<Vec<u8>>) -> io::Result<Started> {
    start(|| {
        // SAFETY: variables of this process alone. No message of it goes to the client, and a
        // cancel or an end that came before the fork is this backend's to heed.
        unsafe {
            pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
            pg_sys::InterruptHoldoffCount += 1;
            // An error that would end the session (exit_on_error) is one as any other, and nothing
            // that the end of a session, or a message, has others do is done by the copy.
            pg_sys::ExitOnAnyError = false;
            pg_sys::on_exit_reset();
            pg_sys::emit_log_hook = None;
        }
        let Ok(Some(answer)) = catch_unwind(AssertUnwindSafe(task)) else {
            return 1;
        };
        // SAFETY: the standard output of this process, which start() has opened.
        let out = unsafe { BorrowedFd::borrow_raw(1) };
        i32::from(rustix::io::write(out, &answer) != Ok(answer.len()))
    })
}

/// Forks. Signals wait from before that until the child has its own way of dealing with them: with
/// the server's it would speak to the client.
fn start(task: impl FnOnce() -> i32) -> io::Result<Started> {
    let null = above_standard(rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR,
        rustix::fs::Mode::empty(),
    )?)?;
    let (out, its_out) = pipe()?;
    let (err, its_err) = pipe()?;
    let standard = [null.as_raw_fd(), its_out.as_raw_fd(), its_err.as_raw_fd()];
    let inherited = open_descriptors()?;
    let this = rustix::process::getpid();

    // SAFETY: what the child does before exec or `_exit` is the business of its copy alone. Sets of
    // signals are filled before they are read.
    let pid = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            let status = match prepare(this, standard, &inherited) {
                Ok(()) => task(),
                Err(_) => NOT_RUN,
            };
            libc::_exit(status);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        Pid::from_raw(pid).filter(|_| pid > 0).ok_or(error)?
    };
    // As the child does: whoever is first. It is an error where the child has been first, and has
    // gone on.
    let _ = rustix::process::setpgid(Some(pid), Some(pid));
    Ok(Started {
        child: Child {
            pid,
            end: rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok(),
        },
        out: out.into(),
        err: err.into(),
    })
}

/// In the child, where nothing may be allocated: with several threads somebody could have held the
/// lock on that.
///
/// # Safety
///
/// `standard` and `inherited` are descriptors of this process, and nobody else's here.
unsafe fn prepare(parent: Pid, standard: [RawFd; 3], inherited: &[RawFd]) -> Result<(), Errno> {
    // SAFETY: as above. That a signal's action can't be set, or a descriptor is closed already,
    // doesn't matter.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        for (descriptor, number) in standard.into_iter().zip(0..) {
            if libc::dup2(descriptor, number) < 0 {
                return Err(Errno::BADF);
            }
        }
        for &descriptor in inherited.iter().filter(|&&descriptor| descriptor > 2) {
            libc::close(descriptor);
        }
    }
    rustix::process::setpgid(None, None)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(Errno::SRCH);
    }
    // SAFETY: an empty set. What has come meanwhile now does what it does to any program.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    Ok(())
}

/// The end to read from, which never waits, and the child's.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, above_standard(write)?))
}

/// The same file under a number that is not of standard input or output, should this process lack
/// these.
fn above_standard(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

/// PostgreSQL 15 opens many of its files without close-on-exec.
fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let numbers = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

impl Child {
    /// What is readable once it has ended.
    pub(crate) fn end_descriptor(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.end.as_ref().map(AsFd::as_fd)
    }

    /// How it has ended; `None`: it hasn't.
    pub(crate) fn end(&self) -> io::Result<Option<End>> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.pid), look))?;
        let end = |status: WaitIdStatus| match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Some(End::Exited(status)),
            (None, Some(signal)) => Some(End::Killed(signal)),
            (None, None) => None,
        };
        Ok(status.and_then(end))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // All that it has started, also when it has ended itself: until it is waited for nobody
        // else gets its number.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = kill_process(self.pid, Signal::KILL);
        const LOOK: Duration = Duration::from_micros(200);
        for _ in 0..BURIAL.as_micros() / LOOK.as_micros() {
            match waitpid(Some(self.pid), WaitOptions::NOHANG) {
                Ok(None) => std::thread::sleep(LOOK),
                Err(Errno::INTR) => {}
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}
