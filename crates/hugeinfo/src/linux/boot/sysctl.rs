//! Lines of sysctl.d(5), as systemd and procps read them.

use super::{
    Inputs, NextBoot,
    entry::{
        Ignored, Kind, Place, Request, Scope, Unknown, What, WhyIgnored, WhyUnknown, might_match,
    },
    number,
};

/// The keys that are understood. `overcommit_ratio` and `overcommit_kbytes` reset each other
/// (mm/util.c `overcommit_ratio_handler`).
const KEYS: [&str; 5] = [
    "nr_hugepages",
    "nr_overcommit_hugepages",
    "overcommit_memory",
    "overcommit_ratio",
    "overcommit_kbytes",
];

/// A line about one of the keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Sets this key below `vm`. `None`: the kernel rejects the value.
    Set(&'static str, Option<u64>),
    /// Might set `vm.nr_hugepages`: a pattern, a key excluded from patterns, or an alias.
    Unknown,
}

/// `None`: the line is a comment or about other keys.
pub(super) fn parse_line(line: &str) -> Option<Line> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (line.strip_prefix('-')?, None),
    };
    // A dash ignores errors. A dot as the first separator stands for a slash.
    let key = key.trim();
    let key = key.strip_prefix('-').unwrap_or(key);
    let key = match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('.') => key.replace('.', "/"),
        _ => key.to_owned(),
    };
    let mut parts = key.split('/').filter(|part| !part.is_empty());
    let (first, name) = (parts.next()?, parts.next().unwrap_or_default());
    let is_vm = first == "vm" && parts.next().is_none();
    match (KEYS.iter().find(|key| is_vm && name == **key), value) {
        (Some(key), Some(value)) => Some(Line::Set(key, number::sysctl(value))),
        (Some(key), None) => is_of_pool(key).then_some(Line::Unknown),
        (None, _) if is_vm && name == "nr_hugepages_mempolicy" => Some(Line::Unknown),
        (None, _) => might_match(&key, "vm/nr_hugepages").then_some(Line::Unknown),
    }
}

/// Evaluates all files in the order in which they are read. Of the lines with one key, systemd
/// writes only the last one.
pub(super) fn evaluate(next: &mut NextBoot, inputs: &Inputs) {
    let ignored = |place, why| Ignored::new(place, None, why);
    let unknown = |file, line, why| Unknown::new(file, line, Scope::DefaultSize, why);
    let first_unknown = next.unknown.len();
    let mut last: Vec<(&'static str, Option<u64>, Place)> = Vec::new();
    for file in &inputs.files {
        let is_read = match file.kind {
            Kind::Sysctl => true,
            Kind::SysctlConf => !inputs.has_systemd,
            Kind::Tmpfiles | Kind::Other => continue,
        };
        if let (Err(why), true) = (&file.lines, is_read) {
            next.unknown.push(unknown(&file.path, None, *why));
            last.retain(|set| is_of_pool(set.0));
        }
        for (number, text) in file.lines.iter().flatten() {
            let place = Place::new(&file.path, *number, text);
            let (key, value) = match parse_line(text) {
                Some(Line::Set(key, value)) if is_read => (key, value),
                Some(Line::Set(key, _)) if is_of_pool(key) => {
                    next.ignored
                        .push(ignored(place, WhyIgnored::NotReadBySystemd));
                    continue;
                }
                Some(Line::Unknown) if is_read => {
                    let (line, why) = (Some(*number), WhyUnknown::SetsPool);
                    next.unknown.push(unknown(&file.path, line, why));
                    continue;
                }
                _ => continue,
            };
            if key == "nr_hugepages" && value.is_some() {
                // This line determines the number, whatever earlier lines set.
                next.unknown.truncate(first_unknown);
            }
            if let Some(at) = last.iter().position(|older| older.0 == key) {
                let older = last.remove(at).2;
                if is_of_pool(key) {
                    let why = WhyIgnored::Overridden(place.clone());
                    next.ignored.push(ignored(older, why));
                }
            }
            last.push((key, value, place));
        }
    }
    for (key, value, place) in last {
        match value {
            Some(pages) if is_of_pool(key) => next.requests.push(Request {
                page_bytes: None,
                what: if key == "nr_hugepages" {
                    What::Pages
                } else {
                    What::Overcommit
                },
                pages,
                place,
            }),
            Some(value) => next.vm.push((key, value, place)),
            None if is_of_pool(key) => next.ignored.push(ignored(place, WhyIgnored::Malformed)),
            None => {}
        }
    }
}

fn is_of_pool(key: &str) -> bool {
    key.contains("hugepages")
}
