//! Why a server did not start, according to its log.

use super::check::CheckId;
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
    /// `None`: another message.
    pub cause: Option<&'static Cause>,
}

/// A cause of failed starts, with a message of PostgreSQL.
#[derive(Debug, PartialEq, Eq)]
pub struct Cause {
    /// Words of the message, all of them in one line.
    words: &'static [&'static str],
    /// A stable name for programs.
    pub code: &'static str,
    /// The cause as a sentence.
    pub text: &'static str,
    /// The checks that have the figures and the remedy. Empty: it is not about memory.
    pub checks: &'static [CheckId],
}

/// In order: the first match counts.
const CAUSES: [Cause; 19] = [
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
    // Signal 7, in messages of PostgreSQL and of shells.
    Cause {
        words: &["Bus error"],
        code: "bus_error",
        text: "The kernel had reserved huge pages, but could not provide one of them (SIGBUS).",
        checks: &[CheckId::CgroupFaultLimit, CheckId::MemoryLeft],
    },
    // The postmaster itself, in messages of systemd.
    Cause {
        words: &["Main process exited", "status=7/BUS"],
        code: "bus_error",
        text: "The kernel had reserved huge pages, but could not provide one of them (SIGBUS).",
        checks: &[CheckId::CgroupFaultLimit, CheckId::MemoryLeft],
    },
    Cause {
        words: &["Main process exited", "status=9/KILL"],
        code: "killed",
        text: "The server was killed by the OOM killer, by systemd after a timeout, or by a person.",
        checks: &[CheckId::MemoryLeft, CheckId::Restart],
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
        checks: &[],
    },
    Cause {
        words: &["pre-existing shared memory block", "is still in use"],
        code: "old_processes",
        text: "Processes of the previous run still use its shared memory and huge pages.",
        checks: &[],
    },
    Cause {
        words: &["lock file", "already exists"],
        code: "lock_file",
        text: "Another server uses this directory or port, or an old lock file remains.",
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
        text: "A library in shared_preload_libraries is missing.",
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

/// Words before the text of a message, and of the lines that belong to it (elog.c
/// `error_severity`, `send_message_to_server_log`).
const LABELS: [&str; 14] = [
    "FATAL:",
    "PANIC:",
    "LOG:",
    "ERROR:",
    "WARNING:",
    "NOTICE:",
    "INFO:",
    "DEBUG",
    "DETAIL:",
    "HINT:",
    "QUERY:",
    "CONTEXT:",
    "LOCATION:",
    "STATEMENT:",
];

/// Beginnings of messages at level LOG about the server itself. Others can have names and statements
/// of clients.
const ABOUT_SERVER: [&str; 4] = [
    "could not bind",
    "could not create",
    "database system is ready",
    "received ",
];

/// Splits a line before the message: the label, and the text after it. Without a label, all of it is
/// the message. `None`: there are several labels, of which a client might have written one, such as
/// that in the name of a role or in a statement.
fn parts(line: &str) -> Option<(Option<&'static str>, &str)> {
    let splits = |label: &'static str| {
        let found = line.match_indices(label);
        found.map(move |(at, _)| (Some(label), line[at + label.len()..].trim_start()))
    };
    let mut found = LABELS.into_iter().flat_map(splits);
    match (found.next(), found.next()) {
        (None, _) => Some((None, line)),
        (only, None) => only,
        (Some(_), Some(_)) => None,
    }
}

/// True for a message at level LOG that has no text of a client.
fn is_about_server(message: &str) -> bool {
    // With log_error_verbosity = verbose.
    let is_code = |word: &str| word.len() == 5 && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let text = match message.split_once(": ") {
        Some((code, text)) if is_code(code) => text,
        _ => message,
    };
    // As in `server process (PID 7) was terminated by signal 9: Killed`.
    let is_of_process = |(who, _): (&str, &str)| !who.contains([':', '=']);
    ABOUT_SERVER.iter().any(|start| text.starts_with(start))
        || text.split_once(" (PID ").is_some_and(is_of_process)
}

/// The cause that a message of the server names.
fn cause(message: &str) -> Option<&'static Cause> {
    let matches = |cause: &&Cause| cause.words.iter().all(|words| message.contains(words));
    CAUSES.iter().find(matches)
}

/// The last failure in a log of PostgreSQL, with any `log_line_prefix`. `None`: there is none, or
/// the server has started or was stopped since.
pub fn last(log: &str) -> Option<Failure> {
    let lines: Vec<_> = log.lines().collect();
    // From systemd or a shell after the end of the server. A client can write such a line before its
    // other messages, with a line feed in a name.
    let last_message = lines
        .iter()
        .rposition(|line| parts(line).is_none_or(|(label, _)| label.is_some()));
    let is_failure = |at: usize, line: &str| match parts(line) {
        Some((Some("FATAL:" | "PANIC:"), message)) => !ABOUT_CONNECTIONS
            .iter()
            .any(|words| message.contains(words)),
        Some((Some("LOG:"), message)) => cause(message).is_some() && is_about_server(message),
        Some((None, line)) => cause(line).is_some() && last_message.is_none_or(|last| at > last),
        // About one statement, with a text that can be from any user.
        Some((Some(_), _)) | None => false,
    };
    let is_healthy = |line: &str| match parts(line) {
        Some((Some("LOG:"), message)) => {
            let is_stop = message.contains(" shutdown request");
            is_about_server(message) && (message.contains("ready to accept") || is_stop)
        }
        _ => false,
    };
    // PostgreSQL writes a tab after each line feed in a message.
    let at = lines.iter().enumerate().rposition(|(at, line)| {
        !line.starts_with('\t') && (is_failure(at, line) || is_healthy(line))
    })?;
    if is_healthy(lines[at]) {
        return None;
    }
    let is_detail =
        |line: &str| line.starts_with('\t') || line.contains("HINT:") || line.contains("DETAIL:");
    let details = lines[at + 1..].iter().take_while(|line| is_detail(line));
    let shown = |line: &str| escape::shortened(&escape::name(line.trim()), LONGEST);
    Some(Failure {
        message: shown(lines[at]),
        details: details.take(MOST_DETAILS).map(|line| shown(line)).collect(),
        cause: parts(lines[at]).and_then(|(_, message)| cause(message)),
    })
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
                vec!["LOG:  could not bind IPv4 address \"::1\": Address already in use"],
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
                vec!["postgresql-17.service: Control process exited, code=killed, status=9/KILL"],
                false,
            ),
            (
                vec!["LOG:  server process (PID 1) was terminated by signal 9: Killed"],
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
}
