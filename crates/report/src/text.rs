//! How what others wrote is shown: as text that hides nothing, in ASCII.

use std::fmt::Write;

use hugeinfo::escape;

/// How many characters of a text are shown where there is room.
pub(crate) const LONGEST: usize = 1500;

/// Truncates a text to `longest` characters and escapes hidden characters.
pub(crate) fn shown(text: &str, longest: usize) -> String {
    escape::lines(escape::shortened(text, longest))
}

/// A page in ASCII.
pub(crate) fn ascii(html: &str) -> String {
    let mut ascii = String::with_capacity(html.len());
    for character in html.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            let _ = write!(ascii, "&#x{:x};", u32::from(character));
        }
    }
    ascii
}

/// JSON in ASCII that a page can hold as it stands.
pub(crate) fn ascii_json(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        if character.is_ascii() && character != '\u{7f}' {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

/// So many of something.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{number} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(
            shown("a\nb\u{202e}\u{1b}", LONGEST),
            "a\nb\\342\\200\\256\\033"
        );
        assert_eq!(shown("abcd", 4), "abcd");
        assert_eq!(shown("abcd", 3), "abc\u{2026}");
    }

    #[test]
    fn all_is_ascii() {
        assert_eq!(ascii("a\u{fc}\u{1f418}"), "a&#xfc;&#x1f418;");
        assert_eq!(ascii_json("\"\u{fc}\u{1f418}\""), r#""\u00fc\ud83d\udc18""#);
    }
}
