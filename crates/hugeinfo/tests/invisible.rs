//! Programs that cannot call `hugeinfo::escape` remove the same invisible characters from texts.

#![allow(clippy::expect_used)]

use std::{
    collections::BTreeSet,
    fs,
    io::{Seek, Write},
    path::Path,
    process::Command,
};

use hugeinfo::escape;

fn source(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(file)).expect(file)
}

/// Returns the text from `start`, up to the next `end`.
fn part<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let text = &text[text.find(start).expect(start)..];
    &text[..text.find(end).expect(end)]
}

/// Excludes line feeds and `|`, which have a meaning in some outputs, spaces, which some programs
/// replace by others, and noncharacters, which only HTML forbids. Samples the rare planes.
fn characters() -> impl Iterator<Item = char> {
    ('\u{1}'..=char::MAX).filter(|&c| {
        let is_space = matches!(
            c,
            ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        );
        let is_noncharacter =
            matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
        let is_sampled = c < '\u{20000}' || u32::from(c) % 0x101 == 0;
        is_sampled && !is_space && !is_noncharacter && c != '\n' && c != '|'
    })
}

fn assert_same_as_escape(program: &str, hidden: impl Fn(char) -> bool) {
    let is_escaped = |c: char| !escape::name(format!("a{c}")).contains(c);
    let differences: BTreeSet<_> = characters()
        .filter(|&c| hidden(c) != is_escaped(c))
        .map(|c| format!("U+{:04X}", u32::from(c)))
        .collect();
    assert_eq!(differences, BTreeSet::new(), "{program}");
}

/// Returns the characters that a filter removes. It gets each character on a line.
fn removed_by(command: &mut Command) -> BTreeSet<char> {
    let mut lines = tempfile::tempfile().expect("a file");
    for c in characters() {
        writeln!(lines, "a{c}b").expect("a line");
    }
    lines.rewind().expect("rewind");
    let output = command.stdin(lines).output().expect("a program");
    assert!(output.status.success(), "{output:?}");
    let output = String::from_utf8(output.stdout).expect("UTF-8");
    let output: Vec<_> = output.trim_end_matches('\n').split('\n').collect();
    assert_eq!(output.len(), characters().count(), "a line for each");
    let is_removed = |(c, line): (char, &&str)| (!line.contains(c)).then_some(c);
    characters().zip(&output).filter_map(is_removed).collect()
}

#[test]
fn plugin_removes_the_same_characters() {
    let text = source("monitoring/check_pg_hugeinfo");
    let functions = part(&text, "newline='", "\none_line()");
    let script = format!("{functions}\nprintable \"$(cat)\"");
    let removed = removed_by(Command::new("sh").args(["-c", &script]));
    assert_same_as_escape("check_pg_hugeinfo", |c| removed.contains(&c));
}
