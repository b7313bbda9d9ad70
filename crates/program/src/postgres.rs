//! Runs the programs of PostgreSQL, never as root.

use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, symlink},
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    Server,
    command::{self, Output},
    error::Error,
    next_start::{Detail, NextStart, Settings},
    root,
    scratch::Scratch,
};
use host::{
    escape,
    linux::{
        error::{Absence, ReadError, absent_or},
        process::{Process, status},
    },
    server::{
        configuration::{self, Configuration, Values},
        failed_start::FailedStart,
        patroni::{self, OF_PRIMARY, PrimarySettings},
        postmaster_arguments,
        postmaster_pid::{self, PostmasterPid},
        scratch_data::FIXED_SETTINGS,
        state::{HugePages, SharedMemoryType, bytes_of_small_pages},
    },
};

/// Limit for one program. `initdb` needs about 1 s, `postgres -C` about 10 ms.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A server that does not run here, whose settings PostgreSQL computes.
pub(crate) struct Planned {
    programs: PathBuf,
    scratch: Scratch,
    arguments: Vec<String>,
    /// The real data directory, if there is one.
    data: Option<PathBuf>,
    config_file: Option<PathBuf>,
    /// The settings in the files. `None`: only PostgreSQL understands them.
    in_files: Option<Values>,
    /// Patroni starts the server.
    is_of_patroni: bool,
}

/// Whether the configuration is that of the person who runs this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// That of the person who runs this program.
    Own,
    /// That of the owner of the data directory, for root. The files have to belong to the owner or
    /// to root: PostgreSQL loads the libraries that they name.
    ForRoot,
}

impl Planned {
    /// Prepares the scratch directory.
    pub(crate) fn prepare(server: &Server, trust: Trust) -> Result<Self, Error> {
        let data = match server.directory() {
            Some(data) => {
                let real = fs::canonicalize(&data);
                Some(real.map_err(|error| Error::file("open", &data, error))?)
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
            config_file: None,
            in_files: None,
            is_of_patroni: false,
        };
        let is_chosen = server.pg.is_some() || server.bindir.is_some();
        let directory = match &data {
            Some(data) => planned.copy_configuration(data, is_chosen, trust)?,
            None => planned.init()?,
        };
        planned.arguments.extend(["-D".to_owned(), directory]);
        planned.arguments.extend(fixed_arguments());
        if data.is_none() {
            // The defaults, whatever initdb found on this machine.
            for default in [
                "huge_pages=try",
                "max_connections=100",
                "shared_buffers=128MB",
            ] {
                planned.set(default);
            }
        }
        for setting in &server.settings {
            planned.set(setting);
        }
        if planned.is_of_patroni {
            planned.raise_as_patroni()?;
        }
        Ok(planned)
    }

    fn set(&mut self, setting: &str) {
        self.arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }

    /// Copies the files that PostgreSQL reads from a data directory, or from that of a directory
    /// with configuration files, as on Debian. Unless the programs were chosen, uses those of the
    /// version of the data directory. Uses the command line of the server as it runs, or as it was
    /// last started.
    fn copy_configuration(
        &mut self,
        data: &Path,
        is_chosen: bool,
        trust: Trust,
    ) -> Result<String, Error> {
        trust.check(
            data,
            &["postmaster.opts", "postgresql.conf", "postgresql.auto.conf"],
        )?;
        let mut last = command_line(data);
        for (name, file) in postmaster_arguments::settings(&bytes_of(&last)) {
            if let (b"config_file", Ok(file)) = (name.as_slice(), str::from_utf8(file)) {
                trust.check(data, &[file])?;
            }
        }
        if last.is_empty() && !data.join("postgresql.conf").exists() {
            return Err(Error::with_hint(
                format!("{} has no postgresql.conf", escape::name(data)),
                "On Debian, use the directory below /etc/postgresql, such as -D /etc/postgresql/15/main",
            ));
        }
        // Reading is many times faster than running PostgreSQL.
        let (config, real) = match Configuration::read(&root(), data, &bytes_of(&last)) {
            Some(found) => {
                self.in_files = Some(found.values);
                (found.config_file, found.data_directory)
            }
            None => {
                let mut arguments = [&last[..], &["-D".to_owned(), utf8(data)?]].concat();
                arguments.extend(fixed_arguments());
                let [config, real] = self.values(&arguments, ["config_file", "data_directory"])?;
                (config.into(), real.into())
            }
        };
        let real = fs::canonicalize(&real).map_err(|error| Error::file("open", &real, error))?;
        check_user(Some(&real))?;
        trust.check(
            &real,
            &[&utf8(&config)?, "postmaster.opts", "postgresql.auto.conf"],
        )?;
        if let Some(programs) = major_of(&real).and_then(of_major).filter(|_| !is_chosen) {
            self.programs = programs;
        }
        if real != data {
            last = command_line(&real);
        }
        self.scratch.copy_data(&real)?;
        self.data = Some(real);
        let scratch = utf8(self.scratch.path())?;
        self.is_of_patroni = patroni::wrote(&config);
        // The next start has another command line. All of its settings are also in the file.
        if !self.is_of_patroni {
            self.arguments.extend(last);
        }
        self.set(&format!("config_file={}", utf8(&config)?));
        self.set(&format!("data_directory={scratch}"));
        self.config_file = Some(config);
        Ok(scratch)
    }

    /// Creates a data directory with the defaults. Without huge pages, because a cgroup might not
    /// allow any, and initdb would die of SIGBUS.
    fn init(&self) -> Result<String, Error> {
        let data = utf8(&self.scratch.path().join("data"))?;
        let mut arguments = [
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
        ]
        .map(str::to_owned)
        .to_vec();
        match self.major()? {
            16.. => arguments.extend(["-c".to_owned(), "huge_pages=off".to_owned()]),
            _ => arguments.extend(["-L".to_owned(), self.shared_files()?]),
        }
        let output = self.run("initdb", &arguments)?;
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

    /// Copies the files from which initdb of PostgreSQL 15 creates a data directory, with huge pages
    /// turned off. Its trial servers ask for them all the same.
    fn shared_files(&self) -> Result<String, Error> {
        const SAMPLE: &str = "postgresql.conf.sample";
        let shown = self.run(
            "initdb",
            &["--show".to_owned(), "-D".to_owned(), "/nowhere".to_owned()],
        )?;
        let lines = [&shown.out, &shown.err]
            .into_iter()
            .flat_map(|text| text.lines());
        let mut paths = lines.filter_map(|line| line.trim().strip_prefix("share_path="));
        let real = paths
            .next()
            .ok_or_else(|| Error::new("initdb --show printed no share_path"))?;
        let copy = self.scratch.path().join("share");
        let fill = || -> io::Result<()> {
            fs::create_dir(&copy)?;
            for entry in fs::read_dir(real)? {
                let entry = entry?;
                if entry.file_name() != SAMPLE {
                    symlink(entry.path(), copy.join(entry.file_name()))?;
                }
            }
            let sample = fs::read_to_string(Path::new(real).join(SAMPLE))?;
            fs::write(copy.join(SAMPLE), sample + "\nhuge_pages = off\n")
        };
        fill().map_err(|error| Error::file("copy", Path::new(real), error))?;
        utf8(&copy)
    }

    fn major(&self) -> Result<u32, Error> {
        let version = self.version()?;
        major_version(&version)
            .ok_or_else(|| Error::new(format!("unknown version of PostgreSQL: {version}")))
    }

    /// The next start.
    pub(crate) fn next_start(&self, detail: Detail) -> Result<NextStart, Error> {
        let settings = match self.settings(detail) {
            Ok(settings) => Ok(settings),
            Err(Error::Refused(refusal)) if refusal.is_of_configuration => Err(refusal),
            Err(error) => return Err(error),
        };
        Ok(NextStart {
            version: match detail {
                Detail::Pages => String::new(),
                Detail::All => self.version()?,
            },
            data_directory: self.data.clone(),
            config_file: self.config_file.clone(),
            settings,
            starts_at_boot: true,
            owner: None,
        })
    }

    /// The settings of the next start. Errors: PostgreSQL would not start.
    pub(crate) fn settings(&self, detail: Detail) -> Result<Settings, Error> {
        let (bytes, of_pages) = thread::scope(|scope| {
            let bytes = scope.spawn(|| self.segment_bytes(&[]));
            let read = self.settings_in_files().map(Ok);
            let of_pages = read.unwrap_or_else(|| self.settings_of_pages());
            (joined(bytes), of_pages)
        });
        let (huge_pages, huge_page_size, shared_memory_type) = of_pages?;
        let on_command_line = postmaster_arguments::settings(&bytes_of(&self.arguments))
            .filter_map(|(name, value)| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
                Some((text(&name)?, text(value)?))
            })
            .collect();
        let settings = Settings {
            huge_pages,
            shared_memory_type,
            // 0 is the default of the kernel.
            huge_page_size_bytes: Some(huge_page_size).filter(|bytes| *bytes > 0),
            shared_memory_bytes: bytes?,
            max_connections: 0,
            shared_buffers_bytes: 0,
            on_command_line,
            log_directory: PathBuf::new(),
        };
        if detail == Detail::Pages {
            return Ok(settings);
        }
        let names = [
            "max_connections",
            "shared_buffers",
            "block_size",
            "log_directory",
        ];
        let [connections, buffers, block, logs] = self.values(&self.arguments, names)?;
        let block: u64 = number("block_size", &block)?;
        Ok(Settings {
            max_connections: number("max_connections", &connections)?,
            shared_buffers_bytes: number("shared_buffers", &buffers)?.saturating_mul(block),
            log_directory: logs.into(),
            ..settings
        })
    }

    /// The settings that determine the pages, if PostgreSQL is not needed to understand them.
    fn settings_in_files(&self) -> Option<(HugePages, u64, SharedMemoryType)> {
        let mut values = self.in_files.clone()?;
        values.append(&mut configuration::of_command_line(&bytes_of(
            &self.arguments,
        ))?);
        let value = |name, default| values.get(name).map_or(default, String::as_str);
        let shared_memory_type = match value("shared_memory_type", "mmap") {
            "mmap" => SharedMemoryType::Mmap,
            "sysv" => SharedMemoryType::Sysv,
            _ => return None,
        };
        Some((
            configuration::parse_huge_pages(value("huge_pages", "try"))?,
            configuration::parse_size(value("huge_page_size", "0"))?,
            shared_memory_type,
        ))
    }

    /// The same, computed by PostgreSQL.
    fn settings_of_pages(&self) -> Result<(HugePages, u64, SharedMemoryType), Error> {
        let names = ["huge_pages", "huge_page_size", "shared_memory_type"];
        let [huge_pages, kilobytes, shared_memory_type] = self.values(&self.arguments, names)?;
        Ok((
            match huge_pages.as_str() {
                "off" => HugePages::Off,
                "on" => HugePages::On,
                _ => HugePages::Try,
            },
            number("huge_page_size", &kilobytes)? << 10,
            match shared_memory_type.as_str() {
                "sysv" => SharedMemoryType::Sysv,
                _ => SharedMemoryType::Mmap,
            },
        ))
    }

    /// The settings in which a standby must not be lower than its primary: those of the primary in
    /// `pg_control`, and those of the next start.
    fn settings_of_primary(&self) -> Result<(PrimarySettings, PrimarySettings), Error> {
        let control = self.run("pg_controldata", &[utf8(self.scratch.path())?])?;
        let mut primary = PrimarySettings::new();
        let mut next = PrimarySettings::new();
        for name in OF_PRIMARY {
            // PostgreSQL's name in pg_control differs for these two.
            let shown = match name {
                "max_prepared_transactions" => "max_prepared_xacts",
                "max_locks_per_transaction" => "max_locks_per_xact",
                name => name,
            };
            let label = format!("{shown} setting:");
            let value = control.out.lines().find_map(|line| {
                let value = line.strip_prefix(&label)?;
                value.trim().parse().ok()
            });
            let missing = || Error::new(format!("pg_controldata did not print \"{label}\""));
            primary.insert(name, value.ok_or_else(missing)?);
            next.insert(name, self.value(name)?);
        }
        Ok((primary, next))
    }

    /// Raises settings like Patroni, unless it restarts a primary. After a boot, it starts the former
    /// primary as a standby, too.
    fn raise_as_patroni(&mut self) -> Result<(), Error> {
        let is_restart_of_primary = |data: &Path| running(data).is_some() && !is_standby(data);
        if self.data.as_deref().is_some_and(is_restart_of_primary) {
            return Ok(());
        }
        let (primary, next) = self.settings_of_primary()?;
        for (name, least) in patroni::raised(&next, &primary) {
            self.set(&format!("{name}={least}"));
        }
        Ok(())
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
            Ok(pages) => Ok(bytes_of_small_pages(pages)),
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

    /// The values of settings with these arguments, computed at the same time.
    fn values<const N: usize>(
        &self,
        arguments: &[String],
        names: [&str; N],
    ) -> Result<[String; N], Error> {
        let values = thread::scope(|scope| {
            let run = |name| scope.spawn(move || self.query::<String>(arguments, name));
            names.map(run).map(joined)
        });
        let mut all = [const { String::new() }; N];
        for (place, value) in all.iter_mut().zip(values) {
            *place = value?;
        }
        Ok(all)
    }

    /// The value of a setting with these arguments.
    fn query<T: FromStr>(&self, arguments: &[String], setting: &str) -> Result<T, Error> {
        let arguments = [arguments, &["-C".to_owned(), setting.to_owned()]].concat();
        let output = self.run("postgres", &arguments)?;
        let value = value(&output).and_then(|value| value.parse().ok());
        value.ok_or_else(|| self.refused(&output))
    }

    /// The version, such as `15.20`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        let output = self.run("postgres", &["--version".to_owned()])?;
        let words = value(&output).unwrap_or_default().split_ascii_whitespace();
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
        let mut command = Command::new(self.programs.join(program));
        command
            .args(arguments)
            .env("LC_MESSAGES", "C")
            .process_group(0);
        // With NOTIFY_SOCKET, the service manager would mistake the program for the server.
        for name in ["LANGUAGE", "LC_ALL", "NOTIFY_SOCKET", "PGDATA", "PG_COLOR"] {
            command.env_remove(name);
        }
        command::restrict(&mut command);
        command::run(command, TIME_LIMIT)
    }
}

impl Trust {
    /// For root, refuses a directory that others can write to, and files in it that do not belong
    /// to root or the owner, with all files that they include. A missing file is no error.
    fn check(self, directory: &Path, files: &[&str]) -> Result<(), Error> {
        if self == Self::Own {
            return Ok(());
        }
        let own = rustix::process::geteuid().as_raw();
        let found =
            fs::metadata(directory).map_err(|error| Error::file("open", directory, error))?;
        let is_safe = [0, own].contains(&found.uid()) && found.mode() & 0o022 == 0;
        let mut checked = match is_safe {
            true => Ok(()),
            false => Err(directory.to_owned()),
        };
        for file in files {
            checked = checked
                .and_then(|()| configuration::check_owner(&root(), &directory.join(file), own));
        }
        checked.map_err(|path| {
            let path = escape::name(path);
            Error::with_hint(
                format!("{path} does not belong to root or the owner of the data directory alone"),
                "Correct its owner and its permissions, or run this as the user of the server",
            )
        })
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    let panicked = |_| Err(Error::new("a thread panicked"));
    thread.join().unwrap_or_else(panicked)
}

fn number(name: &str, value: &str) -> Result<u64, Error> {
    value
        .parse()
        .map_err(|_| Error::new(format!("{name}: expected a number: {value}")))
}

/// The value that a program printed. A preloaded library can write anything, but the last line is
/// from PostgreSQL.
fn value(output: &Output) -> Option<&str> {
    let is_done = output.status.success() && output.status.signal().is_none();
    output.out.lines().last().filter(|_| is_done)
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

/// Whether a process of this user works in this directory. Reads no file of the user. `owner`: `None`
/// if any user will do.
pub(crate) fn works_for(pid: u32, data: &Path, owner: Option<u32>) -> bool {
    let process = format!("/proc/{pid}");
    let uid = || fs::metadata(&process).map(|found| found.uid());
    // First, because another user can make the next read wait forever.
    let is_of_user = owner.is_none_or(|owner| uid().is_ok_and(|uid| uid == owner));
    is_of_user && fs::read_link(format!("{process}/cwd")).is_ok_and(|cwd| cwd == data)
}

/// The process of the owner of this directory that works there and has this number in a PID namespace
/// of its own.
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

/// The arguments of the server of a data directory, as it runs or as it was last started, without
/// the program. Empty: unknown.
fn command_line(data: &Path) -> Vec<String> {
    let of_running = running(data).and_then(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok());
    let bytes = of_running.or_else(|| {
        let file = root().read_small(&data.join("postmaster.opts")).ok()?;
        configuration::parse_options(&file)
    });
    let text = bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    let arguments = text.trim_end_matches('\0').split('\0').skip(1);
    arguments.map(str::to_owned).collect()
}

/// Arguments of a server, as in `/proc/PID/cmdline`.
fn bytes_of(arguments: &[String]) -> Vec<u8> {
    let all = ["postgres"].into_iter();
    let all = all.chain(arguments.iter().map(String::as_str));
    all.flat_map(|argument| [argument.as_bytes(), b"\0"].concat())
        .collect()
}

fn fixed_arguments() -> impl Iterator<Item = String> {
    let fixed = FIXED_SETTINGS.into_iter();
    fixed.flat_map(|setting| ["-c".to_owned(), setting.to_owned()])
}

fn is_standby(data: &Path) -> bool {
    let signals = ["standby.signal", "recovery.signal"];
    signals.iter().any(|name| data.join(name).exists())
}

/// Errors: not NAME=VALUE, or a setting that the scratch directory needs.
fn check_setting(setting: &str) -> Result<(), Error> {
    let (name, _) = setting.split_once('=').unwrap_or((setting, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.len() == setting.len() || name.is_empty() || !name.chars().all(is_name) {
        return Err(Error::with_hint(
            format!("-c {}: expected NAME=VALUE", escape::name(setting)),
            "Write no spaces around \"=\" and no quotes around the value, as in -c shared_buffers=64GB",
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
            "cannot run as root, because the PostgreSQL programs refuse to run as root",
            "Run this as the user of the server, as in: setsid -w runuser -u postgres -- hugeinfo plan",
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

/// The directory with the programs.
fn programs(server: &Server, data: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(directory) = &server.bindir {
        return has_programs(directory.clone()).ok_or_else(|| {
            let directory = escape::name(directory);
            Error::new(format!("there are no PostgreSQL programs in {directory}"))
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
fn major_of(data: &Path) -> Option<u32> {
    let bytes = root().read_small(&data.join("PG_VERSION")).ok()?;
    str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// The directories in which Debian and the packages of postgresql.org install a version.
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
