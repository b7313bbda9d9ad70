//! Processes that this backend starts: PostgreSQL's program, and copies of this backend for work
//! that may never end.
//!
//! A child dies with this backend, however the backend ends. It leads its own process group, which
//! this backend kills with it. It inherits none of this backend's descriptors, such as the client's
//! connection.

use std::{
    cell::RefCell,
    ffi::{CString, OsString, c_char, c_int, c_uint},
    fs::File,
    io,
    mem::ManuallyDrop,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{ffi::OsStringExt, process::ExitStatusExt},
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitStatus,
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

/// Maximum wait for a killed child to end. A child that waits for a disk or is in a frozen cgroup
/// does not end within this time. The next call that starts a child reaps it.
const BURIAL: Duration = Duration::from_millis(50);

/// Exit status of a child that could not run its program.
pub(crate) const NOT_RUN: i32 = 127;

thread_local! {
    /// Killed children that had not ended after [`BURIAL`]. They remain children of this backend,
    /// so their PIDs are not reused. The value has no destructor, because registering one allocates
    /// memory and can fail.
    static UNREAPED: ManuallyDrop<RefCell<Vec<Pid>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// A child that has not been reaped. Until it is dropped, neither its PID nor the ID of its group
/// is reused.
pub(crate) struct Child {
    pid: Pid,
}

/// A child with its standard output and standard error.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) out: File,
    pub(crate) err: File,
}

/// A program with its arguments (its name first) and its environment.
pub(crate) struct Program {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// Errors: a string contains a NUL byte.
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

    /// Starts it. If it cannot be run, the child ends with [`NOT_RUN`] and writes the four bytes of
    /// `errno` to its standard error.
    pub(crate) fn start(&self) -> io::Result<Started> {
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            let pointers = strings.iter().map(|string| string.as_ptr());
            pointers.chain([std::ptr::null()]).collect()
        };
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        start(|| {
            // SAFETY: null-terminated lists of C strings in the memory of this process.
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

/// Starts a copy of this backend that does only `task`, which can write to its standard output. If
/// the result of `task` is `None`, the copy exits with status 1.
///
/// The copy must not wait for locks, read catalogs or write to shared memory: the server does not
/// know it. An error or a panic counts as `None`.
pub(crate) fn start_copy(task: impl FnOnce(&mut File) -> Option<()>) -> io::Result<Started> {
    start(|| {
        // SAFETY: variables of this process only. Its messages do not go to the client, and the
        // parent handles a cancel or termination that arrived before the fork.
        unsafe {
            pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
            pg_sys::InterruptHoldoffCount += 1;
            // With exit_on_error, an error must not end the process in PostgreSQL's way. The copy
            // must not run callbacks for the end of a session, nor hooks for messages.
            pg_sys::ExitOnAnyError = false;
            pg_sys::on_exit_reset();
            pg_sys::emit_log_hook = None;
        }
        // SAFETY: the standard output of this process, which start() has opened.
        let mut out = unsafe { File::from_raw_fd(1) };
        let result = catch_unwind(AssertUnwindSafe(|| task(&mut out)));
        i32::from(!matches!(result, Ok(Some(()))))
    })
}

/// Forks. Signals are blocked until the child has reset their handlers: the server's handlers would
/// write to the client.
fn start(task: impl FnOnce() -> i32) -> io::Result<Started> {
    UNREAPED.with(|unreaped| unreaped.borrow_mut().retain(|pid| !is_reaped(*pid)));
    let null = above_standard(rustix::fs::open(
        c"/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?)?;
    let (out, its_out) = pipe()?;
    let (err, its_err) = pipe()?;
    let standard = [null.as_raw_fd(), its_out.as_raw_fd(), its_err.as_raw_fd()];
    let this = rustix::process::getpid();

    // SAFETY: the child affects only its own copy of the memory before exec or `_exit`. Signal sets
    // are initialized before they are read.
    let pid = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            let status = match prepare(this, standard) {
                Ok(()) => task(),
                Err(_) => NOT_RUN,
            };
            libc::_exit(status);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        Pid::from_raw(pid).filter(|_| pid > 0).ok_or(error)?
    };
    // The child does the same; one of them is first. It fails here if the child has already run its
    // program.
    let _ = rustix::process::setpgid(Some(pid), Some(pid));
    Ok(Started {
        child: Child { pid },
        out: out.into(),
        err: err.into(),
    })
}

/// Runs in the child. Allocates nothing, because the caller can have other threads, one of which
/// could have held the allocator's lock during the fork.
///
/// # Safety
///
/// `standard` are descriptors of this process that nothing else uses here.
unsafe fn prepare(parent: Pid, standard: [RawFd; 3]) -> Result<(), Errno> {
    rustix::process::setpgid(None, None)?;
    // A cancel is sent to the process group of a backend (storage/ipc/signalfuncs.c
    // `pg_signal_backend`). Signals that arrived before this process left the group are for the
    // parent.
    // SAFETY: as above. It is harmless if the action of a signal cannot be set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let at_once: libc::timespec = std::mem::zeroed();
        while libc::sigtimedwait(&raw const all, std::ptr::null_mut(), &raw const at_once) > 0 {}
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        for (descriptor, number) in standard.into_iter().zip(0..) {
            if libc::dup2(descriptor, number) < 0 {
                return Err(Errno::BADF);
            }
        }
        // PostgreSQL 15 opens many of its files without close-on-exec.
        if libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, 0) < 0 {
            return Err(Errno::NOSYS);
        }
    }
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(Errno::SRCH);
    }
    // SAFETY: an empty set. Signals that arrived meanwhile now have their default action.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    Ok(())
}

/// Returns the reading end, which is non-blocking, and the child's end.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // With fcntl, because a sandbox can forbid every ioctl.
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK)?;
    Ok((read, above_standard(write)?))
}

/// Duplicates a descriptor to a number above those of standard input and output, which this process
/// might not have.
fn above_standard(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    match descriptor.as_raw_fd() {
        0..=2 => Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?),
        _ => Ok(descriptor),
    }
}

impl Child {
    /// Opens a descriptor that is readable once the child has ended. `None`: a sandbox has no
    /// pidfd.
    pub(crate) fn end_descriptor(&self) -> Option<OwnedFd> {
        rustix::process::pidfd_open(self.pid, PidfdFlags::empty()).ok()
    }

    /// How the child ended. `None`: it has not ended.
    pub(crate) fn end(&self) -> io::Result<Option<ExitStatus>> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.pid), look))?;
        let end = |status: WaitIdStatus| match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(ExitStatus::from_raw(code << 8)),
            (None, Some(signal)) => Some(ExitStatus::from_raw(signal)),
            (None, None) => None,
        };
        Ok(status.and_then(end))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Also kills processes that the child has started, even if the child has ended. Until it is
        // reaped, its PID is not reused.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = kill_process(self.pid, Signal::KILL);
        const LOOK: Duration = Duration::from_micros(200);
        for _ in 0..BURIAL.as_micros() / LOOK.as_micros() {
            if is_reaped(self.pid) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        UNREAPED.with(|unreaped| unreaped.borrow_mut().push(self.pid));
    }
}

/// Reaps the child if it has ended.
fn is_reaped(pid: Pid) -> bool {
    let status = rustix::io::retry_on_intr(|| waitpid(Some(pid), WaitOptions::NOHANG));
    !matches!(status, Ok(None))
}
