//! Patterns of glob(7), as in the files of sysctl.d(5) and tmpfiles.d(5).

/// Whether systemd takes it for a pattern (src/basic/glob-util.h `GLOB_CHARS`).
pub(super) fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

/// Whether a path fits a pattern. A slash fits only a slash.
pub(super) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to go on with a longer match of the last asterisk.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let rest = pattern.get(at..).unwrap_or_default();
        let byte = path.get(seen).copied();
        let step = match (rest.first(), byte) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                retry = Some((at + 1, seen));
                at += 1;
                continue;
            }
            (Some(b'?'), Some(byte)) if byte != b'/' => Some(1),
            (Some(b'['), Some(byte)) if byte != b'/' => match bracket(rest, byte) {
                Some((true, length)) => Some(length),
                Some((false, _)) => None,
                None => (byte == b'[').then_some(1),
            },
            (Some(b'\\'), Some(byte)) if rest.get(1) == Some(&byte) => Some(2),
            (Some(&expected), Some(byte)) if expected == byte => Some(1),
            _ => None,
        };
        match (step, retry) {
            (Some(length), _) => {
                at += length;
                seen += 1;
            }
            (None, Some((after, from))) if path.get(from).is_some_and(|&b| b != b'/') => {
                retry = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// `[a-z]` and `[!a-z]`: whether it takes the byte, and how long it is. `None`: it has no end.
fn bracket(text: &[u8], byte: u8) -> Option<(bool, usize)> {
    let is_inverted = matches!(text.get(1), Some(b'!' | b'^'));
    let start = if is_inverted { 2 } else { 1 };
    // A bracket in the first place is a member.
    let end = text.iter().skip(start + 1).position(|&b| b == b']')? + start + 1;
    let mut members = text.get(start..end)?;
    let mut is_member = false;
    while let Some((&first, rest)) = members.split_first() {
        members = match rest {
            [b'-', last, rest @ ..] => {
                is_member |= (first..=*last).contains(&byte);
                rest
            }
            _ => {
                is_member |= first == byte;
                rest
            }
        };
    }
    Some((is_member != is_inverted, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("vm/nr_*", "vm/nr_hugepages", true),
            ("vm/*", "vm/nr_hugepages", true),
            ("*", "vm/nr_hugepages", false),
            ("*/nr_huge*s", "vm/nr_hugepages", true),
            ("vm/nr_hugepage?", "vm/nr_hugepages", true),
            ("vm/nr_hugepages?", "vm/nr_hugepages", false),
            ("node[0-9]/x", "node3/x", true),
            ("node[!0-9]/x", "node3/x", false),
            ("node[]3]/x", "node3/x", true),
            ("node[3/x", "node[3/x", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            let seen = matches(pattern.as_bytes(), path.as_bytes());
            assert_eq!(seen, expected, "{pattern} {path}");
        }
    }
}
