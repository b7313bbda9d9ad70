//! Parses the standard error of the `postgres` program after a failed start (utils/error/elog.c
//! `send_message_to_server_log`, with `log_error_verbosity = verbose` and no prefix).

use crate::escape;
use serde::{Deserialize, Serialize};

/// The reason why the program failed, with its own messages if there are any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStart {
    /// The last message.
    pub message: String,
    /// The SQLSTATE of that message, if any.
    pub state: Option<[u8; 5]>,
    /// Earlier messages, and details.
    pub detail: Vec<String>,
    /// The hint, if any.
    pub hint: Option<String>,
    /// True if a start with the same configuration would fail, too. False if the cause is the
    /// machine or the scratch directory: a full disk, out of memory, a signal.
    pub is_of_configuration: bool,
}

impl FailedStart {
    /// Parses the standard error `text`. `program` is the prefix of messages that the program
    /// writes before it has a log.
    ///
    /// `end` describes how the program ended. `is_failure` is true if it ended like PostgreSQL
    /// after an error of its own, with `exit(1)` or, without configuration files, `exit(2)`. Files
    /// belong to the scratch directory if their names start with `scratch` or are relative.
    pub fn parse(
        text: &str,
        program: &str,
        end: &str,
        is_failure: bool,
        scratch: Option<&str>,
    ) -> Self {
        let mut refusal = Self::default();
        let mut location = None;
        let mut is_short = false;
        for report in reports(text) {
            let (kind, said) = report.split_once(": ").unwrap_or_default();
            let said = said.trim_ascii_start();
            match kind {
                "FATAL" | "PANIC" => {
                    (refusal.state, refusal.message) = state_and_message(said);
                    location = None;
                }
                "LOCATION" => location = Some(said.to_owned()),
                // Invalid combinations of settings, which PostgreSQL checks before it has a log.
                _ if kind == program => refusal.message = said.to_owned(),
                "LOG" | "ERROR" => {
                    let (state, message) = state_and_message(said);
                    is_short |= is_want(state, &message);
                    refusal.detail.push(message);
                }
                "DETAIL" => refusal.detail.push(said.to_owned()),
                "HINT" => refusal.hint = Some(said.to_owned()),
                _ => {}
            }
        }
        if refusal.message.is_empty() {
            refusal.message =
                format!("PostgreSQL's program did not compute the size of shared memory: {end}");
            let rest = text.trim_ascii();
            refusal
                .detail
                .extend((!rest.is_empty()).then(|| rest.to_owned()));
        } else {
            refusal.is_of_configuration = is_failure
                && scratch.is_none_or(|scratch| !refusal.message.contains(scratch))
                && location.is_none_or(|location| is_postgres_own(&location))
                && !is_short
                && !is_want(refusal.state, &refusal.message)
                && !is_of_directory(refusal.state, &refusal.message);
        }
        refusal
    }

    /// Returns the message and the detail as one line, without the hint. For an invalid
    /// configuration file, the message alone reports only that the file has errors.
    pub fn into_sentence(self) -> String {
        match self.detail.as_slice() {
            [] => escape::name(self.message),
            detail => escape::name(format!("{}: {}", self.message, detail.join("; "))),
        }
    }
}

/// Splits the text into reports. A line that begins with a tab continues the previous line.
fn reports(text: &str) -> Vec<String> {
    let mut reports: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('\t'), reports.last_mut()) {
            (Some(rest), Some(report)) => {
                report.push('\n');
                report.push_str(rest);
            }
            _ => reports.push(line.to_owned()),
        }
    }
    reports
}

/// Splits `22023: invalid value …` into the SQLSTATE and the message.
fn state_and_message(said: &str) -> (Option<[u8; 5]>, String) {
    match said.split_once(": ") {
        Some((state, message)) if state.len() == 5 => {
            (state.as_bytes().try_into().ok(), message.to_owned())
        }
        _ => (None, said.to_owned()),
    }
}

/// True if the report is from the code in PostgreSQL that handles settings and libraries, before it
/// allocates memory. `location` is `function, file:line`. A preloaded library might report files
/// that are missing only in the scratch directory.
fn is_postgres_own(location: &str) -> bool {
    let own = [
        "dfmgr.c",
        "guc.c",
        "guc-file.c",
        "guc-file.l",
        "guc_funcs.c",
        "guc_tables.c",
        "ipci.c",
        "miscinit.c",
        "postinit.c",
        "postmaster.c",
        "shmem.c",
        "variable.c",
        "xlog.c",
        "xlogrecovery.c",
    ];
    let file = location.rsplit(", ").next().unwrap_or_default();
    let file = file.split(':').next().unwrap_or_default();
    own.contains(&file)
}

/// True if a later start might succeed: insufficient resources (53), operator intervention (57), a
/// disk error (58030). The dynamic loader reports such errors only in the text of its message.
fn is_want(state: Option<[u8; 5]>, message: &str) -> bool {
    let words = [
        "Cannot allocate memory",
        "failed to map segment",
        "Input/output error",
        "Too many open files",
    ];
    state.is_some_and(|state| matches!(&state, [b'5', b'3' | b'7', ..] | b"58030"))
        || words.iter().any(|words| message.contains(words))
}

/// True if a file in the scratch directory is missing (58) or not writable (42501). The real data
/// directory has other files.
fn is_of_directory(state: Option<[u8; 5]>, message: &str) -> bool {
    match state.as_ref().map(|state| state.as_slice()) {
        Some([b'5', b'8', ..] | b"42501") => {
            let name = message.split('"').nth(1).unwrap_or_default();
            // In shared_preload_libraries, a name with a slash can also be a path below the
            // directory.
            let is_library = message.starts_with("could not access file") && !name.contains('/');
            !is_library && !name.starts_with('/')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRATCH: &str = "/tmp/pg_hugeinfo-plan.0123456789abcdef";

    fn parse(text: &str) -> FailedStart {
        FailedStart::parse(text, "postgres", "exit status 1", true, Some(SCRATCH))
    }

    #[test]
    fn configuration() {
        let refusal = parse(
            "LOG:  42601: syntax error in file \"/etc/postgresql.conf\" line 1, near token \"apples\"\n\
             LOCATION:  ParseConfigFp, guc-file.l:600\n\
             FATAL:  F0000: configuration file \"/etc/postgresql.conf\" contains errors\n\
             LOCATION:  ProcessConfigFileInternal, guc-file.l:400\n",
        );
        assert!(refusal.is_of_configuration);
        assert_eq!(refusal.state, Some(*b"F0000"));
        assert_eq!(
            refusal.into_sentence(),
            "configuration file \"/etc/postgresql.conf\" contains errors: syntax error in file \
             \"/etc/postgresql.conf\" line 1, near token \"apples\""
        );
        for text in [
            "postgres: superuser_reserved_connections (3) must be less than max_connections (3)\n",
            "FATAL:  58P01: could not access file \"no_such_library\": No such file or directory\n",
            "FATAL:  F0000: x\nLOCATION:  ProcessConfigFileInternal, guc-file.l:400\n",
            "FATAL:  22023: multiple recovery targets specified\nLOCATION:  f, xlogrecovery.c:4700\n",
            "FATAL:  XX000: could not load library \"/usr/lib/x.so\": undefined symbol: f\n",
            "FATAL:  XX000: WAL archival cannot be enabled when wal_level is \"minimal\"\n",
            "FATAL:  58P01: could not open configuration file \"/etc/x.conf\": No such file or directory\n",
            "FATAL:  42501: could not open configuration file \"/etc/x.conf\": Permission denied\n",
            "FATAL:  22023: invalid value for parameter \"huge_pages\": \"x\"\n\tmore of it\n",
            "FATAL:  42704: unrecognized configuration parameter \"x\"\nHINT:  none\n",
        ] {
            assert!(parse(text).is_of_configuration, "{text}");
        }
    }

    #[test]
    fn the_machine() {
        for text in [
            "FATAL:  53100: could not write lock file \"postmaster.pid\": No space left on device\n",
            "FATAL:  53200: out of memory\nDETAIL:  Failed on request of size 9.\n",
            "FATAL:  57P01: terminating connection due to administrator command\n",
            "FATAL:  42501: could not create lock file \"postmaster.pid\": Read-only file system\n",
            "FATAL:  58030: could not read file \"global/pg_control\": Input/output error\n",
            "FATAL:  58P01: could not open file \"pg_stat/x.stat\": No such file or directory\n",
            "FATAL:  58P01: could not access file \"sub/own\": No such file or directory\n",
            "FATAL:  F0000: own: no key file\nLOCATION:  _PG_init, own.c:12\n",
            "FATAL:  XX000: could not load library \"/x.so\": /x.so: failed to map segment from shared object\n",
            "LOG:  53000: could not open file \"/x\": Too many open files\nFATAL:  F0000: \"/y\" contains errors\n",
            "postgres: could not access directory \"/tmp/pg_hugeinfo-plan.0123456789abcdef\": x\n",
        ] {
            let refusal = parse(text);
            assert!(!refusal.is_of_configuration, "{text}");
            assert!(!refusal.message.is_empty());
        }
    }

    #[test]
    fn failure_without_message_is_described_by_its_end() {
        let loader = "/usr/bin/postgres: error while loading shared libraries: libz.so.1: x\n";
        let refusal =
            FailedStart::parse(loader, "postgres", "exit status 127", false, Some(SCRATCH));
        assert!(!refusal.is_of_configuration);
        assert_eq!(refusal.detail, [loader.trim_ascii()]);
        let refusal = FailedStart::parse("", "postgres", "signal 9", false, Some(SCRATCH));
        assert!(refusal.into_sentence().ends_with(": signal 9"));
        // A signal can follow misleading messages.
        let words = "FATAL:  F0000: configuration file \"/x\" contains errors\n";
        let refusal = FailedStart::parse(words, "postgres", "signal 9", false, Some(SCRATCH));
        assert!(!refusal.is_of_configuration);
    }
}
