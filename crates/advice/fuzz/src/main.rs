//! Fuzzes the reader with the name in `HUGEINFO_READER`. `tools/fuzz` runs this program.

#![no_main]

#[path = "../../tests/readers/mod.rs"]
mod readers;

use std::{env, sync::LazyLock};

use readers::{READERS, Reader};

static READER: LazyLock<Reader> = LazyLock::new(|| {
    let name = env::var("HUGEINFO_READER").expect("HUGEINFO_READER is set");
    let reader = READERS.iter().find(|(known, _)| *known == name);
    reader.expect("a reader has this name").1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| READER(bytes));
