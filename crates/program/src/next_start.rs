//! The settings of the next start, which PostgreSQL computes with the rights of the server's user.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use advice::model::machine::ServerState;
use clap::Args;
use host::{
    escape,
    linux::lookup::Found,
    next_start::{
        failed_start::FailedStart,
        largest_buffers::{Fit, TooFewPages},
    },
    server::state,
    units::{PageSize, Pages},
};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Done, Server, command,
    error::Error,
    is_root,
    owner::{self, Owned},
    planned::{Detail, Planned, Settings, Trust},
    root,
};

/// The verb of the process that computes a next start.
pub(crate) const CHILD: &str = "internal-next-start";

/// The options of that process.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: Server,
    #[arg(long)]
    only_pages: bool,
    /// Computes the largest shared_buffers for this number of huge pages instead.
    #[arg(long, requires = "page_bytes")]
    pages: Option<u64>,
    #[arg(long)]
    page_bytes: Option<u64>,
    /// The running server, if this process is of root.
    #[arg(long)]
    postmaster: Option<u32>,
    /// Root runs this as the owner of the data directory.
    #[arg(long)]
    for_root: bool,
}

/// The next start, as far as it matters for memory. Written by the owner of the data directory, so
/// nothing in it can be trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NextStart {
    /// The version of PostgreSQL, such as `15.20`. Empty: not computed.
    pub(crate) version: String,
    /// The real data directory. `None`: there is none yet.
    pub(crate) data_directory: Option<PathBuf>,
    /// Errors: PostgreSQL would not start.
    pub(crate) settings: Result<Settings, FailedStart>,
    /// The settings of a start of a running server from the files alone. `None`: the same, unknown
    /// or not computed. Errors: PostgreSQL would not start.
    pub(crate) from_files: Option<Result<state::Server, FailedStart>>,
    /// See [`Planned::options`].
    pub(crate) options: Vec<String>,
    /// Whether the server runs.
    pub(crate) is_running: bool,
    /// Whether Debian starts the cluster at boot. Other servers: true.
    pub(crate) starts_at_boot: bool,
    /// The user who wrote this, if this process is of root. Set by root, whatever is written.
    pub(crate) owner: Option<u32>,
}

/// Limits on the texts of an owner, which a person reads.
const LONGEST_WORD: usize = 200;
const MOST_OPTIONS: usize = 20;

/// Time for the programs of PostgreSQL that compute a next start.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Time for each of several servers.
pub(crate) const TIME_LIMIT_OF_SEVERAL: Duration = Duration::from_secs(20);

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
        let next = Self::read_quietly(server, detail)?;
        if let (Some(directory), [_, ..]) = (server.directory(), &next.options[..]) {
            let name = escape::name(directory);
            let options = format!("-c {}", next.options.join(" -c "));
            match next.is_running {
                true => eprintln!(
                    "NOTICE:  {name}: the server has {options} on its command line; a start from \
                     the files alone would not use these options"
                ),
                false => eprintln!(
                    "NOTICE:  {name}: the last start had {options} on its command line; a start \
                     from the files alone does not use these options"
                ),
            }
        }
        Ok(next)
    }

    /// Like [`read_or_new`](Self::read_or_new), without a notice about options.
    pub(crate) fn read_quietly(server: &Server, detail: Detail) -> Result<Self, Error> {
        match is_root() {
            true => read_as_root(server, arguments(server, detail)),
            false => Self::compute(server, detail, Trust::Own),
        }
    }

    /// Refuses a data directory of another user, and numbers that PostgreSQL cannot compute.
    /// PostgreSQL does so, too, but the owner can change what the process writes.
    fn of_owner(self, owner: u32) -> Result<Self, Error> {
        if let Some(data) = &self.data_directory {
            let found = root()
                .look_up(data)
                .and_then(|found| found.owner_and_mode());
            let (uid, mode) = found.map_err(|error| owner::unreachable(data, error))?;
            if uid != owner || FileType::from_raw_mode(mode) != FileType::Directory {
                return Err(Error::new(format!(
                    "{} is not a directory that the user of the server owns",
                    escape::name(data)
                )));
            }
        }
        let from_files = self.from_files.iter().flatten().cloned().map(Settings::of);
        let mut all = self.settings.iter().cloned().chain(from_files);
        if !all.all(|settings| settings.is_possible()) {
            return Err(Error::new(
                "the computation of the next start returned impossible numbers",
            ));
        }
        let of_owner = |refusal: FailedStart| FailedStart {
            message: owner::attributed(owner, &Error::Refused(refusal.clone()).to_string()),
            detail: Vec::new(),
            hint: None,
            ..refusal
        };
        let word = |text: &String| escape::shortened(&escape::name(text), LONGEST_WORD);
        Ok(Self {
            owner: Some(owner),
            version: word(&self.version),
            options: self.options.iter().take(MOST_OPTIONS).map(word).collect(),
            settings: self.settings.map_err(of_owner),
            from_files: self.from_files.map(|start| start.map_err(of_owner)),
            ..self
        })
    }

    fn compute(server: &Server, detail: Detail, trust: Trust) -> Result<Self, Error> {
        let directory = server.directory();
        let is_new = directory.as_deref().is_some_and(is_empty);
        let planned = match is_new {
            true => Planned::prepare(&server.at(None), trust),
            false => Planned::prepare(server, trust),
        };
        match planned {
            Ok(planned) => Ok(Self {
                starts_at_boot: directory.as_deref().is_none_or(starts_at_boot),
                ..Self::of(&planned, detail)?
            }),
            // The directory and the version are in files that PostgreSQL refuses.
            Err(Error::Refused(refusal)) if refusal.is_of_configuration => Ok(Self {
                version: String::new(),
                data_directory: None,
                settings: Err(refusal),
                from_files: None,
                options: Vec::new(),
                is_running: false,
                starts_at_boot: true,
                owner: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// The next start of this server.
    pub(crate) fn of(planned: &Planned, detail: Detail) -> Result<Self, Error> {
        let settings = or_refusal(planned.settings(detail))?;
        let from_files = match &settings {
            Ok(settings) if detail == Detail::All => planned.start_from_files(&settings.server),
            _ => None,
        };
        Ok(Self {
            version: match detail {
                Detail::Pages => String::new(),
                Detail::All => planned.version()?,
            },
            data_directory: planned.data_directory(),
            settings,
            from_files: from_files.and_then(|start| or_refusal(start).ok()),
            options: planned.options(),
            is_running: planned.is_running(),
            starts_at_boot: true,
            owner: None,
        })
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

/// Errors: the start is unknown.
fn or_refusal<T>(start: Result<T, Error>) -> Result<Result<T, FailedStart>, Error> {
    match start {
        Err(Error::Refused(refusal)) if refusal.is_of_configuration => Ok(Err(refusal)),
        start => start.map(Ok),
    }
}

/// The largest `shared_buffers` for a number of huge pages.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LargestBuffers {
    pub(crate) block_bytes: u64,
    /// Errors: the huge pages of the minimum.
    pub(crate) fit: Result<Fit, TooFewPages>,
}

impl LargestBuffers {
    /// Computes it. As root, with the rights of the owner of the data directory.
    pub(crate) fn read(server: &Server, pages: Pages, size: PageSize) -> Result<Self, Error> {
        if !is_root() {
            return Self::compute(server, pages, size, Trust::Own);
        }
        let arguments = [server.arguments(), Self::arguments(pages, size).into()];
        read_as_root(server, arguments.concat())
    }

    /// The options of [`run`] for it.
    fn arguments(pages: Pages, size: PageSize) -> [OsString; 2] {
        [
            format!("--pages={pages}").into(),
            format!("--page-bytes={}", size.0).into(),
        ]
    }

    fn compute(server: &Server, pages: Pages, size: PageSize, trust: Trust) -> Result<Self, Error> {
        let planned = Planned::prepare(server, trust)?;
        let next = planned.settings(Detail::Pages)?.server;
        let [block_bytes]: [u64; 1] = planned.computation.values(["block_size"])?;
        let fit = planned
            .computation
            .largest_buffers(&next, pages, size, block_bytes)?;
        Ok(Self { block_bytes, fit })
    }
}

/// Lets another process of root compute something with the rights of the owner of the data
/// directory. The process can wait forever for a file of the owner.
fn read_as_root<T: DeserializeOwned>(
    server: &Server,
    arguments: Vec<OsString>,
) -> Result<T, Error> {
    if server.is_only_found {
        return Err(Error::with_hint(
            "the next start is unknown, because root runs PostgreSQL only for servers that you name",
            format!("If you trust its configuration: {}", server.named_by()),
        ));
    }
    let mut command = command::this(CHILD);
    command.args(arguments);
    let postmaster = server.postmaster.map(|pid| format!("--postmaster={pid}"));
    command.args(postmaster);
    command::end_with_parent(&mut command);
    let output = command::run(command, server.time_limit)?;
    if !output.status.success() {
        let text = output.err.trim();
        let text = text.strip_prefix("hugeinfo: ").unwrap_or(text);
        let (message, hint) = match text.split_once("\nHINT: ") {
            Some((message, hint)) => (message, Some(hint.to_owned())),
            None => (text, None),
        };
        return Err(match message {
            "" => Error::new(format!(
                "the computation of the next start ended with {}",
                output.status
            )),
            message => Error::Other(message.to_owned(), hint),
        });
    }
    parse(&output.out)
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json.trim()).map_err(|error| {
        Error::new(format!(
            "the computation of the next start wrote no result: {error}"
        ))
    })
}

/// JSON in ASCII, which the escaping of a program's output does not change.
fn to_json(result: &impl Serialize) -> Result<Done, Error> {
    let json = serde_json::to_string(result).map_err(|error| Error::new(error.to_string()))?;
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if character.is_ascii() && character != '\x7f' {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text += &format!("\\u{unit:04x}");
            }
        }
    }
    Ok(Done::from(text + "\n"))
}

/// Prints the next start as JSON, or the largest `shared_buffers`. Root runs it to compute them
/// with the rights of the owner of the data directory.
pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let detail = match options.only_pages {
        true => Detail::Pages,
        false => Detail::All,
    };
    let memory = options
        .pages
        .zip(options.page_bytes)
        .map(|(pages, bytes)| (Pages(pages), PageSize(bytes)));
    if is_root() {
        let owned = match options.server.directory() {
            Some(data) => Owned::find(&data)?,
            None => Owned::new_server()?,
        };
        let server = options.server.at(owned.directory.clone());
        let mut arguments = arguments(&server, detail);
        if let Some((pages, size)) = memory {
            arguments.extend(LargestBuffers::arguments(pages, size));
        }
        arguments.push("--for-root".into());
        // In this process, because lookups in directories of the owner can take forever.
        let done = owned.run(CHILD, arguments, options.postmaster)?;
        return match memory {
            Some(_) => to_json(&parse::<LargestBuffers>(&done.text)?),
            None => to_json(&parse::<NextStart>(&done.text)?.of_owner(owned.uid)?),
        };
    }
    let trust = match options.for_root {
        true => Trust::ForRoot,
        false => Trust::Own,
    };
    match memory {
        Some((pages, size)) => to_json(&LargestBuffers::compute(
            &options.server,
            pages,
            size,
            trust,
        )?),
        None => to_json(&NextStart::compute(&options.server, detail, trust)?),
    }
}

fn arguments(server: &Server, detail: Detail) -> Vec<OsString> {
    let mut arguments = server.arguments();
    if detail == Detail::Pages {
        arguments.push("--only-pages".into());
    }
    arguments
}

/// True for a directory for `initdb`.
fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether Debian starts a cluster at boot. Other servers: yes.
fn starts_at_boot(directory: &Path) -> bool {
    let file = root().look_up(&directory.join("start.conf"));
    let bytes = file.and_then(Found::read).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // As Debian's PgCommon.pm: the first word.
    let mut words = text.lines().map(|line| {
        let end = line.find('#').unwrap_or(line.len());
        line[..end].trim()
    });
    let mode = words.find(|word| !word.is_empty());
    !matches!(mode, Some("manual" | "disabled"))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    #[test]
    fn clusters_that_start_at_boot() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("start.conf");
        for (text, expected) in [
            ("auto\n", true),
            ("# manual\n\nauto\nmanual\n", true),
            ("# auto, manual or disabled\n manual # by hand\n", false),
            ("disabled", false),
            ("", true),
        ] {
            fs::write(&file, text).expect("written");
            assert_eq!(starts_at_boot(directory.path()), expected, "{text:?}");
        }
        // Reading it would never end.
        fs::remove_file(&file).expect("removed");
        mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        assert!(starts_at_boot(directory.path()));
    }

    #[test]
    fn data_directories_of_other_users_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = rustix::process::geteuid().as_raw();
        let file = directory.path().join("file");
        fs::write(&file, "").expect("written");
        let of_owner = |data: Option<&Path>, owner| {
            let json = json(data);
            let next: NextStart = serde_json::from_value(json).expect("JSON of this program");
            let next = next.of_owner(owner).ok()?;
            assert_eq!(next.version, r"15.1\033[2J\012x");
            assert_eq!(next.options, [r"huge_pages=\033"]);
            next.owner
        };
        assert_eq!(of_owner(Some(directory.path()), own), Some(own));
        assert_eq!(of_owner(None, own), Some(own));
        assert_eq!(of_owner(Some(directory.path()), own + 1), None);
        assert_eq!(of_owner(Some(&file), own), None);
        assert_eq!(of_owner(Some(Path::new("/nowhere")), own), None);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (field, number, expected) in [
            ("huge_page_size_bytes", 0, false),
            ("huge_page_size_bytes", 2047, false),
            // PostgreSQL requests 2 MB pages.
            ("huge_page_size_bytes", 1536 << 10, true),
            ("huge_page_size_bytes", u64::MAX << 10, false),
            ("shared_memory_bytes", 100 << 40, true),
            ("shared_memory_bytes", u64::MAX, false),
            ("max_connections", 262_143, true),
            ("max_connections", 262_144, false),
            ("shared_buffers_bytes", 32 << 40, true),
            ("shared_buffers_bytes", u64::MAX, false),
        ] {
            let mut json = json(None);
            let settings = &mut json["settings"]["Ok"];
            let settings = match field {
                "huge_page_size_bytes" | "shared_memory_bytes" => &mut settings["server"],
                _ => settings,
            };
            settings[field] = number.into();
            let next: NextStart = serde_json::from_value(json).expect("JSON of this program");
            assert_eq!(next.of_owner(0).is_ok(), expected, "{field} {number}");
        }
        let mut json = json(None);
        let mut from_files = json["settings"]["Ok"]["server"].clone();
        from_files["shared_memory_bytes"] = u64::MAX.into();
        json["from_files"] = serde_json::json!({ "Ok": from_files });
        let next: NextStart = serde_json::from_value(json).expect("JSON of this program");
        assert!(next.of_owner(0).is_err(), "a start from the files alone");
    }

    #[test]
    fn any_name_reaches_the_process_of_root() {
        let data = Path::new("/srv/zero\u{200b}width \u{1f418}\u{7f}\\");
        let next: NextStart = serde_json::from_value(json(Some(data))).expect("JSON");
        let output = escape::lines(to_json(&next).expect("JSON").text);
        let read: NextStart = parse(&output).expect("JSON that is not escaped");
        assert_eq!(read.data_directory.as_deref(), Some(data));
        assert_eq!(read.version, next.version);
    }

    /// A next start as the process of an owner writes it.
    fn json(data: Option<&Path>) -> serde_json::Value {
        serde_json::json!({
            "version": "15.1\u{1b}[2J\nx", "data_directory": data, "owner": 0, "starts_at_boot": true,
            "is_running": false, "options": ["huge_pages=\u{1b}"], "from_files": null,
            "settings": { "Ok": {
                "server": {
                    "huge_pages": "On", "shared_memory_type": "Mmap",
                    "huge_page_size_bytes": null, "shared_memory_bytes": 0,
                },
                "max_connections": 0, "shared_buffers_bytes": 0, "sources": {}, "log_directory": "",
            } },
        })
    }
}
