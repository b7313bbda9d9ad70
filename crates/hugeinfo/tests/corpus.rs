//! Odd files for each reader, and inputs with which fuzzing found errors.

#![allow(clippy::expect_used)]

mod readers;
mod txtar;

use std::{collections::BTreeSet, fs, panic::catch_unwind, path::Path};

use readers::READERS;

#[test]
fn no_file_of_the_corpus_makes_a_target_panic() {
    let corpus = txtar::unpack("tests/corpus.txtar");
    let mut failed = Vec::new();
    for (name, reader) in READERS {
        let inputs = corpus.path().join(name);
        let files = names(&inputs);
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let bytes = fs::read(inputs.join(&file)).expect("a file");
            if catch_unwind(|| reader(&bytes)).is_err() {
                failed.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn each_reader_has_a_corpus() {
    let corpus = txtar::unpack("tests/corpus.txtar");
    // The redaction of reports has its tests in another crate.
    let expected: BTreeSet<_> = READERS
        .iter()
        .map(|&(name, _)| name.to_owned())
        .chain(["redaction".to_owned()])
        .collect();
    assert_eq!(names(corpus.path()), expected);
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
    entries
        .map(|entry| name(entry.expect("an entry")))
        .collect()
}
