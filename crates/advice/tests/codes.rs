//! Lists that are kept by hand: codes of checks in docs/checks.md, and the regression tests.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const CHECKS: &str = "crates/advice/src/checks";

/// Words in the sources of checks that are neither codes nor names of figures.
const OTHER_WORDS: [&str; 21] = [
    "always",
    "are",
    "autovacuum_worker_slots",
    "deny",
    "enabled",
    "force",
    "htlb_buddy_alloc_fail",
    "inherit",
    "io_max_concurrency",
    "io_method",
    "is",
    "madvise",
    "max_connections",
    "max_wal_senders",
    "max_worker_processes",
    "missing",
    "node",
    "nodes",
    "shmem_enabled",
    "unlimited",
    "within_size",
];

/// Codes, each with the statuses that it can have, as far as they are known.
type Codes = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// The words that the source of a check has as string literals, without names of figures.
fn of_source(source: &str) -> Codes {
    let lines: Vec<_> = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let source = lines.join("\n");
    let parts: Vec<_> = source.split('"').collect();
    let mut codes = Codes::new();
    for around in parts.windows(3).step_by(2) {
        let (before, word, after) = (around[0].trim_end(), around[1], around[2].trim_start());
        let is_figure = after.starts_with(':') || after.starts_with(']');
        if !is_word(word) || is_figure || OTHER_WORDS.contains(&word) {
            continue;
        }
        let status = ["ok", "warning", "critical"]
            .into_iter()
            .find(|status| before.ends_with(&format!("Finding::{status}(")));
        codes
            .entry(word.to_owned())
            .or_default()
            .extend(status.map(str::to_owned));
    }
    if source.contains("Finding::does_not_ask()") {
        codes.insert("does_not_ask".to_owned(), ["ok".to_owned()].into());
    }
    codes
}

/// The codes in the table of a section.
fn of_section(section: &str) -> Codes {
    let mut codes = Codes::new();
    let table = section
        .lines()
        .skip_while(|line| !line.starts_with("| code | status |"))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    for row in table {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let statuses: BTreeSet<_> = cells[2].split(", ").map(str::to_owned).collect();
        for code in cells[1].split('`').filter(|code| is_word(code)) {
            codes.insert(code.to_owned(), statuses.clone());
        }
    }
    codes
}

#[test]
fn every_code_is_in_the_table_of_its_check() {
    let page = read("docs/checks.md");
    let mut complaints = Vec::new();
    let mut named = BTreeSet::new();
    for section in page.split("\n## ").skip(1) {
        let name = section.lines().next().expect("a title");
        if !is_word(name) {
            continue;
        }
        named.insert(name.to_owned());
        let source = of_source(&read(&format!("{CHECKS}/{name}.rs")));
        let table = of_section(section);
        for (code, statuses) in &source {
            match table.get(code) {
                None => complaints.push(format!("{name}: {code} is not in the table")),
                Some(listed) if !statuses.is_subset(listed) => {
                    complaints.push(format!("{name}: {code} is {statuses:?}, not {listed:?}"));
                }
                Some(_) => {}
            }
        }
        let unknown = table.keys().filter(|code| !source.contains_key(*code));
        complaints.extend(unknown.map(|code| format!("{name}: {code} is not a code")));
    }
    assert_eq!(complaints, Vec::<String>::new());
    let checks: BTreeSet<_> = fs::read_dir(root().join(CHECKS))
        .expect("a directory")
        .filter_map(|entry| {
            let name = entry.expect("an entry").file_name().into_string().ok()?;
            name.strip_suffix(".rs").map(str::to_owned)
        })
        .filter(|name| name != "mod" && name != "thp")
        .collect();
    assert_eq!(named, checks);
}

/// pg_regress runs only listed tests, and prints nothing about others.
#[test]
fn every_regression_test_is_listed_in_the_makefile() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let list = makefile.split_once("REGRESS = ").expect("REGRESS").1;
    let list = list.split_once("\nREGRESS_OPTS").expect("the next line").0;
    let listed: BTreeSet<_> = list
        .split_whitespace()
        .filter(|&word| word != "\\")
        .collect();
    let files: Vec<_> = fs::read_dir(root().join("sql"))
        .expect("sql/")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let names: BTreeSet<_> = files
        .iter()
        .filter_map(|path| path.file_stem()?.to_str())
        .filter(|name| !name.starts_with("pg_hugeinfo--"))
        .collect();
    assert_eq!(listed, names);
}
