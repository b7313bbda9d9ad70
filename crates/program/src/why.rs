//! `hugeinfo why`: why the server did not start.

use std::{
    fmt::Write,
    fs::File,
    io::{Read, Seek, SeekFrom},
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use advice::{
    answer::Answer,
    check::{CheckId, CheckResult, Status},
    failure::{self, Failure},
    model::{
        machine::{Machine, ServerState},
        start::{self, StartOutcome},
    },
    render,
};
use clap::Args;
use host::escape;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Done, check, command,
    error::Error,
    machine,
    next_start::NextStart,
    planned::Detail,
    preflight::ABOUT_START,
    root, sentence,
    status::{Format, with_state},
    target::Target,
};

/// The end of the log that is read.
const LONGEST: u64 = 256 << 10;

const JOURNAL: &str = "the journal, which has messages of all servers of this user";

const UNCLASSIFIED: &str = "This program does not recognize this message.";

/// The options of `why`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// The log of the server. Default: the log in the usual place, or the systemd journal.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let target = Target::find(&options.server)?;
    if let Some(pid) = target.postmaster {
        return Err(Error::with_hint(
            format!("the server runs (PID {pid})"),
            "To see its status, use hugeinfo status",
        ));
    }
    let next = NextStart::read(&target.options(&options.server), Detail::All)?;
    // The remedies are for this server alone.
    let machine = machine::stopped(&next, ServerState::Stopped)?.without_requests();
    let (source, log) = log(options, &target, &next)?;
    let last = failure::last(&log);
    let cause = last.as_ref().and_then(|last| last.cause);
    let named = cause.map_or(&[][..], |cause| cause.checks);
    let answer = Answer::of(&machine);
    let checks = answer.chosen(|id| {
        let status = answer.finding(id).map(|finding| finding.status);
        // Warnings do not keep the server down, unless the cause is about them.
        status == Some(Status::Critical) && ABOUT_START.contains(&id)
            || status.is_some_and(Status::needs_attention) && named.contains(&id)
    });
    let worst = checks.iter().map(|check| check.finding.status).max();
    let text = match options.format {
        Format::Json => {
            let document = json!({
                "code": cause.map(|cause| cause.code),
                "cause": cause.map(|cause| cause.text),
                "log": source,
                "message": last.as_ref().map(|last| &last.message),
                "details": last.as_ref().map(|last| &last.details),
                "checks": check::rows(&machine, &checks),
            });
            format!("{:#}\n", with_state(&machine, document))
        }
        Format::Text => to_text(&machine, &answer, &source, last.as_ref(), &checks),
    };
    Ok(Done {
        text,
        exit_status: crate::exit_status(match (worst, cause) {
            (Some(worst), _) => worst,
            (None, Some(cause)) => cause.status_without_problem(),
            (None, None) => Status::Unknown,
        }),
    })
}

fn to_text(
    machine: &Machine,
    answer: &Answer,
    source: &str,
    last: Option<&Failure>,
    checks: &[CheckResult],
) -> String {
    let mut text = String::new();
    match last {
        None => {
            let _ = writeln!(text, "No failed start was found in {source}.");
            // It starts after shared memory has been mapped (postmaster.c, PostmasterMain).
            text += &sentence(
                "",
                "If the start failed before the logging collector ran, its message is in the \
                 journal, which root can read, or in the file of pg_ctl -l; --log reads a file.",
            );
        }
        Some(last) => {
            let cause = last.cause.map_or(UNCLASSIFIED, |cause| cause.text);
            text += &sentence("", cause);
            let _ = writeln!(text, "The last failure in {source}:");
            for line in std::iter::once(&last.message).chain(&last.details) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    match checks {
        [] => {
            if let Some(restart) = answer.finding(CheckId::Restart) {
                let falls_back = matches!(start::outcome(machine), StartOutcome::SmallPages(..));
                let size = machine.base_size();
                let note = match restart.status {
                    Status::Warning if falls_back => format!(" It would use {size} pages."),
                    _ => String::new(),
                };
                text += &sentence("Now: ", &format!("{}{note}", restart.text));
            }
        }
        checks => {
            let _ = writeln!(text, "Now:");
            for check in checks {
                let status = check.finding.status.as_str();
                text += &sentence(&format!("  {status}: "), &check.finding.text);
                text += &check::indented(render::remedy(machine, &check.remedy));
            }
        }
    }
    escape::lines(text)
}

/// The end of the log, and its name.
fn log(options: &Options, target: &Target, next: &NextStart) -> Result<(String, String), Error> {
    if let Some(file) = &options.log {
        let (_, text) = end_of(file, None).map_err(|error| Error::file("read", file, error))?;
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
    let data = next.data_directory.as_deref();
    if let Some(data) = data {
        let settings = next.settings.as_ref().ok();
        let directory = settings.map(|settings| settings.log_directory.as_path());
        let directory = directory.filter(|directory| *directory != Path::new(""));
        // Defaults: of PostgreSQL, and of version 9.6.
        let defaults = ["log", "pg_log"].map(Path::new);
        let directories = directory.into_iter().chain(defaults);
        files.extend(directories.filter_map(|directory| newest_in(&data.join(directory))));
    }
    // The owner of the directories could have put a link to any file there.
    let of_data = || Some(root().look_up(data?).ok()?.owner_and_mode().ok()?.0);
    let owner = next.owner.or_else(of_data);
    let found = files
        .iter()
        .find_map(|file| Some((file, end_of(file, owner).ok()?)));
    let Some((file, (written, text))) = found else {
        return match journal(owner) {
            messages if messages.is_empty() => Err(Error::with_hint(
                "no log of the server was found",
                "Name the log of the server with --log",
            )),
            messages => Ok((JOURNAL.to_owned(), joined(messages.iter()))),
        };
    };
    // A start that fails before the logging collector runs writes only to the journal.
    let early = owner.and_then(|uid| early_failure(&journal(Some(uid)), written?));
    Ok(match early {
        Some(text) => (JOURNAL.to_owned(), text),
        None => (escape::name(file), text),
    })
}

/// The messages of the last process since this time whose start failed. The journal has all
/// servers of the user, and only the postmaster writes before the logging collector runs.
fn early_failure(journal: &[Message], since: SystemTime) -> Option<String> {
    let since = since.duration_since(UNIX_EPOCH).ok()?.as_micros();
    let is_later = |message: &&Message| message.time.parse().is_ok_and(|time: u128| time >= since);
    let later: Vec<_> = journal.iter().filter(is_later).collect();
    later.iter().rev().find_map(|last| {
        let same = later.iter().filter(|message| message.pid == last.pid);
        let text = joined(same.copied());
        failure::last(&text)?.cause.is_some().then_some(text)
    })
}

fn joined<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    messages
        .map(|message| message.text.clone() + "\n")
        .collect()
}

/// The newest log in a directory. `None`: there is none, or too many files. Follows no links, and
/// leaves out the copies in other formats (`log_destination`).
fn newest_in(directory: &Path) -> Option<PathBuf> {
    let root = root();
    let files = root.list(directory).ok()?.into_iter().filter_map(|path| {
        // A link is not one of these files, whatever it refers to.
        let found = root
            .look_up(&path)
            .ok()
            .filter(|found| found.path == path)?;
        Some((found.open().ok()?.metadata().ok()?.modified().ok()?, path))
    });
    let is_text = |path: &Path| {
        let ending = path.extension();
        !ending.is_some_and(|ending| ending == "csv" || ending == "json")
    };
    let logs = files.filter(|(_, path)| is_text(path));
    logs.max().map(|(_, path)| path)
}

/// The time of the last change and the end of a file. With `owner`, only of a file of this user.
fn end_of(file: &Path, owner: Option<u32>) -> std::io::Result<(Option<SystemTime>, String)> {
    let mut file = root().look_up(&std::path::absolute(file)?)?.open()?;
    let found = file.metadata()?;
    if owner.is_some_and(|owner| found.uid() != owner) {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let length = found.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut bytes = Vec::new();
    File::take(file, LONGEST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((found.modified().ok(), text))
}

/// A message in the journal.
#[derive(Deserialize)]
struct Message {
    /// Microseconds since 1970.
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    time: String,
    #[serde(rename = "_PID")]
    pid: String,
    #[serde(rename = "MESSAGE")]
    text: String,
}

/// The last messages of the servers of a user. Any user can write to the journal. Empty: there are
/// none, or they cannot be read.
fn journal(owner: Option<u32>) -> Vec<Message> {
    let mut command = Command::new("journalctl");
    command.args(["--no-pager", "-n", "200", "-o", "json"]);
    command.arg("--output-fields=MESSAGE,_PID");
    // RHEL's own packages start the server under its old name.
    command.args(["_COMM=postgres", "_COMM=postmaster"]);
    command.args(owner.map(|uid| format!("_UID={uid}")));
    // The reaction of systemd to an OOM kill.
    command.args(["+", "_PID=1", "UNIT_RESULT=oom-kill"]);
    command.process_group(0);
    let output = command::run(command, Duration::from_secs(10));
    let output = output.ok().filter(|output| output.status.success());
    let text = output.map_or(String::new(), |output| output.out);
    // Text that is not UTF-8 is an array of bytes.
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages
        .filter(|message| message.pid != "1" || message.text.starts_with("postgresql"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use host::linux::root::MOST_NAMES;

    use super::*;

    #[test]
    fn newest_of_too_many_files_is_unknown() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = fs::canonicalize(directory.path()).expect("a path");
        let add = |name: &str| fs::write(real.join(name), "").expect("written");
        add("a.log");
        assert_eq!(newest_in(&real), Some(real.join("a.log")));
        (0..MOST_NAMES).for_each(|number| add(&number.to_string()));
        assert_eq!(newest_in(&real), None);
    }
}
