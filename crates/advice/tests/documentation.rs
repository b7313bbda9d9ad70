//! docs/checks.md is generated from the checks.

#![allow(clippy::disallowed_methods, clippy::expect_used)]

use std::{fs, path::Path};

use advice::{check::CheckId, explain};
use expect_test::expect_file;

const BEGIN: &str = "<!-- from crates/advice/src/checks -->\n\n";
const END: &str = "\n<!-- end -->\n";

#[test]
fn page_has_the_text_of_all_checks() {
    let page = include_str!("../../../docs/checks.md");
    let (before, rest) = page.split_once(BEGIN).expect("the line before the checks");
    let (_, after) = rest.split_once(END).expect("the line after the checks");
    let expected = [before, BEGIN, &explain::page(), END, after].concat();
    expect_file!["../../../docs/checks.md"].assert_eq(&expected);
    // hugeinfo_explain() has to work with any database encoding.
    assert!(explain::page().is_ascii());
}

/// The scenes check the reverse: every code is documented.
#[test]
fn documented_codes_are_in_the_source_of_their_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checks");
    for check in CheckId::all() {
        let name = check.name();
        let source = fs::read_to_string(folder.join(name).with_extension("rs")).expect(name);
        let sections = explain::explain(name).expect(name);
        let rows = sections.lines().filter(|line| line.starts_with("| `"));
        for row in rows {
            let (codes, _) = row.split_once(" | ").expect(row);
            for code in codes.split('`').skip(1).step_by(2) {
                let is_used = source.contains(&format!("\"{code}\""))
                    || source.contains(&format!("Finding::{code}()"));
                assert!(is_used, "{name}: {code}");
            }
        }
    }
}
