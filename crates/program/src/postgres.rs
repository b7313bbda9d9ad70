//! PostgreSQL's programs, and servers that run.

use std::{
    cell::RefCell,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{MetadataExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use host::{
    escape,
    linux::{
        error::{Absence, ReadError, absent_or},
        process::{Process, status},
    },
    next_start::{self, Failure, Output, Runner, scratch::Scratch},
    server::{
        postmaster_arguments,
        postmaster_pid::{self, PostmasterPid},
    },
};

use crate::{
    Server,
    command::{self, Running},
    error::Error,
    root,
};

/// Limit for one program. `initdb` needs about 1 s, `postgres -C` about 10 ms.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs PostgreSQL's programs, never as root.
#[derive(Default)]
pub(crate) struct Programs {
    scratch: RefCell<Vec<Scratch>>,
}

impl Runner for Programs {
    type Running = Running;
    type Error = Error;

    fn start(&self, mut command: Command) -> Result<Running, Error> {
        command.process_group(0);
        command::restrict(&mut command, command::LARGEST_FILE);
        command::end_with_parent(&mut command);
        Running::start(command, TIME_LIMIT)
    }

    fn finish(&self, running: Running) -> Result<Output, Error> {
        running.finish()
    }

    fn keep(&self, scratch: Scratch) {
        self.scratch.borrow_mut().push(scratch);
    }
}

/// Creates a data directory with the defaults. Without huge pages, because a cgroup might not
/// allow any, and initdb would die of SIGBUS.
pub(crate) fn initdb(runner: &Programs, programs: &Path) -> Result<PathBuf, Error> {
    let scratch = Scratch::create(|| ()).map_err(Failure::File)?;
    let (data, copy) = (scratch.path().join("data"), scratch.path().join("share"));
    runner.keep(scratch);
    let mut command = next_start::command(&programs.join("initdb"));
    command.arg("-D").arg(&data);
    command.args(["-U", "postgres", "-A", "trust", "--no-sync"]);
    command.args(["--no-locale", "-E", "UTF8"]);
    let version = next_start::version(runner, &programs.join("postgres"))?;
    match major_version(&version) {
        Some(16..) => {
            command.args(["-c", "huge_pages=off"]);
        }
        Some(_) => {
            copy_shared_files(runner, programs, &copy)?;
            command.arg("-L").arg(&copy);
        }
        None => {
            let text = format!("unknown version of PostgreSQL: {version}");
            return Err(Error::new(text));
        }
    }
    let output = runner.finish(runner.start(command)?)?;
    if output.status.success() {
        return Ok(data);
    }
    let is_reason = |line: &&str| {
        let words = ["error:", "FATAL:", "PANIC:"];
        words.iter().any(|word| line.contains(word))
    };
    let text = escape::lines(OsString::from_vec(output.err));
    let mut lines = text.lines();
    let reason = lines.clone().rfind(is_reason).or_else(|| lines.next_back());
    Err(Error::with_hint(
        format!("initdb failed: {}", reason.unwrap_or("no message")),
        "initdb needs about 40 MB in TMPDIR. With -D, it does not run",
    ))
}

/// Copies the files from which initdb of PostgreSQL 15 creates a data directory, with huge pages
/// turned off. Its trial servers ask for them all the same.
fn copy_shared_files(runner: &Programs, programs: &Path, copy: &Path) -> Result<(), Error> {
    const SAMPLE: &str = "postgresql.conf.sample";
    let mut command = next_start::command(&programs.join("initdb"));
    command.args(["--show", "-D", "/nowhere"]);
    let shown = runner.finish(runner.start(command)?)?;
    let text = [shown.out, shown.err].concat();
    let mut lines = text.split(|&byte| byte == b'\n');
    let real = lines
        .find_map(|line| line.trim_ascii().strip_prefix(b"share_path="))
        .ok_or_else(|| Error::new("initdb --show printed no share_path"))?;
    let real = Path::new(OsStr::from_bytes(real));
    let fill = || -> io::Result<()> {
        fs::create_dir(copy)?;
        for entry in fs::read_dir(real)? {
            let entry = entry?;
            if entry.file_name() != SAMPLE {
                symlink(entry.path(), copy.join(entry.file_name()))?;
            }
        }
        let sample = fs::read_to_string(real.join(SAMPLE))?;
        fs::write(copy.join(SAMPLE), sample + "\nhuge_pages = off\n")
    };
    fill().map_err(|error| Error::file("copy", real, error))
}

/// The PID of the server of a data directory, if it runs. `None`: it does not run, or cannot be
/// seen.
pub(crate) fn running(data: &Path) -> Option<u32> {
    lock_file(data).map(|file| file.pid)
}

/// The PID of the server of a data directory, if it runs outside of containers. Its user owns the
/// directory (PostgreSQL's `checkDataDir`).
pub(crate) fn running_outside(data: &Path) -> Option<u32> {
    let file = written_lock_file(data)?;
    works_in(file.pid, data).then_some(file.pid)
}

/// Errors: it is unknown whether a server in a container uses the data directory.
pub(crate) fn check_containers(data: &Path) -> Result<(), Error> {
    let Some(file) = written_lock_file(data) else {
        return Ok(());
    };
    match in_container(data, file.pid) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::with_hint(
            format!("{} might be in use by a container", escape::name(data)),
            "Run this as root",
        )),
    }
}

/// The lock file of a data directory. Its server might have ended.
fn written_lock_file(data: &Path) -> Option<PostmasterPid> {
    let bytes = root().read_small(&data.join("postmaster.pid")).ok()?;
    postmaster_pid::parse(&bytes)
}

/// The lock file of the server of a data directory, if it runs, with the PID that it has here.
fn lock_file(data: &Path) -> Option<PostmasterPid> {
    let file = written_lock_file(data)?;
    let pid = match works_in(file.pid, data) {
        true => file.pid,
        false => in_container(data, file.pid).ok()??,
    };
    Some(PostmasterPid { pid, ..file })
}

/// Whether a process of the owner of this directory works there.
fn works_in(pid: u32, data: &Path) -> bool {
    let owner = root()
        .look_up(data)
        .and_then(|found| found.owner_and_mode());
    owner.is_ok_and(|(uid, _)| works_for(pid, data, Some(uid)))
}

/// Whether a process of this user works in this directory. Reads no file of the user. `owner`:
/// `None` if any user will do.
pub(crate) fn works_for(pid: u32, data: &Path, owner: Option<u32>) -> bool {
    let process = format!("/proc/{pid}");
    let uid = || fs::metadata(&process).map(|found| found.uid());
    // First, because another user can make the next read wait forever.
    let is_of_user = owner.is_none_or(|owner| uid().is_ok_and(|uid| uid == owner));
    let works_there = || fs::read_link(format!("{process}/cwd")).is_ok_and(|cwd| cwd == data);
    is_of_user && works_there() && agrees_on(pid, data)
}

/// Whether a path means the same to this process as here (see [`Process::agrees_on`]).
pub(crate) fn agrees_on(pid: u32, path: &Path) -> bool {
    let root = root();
    let process = Process::open(&root, pid);
    process.is_ok_and(|process| process.agrees_on(&root, path).unwrap_or(false))
}

/// The process of the owner of this directory that works there and has this number in a PID
/// namespace of its own.
///
/// Errors: a process has the number, and its directory cannot be read.
fn in_container(data: &Path, number: u32) -> Result<Option<u32>, ReadError> {
    let root = root();
    let Ok(data) = root.look_up(data) else {
        return Ok(None);
    };
    let owner = data.owner_and_mode().ok().map(|(uid, _)| uid);
    let mut buffer = Vec::new();
    let mut denied = None;
    for pid in Process::numbers(&root)? {
        let process = Process::open(&root, pid);
        let identity = process.and_then(|process| {
            let identity = status::read_identity(&process, &mut buffer)?;
            Ok((process, identity))
        });
        // It might have ended.
        let Ok((process, identity)) = identity else {
            continue;
        };
        let is_in_namespace = identity.numbers.len() > 1;
        let has_number = identity.numbers.last() == Some(&number);
        if !is_in_namespace || !has_number || identity.uid != owner {
            continue;
        }
        match absent_or(process.is_working_directory(&data.file))? {
            Ok(true) => return Ok(Some(pid)),
            Err(absent) if absent.why == Absence::Denied => denied = Some(absent),
            Ok(false) | Err(_) => {}
        }
    }
    match denied {
        Some(absent) => Err(ReadError::Absent(absent)),
        None => Ok(None),
    }
}

/// The options of the server of a data directory. `None`: it does not run.
pub(crate) fn running_options(data: &Path) -> Option<Vec<OsString>> {
    let bytes = fs::read(format!("/proc/{}/cmdline", running(data)?)).ok()?;
    Some(options(&bytes))
}

/// The options with which the server of a data directory was last started. Empty: unknown.
pub(crate) fn last_options(data: &Path) -> Vec<OsString> {
    let file = root().read_small(&data.join("postmaster.opts")).ok();
    let bytes = file.and_then(|file| postmaster_arguments::parse_options(&file));
    bytes.map_or(Vec::new(), |bytes| options(&bytes))
}

fn options(command_line: &[u8]) -> Vec<OsString> {
    let options = postmaster_arguments::arguments(command_line).skip(1);
    options
        .map(|option| OsStr::from_bytes(option).to_owned())
        .collect()
}

/// Refuses to run as root, like the programs of PostgreSQL, and on the data directory of another
/// user, whose configuration can load any library.
pub(crate) fn check_user(data: Option<&Path>) -> Result<(), Error> {
    let own = rustix::process::geteuid();
    if own.is_root() {
        return Err(Error::with_hint(
            "cannot run as root, because the PostgreSQL programs refuse to run as root",
            "Run this as the user of the server",
        ));
    }
    let Some(data) = data else { return Ok(()) };
    let found = fs::symlink_metadata(data).map_err(|error| Error::file("open", data, error))?;
    if found.is_dir() && found.uid() == own.as_raw() {
        return Ok(());
    }
    let data = escape::name(data);
    Err(Error::with_hint(
        format!("{data} is not a data directory of this user"),
        "Run this as the user of the server, or as root",
    ))
}

/// The directory with the programs.
pub(crate) fn programs(server: &Server, data: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(directory) = &server.bindir {
        return has_programs(directory.clone()).ok_or_else(|| {
            let directory = escape::name(directory);
            Error::new(format!("there are no PostgreSQL programs in {directory}"))
        });
    }
    let wanted = data.and_then(major_of);
    if let Some(major) = wanted.filter(|major| *major < OLDEST) {
        return Err(Error::new(format!(
            "PostgreSQL {OLDEST} or newer is needed: version {major} does not compute the size of shared memory"
        )));
    }
    let found = match wanted {
        Some(major) => of_major(major),
        None => (OLDEST..100).rev().find_map(of_major).or_else(in_path),
    };
    found.ok_or_else(|| {
        let version = wanted.map_or(String::new(), |major| format!(" {major}"));
        Error::with_hint(
            format!("no PostgreSQL{version} programs found"),
            "Name their directory with --bindir, as in: hugeinfo plan --bindir \"$(pg_config --bindir)\"",
        )
    })
}

/// The oldest major version with `shared_memory_size`.
const OLDEST: u32 = 15;

/// The major version, as in `15.20`, `19rc1` or `20devel`.
pub(crate) fn major_version(version: &str) -> Option<u32> {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The major version of a data directory.
pub(crate) fn major_of(data: &Path) -> Option<u32> {
    let bytes = root().read_small(&data.join("PG_VERSION")).ok()?;
    str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// The directories in which Debian and the packages of postgresql.org install a version.
pub(crate) fn of_major(major: u32) -> Option<PathBuf> {
    [
        format!("/usr/lib/postgresql/{major}/bin"),
        format!("/usr/pgsql-{major}/bin"),
    ]
    .into_iter()
    .find_map(|directory| has_programs(directory.into()))
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find_map(has_programs)
}

/// The absolute path of the directory, if it has the programs.
fn has_programs(directory: PathBuf) -> Option<PathBuf> {
    let exists = |name: &str| directory.join(name).try_exists().unwrap_or(false);
    let has_all = ["postgres", "initdb"].into_iter().all(exists);
    fs::canonicalize(&directory).ok().filter(|_| has_all)
}

#[cfg(test)]
mod tests {
    use super::major_version;

    #[test]
    fn candidates_have_major_versions() {
        let versions = ["15.20", "19rc1", "19beta2", "20devel", "", "devel"];
        let majors = versions.map(major_version);
        assert_eq!(majors, [Some(15), Some(19), Some(19), Some(20), None, None]);
    }
}
