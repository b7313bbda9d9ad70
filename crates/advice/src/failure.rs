//! Why a server did not start, according to its log.

use super::check::{CheckId, Status};
use host::escape;

/// Maximum number of characters of a line that is shown.
const LONGEST: usize = 600;

/// Maximum number of lines with details.
const MOST_DETAILS: usize = 6;

/// The last message about a failed start or the end of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The line of the log, escaped and truncated.
    pub message: String,
    /// Its details and hints.
    pub details: Vec<String>,
    /// `None`: the message could not be classified.
    pub cause: Option<&'static Cause>,
}

/// A cause of failed starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// Messages of PostgreSQL, systemd, the kernel or a shell: a text, and texts of which a message
    /// also has one, such as those of an error number.
    messages: &'static [(&'static str, &'static [&'static str])],
    /// A stable name for programs.
    pub code: &'static str,
    /// The cause as sentences.
    pub text: &'static str,
    /// The checks that have the figures and the remedy. Empty: no check is about it.
    pub checks: &'static [CheckId],
}

impl Cause {
    /// The status if none of its checks finds a problem.
    pub fn status_without_problem(&self) -> Status {
        let judges_start = |id| matches!(id, &(CheckId::Restart | CheckId::PendingSettings));
        match self.checks {
            [] => Status::Critical,
            checks if checks.iter().any(judges_start) => Status::Ok,
            // Other checks know only some of the possible reasons.
            _ => Status::Unknown,
        }
    }
}

/// The text of error numbers in glibc and musl. Other languages have other texts.
const EAGAIN: &[&str] = &["Resource temporarily unavailable"];
const EINVAL: &[&str] = &["Invalid argument"];
const ENOMEM: &[&str] = &["Cannot allocate memory", "Out of memory"];
const ENOSPC: &[&str] = &["No space left on device"];
const DENIED: &[&str] = &["Permission denied", "Operation not permitted"];

/// For messages that have one cause, whatever the error number is.
const ANY: &[&str] = &[""];

/// The name of PostgreSQL's processes in messages of the kernel.
const NAMES: &[&str] = &["(postgres)", "(postmaster)"];

const MAP: &str = "could not map anonymous shared memory";
const SYSTEM_V: &str = "could not create shared memory segment";
const RESIZE: &str = "could not resize shared memory segment \"/";

/// In order: the first match counts. Other messages explain themselves.
const CAUSES: [Cause; 15] = [
    Cause {
        messages: &[(MAP, EINVAL)],
        code: "no_such_size",
        text: "The kernel refused the size of the huge pages.",
        checks: &[CheckId::HugePageSize, CheckId::Restart],
    },
    Cause {
        messages: &[(MAP, DENIED)],
        code: "security_module",
        text: "A security module (SELinux, AppArmor) or a seccomp filter refused this mapping. Its \
            messages are in the audit log or the kernel log.",
        checks: &[],
    },
    Cause {
        // In other languages, ENOMEM has other texts.
        messages: &[(MAP, ANY), (SYSTEM_V, ENOMEM), (RESIZE, ENOMEM)],
        code: "no_memory_for_segment",
        text: "The kernel had too few huge pages, or not enough memory, for shared memory.",
        checks: &[CheckId::Restart, CheckId::Overcommit, CheckId::MemoryLeft],
    },
    Cause {
        messages: &[(SYSTEM_V, EINVAL), (SYSTEM_V, ENOSPC)],
        code: "system_v_limit",
        text: "A limit on System V shared memory is too low: kernel.shmmax, kernel.shmall or \
            kernel.shmmni.",
        checks: &[],
    },
    Cause {
        messages: &[(RESIZE, ANY)],
        code: "dev_shm_full",
        text: "/dev/shm is full or too small. In a container, raise its size.",
        checks: &[],
    },
    Cause {
        messages: &[("could not setup io_uring queue", ENOMEM)],
        code: "locked_memory",
        text: "A limit on locked memory was reached: since Linux 6.14, the kernel charges the \
            rings of io_uring to RLIMIT_MEMLOCK. Raise LimitMEMLOCK= in the section [Service] of a \
            drop-in (systemctl edit UNIT), or set io_method = worker.",
        checks: &[],
    },
    Cause {
        messages: &[("fork", EAGAIN), ("pthread_create", EAGAIN)],
        code: "process_limit",
        text: "A limit on processes was reached: RLIMIT_NPROC of the user, TasksMax= of the unit, \
            or pids.max of a cgroup.",
        checks: &[],
    },
    Cause {
        messages: &[("could not fork", ENOMEM)],
        code: "no_memory_for_process",
        text: "The kernel refused memory for a new process.",
        checks: &[CheckId::Overcommit, CheckId::MemoryLeft],
    },
    Cause {
        messages: &[
            ("pre-existing shared memory block", ANY),
            ("lock file \"postmaster.pid\" already exists", ANY),
        ],
        code: "still_running",
        text: "The data directory was in use by a server or by processes of its last run, which \
            have to end first. If an unrelated process has the PID in postmaster.pid, check this \
            process before you end it or remove the file.",
        checks: &[],
    },
    Cause {
        // Signal 7, in messages of PostgreSQL, shells and systemd.
        messages: &[
            ("Bus error", ANY),
            ("Main process exited", &["status=7/BUS"]),
        ],
        code: "bus_error",
        text: "The kernel could not provide memory that a process accessed (SIGBUS). On huge \
            pages, it had reserved a page and could not allocate it. Otherwise, the cause is a \
            truncated file, a full tmpfs, faulty memory (see the kernel log), or a bug in an \
            extension.",
        checks: &[CheckId::CgroupFaultLimit],
    },
    Cause {
        messages: &[("Memory cgroup out of memory: Kill", NAMES)],
        code: "oom_kill_in_cgroup",
        text: "A cgroup reached its memory limit, and the kernel killed a process of PostgreSQL. \
            While the server runs, the check oom_protection judges which process is killed.",
        checks: &[CheckId::MemoryLeft],
    },
    Cause {
        messages: &[("Out of memory: Kill", NAMES)],
        code: "oom_kill_on_host",
        text: "The host had no memory left, and the kernel killed a process of PostgreSQL. While \
            the server runs, the check oom_protection judges which process is killed.",
        checks: &[CheckId::MemoryLeft, CheckId::Overcommit],
    },
    Cause {
        messages: &[
            (
                "A process of this unit has been killed by the OOM killer",
                ANY,
            ),
            ("systemd-oomd killed", &["in this unit"]),
            ("Failed with result 'oom-kill'", ANY),
        ],
        code: "unit_stopped_after_oom_kill",
        text: "The OOM killer killed a process of the unit, and systemd then stopped the whole \
            server (OOMPolicy=stop). To let PostgreSQL recover by itself, set OOMPolicy=continue \
            in the section [Service] of a drop-in (systemctl edit UNIT). If it was systemd-oomd, \
            set ManagedOOMPreference=avoid there.",
        checks: &[CheckId::MemoryLeft],
    },
    Cause {
        messages: &[
            ("terminated by signal 9", ANY),
            ("Main process exited", &["status=9/KILL"]),
        ],
        code: "killed",
        text: "A process of the server was killed: by the OOM killer (see journalctl -k), by \
            systemd after a timeout, or by a person.",
        checks: &[CheckId::MemoryLeft],
    },
    Cause {
        messages: &[
            ("contains errors", ANY),
            ("requested shared memory size overflows size_t", ANY),
        ],
        code: "configuration",
        text: "A configuration file has an error, or a value that is too large.",
        checks: &[CheckId::PendingSettings],
    },
];

/// Messages about one connection, which do not end the server.
const ABOUT_CONNECTIONS: [&str; 13] = [
    "the database system is",
    "authentication failed",
    "terminating connection",
    "terminating background worker",
    "pg_hba.conf",
    "too many clients",
    "does not exist",
    "remaining connection slots",
    "canceling",
    "permission denied for database",
    "not permitted to log in",
    "not currently accepting connections",
    "unsupported frontend protocol",
];

/// Severities before the text of a message, and of the lines that belong to it (elog.c
/// `error_severity`, `send_message_to_server_log`).
const LABELS: [&str; 14] = [
    "FATAL:  ",
    "PANIC:  ",
    "LOG:  ",
    "ERROR:  ",
    "WARNING:  ",
    "NOTICE:  ",
    "INFO:  ",
    "DEBUG:  ",
    "DETAIL:  ",
    "HINT:  ",
    "QUERY:  ",
    "CONTEXT:  ",
    "LOCATION:  ",
    "STATEMENT:  ",
];

/// Beginnings of messages at level LOG about the server itself. Others can have names and
/// statements of clients.
const ABOUT_SERVER: [&str; 4] = [
    "could not fork",
    "database system is ",
    "received ",
    "starting PostgreSQL",
];

/// Maximum number of messages after that of a failed start: `database system is shut down`.
const AFTER_FAILURE: usize = 1;

/// A line of the log.
enum Line<'a> {
    /// A severity, and the text after it.
    Labeled(&'static str, &'a str),
    /// The text is not from the log of a server, or is in another language.
    Plain(&'a str),
    /// There are several severities, of which a client might have written one, such as that in the
    /// name of a role or in a statement.
    Ambiguous,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let splits = |label: &'static str| {
            let found = line.match_indices(label);
            found.map(move |(at, _)| Line::Labeled(label.trim_end(), &line[at + label.len()..]))
        };
        let mut found = LABELS.into_iter().flat_map(splits);
        match (found.next(), found.next()) {
            (None, _) => Self::Plain(line),
            (Some(only), None) => only,
            (Some(_), Some(_)) => Self::Ambiguous,
        }
    }

    fn cause(&self) -> Option<&'static Cause> {
        let (Self::Labeled(_, text) | Self::Plain(text)) = self else {
            return None;
        };
        let is_about = |(message, also): &(&str, &[&str])| {
            text.contains(message) && also.iter().any(|also| text.contains(also))
        };
        let mut causes = CAUSES.iter();
        causes.find(|cause| cause.messages.iter().any(is_about))
    }

    /// A message that ends a session or the server.
    fn is_fatal(&self) -> bool {
        match self {
            Self::Labeled("FATAL:" | "PANIC:", text) => {
                !ABOUT_CONNECTIONS.iter().any(|words| text.contains(words))
            }
            _ => false,
        }
    }

    /// The text of a message at level LOG that has no text of a client.
    fn about_server(&self) -> Option<&'a str> {
        let Self::Labeled("LOG:", text) = self else {
            return None;
        };
        // With log_error_verbosity = verbose.
        let is_code =
            |word: &str| word.len() == 5 && word.bytes().all(|b| b.is_ascii_alphanumeric());
        let text = match text.split_once(": ") {
            Some((code, text)) if is_code(code) => text,
            _ => text,
        };
        // As in `server process (PID 7) was terminated by signal 9: Killed`.
        let is_of_process = |(who, _): (&str, &str)| !who.contains([':', '=']);
        let is_known = ABOUT_SERVER.iter().any(|start| text.starts_with(start))
            || text.split_once(" (PID ").is_some_and(is_of_process);
        is_known.then_some(text)
    }

    /// The server was running, or was told to stop.
    fn is_healthy(&self) -> bool {
        self.about_server().is_some_and(|text| {
            text.contains("ready to accept") || text.contains(" shutdown request")
        })
    }

    fn is_detail(&self) -> bool {
        matches!(self, Self::Labeled("HINT:" | "DETAIL:", _))
    }
}

/// The last failure in a log of PostgreSQL, with any `log_line_prefix`. `None`: there is none, or
/// the server has started or was stopped since.
pub fn last(log: &str) -> Option<Failure> {
    let lines = messages(log);
    let parsed: Vec<_> = lines.iter().map(|line| Line::parse(line)).collect();
    let is_message = |line: &Line| matches!(line, Line::Labeled(..) | Line::Ambiguous);
    let Some(last_message) = parsed.iter().rposition(is_message) else {
        return unlabeled(&lines, &parsed);
    };
    let start = parsed
        .iter()
        .rposition(Line::is_healthy)
        .map_or(0, |at| at + 1);
    // Without a message of the server in English, the end of a session looks like a failed start,
    // except where nothing follows it.
    let is_english = parsed.iter().any(|line| line.about_server().is_some());
    let ends_log = |at: usize| {
        let after = parsed[at + 1..].iter();
        let after = after.filter(|line| is_message(line) && !line.is_detail());
        after.count() <= AFTER_FAILURE
    };
    let is_failure = |&at: &usize| match &parsed[at] {
        line if line.is_fatal() => line.cause().is_some() || is_english || ends_log(at),
        line @ Line::Labeled("LOG:", _) => {
            (line.about_server()).is_some_and(|text| line.cause().is_some() || is_crash(text))
        }
        // From systemd or a shell after the end of the server. A client can write such a line
        // before its other messages, with a line feed in a name.
        line @ Line::Plain(_) => line.cause().is_some() && at > last_message,
        // Other severities are about one statement, with a text that can be from any user.
        Line::Labeled(..) | Line::Ambiguous => false,
    };
    let at = (start..lines.len()).rev().find(is_failure)?;
    let details = parsed[at + 1..].iter().take_while(|line| line.is_detail());
    let details = details.count().min(MOST_DETAILS);
    Some(failure(&lines[at..=at + details], parsed[at].cause()))
}

/// The messages of a log, each as one line. PostgreSQL writes a tab after each line feed in a
/// message, which can be from a name that a client has chosen.
fn messages(log: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in log.lines() {
        match (line.strip_prefix('\t'), messages.last_mut()) {
            (None, _) => messages.push(line.to_owned()),
            (Some(rest), Some(message)) => {
                message.push(' ');
                message.push_str(rest);
            }
            // The beginning of the message was not read.
            (Some(_), None) => {}
        }
    }
    messages
}

/// A process was terminated by a signal. Before signal 6 (SIGABRT), it has written why.
fn is_crash(text: &str) -> bool {
    text.contains("terminated by signal") && !text.contains("terminated by signal 6:")
}

/// The end of a text without severities in English: the log of a server in another language, or the
/// output of systemd or a shell.
fn unlabeled(lines: &[String], parsed: &[Line]) -> Option<Failure> {
    let known = parsed.iter().rposition(|line| line.cause().is_some());
    let shown = match known {
        Some(at) => &lines[at..=at],
        None => &lines[lines.len().saturating_sub(MOST_DETAILS)..],
    };
    let cause = known.and_then(|at| parsed[at].cause());
    (!shown.is_empty()).then(|| failure(shown, cause))
}

fn failure(lines: &[String], cause: Option<&'static Cause>) -> Failure {
    let mut lines = lines
        .iter()
        .map(|line| escape::shortened(&escape::name(line.trim()), LONGEST));
    Failure {
        message: lines.next().unwrap_or_default(),
        details: lines.collect(),
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_from_messages_of_sessions() {
        const READY: &str = "LOG:  database system is ready to accept connections";
        const SHUTDOWN: &str = "LOG:  received fast shutdown request";
        const RESIZE: &str =
            "could not resize shared memory segment \"/x\" to 1 bytes: No space left on device";
        const READY_IN_GERMAN: &str = "LOG:  Datenbanksystem ist bereit, Verbindungen anzunehmen";
        const MAP: &str = "could not map anonymous shared memory: Cannot allocate memory";
        for (lines, expected) in [
            (vec![READY, &format!("FATAL:  {RESIZE}")], true),
            (vec![READY, &format!("ERROR:  {RESIZE}")], false),
            (
                vec![READY, &format!("STATEMENT:  SELECT 'FATAL:  {MAP}'")],
                false,
            ),
            (
                vec![
                    READY,
                    "ERROR:  a",
                    "STATEMENT:  SELECT '",
                    &format!("\tFATAL:  {MAP}"),
                ],
                false,
            ),
            (
                vec![
                    &format!("FATAL:  {MAP}"),
                    "STATEMENT:  database system is ready to accept",
                ],
                true,
            ),
            (
                vec![
                    "FATAL:  data directory \"/x\" has wrong ownership",
                    SHUTDOWN,
                ],
                false,
            ),
            (
                vec![READY, "FATAL:  role \"x\" is not permitted to log in"],
                false,
            ),
            (
                vec!["FATAL:  configuration file \"/x\" contains errors"],
                true,
            ),
            (
                vec![
                    READY,
                    "LOG:  configuration file \"/x\" contains errors; unaffected changes were applied",
                ],
                false,
            ),
            (
                vec![READY, "LOG:  statement: SELECT 'terminated by signal 9'"],
                false,
            ),
            // Names that a client chooses, in log_line_prefix.
            (
                vec![
                    SHUTDOWN,
                    "Bus error@x FATAL:  the database system is shutting down",
                ],
                false,
            ),
            (
                vec![
                    READY,
                    "Bus error@x LOG:  could not receive data from client",
                ],
                false,
            ),
            (
                vec![
                    READY,
                    &format!("FATAL:  {MAP}@x LOG:  could not receive data from client"),
                ],
                false,
            ),
            (
                vec![
                    &format!("FATAL:  {MAP}"),
                    "database system is ready to accept@x LOG:  connection authorized",
                ],
                true,
            ),
            (
                vec![
                    READY,
                    "LOG:  connection authorized: user=x application_name=Bus error",
                ],
                false,
            ),
            (
                vec![
                    READY,
                    "LOG:  00000: statement: SELECT 'terminated by signal 9'",
                ],
                false,
            ),
            (
                vec![READY, "Bus error", "x FATAL:  role \"y\" does not exist"],
                false,
            ),
            (
                vec![
                    READY,
                    "LOG:  00000: startup process (PID 1) was terminated by signal 9: Killed",
                ],
                true,
            ),
            (
                vec!["LOG:  could not fork startup process: Resource temporarily unavailable"],
                true,
            ),
            (
                vec![
                    READY,
                    "FATAL:  could not access file \"DEBUG\": No such file",
                ],
                true,
            ),
            // The end of a session in another language, and a failed start.
            (
                vec![
                    READY_IN_GERMAN,
                    "FATAL:  Rolle »x« existiert nicht",
                    "LOG:  schnelles Herunterfahren verlangt",
                    "LOG:  Datenbanksystem ist heruntergefahren",
                ],
                false,
            ),
            (
                vec![
                    "FATAL:  Sperrdatei »postmaster.pid« existiert bereits",
                    "TIP:  Läuft bereits ein anderer Postmaster?",
                    "LOG:  Datenbanksystem ist heruntergefahren",
                ],
                true,
            ),
            (vec![READY, "Bus error (core dumped)"], true),
            (
                vec![
                    "postgresql@17-main.service: Main process exited, code=dumped, status=7/BUS",
                    "postgresql@17-main.service: Failed with result 'core-dump'.",
                ],
                true,
            ),
            (
                vec!["postgresql-17.service: Main process exited, code=killed, status=9/KILL"],
                true,
            ),
            (
                vec!["LOG:  server process (PID 1) was terminated by signal 9: Killed"],
                true,
            ),
            (
                vec![
                    READY,
                    "postgresql-17.service: A process of this unit has been killed by the OOM killer.",
                    SHUTDOWN,
                    "LOG:  database system is shut down",
                    "postgresql-17.service: Failed with result 'oom-kill'.",
                ],
                true,
            ),
        ] {
            let lines: Vec<_> = lines
                .iter()
                .map(|line| match line.starts_with('\t') {
                    true => (*line).to_owned(),
                    false => format!("2026-01-02 03:04:05 UTC [7] {line}"),
                })
                .collect();
            let found = last(&lines.join("\n"));
            assert_eq!(found.is_some(), expected, "{lines:?}");
        }
    }

    #[test]
    fn messages_are_one_line() {
        let log = "\tof an earlier message\nFATAL:  role \"zz\n\tas root:\n\tid\" is odd\n\
                   HINT:  a\n\tb\nLOG:  database system is shut down\n";
        let found = last(log).expect("a failure");
        assert_eq!(found.message, "FATAL:  role \"zz as root: id\" is odd");
        assert_eq!(found.details, ["HINT:  a b"]);
        let log = log.replace("is odd", "does not exist");
        assert_eq!(last(&log), None);
    }

    #[test]
    fn crash_counts_more_than_the_end_of_a_session() {
        const SESSION: &str = "FATAL:  invalid command-line argument for server process: x";
        let crash = |signal| format!("LOG:  server process (PID 7) was terminated by {signal}");
        let (segfault, abort) = (
            crash("signal 11: Segmentation fault"),
            crash("signal 6: Aborted"),
        );
        for (lines, expected) in [
            ([SESSION, &segfault], segfault.as_str()),
            (["PANIC:  x", &abort], "PANIC:  x"),
        ] {
            let log = format!(
                "LOG:  database system is ready to accept connections\n{}",
                lines.join("\n")
            );
            let found = last(&log).expect("a failure");
            assert_eq!(found.message, expected);
        }
    }

    #[test]
    fn message_and_error_number_determine_the_cause() {
        const MAP: &str = "could not map anonymous shared memory";
        for (line, expected) in [
            (
                format!("FATAL:  {MAP}: Cannot allocate memory"),
                Some("no_memory_for_segment"),
            ),
            (
                format!("FATAL:  {MAP}: Invalid argument"),
                Some("no_such_size"),
            ),
            (
                format!("FATAL:  {MAP}: Permission denied"),
                Some("security_module"),
            ),
            (
                format!("FATAL:  {MAP}: Operation not permitted"),
                Some("security_module"),
            ),
            // musl, and another language.
            (
                format!("FATAL:  {MAP}: Out of memory"),
                Some("no_memory_for_segment"),
            ),
            (
                format!("FATAL:  {MAP}: Nicht genügend Hauptspeicher verfügbar"),
                Some("no_memory_for_segment"),
            ),
            (
                "FATAL:  could not create shared memory segment: Cannot allocate memory".to_owned(),
                Some("no_memory_for_segment"),
            ),
            (
                "FATAL:  could not create shared memory segment: Invalid argument".to_owned(),
                Some("system_v_limit"),
            ),
            (
                "FATAL:  could not create shared memory segment: No space left on device"
                    .to_owned(),
                Some("system_v_limit"),
            ),
            (
                "FATAL:  could not create shared memory segment: Permission denied".to_owned(),
                None,
            ),
            (
                "FATAL:  could not resize shared memory segment \"/PostgreSQL.7\" to 1 bytes: x"
                    .to_owned(),
                Some("dev_shm_full"),
            ),
            (
                "FATAL:  requested shared memory size overflows size_t".to_owned(),
                Some("configuration"),
            ),
            (
                "FATAL:  could not setup io_uring queue: Cannot allocate memory".to_owned(),
                Some("locked_memory"),
            ),
            // PostgreSQL has a hint for it.
            (
                "FATAL:  could not setup io_uring queue: Operation not permitted".to_owned(),
                None,
            ),
            (
                "LOG:  could not fork worker process: Out of memory".to_owned(),
                Some("no_memory_for_process"),
            ),
            (
                "LOG:  could not fork new process for connection: Resource temporarily unavailable"
                    .to_owned(),
                Some("process_limit"),
            ),
            (
                "LOG:  could not fork startup process: Cannot allocate memory".to_owned(),
                Some("no_memory_for_process"),
            ),
            (
                "pthread_create failed for thread 1 of 4: Resource temporarily unavailable"
                    .to_owned(),
                Some("process_limit"),
            ),
            (
                "x.service: A process of this unit has been killed by the OOM killer.".to_owned(),
                Some("unit_stopped_after_oom_kill"),
            ),
            (
                "x.service: systemd-oomd killed 3 process(es) in this unit.".to_owned(),
                Some("unit_stopped_after_oom_kill"),
            ),
            (
                "Out of memory: Killed process 7 (postgres) total-vm:1kB, anon-rss:1kB".to_owned(),
                Some("oom_kill_on_host"),
            ),
            (
                "Memory cgroup out of memory: Kill process 7 (postmaster) score 9".to_owned(),
                Some("oom_kill_in_cgroup"),
            ),
            ("Out of memory: Killed process 7 (mysqld)".to_owned(), None),
            (
                "FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use".to_owned(),
                Some("still_running"),
            ),
            (
                "FATAL:  lock file \"postmaster.pid\" already exists".to_owned(),
                Some("still_running"),
            ),
            // In another language, or about something else.
            (
                "x.service: Control process exited, code=killed, status=9/KILL".to_owned(),
                None,
            ),
            (
                "致命错误:  锁文件 \"postmaster.pid\" 已经存在".to_owned(),
                None,
            ),
        ] {
            let found = last(&line).expect("a failure");
            assert_eq!(found.message, escape::name(&line), "{line}");
            assert_eq!(found.cause.map(|cause| cause.code), expected, "{line}");
        }
    }
}
