//! `/proc/self/mountinfo`: where a hierarchy of control groups is mounted (fs/proc_namespace.c
//! `show_mountinfo`).

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use procfs::process::MountInfo;

use super::Version;
use crate::linux::{
    error::{ParseError, ReadError},
    root::Root,
};

/// Where that hierarchy is mounted so that the group can be seen: the mount point, and the group
/// below it.
pub(super) fn read(
    root: &Root,
    version: Version,
    group: &Path,
) -> Result<(PathBuf, PathBuf), ReadError> {
    const PATH: &str = "proc/self/mountinfo";
    // The kernel makes up the text as it is read: what stands behind the mount that we look for is
    // never asked for.
    let file = BufReader::with_capacity(4096, root.open(PATH)?);
    parse(file, version, group)
        .map_err(|error| error.in_file(root.path(PATH)))?
        .ok_or_else(|| ReadError::missing(root.path(PATH)))
}

/// The mount of that interface that shows the group and most of what is above it: the mount point,
/// and the group below it.
///
/// Errors: a line that is no mount, among those of interest.
pub fn parse(
    mut text: impl BufRead,
    version: Version,
    group: &Path,
) -> Result<Option<(PathBuf, PathBuf)>, ParseError> {
    let mut best: Option<(PathBuf, PathBuf)> = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        // A host can have thousands of mounts, with names in any encoding. Only those of interest
        // are parsed.
        let is_cgroup = match version {
            Version::V1 => contains(line, b" - cgroup "),
            Version::V2 => contains(line, b" - cgroup2 "),
        };
        if !is_cgroup {
            continue;
        }
        let mount = str::from_utf8(line)
            .ok()
            .and_then(|line| MountInfo::from_line(line).ok())
            .ok_or(ParseError::Malformed {
                line: number,
                problem: "a mount was expected",
            })?;
        if version == Version::V1 && !mount.super_options.contains_key("hugetlb") {
            continue;
        }
        let mount_root = unescape(mount.root.as_bytes());
        // A group above the mount or beside it, as `/..` in a namespace, is out of sight.
        let below = group.strip_prefix(&mount_root).ok().filter(|below| {
            below
                .components()
                .all(|c| matches!(c, Component::Normal(_)))
        });
        let Some(below) = below else { continue };
        let shows = below.components().count();
        if best
            .as_ref()
            .is_none_or(|(_, best)| shows > best.components().count())
        {
            let mount_point = unescape(mount.mount_point.as_os_str().as_bytes());
            best = Some((mount_point, below.to_path_buf()));
        }
        if mount_root == Path::new("/") {
            // More than all can't be seen.
            break;
        }
    }
    Ok(best)
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// Undoes the kernel's `\040` for a blank (fs/proc_namespace.c `mangle`).
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.first_chunk::<3>().filter(|_| byte == b'\\');
        let code = octal
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsStr::from_bytes(&plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_unescaped() {
        assert_eq!(
            unescape(br"/sys/fs/c\040group\134x"),
            Path::new(r"/sys/fs/c group\x")
        );
        assert_eq!(unescape(br"/odd\04"), Path::new(r"/odd\04"));
        assert_eq!(unescape(br"/odd\999"), Path::new(r"/odd\999"));
    }
}
