//! Runs the programs of PostgreSQL, never as root.

use std::{
    fs::{self, File},
    io,
    os::unix::{
        fs::MetadataExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use hugeinfo::{
    escape,
    server::{facts, failed_start::FailedStart},
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Server, error::Error, scratch::Scratch};

/// `initdb` takes a second, `postgres -C` ten milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Output beyond this length is ignored.
const LONGEST_OUTPUT: usize = 64 << 10;

static IS_ENDED: AtomicBool = AtomicBool::new(false);

/// Lets SIGINT, SIGTERM and SIGHUP end the running program of PostgreSQL, so that the scratch
/// directory is removed.
pub(crate) fn end_on_signal() -> Result<(), Error> {
    let handled = ctrlc::set_handler(|| IS_ENDED.store(true, Ordering::Relaxed));
    handled.map_err(|error| Error::new(format!("could not handle signals: {error}")))
}

/// A server that does not run here, whose settings PostgreSQL computes.
pub(crate) struct Planned {
    programs: PathBuf,
    scratch: Scratch,
    arguments: Vec<String>,
}

impl Planned {
    /// Prepares the scratch directory. As root, first becomes the owner of the data directory, or
    /// `postgres` or `nobody` without one: the rest of the run reads only what that user can read.
    pub(crate) fn prepare(server: &Server) -> Result<Self, Error> {
        become_owner(server.data.as_deref())?;
        for setting in &server.settings {
            if !setting.contains('=') {
                return Err(Error::with_hint(
                    format!("-c {}: NAME=VALUE was expected", escape::name(setting)),
                    "An example is -c shared_buffers=64GB",
                ));
            }
        }
        let programs = programs(server)?;
        let scratch = Scratch::create()?;
        let mut planned = Self {
            programs,
            arguments: Vec::new(),
            scratch,
        };
        let data = match &server.data {
            Some(data) => planned.imitate(data)?,
            None => planned.init()?,
        };
        planned.arguments.extend(["-D".to_owned(), data]);
        for fixed in [
            // The files can be relative to the data directory. They use no shared memory.
            "ssl=off",
            "fsync=off",
            "log_destination=stderr",
            "log_line_prefix=",
            "log_min_messages=error",
            "log_error_verbosity=verbose",
            "lc_messages=C",
        ] {
            planned.set(fixed);
        }
        for setting in &server.settings {
            planned.set(setting);
        }
        Ok(planned)
    }

    fn set(&mut self, setting: &str) {
        self.arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }

    /// Copies what PostgreSQL reads of a data directory, or of a directory with its configuration,
    /// as on Debian.
    fn imitate(&mut self, data: &Path) -> Result<String, Error> {
        let data = fs::canonicalize(data).map_err(|error| Error::file("open", data, error))?;
        let ask = |setting| {
            let arguments = ["-D", &utf8(&data)?, "-C", setting].map(str::to_owned);
            let output = self.run("postgres", &arguments)?;
            let value = output.value().map(PathBuf::from);
            value.ok_or_else(|| self.refused(&output))
        };
        let (config, real) = (ask("config_file")?, ask("data_directory")?);
        self.scratch.imitate(&real)?;
        let scratch = utf8(self.scratch.path())?;
        self.set(&format!("config_file={}", utf8(&config)?));
        self.set(&format!("data_directory={scratch}"));
        Ok(scratch)
    }

    /// Creates a data directory with the defaults.
    fn init(&self) -> Result<String, Error> {
        let data = utf8(&self.scratch.path().join("data"))?;
        // Small, because initdb starts servers. It takes the defaults that it writes to the file
        // from what this machine can run; the command line overrides those.
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
            Ok(data)
        } else {
            Err(Error::with_hint(
                format!("initdb failed: {}", last_line(&output.err)),
                "With -D, the files of an existing server are used",
            ))
        }
    }

    /// Bytes of the main shared memory segment with these settings in addition: exact up to 8 TiB,
    /// rounded up to whole MB above.
    pub(crate) fn segment_bytes(&self, more: &[String]) -> Result<u64, Error> {
        let mut arguments = self.arguments.clone();
        for setting in more {
            arguments.extend(["-c".to_owned(), setting.clone()]);
        }
        let ask = |more: &[&str], setting: &str| {
            let mut arguments = arguments.clone();
            arguments.extend(more.iter().map(|&word| word.to_owned()));
            arguments.extend(["-C".to_owned(), setting.to_owned()]);
            let output = self.run("postgres", &arguments)?;
            let number = output.value().and_then(|value| value.parse::<u64>().ok());
            Ok::<_, Error>(number.ok_or_else(|| self.refused(&output)))
        };
        let small_pages = ["-c", "huge_page_size=4kB"];
        match ask(&small_pages, "shared_memory_size_in_huge_pages")? {
            Ok(pages) => Ok(facts::bytes_of_small_pages(pages)),
            Err(Error::Refused(refusal)) if refusal.message.contains("huge_page") => {
                Ok(ask(&[], "shared_memory_size")?? << 20)
            }
            Err(error) => Err(error),
        }
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
        let file = |name: &str| File::create(self.scratch.path().join(name));
        let mut command = Command::new(&path);
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(file("out").map_err(failed)?)
            .stderr(file("err").map_err(failed)?)
            .process_group(0)
            .env("LC_MESSAGES", "C");
        // The service manager would take the program for the server.
        for name in ["LANGUAGE", "LC_ALL", "NOTIFY_SOCKET", "PGDATA"] {
            command.env_remove(name);
        }
        let mut child = command.spawn().map_err(failed)?;
        let deadline = Instant::now() + TIME_LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            let is_late = Instant::now() > deadline;
            if is_late || IS_ENDED.load(Ordering::Relaxed) {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                child.wait().map_err(failed)?;
                let path = escape::name(&path);
                return Err(Error::new(match is_late {
                    true => format!("{path} did not end within {} s", TIME_LIMIT.as_secs()),
                    false => "ended by a signal".to_owned(),
                }));
            }
            thread::sleep(Duration::from_millis(1));
        };
        let text = |name: &str| {
            let mut bytes = fs::read(self.scratch.path().join(name)).map_err(failed)?;
            bytes.truncate(LONGEST_OUTPUT);
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

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or("no message")
}

fn utf8(path: &Path) -> Result<String, Error> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::new(format!("{} is not valid UTF-8", escape::name(path))))
}

/// As root, runs this program again as the owner of the data directory.
fn become_owner(data: Option<&Path>) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = match data {
        Some(data) => {
            let owner = fs::metadata(data).map_err(|error| Error::file("open", data, error))?;
            (owner.uid(), owner.gid())
        }
        None => user("postgres")
            .or_else(|| user("nobody"))
            .unwrap_or((65534, 65534)),
    };
    if uid == 0 {
        return Err(Error::with_hint(
            "PostgreSQL cannot run as root, which owns this directory",
            "Run this as the user of the server",
        ));
    }
    let this = Path::new("/proc/self/exe");
    let error = Command::new(this)
        .args(std::env::args_os().skip(1))
        .uid(uid)
        .gid(gid)
        .exec();
    Err(Error::file("run", this, error))
}

/// The user ID and the group ID of a user in `/etc/passwd`.
fn user(name: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_it = fields.next() == Some(name);
        let mut numbers = fields.skip(1).map(str::parse);
        let (uid, gid) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        is_it.then_some((uid, gid))
    })
}

/// The directory with the programs.
fn programs(server: &Server) -> Result<PathBuf, Error> {
    if let Some(directory) = &server.bindir {
        return has_programs(directory.clone()).ok_or_else(|| {
            let directory = escape::name(directory);
            Error::new(format!(
                "there are no programs of PostgreSQL in {directory}"
            ))
        });
    }
    let of_data = server.data.as_ref().and_then(|data| {
        let text = fs::read_to_string(data.join("PG_VERSION")).ok()?;
        text.trim().parse().ok()
    });
    let found = match server.pg.or(of_data) {
        Some(major) => of_major(major),
        None => (10..100).rev().find_map(of_major).or_else(in_path),
    };
    found.ok_or_else(|| {
        Error::with_hint(
            "no programs of PostgreSQL found",
            "--bindir names their directory, as in: hugeinfo plan --bindir \"$(pg_config --bindir)\"",
        )
    })
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

fn has_programs(directory: PathBuf) -> Option<PathBuf> {
    let exists = |name: &str| -> io::Result<bool> { directory.join(name).try_exists() };
    let has_all = ["postgres", "initdb"]
        .into_iter()
        .all(|name| exists(name).unwrap_or(false));
    has_all.then_some(directory)
}
