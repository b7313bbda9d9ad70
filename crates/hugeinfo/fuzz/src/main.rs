//! Fuzzes the reader with the name in `HUGEINFO_READER`, or the redaction of reports.
//! `tools/fuzz` runs this program.

#![no_main]

#[path = "../../tests/readers/mod.rs"]
mod readers;

use std::{env, sync::LazyLock};

use hugeinfo::shell;
use readers::{READERS, Reader};

static READER: LazyLock<Reader> = LazyLock::new(|| {
    let name = env::var("HUGEINFO_READER").expect("HUGEINFO_READER is set");
    let mut readers = READERS.iter().chain(&[("redaction", redaction as Reader)]);
    let reader = readers.find(|(known, _)| *known == name);
    reader.expect("a reader has this name").1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| READER(bytes));

/// Redacts any text, and the same text as a file name in a command.
fn redaction(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = hugeinfo_report::without_paths(&text);
    if let Some(file) = shell::quoted(format!("/srv/ {text}")) {
        let command = hugeinfo_report::without_paths(&format!("echo 5 > {file} && sync"));
        assert_eq!(command, "echo 5 > '[path]' && sync", "{file}");
    }
}
