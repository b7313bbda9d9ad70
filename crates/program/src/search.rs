//! Searches for servers in a process of its own, for a limited time.
//!
//! A read of `maps` or `cmdline` in `/proc/PID` waits as long as that process holds the lock of its
//! memory, and any user can work in a directory of a file system that hangs. Not even SIGKILL ends
//! such a wait, so this process must not wait itself.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        LazyLock, Mutex, OnceLock, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use host::{
    linux::error::{Absence, Absent, ReadError, absent_or, fact},
    server::instances::{self, Instance, Progress},
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{
    Done,
    command::{this, within},
    error::Error,
    root, target,
};

/// Reading a host with a thousand processes takes about 50 ms.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// A line of the output.
#[derive(Serialize, Deserialize)]
enum Step {
    Progress(Box<Progress>),
    /// The directories of the server with this PID.
    Places(u32, Vec<Vec<u8>>),
    /// All servers were examined.
    End,
    /// The search failed with this error number.
    Failed(i32),
}

/// A server, with its directories as far as they are known.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) instance: Instance,
    pub(crate) places: Vec<PathBuf>,
    /// The directory below `/etc/postgresql`, which names the server. `None`: it is not named.
    pub(crate) cluster: Option<PathBuf>,
}

/// The result of the search.
struct Outcome {
    found: Vec<Found>,
    /// Whether all servers were examined. Those that were not have no details.
    is_whole: bool,
}

/// The only search of this run: each one can leave a process that nothing ends.
static PROCESS: LazyLock<Mutex<Option<SearchProcess>>> =
    LazyLock::new(|| Mutex::new(Some(SearchProcess::start(this("search"), TIME_LIMIT))));

/// The error number if not all servers were found.
static OUTCOME: OnceLock<Result<Outcome, i32>> = OnceLock::new();

/// Starts the search, which runs while the caller reads other files.
pub(crate) fn start() {
    LazyLock::force(&PROCESS);
}

fn outcome() -> Result<&'static Outcome, i32> {
    let finish = || {
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let (steps, failed) = process.take().map(SearchProcess::steps).unwrap_or_default();
        collect(steps, failed)
    };
    OUTCOME.get_or_init(finish).as_ref().map_err(|code| *code)
}

/// The servers of this host, except that of `own`, without those that have ended since the search.
/// Those that could not be examined in time have no details. Absent: not all processes could be
/// examined.
pub(crate) fn servers(own: Option<u32>) -> Result<Result<Vec<Found>, Absent>, ReadError> {
    let outcome = match outcome() {
        Ok(outcome) => outcome,
        Err(code) => {
            return Ok(Err(absent(code)));
        }
    };
    let others = outcome.found.iter();
    let others = others.filter(move |found| Some(found.instance.pid) != own);
    let read = || -> Result<Vec<_>, ReadError> {
        let refreshed = others.filter_map(|found| {
            let instance = instances::refreshed(&root(), &found.instance).transpose()?;
            Some(instance.map(|instance| Found {
                instance,
                ..found.clone()
            }))
        });
        refreshed.collect()
    };
    // Any of them can make this wait.
    match within(TIME_LIMIT, read) {
        Some(servers) => Ok(Ok(servers?)),
        None => Ok(Err(absent(Errno::TIMEDOUT.raw_os_error()))),
    }
}

fn absent(code: i32) -> Absent {
    Absent {
        path: "/proc/PID of other processes".into(),
        why: Absence::Failed(code),
    }
}

/// The servers of this IPC namespace. Errors: not all of them could be examined, so a server that
/// is missing might run.
pub(crate) fn candidates() -> Result<Vec<Found>, Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::with_hint(
            format!("the search for servers failed: {why}"),
            "Select a server with -D or --cluster, as in: hugeinfo status -D /var/lib/pgsql/17/data",
        )
    };
    let failed_with = |code| failed(&std::io::Error::from_raw_os_error(code));
    let outcome = outcome().map_err(failed_with)?;
    if !outcome.is_whole {
        return Err(failed_with(Errno::TIMEDOUT.raw_os_error()));
    }
    let creators = absent_or(instances::candidates(&root()))?;
    let creators = creators.map_err(|absent| failed(&absent))?;
    let found = outcome.found.iter();
    Ok(found
        .filter(|found| creators.contains(&found.instance.pid))
        .cloned()
        .collect())
}

/// Errors: the error number, if the search ended before all servers were found.
fn collect(steps: Vec<Step>, failed: Option<i32>) -> Result<Outcome, i32> {
    let mut places = Vec::new();
    let mut progress = Vec::new();
    let mut is_whole = false;
    let mut code = failed.unwrap_or(Errno::TIMEDOUT.raw_os_error());
    for step in steps {
        match step {
            Step::Progress(step) => progress.push(*step),
            Step::Places(pid, found) => places.push((pid, found)),
            Step::End => is_whole = true,
            Step::Failed(found) => code = found,
        }
    }
    let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
    let clusters = target::clusters();
    let servers = instances::collect(progress).ok_or(code)?.into_iter();
    let found = servers.map(|instance| {
        let index = places.iter().position(|(pid, _)| *pid == instance.pid);
        let own = index.map(|index| places.swap_remove(index).1);
        let places: Vec<_> = own.into_iter().flatten().map(path).collect();
        Found {
            cluster: (clusters.iter().map(|(cluster, _)| cluster))
                .find(|cluster| places.contains(cluster))
                .cloned(),
            places,
            instance,
        }
    });
    Ok(Outcome {
        found: found.collect(),
        is_whole,
    })
}

/// A search in another process.
struct SearchProcess {
    /// Errors: the error number, if it could not be started.
    child: Result<Child, i32>,
    reported: Receiver<Step>,
    deadline: Instant,
}

impl SearchProcess {
    fn start(mut command: Command, limit: Duration) -> Self {
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let deadline = Instant::now() + limit;
        let child = command.spawn();
        let mut child = child.map_err(|error| error.raw_os_error().unwrap_or_default());
        let (sender, reported) = mpsc::channel();
        if let Some(out) = child.as_mut().ok().and_then(|child| child.stdout.take()) {
            // It ends with the output.
            thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                for step in lines.map_while(|line| serde_json::from_str(&line).ok()) {
                    if sender.send(step).is_err() {
                        break;
                    }
                }
            });
        }
        Self {
            child,
            reported,
            deadline,
        }
    }

    /// Returns the reports of the process until it ends, or until the time limit, and the error
    /// number if it could not be started.
    fn steps(mut self) -> (Vec<Step>, Option<i32>) {
        let failed = self.child.as_ref().err().copied();
        let mut steps = Vec::new();
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.reported.recv_timeout(left) {
                Ok(step) => steps.push(step),
                Err(RecvTimeoutError::Timeout) => return (steps, failed),
                Err(RecvTimeoutError::Disconnected) => {
                    self.kill();
                    // It has closed its output, so it is about to end.
                    if let Ok(child) = &mut self.child {
                        let _ = child.wait();
                    }
                    return (steps, failed);
                }
            }
        }
    }

    fn kill(&mut self) {
        if let Ok(child) = &mut self.child {
            let _ = child.kill();
        }
    }
}

/// Waiting for the end of the process might take forever.
impl Drop for SearchProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `hugeinfo search`: prints each step of a search as a line of JSON.
pub(crate) fn run() -> Result<Done, Error> {
    let root = root();
    let mut written = Ok(());
    let mut write = |step: &Step| {
        if written.is_ok() {
            let json = serde_json::to_string(step).map_err(std::io::Error::from);
            written = json.and_then(|json| writeln!(std::io::stdout(), "{json}"));
        }
    };
    let report = |step: Progress| {
        let places = match &step {
            Progress::Detailed(server) => {
                let places = target::places(&root, server).into_iter();
                let bytes = places.map(|place| place.as_os_str().as_bytes().to_vec());
                Some(Step::Places(server.pid, bytes.collect()))
            }
            _ => None,
        };
        write(&Step::Progress(Box::new(step)));
        places.iter().for_each(&mut write);
    };
    let found = instances::read(&root, None, &Default::default(), report);
    write(&match fact(found)? {
        Ok(()) => Step::End,
        Err(absent) => Step::Failed(match absent.why {
            Absence::Failed(code) => code,
            Absence::Denied => Errno::ACCESS.raw_os_error(),
            _ => Errno::NOENT.raw_os_error(),
        }),
    });
    written.map_err(|error| Error::new(format!("could not write the result: {error}")))?;
    Ok(String::new().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_hangs_keeps_what_it_found() {
        let server = Instance {
            pid: 7,
            ..Instance::default()
        };
        let lines = [
            Step::Progress(Box::new(Progress::Found(server))),
            Step::Progress(Box::new(Progress::AllFound)),
            Step::Places(7, vec![b"/srv/a\xff".to_vec()]),
        ];
        let script = |lines: &[Step]| {
            let lines = lines.iter().map(|step| {
                let json = serde_json::to_string(step).expect("JSON");
                format!("echo '{json}'; ")
            });
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &(lines.collect::<String>() + "exec sleep 60")]);
            let process = SearchProcess::start(command, Duration::from_secs(5));
            let (steps, failed) = process.steps();
            collect(steps, failed)
        };
        let start = Instant::now();
        let Outcome { found, is_whole } = script(&lines).expect("all servers");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].instance.pid, 7);
        let expected = OsString::from_vec(b"/srv/a\xff".to_vec());
        assert_eq!(found[0].places, [PathBuf::from(expected)]);
        // A server of which only the PID is known could be any.
        assert!(!is_whole);
        let timed_out = Some(Errno::TIMEDOUT.raw_os_error());
        assert_eq!(script(&lines[..1]).err(), timed_out);
        let refused = SearchProcess::start(Command::new("/nowhere"), Duration::from_secs(5));
        let (steps, failed) = refused.steps();
        let missing = Some(Errno::NOENT.raw_os_error());
        assert_eq!(collect(steps, failed).err(), missing);
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
