//! Files of one kind that lie in several directories: a file hides those of its name further down,
//! and all are read in the order of their names (src/basic/conf-files.c of systemd; sysctl.d(5)).

use std::{
    collections::{BTreeMap, BTreeSet, TryReserveError},
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
};

use crate::{
    escape,
    linux::{error::ReadError, growth::TryPush, root::Root},
    shell,
};

/// The directories, by rank. `/run` is empty when the machine starts, and is left out. `/lib` is
/// `/usr/lib`, but on systems that keep the two apart.
pub(super) const PLACES: [&str; 4] = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"];

/// Maximum size of a file, far larger than any real one. Reading a file of this size and simulating
/// changes to it takes a few milliseconds, whatever its contents.
const LARGEST_FILE: u64 = 256 << 10;

/// Maximum total size of the files of one kind.
const LARGEST_TOTAL: u64 = 1 << 20;

/// Maximum number of lines that set pools, in all files of one kind. Each simulated change
/// evaluates all of these lines. Larger numbers come from faulty generators.
const MOST_LINES: usize = 256;

/// Maximum length of a line that sets a pool.
const LONGEST_LINE: usize = 1000;

/// Maximum number of names in one directory.
const MOST_NAMES: usize = 1024;

/// The files of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropIns {
    /// Where people write such files.
    pub directory: String,
    /// Whether files can be written there.
    pub is_open: Openness,
    /// In the order in which they are read.
    pub files: Vec<DropIn>,
    /// Directories whose names are unknown.
    pub unread: Vec<String>,
}

/// Whether a directory takes files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Openness {
    /// It does.
    #[default]
    There,
    /// Once it has been made.
    Missing,
    /// It cannot be written to or made, or what is written is gone after a boot.
    Closed,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIn {
    /// Absolute path, escaped for display.
    pub path: String,
    /// Path with all links resolved. `None` if it is not below `/etc`, where administrators edit
    /// files, or if it cannot be quoted in a shell command.
    pub local: Option<String>,
    /// Contents, of which only lines about pools are kept. Other lines are emptied. A file without
    /// lines about pools is empty.
    pub content: Content,
}

/// Contents of a file, or the reason why they are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The contents.
    Text(Vec<u8>),
    /// The file cannot be read, or is not a regular file.
    Unread,
    /// The file exceeds a limit on its size or its lines.
    TooLarge,
}

impl DropIn {
    /// The name by which it is sorted.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// True if the path can appear in a command unescaped.
    pub(crate) fn is_typeable(&self) -> bool {
        // A backslash might be part of an escape.
        !self.path.contains('\\')
    }

    pub(super) fn text(&self) -> &[u8] {
        match &self.content {
            Content::Text(text) => text,
            Content::Unread | Content::TooLarge => &[],
        }
    }

    pub(super) fn is_read(&self) -> bool {
        matches!(self.content, Content::Text(_))
    }
}

impl DropIns {
    /// Nothing below `/etc` can be written so that it stays.
    pub(super) fn close(&mut self) {
        self.is_open = Openness::Closed;
        for file in &mut self.files {
            file.local = None;
        }
    }

    /// Empties irrelevant lines. Line numbers do not change.
    pub(super) fn keep(
        &mut self,
        bears: impl Fn(&[u8]) -> Result<bool, TryReserveError>,
    ) -> Result<(), TryReserveError> {
        let mut left = MOST_LINES;
        for file in &mut self.files {
            let Content::Text(text) = &file.content else {
                continue;
            };
            let mut kept = Vec::new();
            kept.try_reserve(text.len())?;
            let mut count = 0;
            let mut is_too_long = false;
            for line in text.split_inclusive(|&b| b == b'\n') {
                let (content, end) = match line.strip_suffix(b"\n") {
                    Some(content) => (content, &b"\n"[..]),
                    None => (line, &b""[..]),
                };
                if bears(content)? {
                    count += 1;
                    is_too_long |= content.len() > LONGEST_LINE;
                    if count > left || is_too_long {
                        break;
                    }
                    kept.extend_from_slice(content);
                }
                kept.extend_from_slice(end);
            }
            file.content = if count > left || is_too_long {
                Content::TooLarge
            } else if count == 0 {
                Content::Text(Vec::new())
            } else {
                left -= count;
                kept.shrink_to_fit();
                Content::Text(kept)
            };
        }
        Ok(())
    }

    /// Prevents commands that depend on a name that cannot be quoted. A new file must sort after
    /// the existing ones, so no new file is proposed if a relevant file has such a name.
    pub(super) fn respect_names(&mut self) {
        let nothing = Content::Text(Vec::new());
        self.files
            .retain(|file| file.is_typeable() || file.content != nothing);
        if !self.files.iter().all(DropIn::is_typeable) {
            self.is_open = Openness::Closed;
        }
    }
}

/// All files `PLACE/kind/*.conf`.
pub(super) fn read(root: &Root, kind: &str) -> Result<DropIns, ReadError> {
    let mut all = DropIns {
        directory: format!("{}/{kind}", PLACES[0]),
        ..DropIns::default()
    };
    let path = root.path(&all.directory);
    all.is_open = match (fs::metadata(&path), fs::symlink_metadata(&path)) {
        (Ok(found), _) if found.is_dir() => Openness::There,
        (Err(_), Err(_)) => Openness::Missing,
        // A link that leads nowhere.
        _ => Openness::Closed,
    };
    let mut by_name = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for place in PLACES {
        let directory = format!("{place}/{kind}");
        // What is one directory under two names counts once.
        let real = fs::canonicalize(root.path(&directory)).ok();
        if real.is_some_and(|real| !seen.insert(real)) {
            continue;
        }
        let names = match root.entries(&directory) {
            Ok(names) => names,
            Err(ReadError::NoMemory(error)) => return Err(error.into()),
            Err(error) => {
                if !error.is_missing() {
                    all.unread.try_push(directory)?;
                }
                continue;
            }
        };
        if names.len() > MOST_NAMES {
            all.unread.try_push(directory)?;
            continue;
        }
        for name in names {
            if name.as_bytes().ends_with(b".conf") {
                let path = Path::new(&directory).join(&name);
                by_name.entry(name).or_insert(path);
            }
        }
    }
    let mut left = LARGEST_TOTAL;
    for path in by_name.into_values() {
        let file = read_file(root, &path, left)?;
        left = left.saturating_sub(length(file.text()));
        all.files.try_push(file)?;
    }
    Ok(all)
}

fn length(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// Reads one file of at most `most` bytes, in any directory.
pub(super) fn read_file(root: &Root, path: &Path, most: u64) -> Result<DropIn, ReadError> {
    let most = most.min(LARGEST_FILE);
    let is_large = |found: fs::Metadata| found.is_file() && found.len() > most;
    let content = if fs::metadata(root.path(path)).is_ok_and(is_large) {
        Content::TooLarge
    } else {
        match root.read_written(path) {
            // The file has grown since its size was read.
            Ok(text) if length(&text) > most => Content::TooLarge,
            Ok(text) => Content::Text(text),
            Err(ReadError::NoMemory(error)) => return Err(error.into()),
            Err(_) if is_nothing(&root.path(path)) => Content::Text(Vec::new()),
            Err(_) => Content::Unread,
        }
    };
    let mut file = DropIn {
        path: escape::name(path),
        local: None,
        content,
    };
    if file.is_typeable() {
        file.local = local(root, path);
    }
    Ok(file)
}

fn local(root: &Root, path: &Path) -> Option<String> {
    let etc = fs::canonicalize(root.path("/etc")).ok()?;
    let real = fs::canonicalize(root.path(path)).ok()?;
    let local = Path::new("/etc").join(real.strip_prefix(etc).ok()?);
    shell::quoted(&local)?;
    Some(local.to_str()?.to_owned())
}

/// A link to `/dev/null`, which hides files of its name; one that leads nowhere or in a circle; a
/// directory.
fn is_nothing(path: &Path) -> bool {
    // `/dev/null` (Documentation/admin-guide/devices.txt).
    let null = rustix::fs::makedev(1, 3);
    match fs::metadata(path) {
        Ok(found) => {
            let is_null = found.file_type().is_char_device() && found.rdev() == null;
            is_null || found.is_dir()
        }
        Err(error) => {
            let code = error.raw_os_error();
            let is_circle = code == Some(rustix::io::Errno::LOOP.raw_os_error());
            is_circle || error.kind() == std::io::ErrorKind::NotFound
        }
    }
}
