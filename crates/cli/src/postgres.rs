//! Runs the programs of PostgreSQL, never as root.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{
        fs::MetadataExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use hugeinfo::{
    escape,
    linux::root::{WRITTEN, if_regular},
    server::{
        facts::{self, HugePages, SharedMemoryType},
        failed_start::FailedStart,
        postmaster_pid,
        scratch_data::FIXED_SETTINGS,
    },
};
use rustix::{
    fs::Mode,
    process::{Pid, Signal, kill_process_group},
};

use crate::{Server, error::Error, scratch::Scratch};

/// Limit for one program. `initdb` needs about 1 s, `postgres -C` about 10 ms.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Only the end of longer output is read.
const LONGEST_OUTPUT: u64 = 64 << 10;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Lets SIGINT, SIGTERM and SIGHUP end the running program of PostgreSQL, so that the scratch
/// directory is removed.
pub(crate) fn end_on_signal() -> Result<(), Error> {
    let handled = ctrlc::set_handler(|| IS_INTERRUPTED.store(true, Ordering::Relaxed));
    handled.map_err(|error| Error::new(format!("could not handle signals: {error}")))
}

/// A server that does not run here, whose settings PostgreSQL computes.
pub(crate) struct Planned {
    programs: PathBuf,
    scratch: Scratch,
    arguments: Vec<String>,
    /// The real data directory, if there is one.
    data: Option<PathBuf>,
}

impl Planned {
    /// Prepares the scratch directory.
    pub(crate) fn prepare(server: &Server) -> Result<Self, Error> {
        let data = match &server.data {
            Some(data) => {
                let real = fs::canonicalize(data);
                Some(real.map_err(|error| Error::file("open", data, error))?)
            }
            None => None,
        };
        check_user(data.as_deref())?;
        for setting in &server.settings {
            check_setting(setting)?;
        }
        let mut planned = Self {
            programs: programs(server, data.as_deref())?,
            arguments: Vec::new(),
            scratch: Scratch::create()?,
            data: None,
        };
        let is_chosen = server.pg.is_some() || server.bindir.is_some();
        let directory = match &data {
            Some(data) => planned.copy_configuration(data, is_chosen)?,
            None => planned.init()?,
        };
        planned.arguments.extend(["-D".to_owned(), directory]);
        for fixed in FIXED_SETTINGS {
            planned.set(fixed);
        }
        if data.is_none() {
            // initdb might have found that this machine has too few.
            planned.set("huge_pages=try");
        }
        for setting in &server.settings {
            planned.set(setting);
        }
        Ok(planned)
    }

    fn set(&mut self, setting: &str) {
        self.arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }

    /// Copies the files that PostgreSQL reads from a data directory, or from that of a directory
    /// with configuration files, as on Debian. Unless the programs were chosen, uses those of the
    /// version of the data directory.
    fn copy_configuration(&mut self, data: &Path, is_chosen: bool) -> Result<String, Error> {
        if !data.join("postgresql.conf").exists() {
            return Err(Error::with_hint(
                format!("{} has no postgresql.conf", escape::name(data)),
                "On Debian, use the directory below /etc/postgresql, such as -D /etc/postgresql/15/main",
            ));
        }
        let arguments = ["-D".to_owned(), utf8(data)?];
        let config: PathBuf = self.query(&arguments, "config_file")?;
        let real: PathBuf = self.query(&arguments, "data_directory")?;
        let real = fs::canonicalize(&real).map_err(|error| Error::file("open", &real, error))?;
        check_user(Some(&real))?;
        if let Some(programs) = major_of(&real).and_then(of_major).filter(|_| !is_chosen) {
            self.programs = programs;
        }
        self.scratch.copy_data(&real)?;
        self.data = Some(real);
        let scratch = utf8(self.scratch.path())?;
        self.set(&format!("config_file={}", utf8(&config)?));
        self.set(&format!("data_directory={scratch}"));
        Ok(scratch)
    }

    /// Creates a data directory with the defaults.
    fn init(&self) -> Result<String, Error> {
        let data = utf8(&self.scratch.path().join("data"))?;
        let arguments = [
            "-D",
            &data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        ];
        let output = self.run("initdb", &arguments.map(str::to_owned))?;
        if output.status.success() {
            return Ok(data);
        }
        let is_reason = |line: &&str| {
            let words = ["error:", "FATAL:", "PANIC:"];
            words.iter().any(|word| line.contains(word))
        };
        let mut lines = output.err.lines();
        let reason = lines.clone().rfind(is_reason).or_else(|| lines.next_back());
        Err(Error::with_hint(
            format!("initdb failed: {}", reason.unwrap_or("no message")),
            "initdb needs about 40 MB in TMPDIR. With -D, it does not run",
        ))
    }

    /// The settings of the next start that affect huge pages, and the size of its segment.
    pub(crate) fn server(&self) -> Result<facts::Server, Error> {
        // Printed in kB. 0 is the kernel's default.
        let huge_page_size_kb: u64 = self.value("huge_page_size")?;
        Ok(facts::Server {
            huge_pages: match self.value::<String>("huge_pages")?.as_str() {
                "off" => HugePages::Off,
                "on" => HugePages::On,
                _ => HugePages::Try,
            },
            shared_memory_type: match self.value::<String>("shared_memory_type")?.as_str() {
                "sysv" => SharedMemoryType::Sysv,
                _ => SharedMemoryType::Mmap,
            },
            huge_page_size_bytes: Some(huge_page_size_kb << 10).filter(|bytes| *bytes > 0),
            shared_memory_bytes: self.segment_bytes(&[])?,
        })
    }

    /// Bytes of the main shared memory segment with these settings in addition: exact up to 8 TiB,
    /// rounded up to whole MB above.
    pub(crate) fn segment_bytes(&self, more: &[String]) -> Result<u64, Error> {
        let mut arguments = self.arguments.clone();
        for setting in more {
            arguments.extend(["-c".to_owned(), setting.clone()]);
        }
        let small_pages = ["-c".to_owned(), "huge_page_size=4kB".to_owned()];
        let with_small_pages = [&arguments[..], &small_pages].concat();
        match self.query(&with_small_pages, "shared_memory_size_in_huge_pages") {
            Ok(pages) => Ok(facts::bytes_of_small_pages(pages)),
            Err(Error::Refused(refusal)) if refusal.message.contains("huge_page") => {
                let megabytes: u64 = self.query(&arguments, "shared_memory_size")?;
                Ok(megabytes << 20)
            }
            Err(error) => Err(error),
        }
    }

    /// The value of a setting that PostgreSQL does not compute, without a unit.
    pub(crate) fn value<T: FromStr>(&self, setting: &str) -> Result<T, Error> {
        self.query(&self.arguments, setting)
    }

    /// The value of a setting with these arguments.
    fn query<T: FromStr>(&self, arguments: &[String], setting: &str) -> Result<T, Error> {
        let arguments = [arguments, &["-C".to_owned(), setting.to_owned()]].concat();
        let output = self.run("postgres", &arguments)?;
        let value = output.value().and_then(|value| value.parse().ok());
        value.ok_or_else(|| self.refused(&output))
    }

    /// The PID of the server, if it runs. `None`: it does not run, or cannot be seen.
    pub(crate) fn running(&self) -> Option<u32> {
        let data = self.data.as_ref()?;
        let bytes = read_small(&data.join("postmaster.pid")).ok()?;
        let pid = postmaster_pid::parse(&bytes)?.pid;
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        (directory == *data).then_some(pid)
    }

    /// The version, such as `15.20`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        let output = self.run("postgres", &["--version".to_owned()])?;
        let words = output.out.split_ascii_whitespace();
        Ok(words.skip(2).take(1).collect())
    }

    fn refused(&self, output: &Output) -> Error {
        Error::Refused(FailedStart::parse(
            &output.err,
            "postgres",
            &output.status.to_string(),
            matches!(output.status.code(), Some(1 | 2)),
            &escape::name(self.scratch.path()),
        ))
    }

    fn run(&self, program: &str, arguments: &[String]) -> Result<Output, Error> {
        let path = self.programs.join(program);
        let failed = |error| Error::file("run", &path, error);
        let file = |name: &str| {
            let file = self.scratch.path().join(name);
            File::create(&file).map_err(|error| Error::file("create", &file, error))
        };
        let mut command = Command::new(&path);
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?)
            .process_group(0)
            .env("LC_MESSAGES", "C");
        // With NOTIFY_SOCKET, the service manager would mistake the program for the server.
        for name in ["LANGUAGE", "LC_ALL", "NOTIFY_SOCKET", "PGDATA", "PG_COLOR"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        let deadline = Instant::now() + TIME_LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            let is_late = Instant::now() > deadline;
            if is_late || IS_INTERRUPTED.load(Ordering::Relaxed) {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                child.wait().map_err(failed)?;
                let path = escape::name(&path);
                return Err(Error::new(match is_late {
                    true => format!("{path} did not end within {} s", TIME_LIMIT.as_secs()),
                    false => "interrupted by a signal".to_owned(),
                }));
            }
            thread::sleep(Duration::from_millis(1));
        };
        let text = |name: &str| {
            let mut file = File::open(self.scratch.path().join(name)).map_err(failed)?;
            let length = file.metadata().map_err(failed)?.len();
            // The result and the reason of a failure are at the end.
            let start = length.saturating_sub(LONGEST_OUTPUT);
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            let mut bytes = Vec::new();
            let read = file.take(LONGEST_OUTPUT).read_to_end(&mut bytes);
            read.map_err(failed)?;
            Ok::<_, Error>(escape::lines(String::from_utf8_lossy(&bytes).into_owned()))
        };
        Ok(Output {
            status,
            out: text("out")?,
            err: text("err")?,
        })
    }
}

struct Output {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Output {
    /// A preloaded library can write anything. The last line is from PostgreSQL.
    fn value(&self) -> Option<&str> {
        let is_done = self.status.success() && self.status.signal().is_none();
        self.out.lines().last().filter(|_| is_done)
    }
}

/// Errors: not NAME=VALUE, or a setting that the scratch directory needs.
fn check_setting(setting: &str) -> Result<(), Error> {
    let (name, _) = setting.split_once('=').unwrap_or((setting, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.len() == setting.len() || name.is_empty() || !name.chars().all(is_name) {
        return Err(Error::with_hint(
            format!("-c {}: NAME=VALUE was expected", escape::name(setting)),
            "Write no blanks around \"=\" and no quotes around the value, as in -c shared_buffers=64GB",
        ));
    }
    match normalized(name).as_str() {
        "data_directory" | "config_file" => Err(Error::with_hint(
            format!(
                "-c {}: this setting cannot be planned",
                escape::name(setting)
            ),
            "Use -D",
        )),
        _ => Ok(()),
    }
}

/// The name of a setting as PostgreSQL compares it.
pub(crate) fn normalized(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::new(format!("{} is not valid UTF-8", escape::name(path))))
}

/// Refuses to run as root, like the programs of PostgreSQL, and on the data directory of another
/// user, whose configuration can load any library.
fn check_user(data: Option<&Path>) -> Result<(), Error> {
    let own = rustix::process::geteuid();
    if own.is_root() {
        return Err(Error::with_hint(
            "this cannot run as root, like the programs of PostgreSQL that it runs",
            "Use the user of the server, as in: runuser -u postgres -- hugeinfo plan",
        ));
    }
    let Some(data) = data else { return Ok(()) };
    let found = fs::symlink_metadata(data).map_err(|error| Error::file("open", data, error))?;
    if found.is_dir() && found.uid() == own.as_raw() {
        return Ok(());
    }
    let data = escape::name(data);
    Err(Error::with_hint(
        format!("{data} is not a directory of this user"),
        "Run this as the user of the server",
    ))
}

/// Reads a small regular file. Opening a FIFO would block, and a device might never end.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let opened = rustix::fs::open(path, WRITTEN, Mode::empty())?;
    let file = if_regular(opened)?.ok_or_else(|| io::Error::other("not a regular file"))?;
    let mut bytes = Vec::new();
    file.take(64 << 10).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The directory with the programs.
fn programs(server: &Server, data: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(directory) = &server.bindir {
        return has_programs(directory.clone()).ok_or_else(|| {
            let directory = escape::name(directory);
            Error::new(format!(
                "there are no programs of PostgreSQL in {directory}"
            ))
        });
    }
    let wanted = server.pg.or_else(|| data.and_then(major_of));
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
            format!("no programs of PostgreSQL{version} found"),
            "--bindir names their directory, as in: hugeinfo plan --bindir \"$(pg_config --bindir)\"",
        )
    })
}

/// The oldest major version with `shared_memory_size`.
const OLDEST: u32 = 15;

/// The major version of a data directory.
fn major_of(data: &Path) -> Option<u32> {
    let bytes = read_small(&data.join("PG_VERSION")).ok()?;
    str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Where Debian and the packages of postgresql.org install a version.
fn of_major(major: u32) -> Option<PathBuf> {
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
