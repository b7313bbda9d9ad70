//! `hugeinfo why`: why the server did not start.

use std::{
    fmt::Write,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::Args;
use hugeinfo::{
    advice::{
        check::{CheckId, Status},
        diagnosis, render,
    },
    escape,
    linux::root::{WRITTEN, if_regular},
    model::machine::{Machine, ServerState},
};
use rustix::fs::Mode;
use serde_json::json;

use crate::{
    Done, check, command,
    error::Error,
    machine,
    next_start::NextStart,
    status::{Format, with_state},
    target::Target,
};

/// The end of the log that is read.
const LONGEST: u64 = 256 << 10;

/// The options of `why`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// The log of the server. Default: where its packages write it, or the journal of systemd.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A message of PostgreSQL after which it does not start, or ends.
struct Cause {
    /// Words of the message, all of them in one line.
    words: &'static [&'static str],
    code: &'static str,
    text: &'static str,
    /// The checks that have the figures and the remedy.
    checks: &'static [CheckId],
}

/// The first that matches counts.
const CAUSES: [Cause; 18] = [
    Cause {
        words: &[
            "could not map anonymous shared memory",
            "Cannot allocate memory",
        ],
        code: "no_memory_for_segment",
        text: "The kernel had too few huge pages, or not enough memory, for shared memory.",
        checks: &[CheckId::Restart, CheckId::Overcommit, CheckId::MemoryLeft],
    },
    Cause {
        words: &["could not map anonymous shared memory"],
        code: "no_such_size",
        text: "The kernel refused the size of the huge pages.",
        checks: &[CheckId::HugePageSize, CheckId::Restart],
    },
    Cause {
        words: &["terminated by signal 7"],
        code: "bus_error",
        text: "The kernel had promised huge pages, and could not provide one (SIGBUS).",
        checks: &[CheckId::CgroupFaultLimit, CheckId::MemoryLeft],
    },
    Cause {
        words: &["Bus error"],
        code: "bus_error",
        text: "The kernel had promised huge pages, and could not provide one (SIGBUS).",
        checks: &[CheckId::CgroupFaultLimit, CheckId::MemoryLeft],
    },
    Cause {
        words: &["terminated by signal 9"],
        code: "killed",
        text: "A process of the server was killed, by the OOM killer or by a person.",
        checks: &[CheckId::MemoryLeft, CheckId::Restart],
    },
    Cause {
        words: &["could not setup io_uring queue"],
        code: "io_uring",
        text: "The kernel refused a ring of io_uring: locked memory is limited, or io_uring is off.",
        checks: &[],
    },
    Cause {
        words: &["could not create shared memory segment", "No space left"],
        code: "system_v_limits",
        text: "System V shared memory is limited (kernel.shmmni, kernel.shmall).",
        checks: &[],
    },
    Cause {
        words: &["could not create shared memory segment"],
        code: "system_v_limits",
        text: "The kernel refused a System V segment (kernel.shmmax, kernel.shmall).",
        checks: &[],
    },
    Cause {
        words: &["could not resize shared memory segment"],
        code: "dev_shm",
        text: "/dev/shm is too small for dynamic shared memory. In a container, raise its size.",
        checks: &[],
    },
    Cause {
        words: &["insufficient parameter settings"],
        code: "settings_too_low",
        text: "A setting is lower than on the primary.",
        checks: &[CheckId::PendingSettings],
    },
    Cause {
        words: &["pre-existing shared memory block", "is still in use"],
        code: "old_processes",
        text: "Processes of the last run still use its shared memory and its huge pages.",
        checks: &[],
    },
    Cause {
        words: &["lock file", "already exists"],
        code: "lock_file",
        text: "Another server uses this directory or port, or its lock file is left over.",
        checks: &[],
    },
    Cause {
        words: &["could not bind", "Address already in use"],
        code: "port",
        text: "Another program listens on this port.",
        checks: &[],
    },
    Cause {
        words: &["could not create any TCP/IP sockets"],
        code: "port",
        text: "The server cannot listen on any of its addresses.",
        checks: &[],
    },
    Cause {
        words: &["contains errors"],
        code: "configuration",
        text: "A configuration file has an error.",
        checks: &[CheckId::PendingSettings],
    },
    Cause {
        words: &["could not access file", "No such file"],
        code: "library",
        text: "A library of shared_preload_libraries is missing.",
        checks: &[CheckId::PendingSettings],
    },
    Cause {
        words: &["incompatible with server"],
        code: "version",
        text: "The data directory belongs to another version of PostgreSQL.",
        checks: &[],
    },
    Cause {
        words: &["data directory", "permissions"],
        code: "permissions",
        text: "The data directory has the wrong permissions.",
        checks: &[],
    },
];

/// Messages about one connection, which do not end the server.
const ABOUT_CONNECTIONS: [&str; 9] = [
    "the database system is",
    "authentication failed",
    "terminating connection",
    "terminating background worker",
    "pg_hba.conf",
    "too many clients",
    "does not exist",
    "remaining connection slots",
    "canceling",
];

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let target = Target::find(&options.server)?;
    if let Some(pid) = target.postmaster {
        return Err(Error::with_hint(
            format!("the server runs (PID {pid})"),
            "hugeinfo status shows how it runs",
        ));
    }
    let next = NextStart::read(&target.options(&options.server))?;
    let machine = machine::stopped(&next, ServerState::Stopped)?;
    let (source, log) = log(options, &target, next.data_directory.as_deref())?;
    let last = last_failure(&log);
    let cause = last
        .as_ref()
        .and_then(|(line, _)| CAUSES.iter().find(|cause| cause.matches(line)));
    let named = cause.map_or(&[][..], |cause| cause.checks);
    // What would stop a start now, even if the log has another reason.
    let always = [
        CheckId::Restart,
        CheckId::PendingSettings,
        CheckId::CgroupFaultLimit,
    ];
    let mut checks = diagnosis::checks(&machine);
    checks.retain(|check| {
        let is_about_it = named.contains(&check.id) || always.contains(&check.id);
        is_about_it && check.finding.status.needs_attention()
    });
    let worst = checks.iter().map(|check| check.finding.status).max();
    let text = match options.format {
        Format::Json => {
            let rows: Vec<_> = checks
                .iter()
                .map(|check| check::row(&machine, check))
                .collect();
            let document = json!({
                "code": cause.map(|cause| cause.code),
                "cause": cause.map(|cause| cause.text),
                "log": source,
                "message": last.as_ref().map(|(line, _)| line),
                "details": last.as_ref().map(|(_, details)| details),
                "checks": rows,
            });
            format!("{:#}\n", with_state(&machine, document))
        }
        Format::Text => to_text(&machine, &source, last.as_ref(), cause, &checks),
    };
    Ok(Done {
        text,
        exit_status: match (worst, cause) {
            (Some(worst), _) => crate::exit_status(worst),
            // A reason that is not about memory, and has to be removed first.
            (None, Some(cause)) if cause.checks.is_empty() => crate::exit_status(Status::Critical),
            (None, Some(_)) => 0,
            (None, None) => 3,
        },
    })
}

impl Cause {
    fn matches(&self, line: &str) -> bool {
        self.words.iter().all(|words| line.contains(words))
    }
}

fn to_text(
    machine: &Machine,
    source: &str,
    last: Option<&(String, Vec<String>)>,
    cause: Option<&Cause>,
    checks: &[hugeinfo::advice::check::Check],
) -> String {
    let mut text = String::new();
    match last {
        None => {
            let _ = writeln!(text, "The log has no failed start ({source}).");
        }
        Some((line, details)) => {
            if let Some(cause) = cause {
                let _ = writeln!(text, "{}", cause.text);
            }
            let _ = writeln!(text, "The last failure in {source}:");
            for line in std::iter::once(line).chain(details) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    match checks {
        [] => {
            let restart = diagnosis::findings(machine);
            let restart = restart.into_iter().find(|(id, _)| *id == CheckId::Restart);
            if let Some((_, finding)) = restart {
                let _ = writeln!(text, "Now: {}", finding.text);
            }
        }
        checks => {
            let _ = writeln!(text, "Now:");
            for check in checks {
                let _ = writeln!(
                    text,
                    "  {}: {}",
                    check.finding.status.as_str(),
                    check.finding.text
                );
                let remedy = render::remedy(machine, &check.remedy);
                for line in remedy.iter().flat_map(|remedy| remedy.lines()) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
    }
    escape::lines(text)
}

/// The last message after which the server did not start, or ended, and its details. None after a
/// start that succeeded.
fn last_failure(log: &str) -> Option<(String, Vec<String>)> {
    let lines: Vec<_> = log.lines().collect();
    let is_failure = |line: &&str| {
        let is_fatal = line.contains("FATAL:") || line.contains("PANIC:");
        let is_of_connection = ABOUT_CONNECTIONS.iter().any(|words| line.contains(words));
        CAUSES.iter().any(|cause| cause.matches(line)) || is_fatal && !is_of_connection
    };
    let is_ready = |line: &&str| line.contains("ready to accept");
    let at = lines
        .iter()
        .rposition(|line| is_failure(line) || is_ready(line))?;
    if is_ready(&lines[at]) {
        return None;
    }
    let is_detail =
        |line: &&&str| line.starts_with('\t') || line.contains("HINT:") || line.contains("DETAIL:");
    let details = lines[at + 1..].iter().take_while(is_detail).take(6);
    let shown = |line: &str| escape::shortened(&escape::name(line.trim()), 600);
    Some((shown(lines[at]), details.map(|line| shown(line)).collect()))
}

/// The end of the log, and its name.
fn log(options: &Options, target: &Target, data: Option<&Path>) -> Result<(String, String), Error> {
    if let Some(file) = &options.log {
        let text = end_of(file, None).map_err(|error| Error::file("read", file, error))?;
        return Ok((escape::name(file), text));
    }
    let mut files = Vec::new();
    if let Some(directory) = &target.directory {
        // Debian: a link to the log, and its default.
        files.push(directory.join("log"));
        let mut names = directory.iter().rev().filter_map(|name| name.to_str());
        if let (Some(name), Some(version)) = (names.next(), names.next()) {
            files.push(format!("/var/log/postgresql/postgresql-{version}-{name}.log").into());
        }
    }
    if let Some(data) = data {
        files.extend(newest_in(&data.join("log")));
        files.extend(newest_in(&data.join("pg_log")));
    }
    // The owner of the directories could have put a link to any file there.
    let owner = data
        .and_then(|data| fs::metadata(data).ok())
        .map(|found| found.uid());
    let found = files
        .iter()
        .find_map(|file| Some((file, end_of(file, owner).ok()?)));
    match found {
        Some((file, text)) => Ok((escape::name(file), text)),
        None => journal(),
    }
}

fn newest_in(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let files = entries.filter_map(|entry| {
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((found.modified().ok()?, entry.path()))
    });
    files.max().map(|(_, path)| path)
}

/// The end of a file. With `owner`, only of a file of this user.
fn end_of(file: &Path, owner: Option<u32>) -> std::io::Result<String> {
    let opened = rustix::fs::open(file, WRITTEN, Mode::empty())?;
    let mut file =
        if_regular(opened)?.ok_or_else(|| std::io::Error::other("not a regular file"))?;
    let found = file.metadata()?;
    if owner.is_some_and(|owner| found.uid() != owner) {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let length = found.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut bytes = Vec::new();
    File::take(file, LONGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn journal() -> Result<(String, String), Error> {
    let hint = "--log names the log of the server";
    let mut command = Command::new("journalctl");
    command.args(["--no-pager", "-o", "cat", "-n", "500", "_COMM=postgres"]);
    let output = command::run(command, Duration::from_secs(10))
        .map_err(|_| Error::with_hint("no log of the server was found", hint))?;
    match output.status.success() && !output.out.trim().is_empty() {
        true => Ok(("the journal".to_owned(), output.out)),
        false => Err(Error::with_hint("no log of the server was found", hint)),
    }
}
