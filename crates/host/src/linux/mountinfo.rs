//! Parses `/proc/PID/mountinfo` (fs/proc_namespace.c `show_mountinfo`).

use std::{
    ffi::OsStr,
    io::{self, BufRead},
    ops::ControlFlow,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use crate::linux::{
    error::ParseError,
    text::{LineReader, parse_number, split_once, words},
};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Device number of the file system, as `MAJOR:MINOR`.
    pub device: Vec<u8>,
    /// Directory of the file system that is mounted.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// True if the mount or the file system is read-only.
    pub is_read_only: bool,
    /// The type of the file system.
    filesystem: Vec<u8>,
    /// The options of the file system, separated by commas.
    options: Vec<u8>,
}

impl Mount {
    /// True if the file system has this option.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options().any(|option| option == name.as_bytes())
    }

    /// The value of option `NAME=VALUE`.
    pub fn option(&self, name: &str) -> Option<&[u8]> {
        self.options()
            .filter_map(|option| split_once(option, b'='))
            .find_map(|(key, value)| (key == name.as_bytes()).then_some(value))
    }

    /// True if files can be written and survive a reboot.
    pub(crate) fn is_kept(&self) -> bool {
        let is_memory = matches!(&*self.filesystem, b"tmpfs" | b"ramfs" | b"rootfs");
        !is_memory && !self.is_read_only
    }

    fn options(&self) -> impl Iterator<Item = &[u8]> {
        self.options.split(|&b| b == b',')
    }
}

/// Splits a line into the text before the file system type, the type, and the text after it.
pub(crate) fn split_line(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let at = line.windows(3).position(|window| window == b" - ")?;
    let (filesystem, after) = split_once(&line[at + 3..], b' ')?;
    Some((&line[..at], filesystem, after))
}

/// Parses lines such as `36 35 0:31 /below /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2
/// rw,nsdelegate`, where `/below` is the mounted directory of the file system.
///
/// Errors: a line of that file system type that cannot be parsed.
pub fn parse(
    text: impl BufRead,
    filesystem: &str,
    look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ParseError> {
    parse_those(text, |of| of == filesystem.as_bytes(), look)
}

/// Calls `look` with the ID, the file system type and the options of each mount. Lines that cannot
/// be parsed are skipped.
pub(crate) fn each_type(
    text: impl BufRead,
    mut look: impl FnMut(u64, &[u8], &[u8]),
) -> io::Result<()> {
    let mut lines = LineReader::new(text);
    while let Some((_, line)) = lines.next()? {
        if let Some((before, filesystem, after)) = split_line(line)
            && let Some(id) = words(before).next().and_then(parse_number)
        {
            look(id, filesystem, words(after).last().unwrap_or_default());
        }
    }
    Ok(())
}

pub(crate) fn parse_those(
    text: impl BufRead,
    is_wanted: impl Fn(&[u8]) -> bool,
    mut look: impl FnMut(Mount) -> ControlFlow<()>,
) -> Result<(), ParseError> {
    let mut lines = LineReader::new(text);
    while let Some((number, line)) = lines.next()? {
        // A host can have thousands of mounts. Only those of interest are parsed.
        let Some((before, filesystem, after)) = split_line(line) else {
            continue;
        };
        if !is_wanted(filesystem) {
            continue;
        }
        let mount = parse_mount(before, filesystem, after).ok_or(ParseError::Malformed {
            line: number,
            problem: "a mount was expected",
        })?;
        if look(mount).is_break() {
            break;
        }
    }
    Ok(())
}

/// Parses the fields before and after the file system type.
fn parse_mount(before: &[u8], filesystem: &[u8], after: &[u8]) -> Option<Mount> {
    let mut words = words(before);
    let (id, parent) = (words.next()?, words.next()?);
    parse_number(id).and(parse_number(parent))?;
    let device = words.next()?;
    split_once(device, b':')?;
    let (root, point) = (words.next()?, words.next()?);
    // Mount options come first. The options of the file system, after its type, apply as well.
    let of_mount = words.next()?;
    // The source can be empty, but a space always follows it.
    let (_, options) = split_once(after, b' ')?;
    Some(Mount {
        device: device.to_vec(),
        filesystem: filesystem.to_vec(),
        root: unescape(root),
        point: unescape(point),
        is_read_only: [of_mount, options].iter().any(|options| {
            let mut options = options.split(|&b| b == b',');
            options.any(|option| option == b"ro")
        }),
        options: options.to_vec(),
    })
}

/// Replaces escapes such as `\040`, a space (fs/proc_namespace.c `mangle`).
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
    use std::path::Path;

    use super::*;

    #[test]
    fn mount_points_are_unescaped() {
        for (field, path) in [
            (&br"/sys/fs/c\040group\134x"[..], r"/sys/fs/c group\x"),
            (br"/odd\04", r"/odd\04"),
            (br"/odd\999", r"/odd\999"),
        ] {
            assert_eq!(unescape(field), Path::new(path));
        }
    }

    #[test]
    fn truncated_line_is_an_error_with_its_number() {
        let line = "40 30 0:36 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let read = |line: &str| {
            let text = format!("1 2 x\n{line}\n");
            parse(text.as_bytes(), "cgroup2", |_| ControlFlow::Break(()))
        };
        assert!(read(line).is_ok());
        for cut in ["40 30 0:36 / /sys/fs/cgroup rw", "40 30 0:36"] {
            let error =
                read(&line.replace("40 30 0:36 / /sys/fs/cgroup rw", &cut[..cut.len() - 3]));
            assert!(
                matches!(error, Err(ParseError::Malformed { line: 2, .. })),
                "{cut}"
            );
        }
    }
}
