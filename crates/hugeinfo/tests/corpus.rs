//! What the fuzz targets have met: each file of their corpus, through the same functions.

#![allow(clippy::expect_used)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::{
    collections::BTreeSet,
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use targets::TARGETS;

fn fuzz(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz")
        .join(directory)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// The names in a directory, without what is behind a dot.
fn stems(directory: &Path) -> BTreeSet<String> {
    let stem = |path: &PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    files(directory).iter().filter_map(stem).collect()
}

#[test]
fn nothing_in_the_corpus_panics() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let files = files(&fuzz("corpus").join(name));
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let bytes = fs::read(&file).expect("a file");
            if catch_unwind(|| target(&bytes)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn each_target_has_a_program_and_a_corpus() {
    let names: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(stems(&fuzz("corpus")), names);
    assert_eq!(stems(&fuzz("src/bin")), names);
    for name in names {
        let program = fuzz("src/bin").join(format!("{name}.rs"));
        let text = fs::read_to_string(program).expect("a program");
        assert!(
            text.contains(&format!("hugeinfo_fuzz::{name}(bytes)")),
            "{name}"
        );
    }
}
