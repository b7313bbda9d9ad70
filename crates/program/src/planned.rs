//! A server whose next start PostgreSQL computes, with the rights of this user.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use host::{
    escape,
    near::nearest,
    next_start::{self, Computation, Origin, Runner, SIZING, failed_start::FailedStart},
    server::{
        configuration::{self, Configuration},
        postmaster_arguments,
        setting::{FileLine, SettingSource},
        state::{self, HugePages, SharedMemoryType},
    },
    units::parse_size,
};
use serde::{Deserialize, Serialize};

use crate::{
    Server,
    error::Error,
    postgres::{self, Programs},
    root,
};

/// The part of the next start that is computed. PostgreSQL's program runs once for each setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The settings that determine its huge pages.
    Pages,
    /// Everything.
    All,
}

/// The settings that advice is about.
pub(crate) const WATCHED: [&str; 5] = [
    "huge_pages",
    "huge_page_size",
    "shared_memory_type",
    "max_connections",
    "shared_buffers",
];

/// The settings of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) server: state::Server,
    pub(crate) max_connections: u64,
    pub(crate) shared_buffers_bytes: u64,
    /// The places in which [`WATCHED`] are set. Empty: not computed.
    pub(crate) sources: BTreeMap<String, SettingSource>,
    /// Empty: not computed.
    pub(crate) log_directory: PathBuf,
}

impl Settings {
    pub(crate) fn of(server: state::Server) -> Self {
        Self {
            server,
            max_connections: 0,
            shared_buffers_bytes: 0,
            sources: BTreeMap::new(),
            log_directory: PathBuf::new(),
        }
    }

    /// True if PostgreSQL can have computed these numbers. Its settings are of the type `int`: kB
    /// (`huge_page_size`, a multiple of any size), MB (`shared_memory_size`), or blocks of at most
    /// 32 kB. `max_connections` is at most `MAX_BACKENDS`.
    pub(crate) fn is_possible(&self) -> bool {
        const INT_MAX: u64 = i32::MAX.unsigned_abs() as u64;
        const MAX_BACKENDS: u64 = 0x3_ffff;
        let is_size =
            |bytes: u64| bytes > 0 && bytes.is_multiple_of(1 << 10) && bytes >> 10 <= INT_MAX;
        self.server.huge_page_size_bytes.is_none_or(is_size)
            && self.server.shared_memory_bytes >> 20 <= INT_MAX
            && self.max_connections <= MAX_BACKENDS
            && self.shared_buffers_bytes >> 15 <= INT_MAX
    }
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

/// The program and the files of a server.
struct Place {
    program: PathBuf,
    /// The real data directory.
    data: PathBuf,
    config_file: PathBuf,
    /// `None`: only PostgreSQL understands the files.
    lines: Option<BTreeMap<&'static str, FileLine>>,
    running: Option<Vec<OsString>>,
    /// Created by initdb for this run.
    is_new: bool,
    /// Settings that override all others.
    planned: Vec<OsString>,
}

/// A server whose next start is computed.
pub(crate) struct Planned {
    pub(crate) computation: Computation<Programs>,
    place: Place,
}

impl Planned {
    pub(crate) fn prepare(server: &Server, trust: Trust) -> Result<Self, Error> {
        /// The settings of a new server. initdb would choose values that depend on this machine.
        const DEFAULTS: [&str; 3] = [
            "huge_pages=try",
            "max_connections=100",
            "shared_buffers=128MB",
        ];
        let data = match server.directory() {
            Some(data) => {
                let real = fs::canonicalize(&data);
                Some(real.map_err(|error| Error::file("open", &data, error))?)
            }
            None => None,
        };
        postgres::check_user(data.as_deref())?;
        for setting in &server.settings {
            check_setting(setting)?;
        }
        let programs = postgres::programs(server, data.as_deref())?;
        let runner = Programs::default();
        let mut place = match data {
            Some(data) => Place::find(&runner, server, &data, &programs, trust)?,
            None => Place::new_server(&runner, &programs)?,
        };
        let defaults = DEFAULTS.into_iter().filter(|_| place.is_new);
        let settings = server.settings.iter().map(String::as_str);
        place.planned = defaults.chain(settings).map(OsString::from).collect();
        Ok(Self {
            computation: place.computation(runner, place.running.clone())?,
            place,
        })
    }

    /// The settings of a start from the files alone. `None`: that start would be the same as
    /// `next`. Errors: PostgreSQL would not start.
    pub(crate) fn start_from_files(
        &self,
        next: &state::Server,
    ) -> Option<Result<state::Server, Error>> {
        if !self.computation.keeps_command_line || self.options().is_empty() {
            return None;
        }
        let computation = self.place.computation(Programs::default(), None);
        let start = computation.and_then(|computation| server(&computation));
        Some(start).filter(|start| start.as_ref().ok() != Some(next))
    }

    /// Whether the server runs. The next start of a stopped server does not use its
    /// [`options`](Self::options).
    pub(crate) fn is_running(&self) -> bool {
        self.place.running.is_some()
    }

    /// The options of the running server, or of the last start, that can change the shared memory
    /// or its pages.
    pub(crate) fn options(&self) -> Vec<String> {
        match &self.place.running {
            Some(options) => sizing(&bytes_of(options)),
            None => sizing(&bytes_of(&postgres::last_options(&self.place.data))),
        }
    }

    /// The real data directory, if there is one.
    pub(crate) fn data_directory(&self) -> Option<PathBuf> {
        (!self.place.is_new).then(|| self.place.data.clone())
    }

    /// The version, such as `15.20`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        next_start::version(&self.computation.runner, &self.place.program)
    }

    /// The settings of the next start. Errors: PostgreSQL would not start.
    pub(crate) fn settings(&self, detail: Detail) -> Result<Settings, Error> {
        self.compute_settings(detail).map_err(|error| match error {
            Error::Refused(refusal) => {
                let near = self.near(&refusal.message);
                let hint = near.map(|near| format!("Did you mean \"{near}\"?"));
                Error::Refused(FailedStart {
                    hint: hint.or(refusal.hint),
                    ..refusal
                })
            }
            error => error,
        })
    }

    /// The setting whose name is nearest to the one that PostgreSQL does not know.
    fn near(&self, message: &str) -> Option<String> {
        let typed = message.strip_prefix("unrecognized configuration parameter \"")?;
        let mut command = next_start::command(&self.place.program);
        command.arg("--describe-config");
        let runner = &self.computation.runner;
        let output = runner.finish(runner.start(command).ok()?).ok()?;
        let text = String::from_utf8_lossy(&output.out);
        let names = text.lines().filter_map(|line| line.split('\t').next());
        nearest(typed.strip_suffix('"')?, names).map(str::to_owned)
    }

    fn compute_settings(&self, detail: Detail) -> Result<Settings, Error> {
        let computation = &self.computation;
        let mut settings = Settings::of(server(computation)?);
        if detail == Detail::All {
            let names = [
                "max_connections",
                "shared_buffers",
                "block_size",
                "log_directory",
            ];
            let values: [String; 4] = computation.values(names)?;
            let number = |at: usize| -> Result<u64, Error> {
                let failed = |_| unknown(names[at], &values[at]);
                values[at].parse().map_err(failed)
            };
            settings.max_connections = number(0)?;
            settings.shared_buffers_bytes = number(1)?.saturating_mul(number(2)?);
            settings.log_directory = PathBuf::from(&values[3]);
            settings.sources = self.sources(&bytes_of(&computation.arguments));
        }
        Ok(settings)
    }

    /// The places in which settings are set, or can be. Files that others include are not read:
    /// with them, the file is unknown.
    fn sources(&self, command_line: &[u8]) -> BTreeMap<String, SettingSource> {
        let source = |name: &str| {
            if postmaster_arguments::setting(command_line, name).is_some() {
                return SettingSource::CommandLine;
            }
            let line = self.place.lines.as_ref().map(|lines| {
                let set = lines.get(name).cloned();
                set.unwrap_or_else(|| FileLine {
                    path: self.place.config_file.clone(),
                    line: 0,
                })
            });
            SettingSource::File(line)
        };
        let sources = WATCHED
            .into_iter()
            .map(|name| (name.to_owned(), source(name)));
        sources.collect()
    }
}

impl Place {
    fn new_server(runner: &Programs, programs: &Path) -> Result<Self, Error> {
        let data = postgres::initdb(runner, programs)?;
        Ok(Self {
            program: programs.join("postgres"),
            config_file: data.join("postgresql.conf"),
            data,
            lines: None,
            running: None,
            is_new: true,
            planned: Vec::new(),
        })
    }

    /// The start with this command line. `None`: from the files alone.
    fn computation(
        &self,
        runner: Programs,
        command_line: Option<Vec<OsString>>,
    ) -> Result<Computation<Programs>, Error> {
        let origin = Origin {
            program: &self.program,
            data: &self.data,
            config_file: &self.config_file,
            command_line,
        };
        Computation::prepare(runner, origin, self.planned.iter().cloned())
    }

    /// The server of a data directory, or of a directory with configuration files, as on Debian.
    /// Uses the programs of the version of the data directory, unless others were chosen.
    fn find(
        runner: &Programs,
        server: &Server,
        directory: &Path,
        programs: &Path,
        trust: Trust,
    ) -> Result<Self, Error> {
        let running = postgres::running_options(directory);
        let options = running.as_deref().unwrap_or_default();
        let command_line = bytes_of(options);
        let config_file = match postmaster_arguments::setting(&command_line, "config_file") {
            Some(file) => directory.join(OsStr::from_bytes(file)),
            None => directory.join("postgresql.conf"),
        };
        let used = |directory| {
            let others = ["postmaster.opts", "postgresql.auto.conf"].map(OsStr::new);
            trust.check(
                directory,
                &[&[config_file.as_os_str()], &others[..]].concat(),
            )
        };
        used(directory)?;
        if running.is_none() && !config_file.exists() {
            return Err(missing(directory));
        }
        // Reading them is many times faster than running PostgreSQL.
        let (data, lines) = match Configuration::read(&root(), directory, &command_line) {
            Some(found) => (found.data_directory, Some(found.lines)),
            None => {
                let arguments = [options, &["-D".into(), directory.into()]].concat();
                let program = programs.join("postgres");
                let data = next_start::data_directory(runner, &program, &arguments)?;
                (data, None)
            }
        };
        let data = fs::canonicalize(&data).map_err(|error| Error::file("open", &data, error))?;
        postgres::check_user(Some(&data))?;
        used(&data)?;
        let own = postgres::major_of(&data).and_then(postgres::of_major);
        let own = own.filter(|_| server.bindir.is_none());
        Ok(Self {
            program: own.as_deref().unwrap_or(programs).join("postgres"),
            running: match data == directory {
                true => running,
                false => postgres::running_options(&data),
            },
            data,
            config_file,
            lines,
            is_new: false,
            planned: Vec::new(),
        })
    }
}

/// The settings that determine the huge pages of a start.
fn server(computation: &Computation<Programs>) -> Result<state::Server, Error> {
    let segment = computation.start_segment(&[])?;
    let names = ["huge_pages", "shared_memory_type", "huge_page_size"];
    let [pages, kind, kilobytes]: [String; 3] = computation.values(names)?;
    let huge_page_size =
        parse_size(&kilobytes, 1 << 10).ok_or_else(|| unknown(names[2], &kilobytes))?;
    Ok(state::Server {
        huge_pages: HugePages::parse(&pages).ok_or_else(|| unknown(names[0], &pages))?,
        shared_memory_type: SharedMemoryType::parse(&kind)
            .ok_or_else(|| unknown(names[1], &kind))?,
        // 0 is the default of the kernel.
        huge_page_size_bytes: Some(huge_page_size).filter(|bytes| *bytes > 0),
        shared_memory_bytes: computation.finish_segment(segment, &[])?,
    })
}

fn unknown(name: &str, value: &str) -> Error {
    Error::new(format!("{name}: unknown value: {value}"))
}

/// The error for a directory without a configuration file.
fn missing(directory: &Path) -> Error {
    let last = bytes_of(&postgres::last_options(directory));
    let named = postmaster_arguments::setting(&last, "config_file");
    let place = named.and_then(|file| Path::new(OsStr::from_bytes(file)).parent());
    let text = format!("{} has no postgresql.conf", escape::name(directory));
    Error::with_hint(
        text,
        match place {
            Some(place) => format!("Its last start used that of -D {}", escape::name(place)),
            None => "On Debian, use the directory below /etc/postgresql, such as -D /etc/postgresql/15/main".to_owned(),
        },
    )
}

/// The settings on this command line that can change the shared memory or its pages.
pub(crate) fn sizing(command_line: &[u8]) -> Vec<String> {
    let settings = postmaster_arguments::settings(command_line);
    let is_sizing = |name: &[u8]| SIZING.iter().any(|known| known.to_bytes() == name);
    settings
        .filter(|(name, _)| is_sizing(name))
        .map(|(name, value)| {
            let setting = [&name[..], b"=", value].concat();
            escape::name(OsStr::from_bytes(&setting))
        })
        .collect()
}

impl Trust {
    /// For root, refuses a directory that others can write to, and files in it that do not belong
    /// to root or the owner, with all files that they include. A missing file is no error.
    fn check(self, directory: &Path, files: &[&OsStr]) -> Result<(), Error> {
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
            let file = directory.join(file);
            checked = checked.and_then(|()| configuration::check_owner(&root(), &file, own));
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

/// Arguments of a server, as in `/proc/PID/cmdline`.
fn bytes_of(arguments: &[OsString]) -> Vec<u8> {
    let all = std::iter::once(OsStr::new("postgres"));
    let all = all.chain(arguments.iter().map(OsString::as_os_str));
    all.flat_map(|argument| [argument.as_bytes(), b"\0"].concat())
        .collect()
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
