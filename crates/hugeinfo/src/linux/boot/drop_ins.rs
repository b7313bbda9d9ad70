//! Files of one kind that lie in several directories: a file hides those of its name further down,
//! and all are read in the order of their names (src/basic/conf-files.c of systemd; sysctl.d(5)).

use std::{
    collections::{BTreeMap, BTreeSet, TryReserveError},
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use crate::linux::{
    error::{Absence, ReadError},
    growth::TryPush,
    root::Root,
    text::lines,
};

/// The directories, by rank. `/run` is empty when the machine starts, and is left out. `/lib` is
/// `/usr/lib`, but on systems that keep the two apart.
pub(super) const PLACES: [&str; 4] = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"];

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
    /// Its absolute path.
    pub path: String,
    /// Its path where all links are followed, if that is below `/etc`: there people may write.
    pub local: Option<String>,
    /// What it holds. Of a file that says nothing about pools nothing is kept.
    pub content: Content,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// This.
    Text(Vec<u8>),
    /// It may not be read, is no regular file, or is larger than such files are.
    Unread,
}

impl DropIn {
    /// The name by which it is sorted.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn text(&self) -> &[u8] {
        match &self.content {
            Content::Text(text) => text,
            Content::Unread => &[],
        }
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

    /// Forgets the text of files without a line that bears on what is looked for.
    pub(super) fn keep(
        &mut self,
        bears: impl Fn(&[u8]) -> Result<bool, TryReserveError>,
    ) -> Result<(), TryReserveError> {
        for file in &mut self.files {
            let Content::Text(text) = &mut file.content else {
                continue;
            };
            let mut any = false;
            for (_, line) in lines(text) {
                any = any || bears(line)?;
            }
            if !any {
                *text = Vec::new();
            }
        }
        Ok(())
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
        let names = match root.names(&directory) {
            Ok(names) => names,
            Err(ReadError::Absent(absent)) => {
                if absent.why == Absence::Denied {
                    all.unread.try_push(directory)?;
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        for name in names {
            if name.ends_with(".conf") {
                let path = format!("{directory}/{name}");
                by_name.entry(name).or_insert(path);
            }
        }
    }
    for path in by_name.into_values() {
        all.files.try_push(read_file(root, path)?)?;
    }
    Ok(all)
}

/// One file, in whichever directory.
pub(super) fn read_file(root: &Root, path: String) -> Result<DropIn, ReadError> {
    let content = match root.read_written(&path) {
        Ok(text) => Content::Text(text),
        Err(ReadError::NoMemory(error)) => return Err(error.into()),
        Err(_) if is_nothing(&root.path(&path)) => Content::Text(Vec::new()),
        Err(_) => Content::Unread,
    };
    Ok(DropIn {
        local: local(root, &path),
        path,
        content,
    })
}

fn local(root: &Root, path: &str) -> Option<String> {
    let etc = fs::canonicalize(root.path("/etc")).ok()?;
    let real = fs::canonicalize(root.path(path)).ok()?;
    let below = real.strip_prefix(etc).ok()?.to_str()?;
    Some(format!("/etc/{below}"))
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
