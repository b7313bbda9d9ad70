//! The next start of a server: its settings, and the size of its main shared memory segment.
//!
//! PostgreSQL itself computes them: its program runs with `-C`, prints a setting and exits before
//! it allocates shared memory. It refuses a data directory that is in use, so it gets a [scratch
//! directory](scratch). It loads `shared_preload_libraries` and reads files that can block, so how
//! it runs, and how long, depends on the caller: see [`Runner`].

pub mod failed_start;
pub mod largest_buffers;
mod patroni;
pub mod scratch;

use std::{
    ffi::{CStr, OsStr, OsString},
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    str::FromStr,
};

use crate::{
    escape,
    server::state::{Server, bytes_of_small_pages},
    units::{PageSize, Pages},
};
use failed_start::FailedStart;
use largest_buffers::{Fit, TooFewPages};
pub use scratch::FileError;
use scratch::Scratch;

/// Runs programs of PostgreSQL within a time limit.
pub trait Runner {
    /// A program that runs. If a later call fails, the program is still ended.
    type Running;
    type Error: From<Failure>;

    /// Starts a program whose output is kept. Its directory and its standard streams are not set
    /// yet.
    fn start(&self, command: Command) -> Result<Self::Running, Self::Error>;

    /// Waits for the end of the program.
    fn finish(&self, running: Self::Running) -> Result<Output, Self::Error>;

    /// Keeps the scratch directory while it is in use, and then removes it, even if an error ends
    /// this process.
    fn keep(&self, scratch: Scratch);

    /// Does not return if this process has to end.
    fn check_for_interrupts(&self) {}
}

/// The reason why a next start is unknown.
#[derive(Debug)]
pub enum Failure {
    /// PostgreSQL would not start, or its program failed.
    Refused(FailedStart),
    /// A file could not be used.
    File(FileError),
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// The last bytes that a program wrote, and how it ended.
pub struct Output {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl Output {
    /// The value that a program printed. A preloaded library can write anything, but the last line
    /// is from PostgreSQL.
    pub fn value(&self) -> Option<&OsStr> {
        let text = self.out.strip_suffix(b"\n").unwrap_or(&self.out);
        let last = text.rsplit(|&byte| byte == b'\n').next()?;
        self.status.success().then_some(OsStr::from_bytes(last))
    }

    /// The exit status or signal of the program, as text.
    pub fn end(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => self.status.to_string(),
        }
    }

    /// The reason why `program` failed. `scratch`: its data directory is a scratch directory.
    pub fn refusal(&self, program: &Path, scratch: Option<&Path>) -> FailedStart {
        let scratch = scratch.map(escape::name);
        let mut refusal = FailedStart::parse(
            &escape::lines(OsStr::from_bytes(&self.err)),
            &program.file_name().map(escape::name).unwrap_or_default(),
            &self.end(),
            matches!(self.status.code(), Some(1 | 2)),
            scratch.as_deref(),
        );
        if let Some(scratch) = scratch.filter(|_| !refusal.is_of_configuration) {
            let directory = format!("The scratch directory was \"{scratch}\".");
            refusal.detail.push(directory);
        }
        refusal
    }
}

/// A program of PostgreSQL with its messages in English.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LC_MESSAGES", "C");
    // The variables for the language change messages before the settings are read. With
    // NOTIFY_SOCKET, the service manager would regard the program as the server.
    for name in ["LANGUAGE", "LC_ALL", "NOTIFY_SOCKET", "PGDATA", "PG_COLOR"] {
        command.env_remove(name);
    }
    command
}

/// The server that is started.
pub struct Origin<'a> {
    /// The program `postgres`.
    pub program: &'a Path,
    /// The real data directory.
    pub data: &'a Path,
    pub config_file: &'a Path,
    /// The options of the running server, with which a restart runs it again. `None`: it does not
    /// run, and starts from its files.
    pub command_line: Option<Vec<OsString>>,
}

impl Origin<'_> {
    /// True if Patroni starts the server, with another command line than the present one, and with
    /// settings that are at least those of the primary. It restarts a primary with its own, but
    /// after a boot, it starts the former primary as a standby.
    fn is_raised(&self) -> bool {
        let is_standby = ["standby.signal", "recovery.signal"];
        let is_standby = is_standby.iter().any(|name| self.data.join(name).exists());
        self.command_line.is_none() || is_standby
    }
}

/// Settings of PostgreSQL 15 to 19 that change the size of the main segment, limit such a setting,
/// or affect huge pages. All are numbers or words of a list: none names a file, a library or a
/// command. A test varies every other setting of the server to show that none is missing.
pub const SIZING: [&CStr; 36] = [
    c"autovacuum_max_workers",
    c"autovacuum_worker_slots",
    c"commit_timestamp_buffers",
    c"hot_standby",
    c"huge_page_size",
    c"huge_pages",
    c"io_max_combine_limit",
    c"io_max_concurrency",
    c"io_method",
    c"io_workers",
    c"max_active_replication_origins",
    c"max_connections",
    c"max_locks_per_transaction",
    c"max_logical_replication_workers",
    c"max_pred_locks_per_transaction",
    c"max_prepared_transactions",
    c"max_repack_replication_slots",
    c"max_replication_slots",
    c"max_wal_senders",
    c"max_worker_processes",
    c"min_dynamic_shared_memory",
    c"multixact_member_buffers",
    c"multixact_offset_buffers",
    c"notify_buffers",
    c"old_snapshot_threshold",
    c"pg_stat_statements.max",
    c"reserved_connections",
    c"serializable_buffers",
    c"shared_buffers",
    c"shared_memory_type",
    c"subtransaction_buffers",
    c"superuser_reserved_connections",
    c"track_activity_query_size",
    c"transaction_buffers",
    c"wal_buffers",
    c"wal_level",
];

/// Options that override settings which would refer to the real data directory, or hide an error.
const FIXED_SETTINGS: [&str; 7] = [
    // The files can be relative to the data directory. They use no shared memory.
    "ssl=off",
    // The program waits until postmaster.pid is on disk. The file is not needed after a crash, and
    // on a busy disk the wait took longer than the time limit.
    "fsync=off",
    "log_destination=stderr",
    "log_line_prefix=",
    "log_min_messages=error",
    "log_error_verbosity=verbose",
    "lc_messages=C",
];

/// A next start that can be computed.
pub struct Computation<R> {
    pub runner: R,
    program: PathBuf,
    scratch: PathBuf,
    /// The arguments of the program: those of the running server, if it keeps them, and those that
    /// override them.
    pub arguments: Vec<OsString>,
    /// Whether the options of the running server are among them. Patroni uses new ones.
    pub keeps_command_line: bool,
    /// Settings that Patroni raises.
    pub raised: Vec<(&'static str, u64)>,
}

impl<R: Runner> Computation<R> {
    /// Prepares the scratch directory. `planned` are settings as `name=value`.
    pub fn prepare(
        runner: R,
        origin: Origin<'_>,
        planned: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, R::Error> {
        let is_of_patroni = patroni::wrote(origin.config_file);
        let is_raised = is_of_patroni && origin.is_raised();
        let keeps_command_line = !is_of_patroni && origin.command_line.is_some();
        let scratch = Scratch::create(|| runner.check_for_interrupts()).map_err(Failure::File)?;
        let path = scratch.path().to_owned();
        let copied = scratch.copy_data(origin.data);
        runner.keep(scratch);
        copied.map_err(Failure::File)?;
        let command_line = origin.command_line.filter(|_| keeps_command_line);
        let mut arguments = command_line.unwrap_or_default();
        // After it, no option can be added.
        arguments.pop_if(|last| last == "--");
        arguments.extend(["-D".into(), path.clone().into()]);
        let mut computation = Self {
            runner,
            program: origin.program.to_owned(),
            scratch: path,
            arguments,
            keeps_command_line,
            raised: Vec::new(),
        };
        computation.set(with_path("config_file=", origin.config_file));
        computation.set(with_path("data_directory=", &computation.scratch));
        let fixed = FIXED_SETTINGS.into_iter().map(OsString::from);
        for setting in fixed.chain(planned) {
            computation.set(setting);
        }
        if is_raised {
            computation.raise()?;
        }
        Ok(computation)
    }

    fn set(&mut self, setting: OsString) {
        self.arguments.extend(["-c".into(), setting]);
    }

    /// Raises settings like Patroni.
    fn raise(&mut self) -> Result<(), R::Error> {
        let program = self.program.with_file_name("pg_controldata");
        let mut control = command(&program);
        control.arg(&self.scratch);
        let control = self.runner.finish(self.runner.start(control)?)?;
        let next = self.values(patroni::OF_PRIMARY)?;
        let raised = patroni::raised(&String::from_utf8_lossy(&control.out), next);
        let refusal = || control.refusal(&program, Some(&self.scratch));
        self.raised = raised.ok_or_else(|| Failure::Refused(refusal()))?;
        for (name, least) in self.raised.clone() {
            self.set(format!("{name}={least}").into());
        }
        Ok(())
    }

    /// The scratch directory.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Starts the run that computes the size of the segment.
    pub fn start_segment(&self, more: &[OsString]) -> Result<R::Running, R::Error> {
        let page = ["-c".into(), "huge_page_size=4kB".into()];
        let more = [more, &page].concat();
        self.start(more, "shared_memory_size_in_huge_pages")
    }

    /// The size of the main segment: exact up to 8 TiB, rounded up to whole MB above.
    pub fn finish_segment(&self, running: R::Running, more: &[OsString]) -> Result<u64, R::Error> {
        match self.finish(running)? {
            Ok(pages) => Ok(bytes_of_small_pages(pages)),
            // 2^31 pages are 8 TiB, the maximum of the setting.
            Err(refusal) if refusal.message.contains("huge_page") => {
                let running = self.start(more.to_vec(), "shared_memory_size")?;
                let megabytes: u64 = self.finish(running)?.map_err(Failure::Refused)?;
                Ok(megabytes << 20)
            }
            Err(refusal) => Err(Failure::Refused(refusal).into()),
        }
    }

    /// The largest `shared_buffers` with which a start with the other settings of `next` maps at
    /// most that many huge pages.
    pub fn largest_buffers(
        &self,
        next: &Server,
        pages: Pages,
        size: PageSize,
        block_bytes: u64,
    ) -> Result<Result<Fit, TooFewPages>, R::Error> {
        largest_buffers::fit(next, pages, size, block_bytes, |blocks| {
            let setting = format!("shared_buffers={}kB", blocks * block_bytes / 1024);
            let more = ["-c".into(), setting.into()];
            self.finish_segment(self.start_segment(&more)?, &more)
        })
    }

    /// The values of settings that PostgreSQL does not derive from others, in their base units. The
    /// programs run at the same time.
    pub fn values<T: FromStr + Default, const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[T; N], R::Error> {
        let started = names.into_iter().map(|name| self.start(Vec::new(), name));
        let started = started.collect::<Result<Vec<_>, _>>()?;
        let mut values = std::array::from_fn(|_| T::default());
        for (value, running) in values.iter_mut().zip(started) {
            *value = self.finish(running)?.map_err(Failure::Refused)?;
        }
        Ok(values)
    }

    fn start(&self, more: Vec<OsString>, setting: &str) -> Result<R::Running, R::Error> {
        let mut command = command(&self.program);
        command.args(&self.arguments).args(more);
        command.args(["-C", setting]);
        self.runner.start(command)
    }

    fn finish<T: FromStr>(&self, running: R::Running) -> Result<Result<T, FailedStart>, R::Error> {
        let output = self.runner.finish(running)?;
        let value = output
            .value()
            .and_then(|value| value.to_string_lossy().parse().ok());
        Ok(value.ok_or_else(|| output.refusal(&self.program, Some(&self.scratch))))
    }
}

/// The data directory that the configuration of a server names. `arguments` are those of the
/// server. PostgreSQL does not lock the directory for this.
pub fn data_directory<R: Runner>(
    runner: &R,
    program: &Path,
    arguments: &[OsString],
) -> Result<PathBuf, R::Error> {
    let mut command = command(program);
    command.args(arguments);
    for setting in FIXED_SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["-C", "data_directory"]);
    let output = runner.finish(runner.start(command)?)?;
    let refusal = || Failure::Refused(output.refusal(program, None));
    Ok(output.value().ok_or_else(refusal)?.into())
}

/// The version of a program of PostgreSQL, such as `15.20`.
pub fn version<R: Runner>(runner: &R, program: &Path) -> Result<String, R::Error> {
    let mut command = command(program);
    command.arg("--version");
    let output = runner.finish(runner.start(command)?)?;
    let words = output.value().unwrap_or_default().to_string_lossy();
    let words = words.split_ascii_whitespace().skip(2);
    Ok(escape::name(words.take(1).collect::<String>()))
}

fn with_path(setting: &str, path: &Path) -> OsString {
    let mut setting = OsString::from(setting);
    setting.push(path);
    setting
}
