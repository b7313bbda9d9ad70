//! The visible part of the hierarchy of a controller, and the values in its files.

use std::path::Path;

use super::{
    membership,
    mount::{self, Version},
};
use crate::linux::{
    error::ReadError,
    namespace::{self, Kind},
    process::Process,
    root::Root,
    text::{lines, parse_counter, parse_number, split_once},
};

/// Returns the version that has a controller, and the visible part of the hierarchy. `None`:
/// nothing can limit the process.
///
/// Errors: absent if the cgroup is not visible or access is denied.
pub(super) fn shown(
    root: &Root,
    process: &Process,
    controller: &str,
) -> Result<Option<(Version, mount::Shown)>, ReadError> {
    let Some((version, group)) = membership::read(process, controller)? else {
        return Ok(None);
    };
    match mount::read(root, version, controller, &group) {
        // The root cgroup has no limits, even if it is not mounted.
        Err(ReadError::Absent(_))
            if group == Path::new("/") && namespace::is_first(root, Kind::Cgroup)? =>
        {
            Ok(None)
        }
        shown => Ok(Some((version, shown?))),
    }
}

/// Reads a limit or a usage.
pub(super) fn read_limit(
    root: &Root,
    file: &Path,
    page_bytes: u64,
) -> Result<Option<u64>, ReadError> {
    let expected = "a number of bytes or \"max\" was expected";
    let limit = root.parse(file, expected, |text| {
        parse_limit(text, page_bytes).ok_or(1)
    })?;
    Ok(limit.bytes())
}

/// The value in a file with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `max` in v2; the largest multiple of the page size in v1.
    Unlimited,
    Bytes(u64),
}

impl Limit {
    /// The limit in bytes. `None`: unlimited.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// `max`, or a number of bytes.
pub fn parse_limit(text: &[u8], page_bytes: u64) -> Option<Limit> {
    const V1_COUNTER_MAX: u64 = i64::MAX.unsigned_abs();
    let text = text.trim_ascii();
    if text == b"max" {
        return Some(Limit::Unlimited);
    }
    let bytes = parse_number(text)?;
    let is_limit = bytes <= V1_COUNTER_MAX.saturating_sub(page_bytes);
    Some(if is_limit {
        Limit::Bytes(bytes)
    } else {
        Limit::Unlimited
    })
}

/// Reads a counter of a flat keyed file. `None`: no such key, or no valid value.
pub(super) fn read_keyed(root: &Root, file: &Path, key: &str) -> Result<Option<u64>, ReadError> {
    Ok(parse_keyed(&root.read_record(file)?, key))
}

/// Finds a counter in a flat keyed file, such as `inactive_file 123` in `memory.stat` or
/// `hugetlb.SIZE.events`. `None`: no such key, or no valid value.
pub fn parse_keyed(text: &[u8], key: &str) -> Option<u64> {
    lines(text)
        .filter_map(|(_, line)| split_once(line, b' '))
        .find(|(name, _)| *name == key.as_bytes())
        .and_then(|(_, value)| parse_counter(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_key() {
        let text = b"low 0\nmax 7\nmax_swap 1\noom -1\noom_kill 18446744073709551615\nhigh";
        for (key, value) in [
            ("low", Some(0)),
            ("max", Some(7)),
            ("ma", None),
            ("oom", None),
            ("oom_kill", None),
            ("high", None),
        ] {
            assert_eq!(parse_keyed(text, key), value, "{key}");
        }
    }

    #[test]
    fn limit_below_zero_is_unlimited() {
        let limit = parse_limit(b"18446744073709551615\n", 2 << 20);
        assert_eq!(limit, Some(Limit::Unlimited));
    }

    #[test]
    fn other_words_are_no_limit() {
        for text in [
            &b"maximum\n"[..],
            b"-1\n",
            b"18446744073709551616\n",
            b"\xff\n",
        ] {
            assert_eq!(parse_limit(text, 2 << 20), None, "{text:?}");
        }
    }
}
