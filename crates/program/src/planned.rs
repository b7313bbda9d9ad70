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
    next_start::{self, Computation, Origin, SIZING},
    server::{
        postmaster_arguments,
        setting::{FileLine, SettingSource},
        state::{self, HugePages, SharedMemoryType},
        configuration::{self, Configuration, Values},
    },
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

/// The files from which a server starts.
struct Place {
    /// The real data directory.
    data: PathBuf,
    config_file: PathBuf,
    /// The settings in the files. `None`: only PostgreSQL understands them.
    in_files: Option<Values>,
}

/// A server whose next start is computed.
pub(crate) struct Planned {
    pub(crate) computation: Computation<Programs>,
    program: PathBuf,
    place: Place,
    /// The data directory is that of a new server.
    is_new: bool,
    /// The settings that can change the shared memory or its pages among the options of the running
    /// server, or of the last start.
    pub(crate) options: Vec<String>,
    /// Whether the server runs. The next start of one that does not run does not use `options`.
    pub(crate) is_running: bool,
}

impl Planned {
    pub(crate) fn prepare(server: &Server, trust: Trust) -> Result<Self, Error> {
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
        match data {
            Some(data) => Self::of_directory(server, &data, programs, trust),
            None => Self::new_server(server, &programs),
        }
    }

    /// A new server with the defaults, whatever initdb found on this machine.
    fn new_server(server: &Server, programs: &Path) -> Result<Self, Error> {
        const DEFAULTS: [&str; 3] = [
            "huge_pages=try",
            "max_connections=100",
            "shared_buffers=128MB",
        ];
        let runner = Programs::default();
        let data = postgres::initdb(&runner, programs)?;
        let place = Place {
            config_file: data.join("postgresql.conf"),
            data,
            in_files: None,
        };
        let settings = DEFAULTS.into_iter().map(OsString::from);
        let settings = settings.chain(server.settings.iter().map(OsString::from));
        let program = programs.join("postgres");
        let planned = Self::with(runner, program, place, None, settings.collect())?;
        Ok(Self {
            is_new: true,
            ..planned
        })
    }

    /// The server of a data directory, or of a directory with configuration files, as on Debian.
    /// Unless the programs were chosen, uses those of the version of the data directory.
    fn of_directory(
        server: &Server,
        directory: &Path,
        programs: PathBuf,
        trust: Trust,
    ) -> Result<Self, Error> {
        let runner = Programs::default();
        trust.check(
            directory,
            &["postmaster.opts", "postgresql.conf", "postgresql.auto.conf"],
        )?;
        let running = postgres::running_options(directory);
        let place = find(&runner, directory, running.as_deref(), &programs, trust)?;
        postgres::check_user(Some(&place.data))?;
        trust.check(
            &place.data,
            &[
                place.config_file.as_os_str(),
                "postmaster.opts".as_ref(),
                "postgresql.auto.conf".as_ref(),
            ],
        )?;
        let is_chosen = server.pg.is_some() || server.bindir.is_some();
        let own = postgres::major_of(&place.data).and_then(postgres::of_major);
        let programs = own.filter(|_| !is_chosen).unwrap_or(programs);
        let running = match place.data == directory {
            true => running,
            false => postgres::running_options(&place.data),
        };
        let is_running = running.is_some();
        let options = match &running {
            Some(options) => sizing(options),
            None => sizing(&postgres::last_options(&place.data)),
        };
        let settings = server.settings.iter().map(OsString::from).collect();
        let program = programs.join("postgres");
        Ok(Self {
            options,
            is_running,
            ..Self::with(runner, program, place, running, settings)?
        })
    }

    fn with(
        runner: Programs,
        program: PathBuf,
        place: Place,
        command_line: Option<Vec<OsString>>,
        settings: Vec<OsString>,
    ) -> Result<Self, Error> {
        let origin = Origin {
            program: &program,
            data: &place.data,
            config_file: &place.config_file,
            command_line,
        };
        let computation = Computation::prepare(runner, origin, settings)?;
        Ok(Self {
            computation,
            program,
            place,
            is_new: false,
            options: Vec::new(),
            is_running: false,
        })
    }

    /// The real data directory, if there is one.
    pub(crate) fn data_directory(&self) -> Option<PathBuf> {
        (!self.is_new).then(|| self.place.data.clone())
    }

    /// The version, such as `15.20`.
    pub(crate) fn version(&self) -> Result<String, Error> {
        next_start::version(&self.computation.runner, &self.program)
    }

    /// The settings of the next start. Errors: PostgreSQL would not start.
    pub(crate) fn settings(&self, detail: Detail) -> Result<Settings, Error> {
        let computation = &self.computation;
        let segment = computation.start_segment(&[])?;
        let command_line = bytes_of(&computation.arguments);
        let (huge_pages, huge_page_size, shared_memory_type) =
            match self.settings_in_files(&command_line) {
                Some(settings) => settings,
                None => self.settings_of_pages()?,
            };
        let mut settings = Settings::of(state::Server {
            huge_pages,
            shared_memory_type,
            // 0 is the default of the kernel.
            huge_page_size_bytes: Some(huge_page_size).filter(|bytes| *bytes > 0),
            shared_memory_bytes: 0,
        });
        if detail == Detail::All {
            let names = ["max_connections", "shared_buffers", "block_size"];
            let [connections, buffers, block]: [u64; 3] = computation.values(names)?;
            let [logs]: [String; 1] = computation.values(["log_directory"])?;
            settings.max_connections = connections;
            settings.shared_buffers_bytes = buffers.saturating_mul(block);
            settings.log_directory = logs.into();
            settings.sources = self.sources(&command_line);
        }
        settings.server.shared_memory_bytes = computation.finish_segment(segment, &[])?;
        Ok(settings)
    }

    /// The places in which settings are set, or can be. Files that others include are not read.
    fn sources(&self, command_line: &[u8]) -> BTreeMap<String, SettingSource> {
        let lines = |file: &Path| {
            let text = root().read_small(file).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines = text.lines().zip(1..);
            let lines = lines.filter_map(|(text, line)| Some((configuration::parse_line(text)?.0, line)));
            lines.collect::<BTreeMap<_, u32>>()
        };
        let auto = self.place.data.join("postgresql.auto.conf");
        let files = [auto, self.place.config_file.clone()];
        let files = files.map(|path| (lines(&path), path));
        let source = |name: &str| {
            let mut given = postmaster_arguments::settings(command_line);
            if given.any(|(given, _)| given == name.as_bytes()) {
                return SettingSource::CommandLine;
            }
            let set = files
                .iter()
                .find_map(|(lines, path)| Some((path, *lines.get(name)?)));
            let (path, line) = set.unwrap_or((&self.place.config_file, 0));
            let path = path.clone();
            SettingSource::File(Some(FileLine { path, line }))
        };
        let sources = WATCHED
            .into_iter()
            .map(|name| (name.to_owned(), source(name)));
        sources.collect()
    }

    /// The settings that determine the pages, if PostgreSQL is not needed to understand them.
    fn settings_in_files(&self, command_line: &[u8]) -> Option<(HugePages, u64, SharedMemoryType)> {
        let mut values = self.place.in_files.clone()?;
        values.append(&mut configuration::of_command_line(command_line)?);
        let value = |name, default| values.get(name).map_or(default, String::as_str);
        Some((
            configuration::parse_huge_pages(value("huge_pages", "try"))?,
            configuration::parse_size(value("huge_page_size", "0"))?,
            SharedMemoryType::parse(value("shared_memory_type", "mmap"))?,
        ))
    }

    /// The same, computed by PostgreSQL.
    fn settings_of_pages(&self) -> Result<(HugePages, u64, SharedMemoryType), Error> {
        let names = ["huge_pages", "shared_memory_type", "huge_page_size"];
        let [pages, kind, kilobytes]: [String; 3] = self.computation.values(names)?;
        let unknown = |name, value| Error::new(format!("{name}: unknown value: {value}"));
        Ok((
            configuration::parse_huge_pages(&pages).ok_or_else(|| unknown(names[0], &pages))?,
            configuration::parse_size(&kilobytes).ok_or_else(|| unknown(names[2], &kilobytes))?,
            SharedMemoryType::parse(&kind).ok_or_else(|| unknown(names[1], &kind))?,
        ))
    }
}

/// Finds the files of a server. Reading them is many times faster than running PostgreSQL.
/// `running`: the options of a running server.
fn find(
    runner: &Programs,
    directory: &Path,
    running: Option<&[OsString]>,
    programs: &Path,
    trust: Trust,
) -> Result<Place, Error> {
    let command_line = bytes_of(running.unwrap_or_default());
    let mut named = postmaster_arguments::settings(&command_line);
    let named = named.find(|(name, _)| name == b"config_file");
    let config_file = match named {
        Some((_, file)) => directory.join(OsStr::from_bytes(file)),
        None => directory.join("postgresql.conf"),
    };
    trust.check(directory, &[config_file.as_os_str()])?;
    if running.is_none() && !config_file.exists() {
        return Err(missing(directory));
    }
    let (data, in_files) = match Configuration::read(&root(), directory, &command_line) {
        Some(found) => (found.data_directory, Some(found.values)),
        None => {
            let mut arguments = running.unwrap_or_default().to_vec();
            arguments.extend(["-D".into(), directory.into()]);
            let program = programs.join("postgres");
            let data = next_start::data_directory(runner, &program, &arguments)?;
            (data, None)
        }
    };
    let data = fs::canonicalize(&data).map_err(|error| Error::file("open", &data, error))?;
    Ok(Place {
        data,
        config_file,
        in_files,
    })
}

/// The error for a directory without a configuration file.
fn missing(directory: &Path) -> Error {
    let last = bytes_of(&postgres::last_options(directory));
    let named = postmaster_arguments::settings(&last).find(|(name, _)| name == b"config_file");
    let place = named.and_then(|(_, file)| Path::new(OsStr::from_bytes(file)).parent());
    let text = format!("{} has no postgresql.conf", escape::name(directory));
    Error::with_hint(
        text,
        match place {
            Some(place) => format!("Its last start used that of -D {}", escape::name(place)),
            None => "On Debian, use the directory below /etc/postgresql, such as -D /etc/postgresql/15/main".to_owned(),
        },
    )
}

/// The settings among these options that can change the shared memory or its pages.
fn sizing(options: &[OsString]) -> Vec<String> {
    let command_line = bytes_of(options);
    let settings = postmaster_arguments::settings(&command_line);
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
    fn check(self, directory: &Path, files: &[impl AsRef<OsStr>]) -> Result<(), Error> {
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
            let file = directory.join(file.as_ref());
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
