//! Quotes words for a POSIX shell. Every name in a command passes through this module.

use std::ffi::OsStr;

use crate::escape;

/// Quotes a word if necessary. Returns `None` if the word is not UTF-8, or if it contains a
/// character that [`escape::name`] would escape, because a person could not check such a command.
pub fn quoted(word: impl AsRef<OsStr>) -> Option<String> {
    let word = word.as_ref().to_str()?;
    if escape::name(word) != word {
        return None;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if word.chars().all(is_plain) && word.starts_with(|c: char| c != '-') {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::ffi::OsStrExt, process::Command};

    use super::*;

    #[test]
    fn quoted_words_reach_the_program_unchanged() {
        for (word, expected) in [
            ("/sys/fs/cgroup/pg-1.slice", "/sys/fs/cgroup/pg-1.slice"),
            ("", "''"),
            ("x';touch PWNED;echo '", r"'x'\'';touch PWNED;echo '\'''"),
            (
                "$(touch PWNED)`touch PWNED`",
                "'$(touch PWNED)`touch PWNED`'",
            ),
            ("-n", "'-n'"),
            ("a b\"\\", "'a b\"\\'"),
            ("~", "'~'"),
            ("*?[#!&|<>(){}=^", "'*?[#!&|<>(){}=^'"),
            ("\u{e4}", "'\u{e4}'"),
        ] {
            let quoted = quoted(word).expect("a word");
            assert_eq!(quoted, expected);
            let script = format!("set -- {quoted}; printf '%s|%s' \"$#\" \"$1\"");
            let shell = Command::new("/bin/sh").args(["-c", &script]).output();
            let output = shell.expect("a shell").stdout;
            assert_eq!(output, format!("1|{word}").as_bytes(), "{word}");
        }
    }

    #[test]
    fn words_with_hidden_characters_are_rejected() {
        for word in [
            &b"a\nb"[..],
            b"a\x1b[2J",
            b"a\rb",
            b"a\tb",
            b"a\x7f",
            b"a\xff",
            "a\u{9b}".as_bytes(),
            "a\u{202e}".as_bytes(),
            "a\u{2028}".as_bytes(),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(word)), None, "{word:?}");
        }
    }
}
