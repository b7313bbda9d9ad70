//! Odd files for each reader, and inputs with which fuzzing found errors.

#![allow(clippy::expect_used)]

mod readers;
mod txtar;

use std::{collections::BTreeSet, fs, panic::catch_unwind, path::Path};

use readers::READERS;

#[test]
fn no_file_of_the_corpus_makes_a_target_panic() {
    let mut failed = Vec::new();
    for (name, reader) in READERS {
        let corpus = txtar::unpack(format!("tests/corpus/{name}.txtar"));
        let files = names(corpus.path());
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let bytes = fs::read(corpus.path().join(&file)).expect("a file");
            if catch_unwind(|| reader(&bytes)).is_err() {
                failed.push(format!("{name}/{file}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn each_reader_has_a_corpus() {
    // The redaction of reports has its tests in another crate.
    let expected: BTreeSet<_> = READERS
        .iter()
        .map(|(name, _)| format!("{name}.txtar"))
        .chain(["redaction.txtar".to_owned()])
        .collect();
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    assert_eq!(names(&corpora), expected);
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
    entries
        .map(|entry| name(entry.expect("an entry")))
        .collect()
}
