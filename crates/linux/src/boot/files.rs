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
    error::{ReadError, fact},
    escape,
    root::Root,
    shell,
};

/// The directories by precedence. `/run` is empty when the machine starts. `/lib` is the same as
/// `/usr/lib` on most systems.
const PLACES: [&str; 4] = ["/etc", "/usr/local/lib", "/usr/lib", "/lib"];

/// procps reads this file last. systemd reads it only through a link in a sysctl.d directory.
pub(super) const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// Maximum size of a file, far larger than any real one.
const LARGEST_FILE: usize = 256 << 10;

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
    let (mut files, mut others) = (Vec::new(), Vec::new());
    read_drop_ins(root, "sysctl.d", &mut files)?;
    let real = |path: &str| fs::canonicalize(root.path(path)).ok();
    let conf = real(SYSCTL_CONF);
    let is_linked = conf.is_some() && files.iter().any(|file| real(&file.path) == conf);
    if !has_systemd || !is_linked {
        others.push(PathBuf::from(SYSCTL_CONF));
    }
    if has_systemd {
        read_drop_ins(root, "tmpfiles.d", &mut files)?;
    }
    let profiles = fact(root.read_written("/etc/tuned/active_profile"))?.unwrap_or_default();
    let profiles = String::from_utf8_lossy(&profiles).into_owned();
    for profile in profiles.split_ascii_whitespace().take(8) {
        for place in [
            "/etc/tuned",
            "/etc/tuned/profiles",
            "/usr/lib/tuned",
            "/usr/lib/tuned/profiles",
        ] {
            others.push(Path::new(place).join(profile).join("tuned.conf"));
        }
    }
    for path in others {
        if root.path(&path).exists() {
            files.push(read_file(root, &path)?);
        }
    }
    Ok(files)
}

/// Reads the files in all directories with this name.
fn read_drop_ins(root: &Root, name: &str, files: &mut Vec<File>) -> Result<(), ReadError> {
    let mut by_name = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut unread = Vec::new();
    for place in PLACES {
        let directory = Path::new(place).join(name);
        let real = fs::canonicalize(root.path(&directory)).ok();
        // A directory with two names counts once.
        if real.is_some_and(|real| !seen.insert(real)) {
            continue;
        }
        match root.entries(&directory) {
            Ok(names) if names.len() > MOST_NAMES => unread.push((directory, WhyUnknown::TooLarge)),
            Ok(names) => {
                for name in names
                    .into_iter()
                    .filter(|name| name.as_bytes().ends_with(b".conf"))
                {
                    let path = directory.join(&name);
                    by_name.entry(name).or_insert(path);
                }
            }
            Err(ReadError::NoMemory(error)) => return Err(error.into()),
            Err(error) if error.is_missing() => {}
            Err(_) => unread.push((directory, WhyUnknown::Unreadable)),
        }
    }
    for path in by_name.into_values() {
        files.push(read_file(root, &path)?);
    }
    files.extend(
        unread
            .iter()
            .map(|(path, why)| File::new(path, None, Err(*why))),
    );
    Ok(())
}

fn read_file(root: &Root, path: &Path) -> Result<File, ReadError> {
    let most = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX);
    if fs::metadata(root.path(path)).is_ok_and(|found| found.len() > most) {
        return Ok(File::new(path, None, Err(WhyUnknown::TooLarge)));
    }
    let text = match root.read_written(path) {
        Ok(text) => Ok(text),
        Err(ReadError::NoMemory(error)) => return Err(error.into()),
        // Links to `/dev/null` and links without a target hide files with their names.
        Err(error) if error.is_missing() => Ok(Vec::new()),
        Err(_) => Err(WhyUnknown::Unreadable),
    };
    Ok(File::new(
        path,
        local(root, path),
        text.as_deref().map_err(|why| *why),
    ))
}

/// Returns the path below `/etc` that a shell command can edit. It would replace a link by a file.
fn local(root: &Root, path: &Path) -> Option<String> {
    let etc = fs::canonicalize(root.path("/etc")).ok()?;
    let real = fs::canonicalize(root.path(path)).ok()?;
    let local = Path::new("/etc").join(real.strip_prefix(etc).ok()?);
    shell::quoted(&local)?;
    // A backslash might be part of an escape.
    let local = local.to_str()?;
    (!local.contains('\\')).then(|| local.to_owned())
}
