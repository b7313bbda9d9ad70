//! Files that set pools when the machine starts. Drop-in files are in several directories: a file
//! hides files with its name in later directories, and all are read in the order of their names
//! (src/basic/conf-files.c of systemd; sysctl.d(5); tmpfiles.d(5)).

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::entry::{SETS_POOL, TOO_LARGE, UNREADABLE, Unknown};
use crate::{
    escape,
    linux::{error::ReadError, hugepages, root::Root},
    shell,
};

/// The directories by precedence. `/run` is empty when the machine starts. `/lib` is the same as
/// `/usr/lib` on most systems.
const PLACES: [&str; 4] = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"];

/// procps reads this file last. systemd reads it only through a link in a sysctl.d directory.
const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// The active profiles of tuned, and the directories with profiles.
const TUNED_ACTIVE: &str = "/etc/tuned/active_profile";
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

/// Maximum number of names in one directory.
const MOST_NAMES: usize = 1024;

/// A file for sysctl, or a directory whose files are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SysctlFile {
    /// Absolute path, escaped for display.
    pub(super) path: String,
    /// Drop-in files are read in the order of these bytes.
    pub(super) name: Vec<u8>,
    /// Path with all links resolved. `None` if it is not below `/etc`, where administrators edit
    /// files, or if it cannot be quoted in a shell command.
    pub(super) local: Option<String>,
    /// The text, or the reason why it is unknown.
    pub(super) text: Result<String, &'static str>,
    /// False for `/etc/sysctl.conf` on a machine with systemd.
    pub(super) is_read: bool,
}

impl SysctlFile {
    fn new(path: &Path, has_systemd: bool) -> Self {
        let is_conf = path == Path::new(SYSCTL_CONF);
        Self {
            path: escape::name(path),
            name: path.file_name().unwrap_or_default().as_bytes().to_owned(),
            local: None,
            text: Ok(String::new()),
            is_read: !is_conf || !has_systemd,
        }
    }

    /// A file with this text. The path is the real one.
    pub(super) fn with_text(path: &str, text: &str, has_systemd: bool) -> Self {
        Self {
            local: path.starts_with("/etc/").then(|| path.to_owned()),
            text: Ok(text.to_owned()),
            ..Self::new(Path::new(path), has_systemd)
        }
    }

    /// Files are read in this order. A directory whose files are unknown comes after all drop-ins.
    pub(super) fn order(&self) -> (bool, bool, &[u8]) {
        let is_directory = !self.name.ends_with(b".conf");
        (self.path == SYSCTL_CONF, is_directory, &self.name)
    }
}

/// All files that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// In the order in which they are read.
    pub(super) sysctl: Vec<SysctlFile>,
    /// Lines of tmpfiles.d and tuned that set pools, and files that cannot be read.
    pub(super) others: Vec<Unknown>,
}

/// Reads all files that exist.
pub(super) fn read(root: &Root, has_systemd: bool) -> Result<Files, ReadError> {
    let mut reader = Reader {
        root,
        etc: real(root, "/etc"),
        bytes_left: LARGEST_TOTAL,
        others: Vec::new(),
    };
    let mut sysctl = Vec::new();
    let conf = real(root, SYSCTL_CONF);
    let mut linked = None;
    for (path, resolved) in reader.drop_ins("sysctl.d")? {
        let is_link = fs::read_link(root.path(&path)).is_ok();
        let real = resolved.filter(|_| !is_link).or_else(|| real(root, &path));
        let is_linked = real.is_some() && real == conf;
        let file = reader.sysctl_file(&path, real, has_systemd)?;
        if is_linked {
            linked = Some(file.clone());
        }
        sysctl.push(file);
    }
    // Directories that cannot be read.
    for unread in reader.others.drain(..) {
        sysctl.push(SysctlFile {
            text: Err(unread.why),
            ..SysctlFile::new(Path::new(&unread.file), has_systemd)
        });
    }
    match linked {
        Some(_) if has_systemd => {}
        Some(SysctlFile { local, text, .. }) => sysctl.push(SysctlFile {
            local,
            text,
            ..SysctlFile::new(Path::new(SYSCTL_CONF), has_systemd)
        }),
        None if conf.is_some() => {
            sysctl.push(reader.sysctl_file(Path::new(SYSCTL_CONF), conf, has_systemd)?);
        }
        None => {}
    }
    if has_systemd {
        for (path, _) in reader.drop_ins("tmpfiles.d")? {
            reader.read_other(&path)?;
        }
    }
    reader.read_tuned()?;
    Ok(Files {
        sysctl,
        others: reader.others,
    })
}

/// Returns the lines of a file of tmpfiles.d or tuned that might set pools. Everything but comments
/// counts.
pub(super) fn lines_of_other<'t>(
    path: &'t Path,
    text: &'t str,
) -> impl Iterator<Item = Unknown> + 't {
    let lines = (1..).zip(text.lines());
    let sets_pool =
        |line: &str| line.contains("nr_huge") && !line.trim_start().starts_with(['#', ';']);
    lines
        .filter(move |(_, line)| sets_pool(line))
        .map(move |(number, line)| Unknown {
            file: escape::name(path),
            line: Some(number),
            page_bytes: line.split(['/', '=', ' ']).find_map(hugepages::parse_name),
            why: SETS_POOL,
        })
}

/// Names of profiles, separated by blanks, commas or semicolons.
fn names(text: &str) -> impl Iterator<Item = String> {
    let names = text.split([',', ';', ' ', '\t', '\n']);
    // Since tuned 2.15, a dash means that the profile need not exist.
    let names = names.map(|name| name.strip_prefix('-').unwrap_or(name));
    let is_name = |name: &&str| !name.is_empty() && !name.contains('/');
    names.filter(is_name).map(str::to_owned)
}

/// Returns the path with all symbolic links resolved. `None`: it cannot be resolved.
fn real(root: &Root, path: impl AsRef<Path>) -> Option<PathBuf> {
    fs::canonicalize(root.path(path)).ok()
}

struct Reader<'r> {
    root: &'r Root,
    /// `/etc` with symbolic links resolved.
    etc: Option<PathBuf>,
    /// The rest of [`LARGEST_TOTAL`].
    bytes_left: u64,
    others: Vec<Unknown>,
}

impl Reader<'_> {
    /// The text of a file. Links to `/dev/null` and links without a target hide files with their
    /// names, like a file that is empty.
    fn text(&mut self, path: &Path) -> Result<Result<String, &'static str>, ReadError> {
        let limit = LARGEST_FILE.min(self.bytes_left);
        Ok(match self.root.read_written(limit, path) {
            Ok(bytes) => {
                self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(ReadError::NoMemory(error)) => return Err(error.into()),
            Err(ReadError::TooLarge { .. }) => Err(TOO_LARGE),
            Err(error) if error.is_missing() => Ok(String::new()),
            Err(_) => Err(UNREADABLE),
        })
    }

    fn add_unknown(&mut self, path: &Path, why: &'static str) {
        self.others.push(Unknown {
            file: escape::name(path),
            line: None,
            page_bytes: None,
            why,
        });
    }

    /// Returns the drop-in files of all directories with this name, such as `sysctl.d`, in the
    /// order of their names. The second path is that in the resolved directory.
    fn drop_ins(&mut self, name: &str) -> Result<Vec<(PathBuf, Option<PathBuf>)>, ReadError> {
        let mut by_name = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for place in PLACES {
            let directory = Path::new(place).join(name);
            let real = real(self.root, &directory);
            // A directory with two names counts once.
            if real.as_ref().is_some_and(|real| !seen.insert(real.clone())) {
                continue;
            }
            match self.root.entries(&directory) {
                Ok(names) if names.len() > MOST_NAMES => self.add_unknown(&directory, TOO_LARGE),
                Ok(names) => {
                    let is_conf = |name: &OsString| name.as_bytes().ends_with(b".conf");
                    for name in names.into_iter().filter(is_conf) {
                        let resolved = real.as_ref().map(|real| real.join(&name));
                        let paths = (directory.join(&name), resolved);
                        by_name.entry(name).or_insert(paths);
                    }
                }
                Err(ReadError::NoMemory(error)) => return Err(error.into()),
                Err(error) if error.is_missing() => {}
                Err(_) => self.add_unknown(&directory, UNREADABLE),
            }
        }
        Ok(by_name.into_values().collect())
    }

    fn sysctl_file(
        &mut self,
        path: &Path,
        real: Option<PathBuf>,
        has_systemd: bool,
    ) -> Result<SysctlFile, ReadError> {
        Ok(SysctlFile {
            local: real.and_then(|real| self.local(&real)),
            text: self.text(path)?,
            ..SysctlFile::new(path, has_systemd)
        })
    }

    /// Returns the path below `/etc` that a shell command can edit. Editing the path of a link
    /// would replace the link with a file.
    fn local(&self, real: &Path) -> Option<String> {
        let local = Path::new("/etc").join(real.strip_prefix(self.etc.as_ref()?).ok()?);
        shell::quoted(&local)?;
        // A backslash might be part of an escape.
        let local = local.to_str()?;
        (!local.contains('\\')).then(|| local.to_owned())
    }

    /// Reads a file of tmpfiles.d or tuned, and returns its text.
    fn read_other(&mut self, path: &Path) -> Result<String, ReadError> {
        match self.text(path)? {
            Ok(text) => {
                self.others.extend(lines_of_other(path, &text));
                Ok(text)
            }
            Err(why) => {
                self.add_unknown(path, why);
                Ok(String::new())
            }
        }
    }

    /// Reads the active profiles of tuned, and those that they include.
    fn read_tuned(&mut self) -> Result<(), ReadError> {
        let active = Path::new(TUNED_ACTIVE);
        let mut profiles: Vec<_> = names(&self.read_other(active)?).collect();
        let mut nth = 0;
        while let Some(profile) = profiles.get(nth).cloned() {
            if nth == MOST_PROFILES {
                self.add_unknown(active, TOO_LARGE);
                break;
            }
            nth += 1;
            for place in TUNED {
                let text = self.read_other(&Path::new(place).join(&profile).join("tuned.conf"))?;
                let pairs = text.lines().filter_map(|line| line.split_once('='));
                let lists = pairs.filter(|(key, _)| key.trim() == "include");
                for name in lists.flat_map(|(_, list)| names(list)) {
                    if !profiles.contains(&name) {
                        profiles.push(name);
                    }
                }
            }
        }
        Ok(())
    }
}
