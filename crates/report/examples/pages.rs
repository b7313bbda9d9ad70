//! Writes the pages of the fixtures into a directory, to look at them in a browser:
//! `cargo run -p hugeinfo-report --example pages DIRECTORY`.

#![allow(clippy::expect_used)]

#[path = "../tests/fixtures/mod.rs"]
mod fixtures;

use std::{fs, path::PathBuf};

fn main() {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("a directory"));
    for (name, subject) in fixtures::ALL {
        let file = directory.join(format!("{name}.html"));
        fs::write(file, fixtures::page(&subject())).expect("a file");
    }
}
