//! Runs programs with a time limit.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{ffi::OsStringExt, process::CommandExt},
    panic::{self, AssertUnwindSafe},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use host::{escape, linux::error::of_start, next_start::Output};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, getppid, getrlimit,
        kill_process, kill_process_group, pidfd_open, set_parent_process_death_signal, setrlimit,
        waitpid,
    },
    thread::set_no_new_privs,
};

use crate::error::Error;

/// Only the end of longer output is read.
const LONGEST_OUTPUT: u64 = 1 << 20;

/// Only the end of longer messages is read.
const LONGEST_MESSAGES: u64 = 64 << 10;

/// Size of a file that a program of PostgreSQL can write. `initdb` writes files of 16 MB.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;

/// Time for a program to clean up after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Time for a verb of this program to clean up. It first ends the program that it runs.
const OWN_GRACE: Duration = GRACE.saturating_add(AFTER_KILL).saturating_add(GRACE);

/// Time for the end of a program after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// Time limit for reading a file.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

const BETWEEN_LOOKS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

const THIS: &str = "/proc/self/exe";

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Handles SIGINT, SIGTERM and SIGHUP: ends the running program, so that this process removes its
/// files and restores pools before it exits. A second signal ends this process at once.
pub(crate) fn end_on_signal() -> Result<(), Error> {
    let handled = ctrlc::set_handler(|| {
        // The second signal ends a run that waits for a file.
        if IS_INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(3);
        }
    });
    handled.map_err(|error| Error::new(format!("could not handle signals: {error}")))
}

/// Runs a function for a limited time. Errors: `ETIMEDOUT` if the time limit was reached, `EAGAIN`
/// if no thread could be started. The function must not look up names in directories of users,
/// because this process could not end during a blocked lookup.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Errno> {
    let (sender, result) = mpsc::channel();
    let work = move || drop(sender.send(read()));
    let started = thread::Builder::new().spawn(work);
    started.map_err(|_| Errno::AGAIN)?;
    result.recv_timeout(limit).map_err(|_| Errno::TIMEDOUT)
}

/// Calls a function for one of several servers. A panic, which is a bug of this program, is an
/// error, so that one server does not hide the others.
pub(crate) fn caught<T>(read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let failed = |_| {
        Err(Error::new(
            "hugeinfo failed because of a bug; stderr has the message",
        ))
    };
    panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(failed)
}

/// Continues in a child process. The caller waits for it and exits with its status.
///
/// Errors: the child waits for a file. Any user can lock a directory, and a process that looks up a
/// name there cannot be killed.
pub(crate) fn watch() -> Result<(), Error> {
    let failed = |errno: Errno| {
        Error::new(format!(
            "could not start a process: {}",
            of_start(&errno.into())
        ))
    };
    // SAFETY: this process has no other thread.
    let number = unsafe { libc::fork() };
    if number == 0 {
        return set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed);
    }
    let child = Pid::from_raw(number.max(0)).ok_or_else(|| failed(Errno::AGAIN))?;
    let mut went_on = Instant::now();
    let has_ended = wait_while(child, || {
        // While it waits for a program, its state is S. Z: it has ended except for a thread that
        // waits.
        let stat = fs::read_to_string(format!("/proc/{number}/stat"));
        if !stat.is_ok_and(|stat| stat.contains(") D ") || stat.contains(") Z ")) {
            went_on = Instant::now();
        }
        went_on.elapsed() < LONGEST_WAIT
    });
    if has_ended.map_err(failed)? {
        let status = waitpid(Some(child), WaitOptions::empty()).ok().flatten();
        let code = status.and_then(|(_, status)| status.exit_status());
        std::process::exit(code.unwrap_or(3));
    }
    let _ = kill_process(child, Signal::KILL);
    Err(Error::with_hint(
        "the files of the server could not be read in time",
        "A user might keep a directory locked. Run this as the user of the server",
    ))
}

/// Waits for the end of a child, which is not reaped, while the condition holds. Returns whether it
/// has ended.
fn wait_while(child: Pid, mut goes_on: impl FnMut() -> bool) -> Result<bool, Errno> {
    let ended = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut ended = [PollFd::new(&ended, PollFlags::IN)];
        match poll(&mut ended, Some(&BETWEEN_LOOKS)) {
            Ok(1..) => return Ok(true),
            Ok(0) | Err(Errno::INTR) if goes_on() => {}
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
}

/// True after SIGINT, SIGTERM or SIGHUP.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::Relaxed)
}

/// A verb of this program, for a process of its own.
pub(crate) fn this(verb: &str) -> Command {
    let mut command = Command::new(THIS);
    command.arg(verb);
    command
}

/// Restricts a program that runs code or prints texts of the user of a server: it gets no
/// privileges from setuid programs, and its output cannot fill a file system or memory.
pub(crate) fn restrict(command: &mut Command, largest_file: u64) {
    let restrict = move || {
        set_no_new_privs(true)?;
        let most = getrlimit(Resource::Fsize).maximum;
        let most = Some(most.map_or(largest_file, |most| most.min(largest_file)));
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        Ok(setrlimit(Resource::Fsize, limit)?)
    };
    // SAFETY: between fork and exec, it only calls the kernel.
    unsafe { command.pre_exec(restrict) };
}

/// Ends the process of a command when the thread that starts it ends.
pub(crate) fn end_with_parent(command: &mut Command) {
    let parent = getpid();
    let end = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It might have ended before.
        match getppid() == Some(parent) {
            true => Ok(()),
            false => Err(Errno::SRCH.into()),
        }
    };
    // SAFETY: between fork and exec, it only calls the kernel.
    unsafe { command.pre_exec(end) };
}

/// The escaped output of a program, and its status.
pub(crate) struct Text {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program, like [`Running`].
pub(crate) fn run(command: Command, limit: Duration) -> Result<Text, Error> {
    let output = Running::start(command, limit)?.finish()?;
    let text = |bytes| escape::lines(OsString::from_vec(bytes));
    Ok(Text {
        status: output.status,
        out: text(output.out),
        err: text(output.err),
    })
}

/// A program, which has to be or become the leader of a process group. At the time limit and after
/// a signal, the group gets SIGTERM, and SIGKILL if the program does not end. The group ends with
/// the program.
pub(crate) struct Running {
    /// `None`: it was reaped.
    child: Option<Child>,
    name: String,
    limit: Duration,
    deadline: Instant,
    grace: Duration,
    out: File,
    err: File,
}

impl Running {
    pub(crate) fn start(command: Command, limit: Duration) -> Result<Self, Error> {
        let name = escape::name(command.get_program());
        Self::spawn(command, limit)
            .map_err(|error| Error::new(format!("could not run {name}: {}", of_start(&error))))
    }

    pub(crate) fn spawn(mut command: Command, limit: Duration) -> io::Result<Self> {
        // In memory, because any user can fill /tmp.
        let file = || memfd_create("hugeinfo", MemfdFlags::CLOEXEC).map(File::from);
        let (out, err) = (file()?, file()?);
        let grace = match command.get_program() == THIS {
            true => OWN_GRACE,
            false => GRACE,
        };
        if command.get_current_dir().is_none() {
            command.current_dir("/");
        }
        command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?);
        Ok(Self {
            child: Some(command.spawn()?),
            name: escape::name(command.get_program()),
            limit,
            deadline: Instant::now() + limit,
            grace,
            out,
            err,
        })
    }

    /// Waits for the end of the program. Only the end of a long output is kept.
    pub(crate) fn finish(mut self) -> Result<Output, Error> {
        let status = self.wait()?;
        let failed = |error| self.failed(error);
        Ok(Output {
            status,
            out: end_of(&self.out, LONGEST_OUTPUT).map_err(failed)?,
            err: end_of(&self.err, LONGEST_MESSAGES).map_err(failed)?,
        })
    }

    /// The first output until the end of the program, or until the time limit. At the limit, the
    /// program is killed, but this does not wait for its end, which might never come.
    pub(crate) fn output_in_time(mut self, longest: u64) -> io::Result<Vec<u8>> {
        let _ = self.wait();
        if let Some(mut child) = self.child.take() {
            child.kill()?;
        }
        let (mut out, mut bytes) = (&self.out, Vec::new());
        out.rewind()?;
        out.take(longest).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::new(format!("could not run {}: {error}", self.name))
    }

    fn wait(&mut self) -> Result<ExitStatus, Error> {
        let ended = io::ErrorKind::NotFound;
        let Some(child) = &self.child else {
            return Err(self.failed(ended.into()));
        };
        let group = Pid::from_child(child);
        let has_ended = wait_while(group, || {
            Instant::now() < self.deadline && !is_interrupted()
        });
        if !has_ended.map_err(|errno| self.failed(errno.into()))? {
            let limit = self.limit.as_secs();
            return Err(Error::new(match is_interrupted() {
                true => "interrupted by a signal".to_owned(),
                false => format!("{} did not end within {limit} s", self.name),
            }));
        }
        // The program is not reaped yet, so no other group has its number.
        let _ = kill_process_group(group, Signal::KILL);
        let reaped = self.child.take().map(|mut child| child.wait());
        reaped
            .unwrap_or(Err(ended.into()))
            .map_err(|error| self.failed(error))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = end(&mut child, self.grace);
        }
    }
}

/// The result and the reason of a failure are at the end.
fn end_of(mut file: &File, longest: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(longest)))?;
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn end(child: &mut Child, grace: Duration) -> io::Result<()> {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    wait(child, grace)?;
    // Also ends processes that the program started.
    let _ = kill_process_group(group, Signal::KILL);
    child.kill()?;
    // Not even SIGKILL ends a process that reads a file of a file system that hangs.
    wait(child, AFTER_KILL)
}

/// Waits for the end of the program, at most this long.
fn wait(child: &mut Child, limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    if wait_while(Pid::from_child(child), || Instant::now() < deadline)? {
        child.wait()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0);
        command
    }

    #[test]
    fn processes_that_a_program_started_end_with_it() {
        let output = run(shell("sleep 600 & echo $!"), LIMIT).expect("run");
        assert!(output.status.success());
        let stat = format!("/proc/{}/stat", output.out.trim());
        // Process 1 might not reap it.
        let has_ended = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + LIMIT;
        while !has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(has_ended());
    }

    #[test]
    fn restricted_programs_get_no_privileges_and_write_no_large_files() {
        let mut command =
            shell("grep NoNewPrivs /proc/self/status; grep Max.file.size /proc/self/limits");
        restrict(&mut command, LARGEST_FILE);
        let output = run(command, LIMIT).expect("run");
        let words: Vec<_> = output.out.split_whitespace().collect();
        let limit = LARGEST_FILE.to_string();
        assert_eq!(
            words,
            [
                "NoNewPrivs:",
                "1",
                "Max",
                "file",
                "size",
                &limit,
                &limit,
                "bytes"
            ]
        );
        // It would fill the disk.
        let mut command = shell("exec cat /dev/zero");
        restrict(&mut command, LARGEST_FILE);
        assert!(!run(command, LIMIT).expect("run").status.success());
    }
}
