//! One run of PostgreSQL's program.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::{
        fd::AsFd,
        unix::{ffi::OsStringExt, process::CommandExt},
    },
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use hugeinfo::{process::Process, root::Root, stat};
use rustix::process::{Pid, Signal, kill_process_group};

use super::HELD;
use crate::{error::Error, postgres};

/// It takes some 15 ms. What takes as long as this waits for something that doesn't come.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// More than it ever writes; the rest is read and thrown away.
const OUTPUT_LIMIT: usize = 64 << 10;

/// A running program, which is ended when it is dropped.
pub(crate) struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // Not if it has been waited for: the number may be another's by now. Its group is all that it has started.
        if matches!(self.0.try_wait(), Ok(None)) {
            let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        let _ = self.0.wait();
    }
}

/// Why PostgreSQL would not start, in its own words.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// What it says as its last word.
    pub(crate) message: String,
    /// Its SQLSTATE, where it has one.
    pub(crate) state: Option<[u8; 5]>,
    /// What it says before, and in detail.
    pub(crate) detail: Vec<String>,
    /// What it advises.
    pub(crate) hint: Option<String>,
}

/// The arguments that the postmaster runs with, its name left out.
///
/// The kernel has them as they were, whatever is in them; the quotes of `postmaster.opts` do not tell where one ends that has quotes in it.
pub(crate) fn running_command_line() -> Result<Vec<OsString>, Error> {
    let root = Root::system();
    let mut buffer = Vec::new();
    let postmaster = rustix::process::getppid().map(|pid| pid.as_raw_pid());
    if postgres::subject().postmaster.map(u32::cast_signed) != postmaster {
        return Err(Error::NoPostmaster);
    }
    // As /proc numbers it, which can be of another PID namespace.
    let this = Process::this(&root)?;
    let parent = stat::read(&this, &mut buffer)?.parent;
    let arguments = Process::open(&root, parent)?.arguments(&mut buffer)?;
    let mut arguments: Vec<OsString> = arguments
        .into_iter()
        .skip(1)
        .map(OsString::from_vec)
        .collect();
    // Nothing could follow.
    arguments.pop_if(|last| last == "--");
    Ok(arguments)
}

/// The value of a setting that PostgreSQL computes when it starts with these arguments.
pub(crate) fn ask<'a>(
    arguments: impl Iterator<Item = &'a OsString>,
    setting: &str,
) -> Result<Result<u64, Refusal>, Error> {
    let program = postgres::program();
    let mut command = Command::new(&program);
    command
        .args(arguments)
        .args([OsStr::new("-C"), OsStr::new(setting)])
        // Messages before the settings are read follow these.
        .env_remove("LC_ALL")
        .env_remove("LANGUAGE")
        .env("LC_MESSAGES", "C")
        // The service manager is not to take it for the server.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A cancel goes to the process group of the backend.
        .process_group(0);
    postgres::confine(&mut command);
    let mut child = command
        .spawn()
        .map_err(|e| Error::file("run", &program, e))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    HELD.with_borrow_mut(|held| held.child = Some(Child(child)));

    let failed = |e: io::Error| Error::file("read the output of", &program, e);
    let deadline = Instant::now() + TIME_LIMIT;
    // Its errors first: when it ends, that is closed last, so that all else is there already, and nobody is woken twice.
    let err = read(err, deadline, failed)?;
    let out = read(out, deadline, failed)?;
    let status = wait(deadline, failed)?;
    HELD.with_borrow_mut(|held| held.child = None);

    // The last line: a library may have written others.
    let text = String::from_utf8_lossy(&out);
    match text.lines().last().map(str::parse) {
        Some(Ok(value)) if status.success() => Ok(Ok(value)),
        _ => Ok(Err(Refusal::parse(&String::from_utf8_lossy(&err), status))),
    }
}

/// All that comes until it is closed.
fn read(
    pipe: Option<impl Read + AsFd>,
    deadline: Instant,
    failed: impl Fn(io::Error) -> Error,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let Some(mut pipe) = pipe else {
        return Ok(bytes);
    };
    rustix::io::ioctl_fionbio(&pipe, true).map_err(|e| failed(e.into()))?;
    let mut chunk = [0; 4096];
    loop {
        match pipe.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                let room = OUTPUT_LIMIT - bytes.len();
                bytes.extend(&chunk[..count.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                postgres::wait_readable(pipe.as_fd(), left(deadline)?);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Its end, which comes microseconds after that of its output, unless a library has closed that.
fn wait(deadline: Instant, failed: impl Fn(io::Error) -> Error) -> Result<ExitStatus, Error> {
    let mut yields = 0..100;
    loop {
        let status = HELD.with_borrow_mut(|held| match &mut held.child {
            Some(child) => child.0.try_wait(),
            None => Ok(Some(ExitStatus::default())),
        });
        if let Some(status) = status.map_err(&failed)? {
            return Ok(status);
        }
        match yields.next() {
            Some(_) => std::thread::yield_now(),
            None => postgres::wait(left(deadline)?.min(Duration::from_millis(1))),
        }
    }
}

fn left(deadline: Instant) -> Result<Duration, Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Error::TimeLimit);
    }
    Ok(left)
}

impl Refusal {
    /// What PostgreSQL writes to its standard error with `log_error_verbosity = verbose` and no prefix.
    fn parse(text: &str, status: ExitStatus) -> Self {
        // A line that begins with a tab goes on with the one before.
        let mut reports: Vec<String> = Vec::new();
        for line in text.lines() {
            match (line.strip_prefix('\t'), reports.last_mut()) {
                (Some(rest), Some(report)) => *report += &format!("\n{rest}"),
                _ => reports.push(line.to_owned()),
            }
        }
        let mut refusal = Self::default();
        for report in reports {
            let (kind, said) = report.split_once(": ").unwrap_or_default();
            let said = said.trim_ascii_start();
            match kind {
                "FATAL" | "PANIC" => (refusal.state, refusal.message) = state_and_message(said),
                // Combinations of settings, which are checked before there is a log.
                "postgres" => refusal.message = said.to_owned(),
                "LOG" | "ERROR" => refusal.detail.push(state_and_message(said).1),
                "DETAIL" => refusal.detail.push(said.to_owned()),
                "HINT" => refusal.hint = Some(said.to_owned()),
                _ => {}
            }
        }
        if refusal.message.is_empty() {
            refusal.message =
                format!("PostgreSQL's program did not compute the size of shared memory: {status}");
            refusal.detail.push(text.trim_ascii().to_owned());
        }
        refusal
    }

    /// All of it but the advice. Of a file that it cannot use, the message alone says only that it has errors.
    pub(crate) fn into_sentence(self) -> String {
        match self.detail.as_slice() {
            [] => self.message,
            detail => format!("{}: {}", self.message, detail.join("; ")),
        }
    }
}

/// Of `22023: invalid value …`.
fn state_and_message(said: &str) -> (Option<[u8; 5]>, String) {
    match said.split_once(": ") {
        Some((state, message)) if state.len() == 5 => {
            (state.as_bytes().try_into().ok(), message.to_owned())
        }
        _ => (None, said.to_owned()),
    }
}
