//! The settings of the next start, which PostgreSQL computes with the rights of the server's user.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::{
        fd::BorrowedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use hugeinfo::{
    escape,
    linux::{
        error::fact,
        passwd,
        process::{Process, sandbox},
        root::Root,
    },
    model::machine::ServerState,
    server::{environment::IoUringRings, facts, failed_start::FailedStart, recovery::TooLow},
};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use crate::{Done, Server, command, error::Error, postgres::Planned};

/// The part of the next start that is computed. PostgreSQL's program runs once for each setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The settings that determine its huge pages.
    Pages,
    /// Everything.
    All,
}

/// The options of `hugeinfo settings`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: Server,
    #[arg(long)]
    only_pages: bool,
}

/// The next start, as far as it matters for memory. Written by the owner of the data directory, so
/// nothing in it can be trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NextStart {
    /// The version of PostgreSQL, such as `15.20`. Empty: not computed.
    pub(crate) version: String,
    /// The real data directory. `None`: there is none yet.
    pub(crate) data_directory: Option<PathBuf>,
    /// The configuration file. `None`: the default.
    pub(crate) config_file: Option<PathBuf>,
    /// Errors: PostgreSQL would not start.
    pub(crate) settings: Result<Settings, FailedStart>,
    /// The user who wrote this, if this process is of root. Known to root, and not read.
    #[serde(skip)]
    pub(crate) owner: Option<u32>,
}

/// The settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) huge_pages: facts::HugePages,
    pub(crate) shared_memory_type: facts::SharedMemoryType,
    pub(crate) huge_page_size_bytes: Option<u64>,
    pub(crate) shared_memory_bytes: u64,
    pub(crate) max_connections: u64,
    pub(crate) shared_buffers_bytes: u64,
    /// `io_method = io_uring` (PostgreSQL 18).
    pub(crate) uses_io_uring: bool,
    /// The rings of io_uring. `None`: there are none, or they were not computed.
    pub(crate) io_uring_rings: Option<IoUringRings>,
    /// Settings on the command line of the server, by name.
    pub(crate) on_command_line: BTreeMap<String, String>,
    /// Settings that are too low for what the start recovers.
    pub(crate) too_low: Vec<TooLow>,
    /// Empty: not computed.
    pub(crate) log_directory: PathBuf,
}

impl Settings {
    pub(crate) fn server(&self) -> facts::Server {
        facts::Server {
            huge_pages: self.huge_pages,
            shared_memory_type: self.shared_memory_type,
            huge_page_size_bytes: self.huge_page_size_bytes.filter(|bytes| *bytes > 0),
            shared_memory_bytes: self.shared_memory_bytes,
        }
    }
}

/// Time for the programs of PostgreSQL that compute next starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    /// For one server.
    each: Duration,
    /// The end of the time for all of several servers.
    end: Option<Instant>,
}

impl Default for TimeLimit {
    /// For one server.
    fn default() -> Self {
        Self {
            each: Duration::from_secs(120),
            end: None,
        }
    }
}

impl TimeLimit {
    /// For several servers. The owner of one of them must not be able to delay the others for long.
    pub(crate) fn of_several() -> Self {
        Self {
            each: Duration::from_secs(20),
            end: Some(Instant::now() + Duration::from_secs(60)),
        }
    }

    /// Errors: all time was used by other servers.
    fn for_next(self, now: Instant) -> Result<Duration, Error> {
        let left = match self.end {
            Some(end) => end.saturating_duration_since(now),
            None => self.each,
        };
        match left {
            Duration::ZERO => Err(Error::new(
                "no time was left to compute its settings, because those of other servers took too long",
            )),
            left => Ok(left.min(self.each)),
        }
    }
}

impl NextStart {
    /// Computes the next start. As root, with the rights of the owner of the data directory.
    ///
    /// Errors: the directory is empty, perhaps because its file system is not mounted.
    pub(crate) fn read(server: &Server, detail: Detail) -> Result<Self, Error> {
        let next = Self::read_or_new(server, detail)?;
        match (server.directory(), next.state()) {
            (Some(directory), ServerState::NotCreated) => Err(Error::with_hint(
                format!("{} is empty", escape::name(directory)),
                "Is its file system mounted? To forecast the start of a new server, use hugeinfo preflight",
            )),
            _ => Ok(next),
        }
    }

    /// Like [`read`](Self::read), but if the directory is empty, of the server that `initdb` would
    /// create there.
    pub(crate) fn read_or_new(server: &Server, detail: Detail) -> Result<Self, Error> {
        if let Some(pid) = server.found {
            check_sandbox(pid, server.directory().as_deref())?;
        }
        if !rustix::process::geteuid().is_root() {
            return Self::compute(server, detail);
        }
        let mut command = command::this("settings");
        command.args(arguments(server, detail));
        let output = command::run(command, server.time_limit.for_next(Instant::now())?)?;
        if !output.status.success() {
            let text = output.err.trim();
            let text = text.strip_prefix("hugeinfo: ").unwrap_or(text);
            let (message, hint) = match text.split_once("\nHINT: ") {
                Some((message, hint)) => (message, Some(hint.to_owned())),
                None => (text, None),
            };
            return Err(Error::Other(message.to_owned(), hint));
        }
        let next: Self = serde_json::from_str(output.out.trim())
            .map_err(|error| Error::new(format!("hugeinfo settings wrote no result: {error}")))?;
        match server.directory() {
            Some(data) => next.of_owner(fixed(&data)?.1.uid()),
            None => Ok(next),
        }
    }

    /// Refuses a data directory of another user. PostgreSQL does so, too, but the owner can change
    /// what the process writes.
    fn of_owner(self, owner: u32) -> Result<Self, Error> {
        if let Some(data) = &self.data_directory {
            let found = fs::metadata(data).map_err(|error| Error::file("open", data, error))?;
            if !found.is_dir() || found.uid() != owner {
                return Err(Error::new(format!(
                    "{} is not a directory that the user of the server owns",
                    escape::name(data)
                )));
            }
        }
        Ok(Self {
            owner: Some(owner),
            version: escape::name(&self.version),
            ..self
        })
    }

    fn compute(server: &Server, detail: Detail) -> Result<Self, Error> {
        let is_new = server.directory().as_deref().is_some_and(is_empty);
        let prepared = match is_new {
            true => Planned::prepare(&server.at(None)),
            false => Planned::prepare(server),
        };
        match prepared {
            Ok(planned) => planned.next_start(detail),
            // The directory and the version are in files that PostgreSQL refuses.
            Err(Error::Refused(refusal)) if refusal.is_of_configuration => Ok(Self {
                version: String::new(),
                data_directory: None,
                config_file: None,
                settings: Err(refusal),
                owner: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// The state of a server that does not run.
    pub(crate) fn state(&self) -> ServerState {
        match (&self.settings, &self.data_directory) {
            (Ok(_), None) => ServerState::NotCreated,
            // If PostgreSQL refuses the configuration, the directory is unknown.
            _ => ServerState::Stopped,
        }
    }

    /// The settings. Errors: PostgreSQL would not start.
    pub(crate) fn settings(&self) -> Result<&Settings, Error> {
        self.settings
            .as_ref()
            .map_err(|refusal| Error::Refused(refusal.clone()))
    }
}

/// `hugeinfo settings`: prints the next start as JSON. Root runs it to compute the next start with
/// the rights of the owner of the data directory.
pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let detail = match options.only_pages {
        true => Detail::Pages,
        false => Detail::All,
    };
    if rustix::process::geteuid().is_root() {
        return Err(become_owner(&options.server, detail));
    }
    let next = NextStart::compute(&options.server, detail)?;
    let json = serde_json::to_string(&next);
    json.map(|text| Done::from(text + "\n"))
        .map_err(|error| Error::new(error.to_string()))
}

fn arguments(server: &Server, detail: Detail) -> Vec<OsString> {
    let mut arguments = server.arguments();
    if detail == Detail::Pages {
        arguments.push("--only-pages".into());
    }
    arguments
}

/// Refuses a server that nobody has named, if it runs in a sandbox or container, where the programs
/// of PostgreSQL would load the libraries of its configuration outside of it. Also refuses another
/// process with this PID, which works elsewhere.
fn check_sandbox(pid: u32, directory: Option<&Path>) -> Result<(), Error> {
    let root = Root::system();
    let server = Process::open(&root, pid)?;
    let place = fact(server.link("cwd"))?.ok();
    let is_there = place.as_deref() == directory.map(|path| path.as_os_str().as_bytes());
    if is_there && fact(sandbox::is_as_free(&server, &Process::this(&root)?))?.unwrap_or(false) {
        return Ok(());
    }
    let data = directory.map_or("DATADIR".to_owned(), escape::name);
    Err(Error::with_hint(
        format!(
            "the next start of the server with PID {pid} is unknown, because it runs in a sandbox or container of its own"
        ),
        format!("If you trust its configuration, name its directory: -D {data}"),
    ))
}

/// True for a directory for `initdb`.
fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// The path of a directory without links, and its owner. Only root and the owner can replace the
/// directory: another user could exchange it between two look-ups of its path, and PostgreSQL would
/// read files of this user with the rights of the owner.
fn fixed(data: &Path) -> Result<(PathBuf, Metadata), Error> {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let failed = |error| Error::file("open", data, error);
    let real = fs::canonicalize(data).map_err(failed)?;
    let owner = fs::symlink_metadata(&real).map_err(failed)?;
    if owner.uid() == 0 {
        let data = escape::name(data);
        return Err(Error::new(format!(
            "{data} belongs to root, and PostgreSQL does not run as root"
        )));
    }
    let is_safe = |directory: &Path| -> io::Result<bool> {
        let found = fs::symlink_metadata(directory)?;
        let can_be_changed = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
        Ok(found.is_dir() && [0, owner.uid()].contains(&found.uid()) && !can_be_changed)
    };
    // From the root, because the others can be exchanged until their parents are known to be safe.
    let all: Vec<_> = real.ancestors().collect();
    for directory in all.into_iter().rev() {
        if !is_safe(directory).map_err(failed)? {
            return Err(Error::with_hint(
                format!(
                    "{} can be changed by users other than root and the owner of {}",
                    escape::name(directory),
                    escape::name(&real)
                ),
                "Correct its owner and its permissions, or run this as the user of the server",
            ));
        }
    }
    Ok((real, owner))
}

/// Files that root has opened before this program, such as a log, must not reach the owner.
fn close_at_exec() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if number > 2 {
            // SAFETY: the descriptor is only used in the next line, and this process has no other
            // thread that closes files.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}

/// Runs this program again as the owner of the data directory, without a terminal to which it
/// could write. Returns only an error.
fn become_owner(server: &Server, detail: Detail) -> Error {
    let Some(data) = server.directory() else {
        return Error::with_hint(
            "cannot run as root, because the PostgreSQL programs refuse to run as root",
            "Use -D, or run this as the user of the server, as in: runuser -u postgres -- hugeinfo plan",
        );
    };
    let (data, owner) = match fixed(&data) {
        Ok(found) => found,
        Err(error) => return error,
    };
    let uid = owner.uid();
    // The group of a directory can be that of its parent. A user without an entry, as in a
    // container, has no other group.
    let gid = passwd::read(&Root::system())
        .ok()
        .and_then(|users| users.group(uid))
        .unwrap_or(owner.gid());
    if let Err(errno) = rustix::process::setsid() {
        return Error::new(format!("could not leave the terminal: {errno}"));
    }
    if let Err(error) = close_at_exec() {
        return Error::file("read", Path::new("/proc/self/fd"), error);
    }
    let mut command = command::this("settings");
    command::restrict(&mut command);
    let error = command
        .args(arguments(&server.at(Some(data)), detail))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .uid(uid)
        .gid(gid)
        .exec();
    Error::file("run", Path::new("/proc/self/exe"), error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use hugeinfo::server::recovery::LIMITS;

    use super::*;

    #[test]
    fn one_of_several_servers_has_less_time() {
        let now = Instant::now();
        let seconds = |limit: TimeLimit, after| {
            let left = limit.for_next(now + Duration::from_secs(after));
            left.ok().map(|left| left.as_secs())
        };
        let of_several = TimeLimit {
            end: Some(now + Duration::from_secs(60)),
            ..TimeLimit::of_several()
        };
        assert_eq!(seconds(TimeLimit::default(), 600), Some(120));
        assert_eq!(seconds(of_several, 0), Some(20));
        assert_eq!(seconds(of_several, 55), Some(5));
        assert_eq!(seconds(of_several, 60), None);
        assert_eq!(seconds(of_several, 61), None);
    }

    #[test]
    fn data_directories_of_other_users_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = rustix::process::geteuid().as_raw();
        let file = directory.path().join("file");
        fs::write(&file, "").expect("written");
        let too_low = TooLow {
            setting: LIMITS[0],
            value: Some(10),
            least: 20,
            is_certain: true,
        };
        let of_owner = |data: Option<&Path>, owner| {
            let json = serde_json::json!({
                "version": "15.1\u{1b}[2J\nx", "data_directory": data, "config_file": null, "owner": 0,
                "settings": { "Ok": {
                    "huge_pages": "On", "shared_memory_type": "Mmap", "huge_page_size_bytes": null,
                    "shared_memory_bytes": 0, "max_connections": 0, "shared_buffers_bytes": 0,
                    "uses_io_uring": false, "on_command_line": {}, "too_low": [too_low], "log_directory": "",
                } },
            });
            let next: NextStart = serde_json::from_value(json).expect("JSON of this program");
            let next = next.of_owner(owner).ok()?;
            assert_eq!(next.version, r"15.1\033[2J\012x");
            next.owner
        };
        assert_eq!(of_owner(Some(directory.path()), own), Some(own));
        assert_eq!(of_owner(None, own), Some(own));
        assert_eq!(of_owner(Some(directory.path()), own + 1), None);
        assert_eq!(of_owner(Some(&file), own), None);
        assert_eq!(of_owner(Some(Path::new("/nowhere")), own), None);
    }

    #[test]
    fn directories_that_others_can_replace_are_refused() {
        let parent = tempfile::tempdir().expect("a directory");
        let (shared, link) = (parent.path().join("shared"), parent.path().join("link"));
        let data = shared.join("data");
        fs::create_dir_all(&data).expect("created");
        symlink(&shared, &link).expect("a link");
        if rustix::process::geteuid().is_root() {
            chown(&data, Some(65534), None).expect("not a directory of root");
        }
        for (mode, expected) in [
            (0o755, true),
            (0o777, false),
            (0o775, false),
            (0o1777, true),
        ] {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(&shared, permissions).expect("permissions");
            let found = fixed(&link.join("data")).ok().map(|(path, _)| path);
            assert_eq!(found, expected.then(|| data.clone()), "{mode:o}");
        }
    }
}
