//! Why a server did not start, according to its log.

use super::check::CheckId;
use crate::escape;

/// Maximum number of characters of a line that is shown.
const LONGEST: usize = 600;

/// Maximum number of lines with details.
const MOST_DETAILS: usize = 6;

/// The last message after which the server did not start, or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The line of the log, escaped and truncated.
    pub message: String,
    /// Its details and hints.
    pub details: Vec<String>,
    /// `None`: another message.
    pub cause: Option<&'static Cause>,
}

/// A message of PostgreSQL after which it does not start, or ends.
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

impl Cause {
    fn matches(&self, line: &str) -> bool {
        self.words.iter().all(|words| line.contains(words))
    }
}

/// The last failure in a log of PostgreSQL, with any `log_line_prefix`. `None`: there is none, or
/// the server has started since.
pub fn last(log: &str) -> Option<Failure> {
    let lines: Vec<_> = log.lines().collect();
    let cause = |line: &str| CAUSES.iter().find(|cause| cause.matches(line));
    let is_failure = |line: &str| {
        let is_fatal = line.contains("FATAL:") || line.contains("PANIC:");
        let is_of_connection = ABOUT_CONNECTIONS.iter().any(|words| line.contains(words));
        cause(line).is_some() || is_fatal && !is_of_connection
    };
    let is_ready = |line: &str| line.contains("ready to accept");
    let at = lines
        .iter()
        .rposition(|line| is_failure(line) || is_ready(line))?;
    if is_ready(lines[at]) {
        return None;
    }
    let is_detail =
        |line: &str| line.starts_with('\t') || line.contains("HINT:") || line.contains("DETAIL:");
    let details = lines[at + 1..].iter().take_while(|line| is_detail(line));
    let shown = |line: &str| escape::shortened(&escape::name(line.trim()), LONGEST);
    Some(Failure {
        message: shown(lines[at]),
        details: details.take(MOST_DETAILS).map(|line| shown(line)).collect(),
        cause: cause(lines[at]),
    })
}
