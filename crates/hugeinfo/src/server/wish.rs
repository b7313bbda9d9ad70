//! `huge_pages` of another server, from its command line and its configuration files.
//!
//! A conservative reader, not PostgreSQL's parser: whatever it does not understand makes the answer
//! unknown if it could set `huge_pages`. Files are read with the rights of this process.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Dir, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{
    linux::{
        process::Process,
        root::{WRITTEN, if_regular},
    },
    server::{
        facts::HugePages,
        postmaster_arguments::{arguments, directory_argument, settings},
    },
};

/// The value of `huge_pages` that another server uses at its next start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// The value, and the source that sets it.
    Known(HugePages, WishSource),
    /// A source that could override the others cannot be read or understood.
    #[default]
    Unknown,
}

/// The sources of a setting, in the order of their precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WishSource {
    /// The command line of the running postmaster.
    CommandLine,
    /// `postmaster.opts` in the data directory, which holds the same command line.
    OptionsFile,
    /// `postgresql.auto.conf` in the data directory.
    AutoConf,
    /// `postgresql.conf`, or a file that it includes.
    ConfigurationFile,
    /// No source sets it. The default is `try`.
    Default,
}

impl Wish {
    /// The value. `None`: unknown.
    pub fn value(self) -> Option<HugePages> {
        match self {
            Self::Known(value, _) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// The largest configuration file that is read.
const LARGEST_FILE: u64 = 256 << 10;

/// The most that is read for one server, and from how many files.
const LARGEST_TOTAL: u64 = 1 << 20;
const MOST_FILES: usize = 64;

/// Why the answer is unknown. The reason does not matter.
#[derive(Debug, PartialEq, Eq)]
pub struct Odd;

/// A source that was read completely: the last value that it sets, if any.
type Found = Result<Option<HugePages>, Odd>;

/// Reads the sources of a postmaster in PostgreSQL's precedence.
///
/// `is_own_user`: the postmaster runs as the user of this process. In directories of other users,
/// a file that is a symbolic link is not read. `command_line` is `None` if it cannot be read.
pub(crate) fn read(process: &Process, is_own_user: bool, command_line: Option<&[u8]>) -> Wish {
    let known = |found: Found, source| match found {
        Ok(Some(value)) => Some(Wish::Known(value, source)),
        Ok(None) => None,
        Err(Odd) => Some(Wish::Unknown),
    };
    let files = Files::of(process, is_own_user);
    let (command_line, source) = match (command_line, &files) {
        (Some(command_line), _) => (Ok(command_line.to_vec()), WishSource::CommandLine),
        (None, Ok(files)) => (files.options(), WishSource::OptionsFile),
        (None, Err(Odd)) => return Wish::Unknown,
    };
    let Ok(command_line) = command_line else {
        return Wish::Unknown;
    };
    if let Some(wish) = known(of_command_line(&command_line), source) {
        return wish;
    }
    let Ok(mut files) = files else {
        return Wish::Unknown;
    };
    let auto = files.data.join("postgresql.auto.conf");
    if let Some(wish) = known(files.settle(&auto, true, true), WishSource::AutoConf) {
        return wish;
    }
    let main = files.main_file(&command_line);
    let main = main.and_then(|path| files.settle(&path, false, true));
    known(main, WishSource::ConfigurationFile)
        .unwrap_or(Wish::Known(HugePages::Try, WishSource::Default))
}

/// `huge_pages` on a command line, from the last argument that sets it.
pub fn of_command_line(command_line: &[u8]) -> Found {
    let mut found = None;
    let mut understood = 0;
    for (name, value) in settings(command_line) {
        if name == NAME {
            found = Some(parse_value(value).ok_or(Odd)?);
            understood += 1;
        }
    }
    let arguments = arguments(command_line).skip(1);
    let mentions = arguments.filter(|argument| {
        let argument = argument.to_ascii_lowercase();
        contains(&argument, NAME) || contains(&argument, b"huge-pages")
    });
    if mentions.count() == understood {
        Ok(found)
    } else {
        Err(Odd)
    }
}

/// The command line in `postmaster.opts`: the program, and each argument in quotes (postmaster.c
/// `CreateOptsFile`). Arguments that contain quotes are ambiguous.
pub fn parse_options(bytes: &[u8]) -> Result<Vec<u8>, Odd> {
    let line = bytes.strip_suffix(b"\n").ok_or(Odd)?;
    let start = line.windows(2).position(|two| two == b" \"");
    let (program, rest) = line.split_at(start.unwrap_or(line.len()));
    let mut command_line = [program, b"\0"].concat();
    if !rest.is_empty() {
        let rest = &rest[2..];
        let mut rest = rest.strip_suffix(b"\"").ok_or(Odd)?;
        while let Some(at) = rest.iter().position(|&b| b == b'"') {
            command_line.extend([&rest[..at], b"\0"].concat());
            rest = rest[at..].strip_prefix(b"\" \"").ok_or(Odd)?;
        }
        command_line.extend([rest, b"\0"].concat());
    }
    Ok(command_line)
}

const NAME: &[u8] = b"huge_pages";

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// As PostgreSQL reads it (guc_tables.c `huge_pages_options`).
fn parse_value(value: &[u8]) -> Option<HugePages> {
    match value.to_ascii_lowercase().as_slice() {
        b"try" => Some(HugePages::Try),
        b"on" | b"true" | b"yes" | b"1" => Some(HugePages::On),
        b"off" | b"false" | b"no" | b"0" => Some(HugePages::Off),
        _ => None,
    }
}

/// A line of a configuration file (guc-file.l).
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing that bears on `huge_pages`.
    Other,
    /// `huge_pages = VALUE`.
    Set(HugePages),
    /// `include`, or `include_if_exists` if the file is optional.
    Include {
        /// As written.
        path: PathBuf,
        /// Whether it can be missing.
        is_optional: bool,
    },
    /// `include_dir`.
    IncludeDirectory(PathBuf),
}

/// Errors: it cannot be understood, but could set `huge_pages`.
pub fn parse_line(line: &[u8]) -> Result<Line, Odd> {
    let Some((name, value)) = split_line(line) else {
        let line = line.trim_ascii().to_ascii_lowercase();
        let bears = contains(&line, NAME) || contains(&line, b"include");
        return match bears && !line.starts_with(b"#") {
            true => Err(Odd),
            false => Ok(Line::Other),
        };
    };
    let path = PathBuf::from(OsStr::from_bytes(&value));
    match name.as_slice() {
        NAME => parse_value(&value).map(Line::Set).ok_or(Odd),
        b"include" | b"include_if_exists" | b"include_dir" if value.is_empty() => Err(Odd),
        b"include" | b"include_if_exists" => Ok(Line::Include {
            path,
            is_optional: name == b"include_if_exists",
        }),
        b"include_dir" => Ok(Line::IncludeDirectory(path)),
        _ => Ok(Line::Other),
    }
}

/// Name in lower case and value of `name = 'value' # comment`. `None`: not of this form.
fn split_line(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let line = line.trim_ascii();
    let is_of_name = |&b: &u8| b.is_ascii_alphanumeric() || b"_.$".contains(&b) || !b.is_ascii();
    let end = line.iter().position(|b| !is_of_name(b))?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"=").unwrap_or(rest).trim_ascii_start();
    let mut value = Vec::new();
    let rest = if let Some(mut rest) = rest.strip_prefix(b"'") {
        loop {
            rest = match rest {
                [b'\'', b'\'', after @ ..] => {
                    value.push(b'\'');
                    after
                }
                [b'\'', after @ ..] => break after,
                [b'\\', b'b' | b'f' | b'n' | b'r' | b't' | b'0'..=b'7', ..] => return None,
                [b'\\', byte, after @ ..] => {
                    value.push(*byte);
                    after
                }
                [b'\\'] | [] => return None,
                [byte, after @ ..] => {
                    value.push(*byte);
                    after
                }
            };
        }
    } else {
        let end = rest
            .iter()
            .position(|b| b.is_ascii_whitespace() || *b == b'#');
        let (plain, rest) = rest.split_at(end.unwrap_or(rest.len()));
        value.extend(plain);
        rest
    };
    let rest = rest.trim_ascii_start();
    let is_whole = rest.is_empty() || rest.starts_with(b"#");
    (is_whole && !name.is_empty()).then(|| (name.to_ascii_lowercase(), value))
}

/// The files of a server, as it sees them.
struct Files {
    /// The root directory of the server, which is another one in a container.
    root: OwnedFd,
    /// The path of its data directory there.
    data: PathBuf,
    is_own_user: bool,
    left_bytes: u64,
    left_files: usize,
}

impl Files {
    fn of(process: &Process, is_own_user: bool) -> Result<Self, Odd> {
        let root = process.open_directory("root").map_err(|_| Odd)?;
        let data = process.link("cwd").map_err(|_| Odd)?;
        let files = Self {
            root,
            data: PathBuf::from(OsStr::from_bytes(&data)),
            is_own_user,
            left_bytes: LARGEST_TOTAL,
            left_files: MOST_FILES,
        };
        // The kernel shows the path as seen from our own root directory.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let seen = files.open(&files.data, flags).map_err(|_| Odd)?;
        match process.is_working_directory(&seen) {
            Ok(true) => Ok(files),
            _ => Err(Odd),
        }
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve)
    }

    /// `None`: there is no such file.
    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Odd> {
        let follow = match self.is_own_user {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        let opened = match self.open(path, WRITTEN | follow) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(_) => return Err(Odd),
        };
        let file = if_regular(opened).ok().flatten().ok_or(Odd)?;
        let mut bytes = Vec::new();
        let most = LARGEST_FILE.min(self.left_bytes);
        let read = file.take(most + 1).read_to_end(&mut bytes);
        match read.map(u64::try_from) {
            Ok(Ok(count)) if count <= most => Ok(Some(bytes)),
            _ => Err(Odd),
        }
    }

    fn options(&self) -> Result<Vec<u8>, Odd> {
        parse_options(&self.bytes(&self.data.join("postmaster.opts"))?.ok_or(Odd)?)
    }

    /// The configuration file. A relative path was relative to a directory that is not known, but
    /// without `config_file` the file is normally in the data directory.
    fn main_file(&self, command_line: &[u8]) -> Result<PathBuf, Odd> {
        let named = settings(command_line).filter(|(name, _)| name == b"config_file");
        let path = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
        if let Some((_, file)) = named.last() {
            return Some(path(file))
                .filter(|file| file.is_absolute())
                .ok_or(Odd);
        }
        let directory = directory_argument(command_line).map(path);
        Ok(directory
            .as_ref()
            .unwrap_or(&self.data)
            .join("postgresql.conf"))
    }

    /// The last value of `huge_pages` in a file and, if `includes`, in the files that it includes.
    /// Those must not include others.
    fn settle(&mut self, path: &Path, is_optional: bool, includes: bool) -> Found {
        self.left_files = self.left_files.checked_sub(1).ok_or(Odd)?;
        let Some(bytes) = self.bytes(path)? else {
            return if is_optional { Ok(None) } else { Err(Odd) };
        };
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64);
        let mut found = None;
        for line in bytes.split(|&b| b == b'\n') {
            let (files, is_optional) = match parse_line(line)? {
                Line::Other => continue,
                Line::Set(value) => {
                    found = Some(value);
                    continue;
                }
                _ if !includes => return Err(Odd),
                Line::Include { path, is_optional } => (vec![path], is_optional),
                Line::IncludeDirectory(directory) => (self.listed(path, &directory)?, false),
            };
            let directory = path.parent().ok_or(Odd)?;
            for file in files {
                let included = self.settle(&directory.join(file), is_optional, false)?;
                found = included.or(found);
            }
        }
        Ok(found)
    }

    /// The files of `include_dir`, in order (guc-file.l `GetConfFilesInDir`).
    fn listed(&self, including: &Path, directory: &Path) -> Result<Vec<PathBuf>, Odd> {
        let directory = including.parent().ok_or(Odd)?.join(directory);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = self.open(&directory, flags).map_err(|_| Odd)?;
        let mut names: Vec<OsString> = Vec::new();
        for entry in Dir::new(opened).map_err(|_| Odd)? {
            let entry = entry.map_err(|_| Odd)?;
            let name = entry.file_name().to_bytes();
            if name.ends_with(b".conf") && !name.starts_with(b".") {
                names.push(OsStr::from_bytes(name).to_owned());
            }
            if names.len() > MOST_FILES {
                return Err(Odd);
            }
        }
        names.sort_unstable();
        Ok(names.iter().map(|name| directory.join(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        for (command_line, expected) in [
            ("postgres\0-D\0/srv/a\0", Ok(None)),
            ("postgres\0-c\0huge_pages=off\0", Ok(Some(HugePages::Off))),
            ("postgres\0-cHUGE_PAGES=On\0", Ok(Some(HugePages::On))),
            ("postgres\0-c\0huge-pages=1\0", Ok(Some(HugePages::On))),
            ("postgres\0--huge-pages=on\0", Ok(Some(HugePages::On))),
            ("postgres\0--huge_pages=try\0", Ok(Some(HugePages::Try))),
            (
                "postgres\0-c\0huge_pages=on\0--huge-pages=off\0",
                Ok(Some(HugePages::Off)),
            ),
            ("postgres\0-c\0huge_page_size=2MB\0", Ok(None)),
            ("postgres\0-c\0huge_pages=perhaps\0", Err(Odd)),
            ("postgres\0-c\0huge_pages\0", Err(Odd)),
            ("postgres\0-Fc\0huge_pages=off\0", Err(Odd)),
            ("postgres\0-D\0/srv/huge_pages\0", Err(Odd)),
        ] {
            let found = of_command_line(command_line.as_bytes());
            assert_eq!(found, expected, "{command_line:?}");
        }
    }

    #[test]
    fn options_files() {
        for (text, expected) in [
            ("/bin/postgres\n", Ok("/bin/postgres\0")),
            (
                "/bin/postgres \"-D\" \"/srv/a b\" \"\"\n",
                Ok("/bin/postgres\0-D\0/srv/a b\0\0"),
            ),
            ("/bin/postgres \"-c\" \"a=\"b\"\"\n", Err(Odd)),
            ("/bin/postgres \"-D\" \"/srv\n", Err(Odd)),
            ("/bin/postgres \"-D\"", Err(Odd)),
        ] {
            let expected = expected.map(|text| text.as_bytes().to_vec());
            assert_eq!(parse_options(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_of_configuration_files() {
        let include = |path: &str, is_optional| Line::Include {
            path: path.into(),
            is_optional,
        };
        for (line, expected) in [
            ("", Ok(Line::Other)),
            ("#huge_pages = off", Ok(Line::Other)),
            ("  # huge_pages = 'off", Ok(Line::Other)),
            ("huge_pages = off", Ok(Line::Set(HugePages::Off))),
            ("\tHuge_Pages 'ON' # yes\r", Ok(Line::Set(HugePages::On))),
            ("huge_pages=try#", Ok(Line::Set(HugePages::Try))),
            ("huge_pages = 'o\\\\ff'", Err(Odd)),
            ("huge_pages = 'o\\ff'", Err(Odd)),
            ("huge_pages = 'off", Err(Odd)),
            ("huge_pages = off;", Err(Odd)),
            ("huge_pages = off on", Err(Odd)),
            ("huge_pages", Err(Odd)),
            ("\u{feff}huge_pages = off", Ok(Line::Other)),
            ("x.huge_pages = off", Ok(Line::Other)),
            ("cluster_name = 'it''s # one'", Ok(Line::Other)),
            ("cluster_name = '", Ok(Line::Other)),
            ("include 'it''s.conf'", Ok(include("it's.conf", false))),
            (
                "include_if_exists = /etc/x.conf",
                Ok(include("/etc/x.conf", true)),
            ),
            (
                "include_dir 'conf.d'",
                Ok(Line::IncludeDirectory("conf.d".into())),
            ),
            ("include 'a\\x41\\101'", Err(Odd)),
            ("include ''", Err(Odd)),
            ("include 'x", Err(Odd)),
        ] {
            assert_eq!(parse_line(line.as_bytes()), expected, "{line:?}");
        }
    }
}
