//! Escapes untrusted text, so that hidden characters cannot mislead the person who reads it.
//!
//! Names of files, cgroups and processes can contain any byte except NUL. A terminal interprets
//! control characters in them, and bidirectional controls change the order of the surrounding text.
//! Each byte of such a character, and each byte that is not valid UTF-8, becomes a backslash and
//! three octal digits. The kernel writes a line feed in `/proc/PID/maps` in the same way.

use std::{ffi::OsStr, fmt::Write, os::unix::ffi::OsStrExt};

/// Escapes a name or any other single-line text.
pub fn name(name: impl AsRef<OsStr>) -> String {
    escaped(name.as_ref().as_bytes(), &[])
}

/// Escapes multi-line text. Line feeds and tabs are kept.
pub fn lines(text: impl AsRef<OsStr>) -> String {
    escaped(text.as_ref().as_bytes(), &['\n', '\t'])
}

/// Escapes all non-ASCII characters, for encodings that might lack them.
pub fn ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            push_octal(&mut ascii, character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    ascii
}

/// Truncates a text to `longest` characters. An ellipsis replaces the rest.
pub fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

fn escaped(bytes: &[u8], kept: &[char]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut marks = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            marks = if is_mark(character) { marks + 1 } else { 0 };
            // Escape longer sequences: no writing system puts more than two marks on a letter.
            let is_pile = marks > 2 || marks > 0 && text.is_empty();
            if is_pile || is_hidden(character) && !kept.contains(&character) {
                push_octal(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        push_octal(&mut text, chunk.invalid());
    }
    text
}

fn push_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\{byte:03o}");
    }
}

/// True for control characters, characters that have no width, look like a blank or change the
/// direction of text, line separators, private-use characters and noncharacters. False for signs of
/// scripts that Unicode also calls format characters, such as U+0600.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{2800}' | '\u{3164}'
            | '\u{ffa0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{10ffff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

/// True if the character is a combining mark, which is drawn onto the preceding character.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}'
        | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_hidden_characters() {
        for (bytes, expected) in [
            ("J\u{fc}rgen \u{4f60}".as_bytes(), "J\u{fc}rgen \u{4f60}"),
            (b"a b'c\"$(d)`e`\\f", "a b'c\"$(d)`e`\\f"),
            (b"a\nb\rc\td\x1be\x7f", r"a\012b\015c\011d\033e\177"),
            (b"\xff/\xc3", r"\377/\303"),
            ("\u{85}\u{9b}".as_bytes(), r"\302\205\302\233"),
            ("\u{200e}\u{200f}".as_bytes(), r"\342\200\216\342\200\217"),
            ("\u{202a}\u{202e}".as_bytes(), r"\342\200\252\342\200\256"),
            ("\u{2066}\u{2069}".as_bytes(), r"\342\201\246\342\201\251"),
            ("\u{2028}\u{2029}".as_bytes(), r"\342\200\250\342\200\251"),
            ("\u{feff}\u{61c}".as_bytes(), r"\357\273\277\330\234"),
            ("\u{2800}\u{3164}".as_bytes(), r"\342\240\200\343\205\244"),
            ("\u{115f}\u{1160}".as_bytes(), r"\341\205\237\341\205\240"),
            ("\u{ffa0}".as_bytes(), r"\357\276\240"),
            ("\u{1fffe}".as_bytes(), r"\360\237\277\276"),
            (
                "e\u{301}\u{302}\u{303}".as_bytes(),
                "e\u{301}\u{302}\\314\\203",
            ),
            ("\u{301}".as_bytes(), r"\314\201"),
        ] {
            let seen = name(OsStr::from_bytes(bytes));
            assert_eq!(seen, expected, "{bytes:?}");
            assert_eq!(name(&seen), expected, "escaping twice changes nothing");
        }
    }

    #[test]
    fn lines_keep_line_feeds_and_tabs() {
        assert_eq!(
            lines("a\n\tb\r\x1b\u{202e}"),
            "a\n\tb\\015\\033\\342\\200\\256"
        );
    }

    #[test]
    fn ascii_escapes_other_characters() {
        assert_eq!(ascii("/\u{e4}\n"), "/\\303\\244\n");
    }

    #[test]
    fn texts_are_truncated_between_characters() {
        assert_eq!(shortened("ab\u{e4}d", 4), "ab\u{e4}d");
        assert_eq!(shortened("ab\u{e4}d", 3), "ab\u{e4}\u{2026}");
    }
}
