//! `/proc/PID/cgroup`: the cgroups of a process, one in each hierarchy (cgroups(7)).

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use super::mount::Version;
use crate::linux::{
    error::{ReadError, absent_or},
    process::Process,
    text::{lines, parse_number, split_once},
};

/// Reads the version and path of the cgroup that a controller applies to. `None`: there is none,
/// because the kernel has no cgroups (`CONFIG_CGROUPS`) or they have never been mounted.
pub(crate) fn read(
    process: &Process,
    controller: &str,
) -> Result<Option<(Version, PathBuf)>, ReadError> {
    let mut buffer = Vec::new();
    match process.read_record("cgroup", &mut buffer) {
        Ok(text) => parse(text, controller).map_err(|line| {
            let expected = "a cgroup was expected: ID:CONTROLLERS:PATH";
            process.malformed("cgroup", line, expected)
        }),
        // A process that has ended has no files at all.
        Err(error) if error.is_missing() && absent_or(process.file("stat"))?.is_ok() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the version and path of the cgroup that a controller applies to. This is the v1
/// hierarchy with the controller if there is one, else the unified hierarchy. The path can contain
/// any bytes except line feeds and NULs.
///
/// Errors: the number of a malformed line, if that line might be the one that applies.
pub fn parse(bytes: &[u8], controller: &str) -> Result<Option<(Version, PathBuf)>, usize> {
    let mut unified = None;
    let mut malformed = None;
    for (number, line) in lines(bytes) {
        let Some((hierarchy, controllers, path)) = parse_line(line) else {
            malformed = malformed.or(Some(number));
            continue;
        };
        let path = || PathBuf::from(OsStr::from_bytes(path));
        let mut names = controllers.split(|&b| b == b',');
        if names.any(|name| name == controller.as_bytes()) {
            return Ok(Some((Version::V1, path())));
        }
        if hierarchy == 0 && controllers.is_empty() {
            unified = Some((Version::V2, path()));
        }
    }
    malformed.map_or(Ok(unified), Err)
}

/// Splits `4:memory,hugetlb:/user.slice` into the hierarchy ID, the controllers and the path.
fn parse_line(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (hierarchy, rest) = split_once(line, b':')?;
    let (controllers, path) = split_once(rest, b':')?;
    path.starts_with(b"/")
        .then_some((parse_number(hierarchy)?, controllers, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cgroup_name_is_parsed() {
        for name in [
            &b"/x';touch PWNED;echo '"[..],
            b"/\xff\xfe",
            b"/a:b,hugetlb:c",
            b"/\x1b[2J\r \t",
            "/\u{202e}".as_bytes(),
            b"/x (deleted)",
        ] {
            let path = PathBuf::from(OsStr::from_bytes(name));
            let v2 = [b"0::", name, b"\n"].concat();
            let expected = Ok(Some((Version::V2, path.clone())));
            assert_eq!(parse(&v2, "hugetlb"), expected, "{name:?}");
            // A name in another hierarchy does not change the result.
            let v1 = [b"2:cpu:", name, b"\n3:memory,hugetlb:", name, b"\n0::/\n"].concat();
            let expected = Ok(Some((Version::V1, path)));
            assert_eq!(parse(&v1, "hugetlb"), expected, "{name:?}");
        }
    }

    #[test]
    fn controllers_are_found_in_any_hierarchy() {
        for line in ["3:,,hugetlb,,:/x", "0:hugetlb:/x", "4294967296:hugetlb:/x"] {
            let expected = Ok(Some((Version::V1, "/x".into())));
            assert_eq!(parse(line.as_bytes(), "hugetlb"), expected, "{line}");
        }
    }

    #[test]
    fn malformed_lines_do_not_hide_controllers() {
        for (text, expected) in [
            (
                &b"x\n1:hugetlb:/a\n"[..],
                Ok(Some((Version::V1, "/a".into()))),
            ),
            (b"x\n0::/a\n", Err(1)),
            (b"0::/a\nx:cpu:/\n", Err(2)),
            (b"0::a\n", Err(1)),
            (b"0::\n", Err(1)),
            (b"\xff::/\n", Err(1)),
            (b"", Ok(None)),
        ] {
            assert_eq!(parse(text, "hugetlb"), expected, "{text:?}");
        }
    }
}
