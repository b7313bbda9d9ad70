//! Untrusted text for the page: escaped, truncated and in ASCII.

use std::fmt::Write;

use hugeinfo::escape;

/// Maximum number of characters shown of a text, unless the page gets too long.
pub(crate) const LONGEST: usize = 1500;

/// Truncates a text to `longest` characters and escapes hidden characters.
pub(crate) fn shown(text: &str, longest: usize) -> String {
    escape::lines(escape::shortened(text, longest))
}

/// Replaces non-ASCII characters by character references.
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

/// Replaces non-ASCII characters in JSON by escape sequences.
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

/// A number with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{number} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(
            shown("a\nb\u{202e}\u{1b}", LONGEST),
            "a\nb\\342\\200\\256\\033"
        );
        assert_eq!(shown("abcd", 4), "abcd");
        assert_eq!(shown("abcd", 3), "abc\u{2026}");
    }

    #[test]
    fn pages_and_json_are_ascii() {
        assert_eq!(ascii("a\u{fc}\u{1f418}"), "a&#xfc;&#x1f418;");
        assert_eq!(ascii_json("\"\u{fc}\u{1f418}\""), r#""\u00fc\ud83d\udc18""#);
    }
}
