//! How what others wrote is shown: as text that hides nothing, in ASCII.

use std::fmt::Write;

/// How many characters of a text are shown where there is room.
pub(crate) const LONGEST: usize = 1500;

/// Text without what would change how its surroundings are shown: what is no character of its own
/// is escaped as in Rust. Of text that is longer than `longest` characters, the beginning.
pub(crate) fn shown(text: &str, longest: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for (index, character) in text.chars().enumerate() {
        if index == longest {
            shown.push('\u{2026}');
            break;
        }
        marks = if is_mark(character) { marks + 1 } else { 0 };
        // No writing puts more on one letter.
        let is_pile = marks > 2 || marks > 0 && index == 0;
        if is_pile || is_hidden(character) {
            let _ = write!(shown, "{}", character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Controls, what turns the direction of text, what has no width, and what is nobody's.
fn is_hidden(character: char) -> bool {
    let is_control = character.is_control() && character != '\n' && character != '\t';
    is_control
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{10ffff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

/// What is written onto the character before.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
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
        for (text, expected) in [
            ("J\u{fc}rgen \u{4f60}", "J\u{fc}rgen \u{4f60}"),
            ("a\u{202e}b\u{0}\u{1b}", "a\\u{202e}b\\u{0}\\u{1b}"),
            ("e\u{301}\u{302}\u{303}", "e\u{301}\u{302}\\u{303}"),
            ("\u{301}", "\\u{301}"),
            ("a\nb", "a\nb"),
            ("\u{1fffe}", "\\u{1fffe}"),
        ] {
            assert_eq!(shown(text, LONGEST), expected);
        }
        assert_eq!(shown("abcd", 4), "abcd");
        assert_eq!(shown("abcd", 3), "abc\u{2026}");
    }

    #[test]
    fn all_is_ascii() {
        assert_eq!(ascii("a\u{fc}\u{1f418}"), "a&#xfc;&#x1f418;");
        assert_eq!(ascii_json("\"\u{fc}\u{1f418}\""), r#""\u00fc\ud83d\udc18""#);
    }
}
