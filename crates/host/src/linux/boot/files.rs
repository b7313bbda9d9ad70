//! Configuration files that are read when the machine starts. Drop-in files are in several
//! directories: a file hides files with its name in later directories, and all are read in the
//! order of their names (src/basic/conf-files.c of systemd; sysctl.d(5); tmpfiles.d(5)).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    entry::{File, Kind, WhyUnknown},
    sysctl, tmpfiles,
};
use crate::{
    escape,
    linux::{error::ReadError, root::Root},
    shell,
};

/// The directories by precedence. `/run` is empty when the machine starts. `/lib` is the same as
/// `/usr/lib` on most systems.
const PLACES: [&str; 4] = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"];

/// procps reads this file last. systemd reads it only through a link in a sysctl.d directory.
pub(super) const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// The directories with profiles of tuned.
const TUNED: [&str; 4] = [
    "/etc/tuned",
    "/etc/tuned/profiles",
    "/usr/lib/tuned",
    "/usr/lib/tuned/profiles",
];

/// Maximum number of profiles that are read.
const MOST_PROFILES: usize = 16;

/// Maximum size of a file, far larger than any real one.
const LARGEST_FILE: u64 = 256 << 10;

/// Maximum size of all files together.
const LARGEST_TOTAL: u64 = 1 << 20;

/// Maximum number of relevant lines in all files together.
const MOST_LINES: usize = 1000;

/// Maximum number of names in one directory.
const MOST_NAMES: usize = 1024;

impl File {
    /// Keeps the relevant lines of a file.
    pub(super) fn new(path: &Path, local: Option<String>, text: Result<&[u8], WhyUnknown>) -> Self {
        let kind = kind(path);
        let is_drop_in = kind != Kind::SysctlConf && path.extension().is_some_and(|e| e == "conf");
        let name = path.file_name().filter(|_| is_drop_in);
        let all = text.unwrap_or_default();
        Self {
            kind,
            path: escape::name(path),
            // A directory, and all other files, come last.
            name: name.map_or(&[0xff; 9][..], OsStrExt::as_bytes).to_owned(),
            local: local.filter(|_| text.is_ok()),
            lines: text.map(|text| relevant(kind, text)),
            line_count: all.split_inclusive(|&b| b == b'\n').count(),
            is_complete: all.last().is_none_or(|&b| b == b'\n'),
        }
    }
}

fn relevant(kind: Kind, text: &[u8]) -> Vec<(usize, String)> {
    let lines = text.split(|&b| b == b'\n').map(String::from_utf8_lossy);
    (1..)
        .zip(lines)
        .filter(|(_, line)| match kind {
            Kind::Sysctl | Kind::SysctlConf => sysctl::parse_line(line).is_some(),
            Kind::Tmpfiles | Kind::Other => tmpfiles::parse_line(kind, line).is_some(),
        })
        .map(|(number, line)| (number, line.into_owned()))
        .collect()
}

fn kind(path: &Path) -> Kind {
    let is_in =
        |name: &str| path.ends_with(name) || path.parent().is_some_and(|p| p.ends_with(name));
    match path {
        _ if path == Path::new(SYSCTL_CONF) => Kind::SysctlConf,
        _ if is_in("sysctl.d") => Kind::Sysctl,
        _ if is_in("tmpfiles.d") => Kind::Tmpfiles,
        _ => Kind::Other,
    }
}

/// Reads all files that exist.
pub(super) fn read(root: &Root, has_systemd: bool) -> Result<Vec<File>, ReadError> {
    let mut reader = Reader {
        root,
        etc: real(root, "/etc"),
        real_paths: BTreeSet::new(),
        files: Vec::new(),
        bytes_left: LARGEST_TOTAL,
        lines_left: MOST_LINES,
    };
    reader.read_drop_ins("sysctl.d")?;
    let conf = real(root, SYSCTL_CONF);
    let is_linked = conf.is_some_and(|conf| reader.real_paths.contains(&conf));
    let mut others = Vec::new();
    if !has_systemd || !is_linked {
        others.push(PathBuf::from(SYSCTL_CONF));
    }
    if has_systemd {
        reader.read_drop_ins("tmpfiles.d")?;
    }
    let active = Path::new("/etc/tuned/active_profile");
    let mut profiles = names(&reader.text(active)?.unwrap_or_default());
    let mut nth = 0;
    while let Some(profile) = profiles.get(nth).cloned() {
        if nth == MOST_PROFILES {
            reader.add_unknown(active, WhyUnknown::TooLarge);
            break;
        }
        nth += 1;
        for place in TUNED {
            let path = Path::new(place).join(&profile).join("tuned.conf");
            let Some(text) = reader.text(&path)? else {
                continue;
            };
            for name in included(&text) {
                if !profiles.contains(&name) {
                    profiles.push(name);
                }
            }
            others.push(path);
        }
    }
    others.sort();
    others.dedup();
    for path in others {
        if root.path(&path).exists() {
            let real = real(root, &path);
            reader.read_file(&path, real)?;
        }
    }
    Ok(reader.files)
}

/// Names of profiles, separated by blanks, commas or semicolons.
fn names(text: &str) -> Vec<String> {
    let names = text.split([',', ';', ' ', '\t', '\n']);
    // Since tuned 2.15, a dash means that the profile need not exist.
    let names = names.map(|name| name.strip_prefix('-').unwrap_or(name));
    let is_name = |name: &&str| !name.is_empty() && !name.contains('/');
    names.filter(is_name).map(str::to_owned).collect()
}

/// The profiles that a profile of tuned includes.
fn included(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let lists = lines.filter(|(key, _)| key.trim() == "include");
    lists.flat_map(|(_, list)| names(list)).collect()
}

/// Returns the path with all symbolic links resolved. `None`: it cannot be resolved.
fn real(root: &Root, path: impl AsRef<Path>) -> Option<PathBuf> {
    fs::canonicalize(root.path(path)).ok()
}

struct Reader<'r> {
    root: &'r Root,
    /// `/etc` with symbolic links resolved.
    etc: Option<PathBuf>,
    /// The resolved paths of the files read so far.
    real_paths: BTreeSet<PathBuf>,
    files: Vec<File>,
    /// The rest of [`LARGEST_TOTAL`].
    bytes_left: u64,
    /// The rest of [`MOST_LINES`].
    lines_left: usize,
}

impl Reader<'_> {
    /// The contents of a file. Links to `/dev/null` and links without a target hide files with their
    /// names, like a file that is empty.
    fn bytes(&mut self, path: &Path) -> Result<Result<Vec<u8>, WhyUnknown>, ReadError> {
        let limit = LARGEST_FILE.min(self.bytes_left);
        Ok(match self.root.read_written_up_to(limit, path) {
            Ok(bytes) => {
                self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
                Ok(bytes)
            }
            Err(ReadError::NoMemory(error)) => return Err(error.into()),
            Err(ReadError::TooLarge { .. }) => Err(WhyUnknown::TooLarge),
            Err(error) if error.is_missing() => Ok(Vec::new()),
            Err(_) => Err(WhyUnknown::Unreadable),
        })
    }

    fn add_unknown(&mut self, path: &Path, why: WhyUnknown) {
        self.files.push(File::new(path, None, Err(why)));
    }

    /// The text of a file of tuned, if it exists. `None`: it cannot be read, and is added as unknown.
    fn text(&mut self, path: &Path) -> Result<Option<String>, ReadError> {
        let utf8 = |bytes| String::from_utf8(bytes).map_err(|_| WhyUnknown::Unreadable);
        let text = self.bytes(path)?.and_then(utf8);
        if let Err(why) = text {
            self.add_unknown(path, why);
        }
        Ok(text.ok())
    }

    /// Reads the drop-in files of all directories with this name, such as `sysctl.d`.
    fn read_drop_ins(&mut self, name: &str) -> Result<(), ReadError> {
        let mut by_name = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut unread = Vec::new();
        for place in PLACES {
            let directory = Path::new(place).join(name);
            let real = real(self.root, &directory);
            // A directory with two names counts once.
            if real.as_ref().is_some_and(|real| !seen.insert(real.clone())) {
                continue;
            }
            match self.root.entries(&directory) {
                Ok(names) if names.len() > MOST_NAMES => {
                    unread.push((directory, WhyUnknown::TooLarge));
                }
                Ok(names) => {
                    for name in names
                        .into_iter()
                        .filter(|name| name.as_bytes().ends_with(b".conf"))
                    {
                        let file = (
                            directory.join(&name),
                            real.as_ref().map(|real| real.join(&name)),
                        );
                        by_name.entry(name).or_insert(file);
                    }
                }
                Err(ReadError::NoMemory(error)) => return Err(error.into()),
                Err(error) if error.is_missing() => {}
                Err(_) => unread.push((directory, WhyUnknown::Unreadable)),
            }
        }
        for (path, in_real_directory) in by_name.into_values() {
            let is_plain = |path: &PathBuf| {
                let found = fs::symlink_metadata(path);
                found.is_ok_and(|found| !found.is_symlink())
            };
            let real = in_real_directory
                .filter(is_plain)
                .or_else(|| real(self.root, &path));
            self.read_file(&path, real)?;
        }
        for (path, why) in unread {
            self.add_unknown(&path, why);
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, real: Option<PathBuf>) -> Result<(), ReadError> {
        let text = self.bytes(path)?;
        let local = real.as_deref().and_then(|real| self.local(real));
        let text = text.as_deref().map_err(|why| *why);
        let mut file = File::new(path, local, text);
        let lines = file.lines.as_ref().map_or(0, Vec::len);
        match self.lines_left.checked_sub(lines) {
            Some(left) => self.lines_left = left,
            None => file = File::new(path, None, Err(WhyUnknown::TooLarge)),
        }
        self.files.push(file);
        self.real_paths.extend(real);
        Ok(())
    }

    /// Returns the path below `/etc` that a shell command can edit. Editing the path of a link would
    /// replace the link with a file.
    fn local(&self, real: &Path) -> Option<String> {
        let local = Path::new("/etc").join(real.strip_prefix(self.etc.as_ref()?).ok()?);
        shell::quoted(&local)?;
        // A backslash might be part of an escape.
        let local = local.to_str()?;
        (!local.contains('\\')).then(|| local.to_owned())
    }
}
