//! The settings of other servers, from their command lines and configuration files.
//!
//! A small and conservative reader, not PostgreSQL's parser. After a line that it does not follow
//! or understand, such as `include`, only later lines and sources of higher precedence count.
//! Settings that they do not set are unknown. Files are read with the rights of this process.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::{
        fd::AsFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use crate::{
    linux::{
        file::read_written,
        lookup::{Links, Lookup},
        process::Process,
        root::{MOST_NAMES, Root},
    },
    units::parse_size,
};
use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::server::{
    change_time,
    postmaster_arguments::{arguments, directory_argument, settings},
    setting::FileLine,
    state::HugePages,
};

/// The huge pages that another server requests at its next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestedPages {
    /// `huge_pages`, and `huge_page_size` in bytes. 0: the default size of the kernel. `None`: the
    /// size is unknown.
    Known(HugePages, Option<u64>),
    /// A source that could set `huge_pages` cannot be read or understood: this file, if it can be
    /// read.
    Unknown(Option<Vec<u8>>),
}

impl Default for RequestedPages {
    fn default() -> Self {
        Self::Unknown(None)
    }
}

impl RequestedPages {
    /// `huge_pages`. `None`: unknown.
    pub fn value(&self) -> Option<HugePages> {
        match self {
            Self::Known(value, _) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

/// The settings that are read.
const NAMES: [&str; 7] = [
    "huge_pages",
    "huge_page_size",
    "config_file",
    "data_directory",
    "max_connections",
    "shared_buffers",
    "shared_memory_type",
];

/// The settings that are set, by name.
pub type Values = BTreeMap<&'static str, String>;

/// Limits on the bytes and the files that are read for one server.
const LARGEST_TOTAL: u64 = 1 << 20;
const MOST_FILES: usize = 64;

/// The settings in some sources, read in the order of their precedence.
struct Found {
    values: Values,
    lines: BTreeMap<&'static str, FileLine>,
    /// Whether other settings have their defaults. Otherwise they are unknown.
    is_complete: bool,
    /// The last file that was not understood.
    look_at: Option<PathBuf>,
}

impl Found {
    /// The settings without any source: all have their defaults.
    fn defaults() -> Self {
        Self {
            is_complete: true,
            ..Self::unknown(None)
        }
    }

    /// The settings after a source or a line that could set any of them.
    fn unknown(look_at: Option<PathBuf>) -> Self {
        Self {
            values: Values::new(),
            lines: BTreeMap::new(),
            is_complete: false,
            look_at,
        }
    }
}

/// Reads the settings of a postmaster.
///
/// `is_own_user`: the postmaster runs as the user of this process. In directories of other users,
/// a file that is a symbolic link is not read. `command_line` is `None` if it cannot be read.
pub(crate) fn requested_pages(
    process: &Process,
    is_own_user: bool,
    command_line: Option<&[u8]>,
) -> RequestedPages {
    let links = match is_own_user {
        true => Links::Followed,
        false => Links::OnlyToDirectories,
    };
    let read = command_line.and_then(|command_line| read_sources(process, links, command_line));
    let found = read.map_or(Found::unknown(None), |(found, _)| found);
    let value = |name, default: &'static str| {
        let default = found.is_complete.then_some(default);
        found.values.get(name).map(String::as_str).or(default)
    };
    match value("huge_pages", "try").and_then(HugePages::parse) {
        Some(huge_pages) => {
            let size = value("huge_page_size", "0").and_then(|size| parse_size(size, 1 << 10));
            RequestedPages::Known(huge_pages, size)
        }
        None => {
            let look_at = found.look_at.map(|file| file.into_os_string().into_vec());
            RequestedPages::Unknown(look_at)
        }
    }
}

/// The settings that a running server started with. `None`: a file has changed since `start_time`,
/// in seconds since 1970, or a source cannot be read or understood. A path with a symbolic link is
/// not read, because the link could be newer than the file.
pub fn unchanged_since(process: &Process, start_time: u64, command_line: &[u8]) -> Option<Values> {
    let (found, changed) = read_sources(process, Links::Refused, command_line)?;
    (found.is_complete && changed < start_time).then_some(found.values)
}

/// Reads the sources of a running server. Returns when a file was last changed, too. `None`: the
/// command line is not understood.
fn read_sources(process: &Process, links: Links, command_line: &[u8]) -> Option<(Found, u64)> {
    let on_command_line = of_command_line(command_line)?;
    let mut found = Found::unknown(None);
    let mut changed = u64::MAX;
    if let Some((mut files, data)) = Files::of(process, links) {
        let directory = directory_argument(command_line).map_or(data.as_path(), path);
        found = files.settings(directory, Some(&data), &on_command_line).0;
        changed = files.changed;
    }
    found.values.extend(on_command_line);
    Some((found, changed))
}

/// The configuration in the files of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub data_directory: PathBuf,
    /// The lines that set settings. The command line takes precedence.
    pub lines: BTreeMap<&'static str, FileLine>,
}

impl Configuration {
    /// Reads the files of a server that is started with this command line and then with this option
    /// `-D`. `None`: a source cannot be read or understood, so only PostgreSQL knows.
    pub fn read(root: &Root, directory: &Path, command_line: &[u8]) -> Option<Self> {
        Self::read_in(root.lookup().ok()?, directory, command_line)
    }

    /// Like [`Self::read`], with these lookups.
    pub fn read_in(root: Lookup, directory: &Path, command_line: &[u8]) -> Option<Self> {
        let mut files = Files::new(root, Links::Followed);
        let (found, data_directory) =
            files.settings(directory, None, &of_command_line(command_line)?);
        found.is_complete.then_some(Self {
            data_directory,
            lines: found.lines,
        })
    }
}

/// Whether a configuration file, and all files and directories that it includes, belong to this
/// user or to root, and no directory can be written by others. A missing file is no error.
///
/// Errors: the first path that does not, or that cannot be read or understood.
pub fn check_owner(root: &Root, file: &Path, uid: u32) -> Result<(), PathBuf> {
    let lookup = root.lookup().map_err(|_| file.to_owned())?;
    Files::new(lookup, Links::Followed).check_owner(file, uid)
}

/// The settings on a command line. `None`: an argument could set one and is not understood.
pub fn of_command_line(command_line: &[u8]) -> Option<Values> {
    let found: Vec<_> = settings(command_line)
        .filter_map(|(name, value)| {
            let name = NAMES.into_iter().find(|known| known.as_bytes() == name)?;
            Some((name, String::from_utf8(value.to_vec()).ok()?))
        })
        .collect();
    let mentions = arguments(command_line).skip(1).filter(|argument| {
        if argument.starts_with(b"-B") || argument.starts_with(b"-N") {
            return true;
        }
        let argument = String::from_utf8_lossy(argument).to_ascii_lowercase();
        let argument = argument.replace('-', "_");
        NAMES.iter().any(|name| argument.contains(name))
    });
    (mentions.count() == found.len()).then(|| found.into_iter().collect())
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Parses a line of a configuration file (guc-file.l). Returns the name and the value if the line
/// includes files or sets one of the settings. The value is `None` if it is not understood.
pub fn parse_line(line: &str) -> Option<(&'static str, Option<&str>)> {
    const INCLUDES: [&str; 3] = ["include", "include_if_exists", "include_dir"];
    let line = line.trim_ascii();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c) || !c.is_ascii();
    let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let name = NAMES
        .into_iter()
        .chain(INCLUDES)
        .find(|known| name.eq_ignore_ascii_case(known))?;
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_ascii_start();
    let parts = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\''),
        None => {
            let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '#');
            Some(rest.split_at(end.unwrap_or(rest.len())))
        }
    };
    let value = parts.and_then(|(value, rest)| {
        let rest = rest.trim_ascii_start();
        let is_whole = rest.is_empty() || rest.starts_with('#');
        // Rejects escapes, and bytes that are not UTF-8.
        let is_plain = !value.is_empty() && !value.contains(['\\', char::REPLACEMENT_CHARACTER]);
        (is_whole && is_plain).then_some(value)
    });
    Some((name, value))
}

/// The files of a server, in its own root directory, which differs from ours in a container.
struct Files {
    root: Lookup,
    links: Links,
    left_bytes: u64,
    left_files: usize,
    /// The time of the last change of one of them, in seconds since 1970.
    changed: u64,
}

impl Files {
    fn new(root: Lookup, links: Links) -> Self {
        Self {
            root,
            links,
            left_bytes: LARGEST_TOTAL,
            left_files: MOST_FILES,
            changed: 0,
        }
    }

    /// The files of a running server, and the path of its data directory below its root.
    fn of(process: &Process, links: Links) -> Option<(Self, PathBuf)> {
        let data = process.link("cwd").ok()?;
        let files = Self::new(process.lookup().ok()?, links);
        // The kernel shows the path relative to our own root directory.
        let seen = files.root.open(path(&data), links).ok()?;
        let is_same = process.is_working_directory(&seen).ok()?;
        is_same.then_some((files, path(&data).to_owned()))
    }

    /// Reads the main file, which is in `directory` unless the command line names another one, and
    /// `postgresql.auto.conf`. Also returns the data directory. `running`: the data directory of a
    /// running server.
    fn settings(
        &mut self,
        directory: &Path,
        running: Option<&Path>,
        on_command_line: &Values,
    ) -> (Found, PathBuf) {
        let main = on_command_line.get("config_file").map(PathBuf::from);
        let main = main.unwrap_or_else(|| directory.join("postgresql.conf"));
        let mut found = Found::defaults();
        self.add_to(&mut found, &main, false);
        let in_file = found.values.remove("data_directory");
        let named = on_command_line.get("data_directory").or(in_file.as_ref());
        let named = named.map(PathBuf::from).unwrap_or(directory.to_owned());
        let data = running.map_or(named, Path::to_owned);
        self.add_to(&mut found, &data.join("postgresql.auto.conf"), true);
        (found, data)
    }

    /// Reads a file. Returns no bytes if the file is optional and does not exist. `None` also for a
    /// relative path, which belongs to an unknown directory.
    fn bytes(&mut self, path: &Path, is_optional: bool) -> Option<Vec<u8>> {
        self.left_files = self.left_files.checked_sub(1)?;
        let found = match path.is_absolute() {
            true => self.root.open(path, self.links),
            false => return None,
        };
        let bytes = match found {
            Ok(found) => {
                self.note_change(&found);
                read_written(found, self.left_bytes, self.root.patience()).ok()?
            }
            Err(Errno::NOENT) if is_optional => {
                // It might have been removed.
                self.changed = u64::MAX;
                Vec::new()
            }
            Err(_) => return None,
        };
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64);
        Some(bytes)
    }

    fn note_change(&mut self, file: &impl AsFd) {
        let changed = change_time::of(file).map_or(u64::MAX, |time| time.as_secs());
        self.changed = self.changed.max(changed);
    }

    /// Adds the settings in a file, which take precedence.
    fn add_to(&mut self, found: &mut Found, path: &Path, is_optional: bool) {
        let Some(bytes) = self.bytes(path, is_optional) else {
            *found = Found::unknown(None);
            return;
        };
        for (text, line) in String::from_utf8_lossy(&bytes).split('\n').zip(1..) {
            match parse_line(text) {
                None => {}
                // Debian includes an empty directory.
                Some(("include_dir", Some(value))) if self.is_empty(path, value) => {}
                Some((name, Some(value))) if !name.starts_with("include") => {
                    let path = path.to_owned();
                    found.lines.insert(name, FileLine { path, line });
                    found.values.insert(name, value.to_owned());
                }
                Some(_) => *found = Found::unknown(Some(path.to_owned())),
            }
        }
    }

    /// Whether the directory that a file includes has no configuration files.
    fn is_empty(&mut self, file: &Path, included: &str) -> bool {
        self.left_files = self.left_files.saturating_sub(1);
        let directory = file.parent().filter(|_| self.left_files > 0);
        let files = directory.and_then(|directory| self.listed(&directory.join(included)));
        files.is_some_and(|files| files.is_empty())
    }

    /// See [`check_owner`].
    fn check_owner(&mut self, file: &Path, uid: u32) -> Result<(), PathBuf> {
        const OTHERS_WRITE: u32 = 0o022;
        let wrong = |path: &Path| Err(path.to_owned());
        let found = match self.root.open(file, self.links) {
            Err(Errno::NOENT) => return Ok(()),
            found => found.and_then(rustix::fs::fstat),
        };
        let Ok(found) = found else { return wrong(file) };
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        let can_be_changed = is_directory && found.st_mode & OTHERS_WRITE != 0;
        if ![0, uid].contains(&found.st_uid) || can_be_changed {
            return wrong(file);
        }
        let mut included = Vec::new();
        if is_directory {
            match self.listed(file) {
                Some(files) => included = files,
                None => return wrong(file),
            }
        } else {
            let Some(bytes) = self.bytes(file, false) else {
                // PostgreSQL cannot read it either, and reports that.
                return match fs::File::open(file) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                    _ => wrong(file),
                };
            };
            let directory = file.parent().unwrap_or(file);
            for line in String::from_utf8_lossy(&bytes).split('\n') {
                match parse_line(line).filter(|(name, _)| name.starts_with("include")) {
                    Some((_, Some(value))) => included.push(directory.join(value)),
                    Some((_, None)) => return wrong(file),
                    None => {}
                }
            }
        }
        let mut included = included.iter();
        included.try_for_each(|file| self.check_owner(file, uid))
    }

    /// The files of `include_dir`, in order (guc-file.l `GetConfFilesInDir`). `None` also if there
    /// are too many, whatever their names.
    fn listed(&mut self, directory: &Path) -> Option<Vec<PathBuf>> {
        let found = self.root.open(directory, self.links).ok()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(found, ".", flags, Mode::empty()).ok()?;
        self.note_change(&opened);
        let mut files = Vec::new();
        for (number, entry) in Dir::new(opened).ok()?.enumerate() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if name.ends_with(b".conf") && !name.starts_with(b".") {
                files.push(directory.join(path(name)));
            }
            if files.len() > MOST_FILES || number > MOST_NAMES {
                return None;
            }
        }
        files.sort_unstable();
        Some(files)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn configurations_of_servers_that_do_not_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &str| fs::write(place(name), text).expect("written");
        for name in ["conf", "data", "conf/conf.d"] {
            fs::create_dir(place(name)).expect("created");
        }
        let read = |command_line: &str| {
            let command_line = format!("postgres {command_line} ").replace(' ', "\0");
            let root = Root::system();
            let found = Configuration::read(&root, &place("conf"), command_line.as_bytes())?;
            let lines = found.lines.iter().map(|(name, FileLine { path, line })| {
                let path = path.strip_prefix(directory.path()).unwrap_or(path);
                format!("{name} {}:{line}", path.display())
            });
            Some((found.data_directory, lines.collect::<Vec<_>>().join(" ")))
        };
        assert_eq!(read(""), None);
        write("conf/postgresql.conf", "huge_pages = off\n");
        let auto = "huge_pages = on\n";
        write("conf/postgresql.auto.conf", auto);
        let expected = "huge_pages conf/postgresql.auto.conf:1";
        assert_eq!(read(""), Some((place("conf"), expected.to_owned())));
        let data = place("data");
        let main = format!(
            "data_directory = '{}'\nhuge_pages = try\ninclude_dir 'conf.d'\n",
            data.display()
        );
        write("conf/postgresql.conf", &main);
        let expected = "data_directory conf/postgresql.conf:1 huge_pages conf/postgresql.conf:2";
        let in_main = expected.to_owned();
        assert_eq!(read(""), Some((data.clone(), expected.to_owned())));
        write("data/postgresql.auto.conf", auto);
        let expected =
            "data_directory conf/postgresql.conf:1 huge_pages data/postgresql.auto.conf:1";
        assert_eq!(read("-c huge_pages=off"), Some((data, expected.to_owned())));
        let expected = Some(("/x".into(), in_main));
        assert_eq!(read("-c data_directory=/x"), expected);
        assert_eq!(read("-c config_file=x"), None);
        // Only PostgreSQL knows what an included file sets.
        write("conf/conf.d/a.conf", "huge_page_size = 2MB\n");
        assert_eq!(read(""), None);
        write("conf/postgresql.conf", "data_directory = x\n");
        assert_eq!(read(""), None);
    }

    #[test]
    fn files_of_other_users_are_found() {
        use std::os::unix::fs::{PermissionsExt, chown};

        let directory = tempfile::tempdir().expect("a directory");
        let place = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &str| fs::write(place(name), text).expect("written");
        fs::create_dir(place("conf.d")).expect("created");
        write("conf.d/a.conf", "include '../b.conf'\n");
        write("b.conf", "work_mem = '\\101'\n");
        let own = rustix::process::geteuid().as_raw();
        let check = || check_owner(&Root::system(), &place("postgresql.conf"), own).err();
        assert_eq!(check(), None);
        write(
            "postgresql.conf",
            "include_dir 'conf.d'\ninclude_if_exists 'none'\n",
        );
        assert_eq!(check(), None);
        write("b.conf", "include 'a\\'\n");
        assert_eq!(check(), Some(place("conf.d/../b.conf")));
        write("b.conf", "");
        let mode = |mode| fs::Permissions::from_mode(mode);
        fs::set_permissions(place("conf.d"), mode(0o1777)).expect("permissions");
        assert_eq!(check(), Some(place("conf.d")));
        fs::set_permissions(place("conf.d"), mode(0o755)).expect("permissions");
        if own == 0 {
            chown(place("b.conf"), Some(65534), None).expect("a user");
            assert_eq!(check(), Some(place("conf.d/../b.conf")));
        }
    }

    #[test]
    fn command_lines() {
        for (command_line, expected) in [
            ("-D /srv/a", Some("")),
            ("-c huge_pages=off", Some("huge_pages=off")),
            ("-cHUGE_PAGES=On", Some("huge_pages=On")),
            ("-c huge-pages=1", Some("huge_pages=1")),
            ("--huge-pages=on", Some("huge_pages=on")),
            ("--huge_pages=try", Some("huge_pages=try")),
            ("-c huge_pages=on --huge-pages=off", Some("huge_pages=off")),
            (
                "-c huge_page_size=2MB --config-file=/a --huge-pages=on",
                Some("config_file=/a huge_page_size=2MB huge_pages=on"),
            ),
            (
                "-N 500 -B9000 -c huge_pages=on",
                Some("huge_pages=on max_connections=500 shared_buffers=9000"),
            ),
            ("-c huge_pages", None),
            ("-Fc huge_pages=off", None),
            ("-Fc huge_page_size=1GB", None),
            ("-D /srv/huge_pages", None),
        ] {
            let found = of_command_line(
                format!("postgres {command_line} ")
                    .replace(' ', "\0")
                    .as_bytes(),
            );
            let found = found.map(|values| {
                let values = values.iter().map(|(name, value)| format!("{name}={value}"));
                values.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), expected, "{command_line:?}");
        }
    }

    #[test]
    fn lines_of_configuration_files() {
        for (line, expected) in [
            ("", None),
            ("#huge_pages = off", None),
            ("  # huge_pages = 'off", None),
            ("huge_pages = off", Some(("huge_pages", Some("off")))),
            (
                "\tHuge_Pages 'ON' # yes\r",
                Some(("huge_pages", Some("ON"))),
            ),
            ("huge_pages=try#", Some(("huge_pages", Some("try")))),
            (
                "huge_page_size = '1 GB'",
                Some(("huge_page_size", Some("1 GB"))),
            ),
            ("huge_page_size = 1 GB", Some(("huge_page_size", None))),
            ("huge_pages = 'o\\ff'", Some(("huge_pages", None))),
            ("huge_pages = 'off", Some(("huge_pages", None))),
            ("huge_pages = off on", Some(("huge_pages", None))),
            ("huge_pages", Some(("huge_pages", None))),
            ("\u{feff}huge_pages = off", None),
            ("x.huge_pages = off", None),
            ("cluster_name = 'include ''it''s # one'", None),
            ("cluster_name = '", None),
            ("include 'it''s.conf'", Some(("include", None))),
            ("include 'a\u{fffd}'", Some(("include", None))),
            ("include ''", Some(("include", None))),
            (
                "include_if_exists = /etc/x.conf",
                Some(("include_if_exists", Some("/etc/x.conf"))),
            ),
            (
                "Include_Dir 'conf.d'",
                Some(("include_dir", Some("conf.d"))),
            ),
        ] {
            assert_eq!(parse_line(line), expected, "{line:?}");
        }
    }
}
