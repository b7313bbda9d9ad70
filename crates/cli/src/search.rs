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
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use hugeinfo::{
    linux::{
        error::{Absence, Absent, absent_or},
        root::Root,
    },
    server::instances::{self, Instance, Progress},
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{Done, command::this, error::Error, target};

/// Reading a host with a thousand processes takes about 50 ms.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The options of `hugeinfo search`.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// The PID of a process that is known to be a server.
    #[arg(long)]
    own: Option<u32>,
    /// Only servers of this IPC namespace, with their directories.
    #[arg(long)]
    only_candidates: bool,
}

/// A line of the output.
#[derive(Serialize, Deserialize)]
enum Step {
    Progress(Progress),
    /// The directories of the server with this PID.
    Places(u32, Vec<Vec<u8>>),
    /// All servers were examined.
    End,
}

/// A server, with its directories as far as they are known.
pub(crate) struct Found {
    pub(crate) instance: Instance,
    pub(crate) places: Vec<PathBuf>,
}

/// A search for the servers of this host. Those that could not be examined in time have no details.
pub(crate) struct Search {
    own: Option<u32>,
    process: SearchProcess,
}

impl Search {
    /// Starts the search, which runs while the caller reads other files. `own` is known to be a
    /// server, and is not in the result.
    pub(crate) fn start(own: Option<u32>) -> Self {
        let mut command = this("search");
        command.args(own.map(|pid| format!("--own={pid}")));
        Self {
            own,
            process: SearchProcess::start(command, TIME_LIMIT),
        }
    }

    /// Absent: not all processes could be examined.
    pub(crate) fn finish(self) -> Result<Vec<Instance>, Absent> {
        let found = collect(self.process.steps()).ok_or(Absent {
            path: "/proc/PID of other processes".into(),
            why: Absence::Failed(Errno::TIMEDOUT.raw_os_error()),
        })?;
        let servers = found.into_iter().map(|found| found.instance);
        Ok(servers
            .filter(|server| Some(server.pid) != self.own)
            .collect())
    }
}

/// The servers of this IPC namespace. Errors: not all of them could be examined, so a server that
/// is missing might run.
pub(crate) fn candidates() -> Result<Vec<Found>, Error> {
    let mut command = this("search");
    command.arg("--only-candidates");
    examined(SearchProcess::start(command, TIME_LIMIT).steps()).ok_or_else(|| {
        Error::with_hint(
            "the search for servers failed, or did not end in time",
            "Select a server with -D or --cluster, as in: hugeinfo status -D /var/lib/pgsql/17/data",
        )
    })
}

/// `None`: the search ended before all servers were examined.
fn examined(steps: Vec<Step>) -> Option<Vec<Found>> {
    let is_whole = steps.iter().any(|step| matches!(step, Step::End));
    collect(steps).filter(|_| is_whole)
}

/// `None`: the search ended before all servers were found.
fn collect(steps: Vec<Step>) -> Option<Vec<Found>> {
    let mut places = Vec::new();
    let mut progress = Vec::new();
    for step in steps {
        match step {
            Step::Progress(step) => progress.push(step),
            Step::Places(pid, found) => places.push((pid, found)),
            Step::End => {}
        }
    }
    let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
    let servers = instances::collect(progress)?.into_iter();
    let found = servers.map(|instance| {
        let index = places.iter().position(|(pid, _)| *pid == instance.pid);
        let own = index.map(|index| places.swap_remove(index).1);
        Found {
            places: own.into_iter().flatten().map(path).collect(),
            instance,
        }
    });
    Some(found.collect())
}

/// A search in another process.
struct SearchProcess {
    /// `None`: it could not be started.
    child: Option<Child>,
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
        let mut child = command.spawn().ok();
        let (sender, reported) = mpsc::channel();
        if let Some(out) = child.as_mut().and_then(|child| child.stdout.take()) {
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

    /// Returns what the process reports until it ends, or until the time limit.
    fn steps(mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.reported.recv_timeout(left) {
                Ok(step) => steps.push(step),
                Err(RecvTimeoutError::Timeout) => return steps,
                Err(RecvTimeoutError::Disconnected) => {
                    self.kill();
                    // It has closed its output, so it is about to end.
                    if let Some(child) = &mut self.child {
                        let _ = child.wait();
                    }
                    return steps;
                }
            }
        }
    }

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
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
pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let root = Root::system();
    let mut written = Ok(());
    let mut write = |step: &Step| {
        if written.is_ok() {
            let json = serde_json::to_string(step).map_err(std::io::Error::from);
            written = json.and_then(|json| writeln!(std::io::stdout(), "{json}"));
        }
    };
    let report = |step: Progress| {
        let places = match &step {
            Progress::Detailed(server) if options.only_candidates => {
                let places = target::places(&root, server).into_iter();
                let bytes = places.map(|place| place.as_os_str().as_bytes().to_vec());
                Some(Step::Places(server.pid, bytes.collect()))
            }
            _ => None,
        };
        write(&Step::Progress(step));
        places.iter().for_each(&mut write);
    };
    let found = match options.only_candidates {
        true => instances::read_candidates(&root, options.own, report),
        false => instances::read(&root, options.own, &Default::default(), report),
    };
    // The caller sees from the missing step that not all were found.
    if absent_or(found)?.is_ok() {
        write(&Step::End);
    }
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
            Step::Progress(Progress::Found(server)),
            Step::Progress(Progress::AllFound),
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
            collect(process.steps())
        };
        let start = Instant::now();
        let found = script(&lines).expect("all servers");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].instance.pid, 7);
        let expected = OsString::from_vec(b"/srv/a\xff".to_vec());
        assert_eq!(found[0].places, [PathBuf::from(expected)]);
        assert!(script(&lines[..1]).is_none());
        // A server of which only the PID is known could be any.
        let found = || Step::Progress(Progress::Found(Instance::default()));
        let all_found = || Step::Progress(Progress::AllFound);
        assert!(examined(vec![found(), all_found()]).is_none());
        assert!(examined(vec![found(), all_found(), Step::End]).is_some());
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
