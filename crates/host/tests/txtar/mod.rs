//! Text archives: the files of a captured host, or the inputs of a reader, in one file.
//!
//! A line `-- PATH --` starts a file, and the lines up to the next such line are its content. Lines
//! before the first file are a comment. `\xHH` stands for a byte, and `\c` at the end of a line
//! removes the line feed. Every other backslash stands for itself, because the kernel's files
//! contain many. `tools/lib/txtar.pl` writes `\xHH` for control characters except tab and line
//! feed, for non-ASCII bytes, for a backslash before `x` or a final `c`, and for the first
//! character of a line that would start a file.

use std::{fs, path::Path};

use tempfile::TempDir;

/// Unpacks an archive, which is named relative to this crate, into a temporary directory.
pub fn unpack(archive: impl AsRef<Path>) -> TempDir {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(archive);
    let bytes = fs::read(&archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let tree = tempfile::tempdir().expect("a directory");
    let mut files = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if let Some(path) = header(line) {
            files.push((tree.path().join(path), Vec::new()));
        } else if let Some((_, content)) = files.last_mut() {
            push_unescaped(content, line);
        }
    }
    for (path, content) in files {
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, content).expect("write");
    }
    tree
}

fn header(line: &[u8]) -> Option<&str> {
    let path = line.strip_prefix(b"-- ")?.strip_suffix(b" --\n")?;
    str::from_utf8(path).ok()
}

fn push_unescaped(content: &mut Vec<u8>, line: &[u8]) {
    let mut rest = line.strip_suffix(b"\\c\n").unwrap_or(line);
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\\x") {
        let digits = rest
            .get(at + 2..at + 4)
            .and_then(|d| str::from_utf8(d).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        content.extend_from_slice(&rest[..at]);
        content.push(byte.expect("two hexadecimal digits after \\x"));
        rest = &rest[at + 4..];
    }
    content.extend_from_slice(rest);
}
