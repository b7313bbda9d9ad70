//! Each layer depends only on earlier layers, and no two files depend on each other.

#![allow(clippy::expect_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The layers in the order in which data flows.
const LAYERS: [&str; 4] = ["linux", "server", "model", "advice"];

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// `linux/numa/node.rs` is `linux::numa::node`, and `linux/numa/mod.rs` is `linux::numa`.
fn module(file: &Path) -> String {
    let name = file.with_extension("");
    let parts: Vec<_> = name.iter().filter_map(|part| part.to_str()).collect();
    let parts = parts.strip_suffix(&["mod"]).unwrap_or(&parts);
    parts.join("::")
}

/// The code of a file, without comments and without the tests at its end.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a source");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that start with `crate::` or `super::`, with the braces of `use` expanded.
fn paths(code: &str, module: &str) -> BTreeSet<String> {
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut found = BTreeSet::new();
    for (start, base) in [("crate::", ""), ("super::", parent)] {
        for (at, _) in code.match_indices(start) {
            let is_whole = code[..at]
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
            if is_whole {
                let prefix = match base {
                    "" => String::new(),
                    base => format!("{base}::"),
                };
                let mut rest = &code[at + start.len()..];
                tree(&mut rest, &prefix, &mut found);
            }
        }
    }
    found
}

fn tree(rest: &mut &str, prefix: &str, found: &mut BTreeSet<String>) {
    let mut path = prefix.to_owned();
    loop {
        *rest = rest.trim_start();
        if let Some(inside) = rest.strip_prefix('{') {
            *rest = inside;
            while !rest.trim_start().starts_with('}') && !rest.is_empty() {
                tree(rest, &path, found);
                *rest = rest.trim_start().trim_start_matches(',');
                *rest = rest.trim_start();
            }
            *rest = rest.strip_prefix('}').unwrap_or(rest);
            return;
        }
        let word = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        path.push_str(&rest[..word]);
        *rest = &rest[word..];
        match rest.strip_prefix("::") {
            Some(next) => {
                path.push_str("::");
                *rest = next;
            }
            None => break,
        }
        if word == 0 {
            break;
        }
    }
    // Skips an alias, and anything that is neither a path nor a separator.
    if let Some(after) = rest.trim_start().strip_prefix("as ") {
        *rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    }
    found.insert(path);
    if !rest.starts_with([',', '}']) {
        *rest = rest.get(1..).unwrap_or_default();
    }
}

/// Each module with the modules that it names.
fn imports(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    sources(root, &mut files);
    let file_of: BTreeMap<String, &Path> = files
        .iter()
        .map(|file| (module(file.strip_prefix(root).expect("below")), &**file))
        .collect();
    file_of
        .iter()
        .map(|(module, file)| {
            let targets = paths(&code(file), module)
                .iter()
                .filter_map(|path| {
                    // The longest prefix that is a module.
                    let mut path = &**path;
                    loop {
                        if file_of.contains_key(path) {
                            return Some(path.to_owned());
                        }
                        path = path.rsplit_once("::")?.0;
                    }
                })
                .filter(|target| target != module)
                .collect();
            (module.clone(), targets)
        })
        .collect()
}

/// Modules that every layer can use. They do not depend on any layer.
const SHARED: [&str; 3] = ["escape", "shell", "units"];

fn layer(module: &str) -> Option<usize> {
    let first = module.split("::").next()?;
    LAYERS.iter().position(|&layer| layer == first)
}

/// Returns the modules of a cycle.
fn cycle(imports: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        module: &'a str,
        imports: &'a BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = way.iter().position(|&on_it| on_it == module) {
            return Some(way[at..].iter().map(|&m| m.to_owned()).collect());
        }
        if !done.insert(module) {
            return None;
        }
        way.push(module);
        let found = imports
            .get(module)?
            .iter()
            .find_map(|next| walk(next, imports, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    imports
        .keys()
        .find_map(|module| walk(module, imports, &mut Vec::new(), &mut done))
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn each_layer_depends_only_on_earlier_layers() {
    let imports = imports(&here());
    let mut layered = 0;
    for (module, targets) in &imports {
        let Some(own) = layer(module) else {
            let is_shared = SHARED.contains(&&**module);
            assert!(!is_shared || targets.iter().all(|t| layer(t).is_none()));
            continue;
        };
        layered += 1;
        for target in targets.iter().filter(|t| !SHARED.contains(&&***t)) {
            let other = layer(target).unwrap_or(LAYERS.len());
            assert!(other <= own, "{module} uses {target}");
        }
    }
    assert!(layered > 40, "{layered} files are in a layer");
}

#[test]
fn modules_have_no_cycles() {
    let mut all = imports(&here());
    // A `mod.rs` lists its files, and can share items with them, which does not count as a cycle.
    let folders: BTreeSet<String> = all
        .keys()
        .filter(|module| here().join(module.replace("::", "/")).is_dir())
        .cloned()
        .collect();
    for (module, targets) in &mut all {
        targets.retain(|target| !(folders.contains(target) && module.starts_with(&**target)));
    }
    assert_eq!(cycle(&all), None);
}

#[test]
fn modules_of_the_extension_have_no_cycles() {
    let root = here().join("../../../src");
    let mut all = imports(&root);
    for (module, targets) in &mut all {
        targets.retain(|target| !module.starts_with(&**target));
    }
    assert_eq!(cycle(&all), None);
}

#[test]
fn cycle_is_found() {
    let edges = |all: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        all.iter()
            .map(|(from, to)| {
                let to = to.iter().map(|&to| to.to_owned()).collect();
                ((*from).to_owned(), to)
            })
            .collect()
    };
    assert_eq!(
        cycle(&edges(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])),
        None
    );
    assert!(cycle(&edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])])).is_some());
    let text = "use crate::{linux::{error::Absent, numa::node}, model}; crate::server::facts::F";
    let expected = [
        "linux::error::Absent",
        "linux::numa::node",
        "model",
        "server::facts::F",
    ];
    assert_eq!(paths(text, "advice::x"), expected.map(str::to_owned).into());
    assert_eq!(
        paths("use super::{a, b::C};", "advice::x"),
        ["advice::a", "advice::b::C"].map(str::to_owned).into()
    );
}
