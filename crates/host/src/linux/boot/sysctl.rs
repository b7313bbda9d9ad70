//! Lines of sysctl.d(5), as systemd and procps read them.

use super::{
    Inputs, NextBoot,
    command_line::plain_number,
    entry::{Kind, Place, Request, Scope, Unknown, WhyUnknown, might_match},
};

/// The key of the default pool.
const POOL: &str = "nr_hugepages";

/// The keys that are understood. `overcommit_ratio` and `overcommit_kbytes` reset each other
/// (mm/util.c `overcommit_ratio_handler`).
const KEYS: [&str; 4] = [
    POOL,
    "overcommit_memory",
    "overcommit_ratio",
    "overcommit_kbytes",
];

/// A line about one of the keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Sets this key below `vm`. `None`: the value is not a plain number.
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
        // The kernel ignores all text after the first blank (kernel/sysctl.c `proc_get_long`).
        (Some(key), Some(value)) => Some(Line::Set(
            key,
            value.split_ascii_whitespace().next().and_then(plain_number),
        )),
        (Some(&key), None) => (key == POOL).then_some(Line::Unknown),
        (None, _) if is_vm && name == "nr_hugepages_mempolicy" => Some(Line::Unknown),
        (None, _) => might_match(&key, "vm/nr_hugepages").then_some(Line::Unknown),
    }
}

/// Evaluates all files in the order in which they are read. The last line with a key counts.
pub(super) fn evaluate(next: &mut NextBoot, inputs: &Inputs) {
    let first_unknown = next.unknown.len();
    let mut pool = None;
    for file in &inputs.files {
        let is_read = match file.kind {
            Kind::Sysctl => true,
            Kind::SysctlConf => !inputs.has_systemd,
            Kind::Tmpfiles | Kind::Other => continue,
        };
        let unknown = |line, why| Unknown::new(&file.path, line, Scope::DefaultSize, why);
        if let (Err(why), true) = (&file.lines, is_read) {
            next.unknown.push(unknown(None, *why));
            next.vm.clear();
        }
        for (number, text) in file.lines.iter().flatten() {
            let place = Place::new(&file.path, *number, text);
            match parse_line(text) {
                Some(Line::Set(POOL, pages)) if !is_read => {
                    next.not_read = Some(Request {
                        page_bytes: None,
                        pages: pages.unwrap_or(0),
                        place,
                    });
                }
                Some(Line::Set(POOL, Some(pages))) => {
                    // This line determines the number, whatever earlier lines set.
                    next.unknown.truncate(first_unknown);
                    pool = Some(Request {
                        page_bytes: None,
                        pages,
                        place,
                    });
                }
                Some(Line::Set(key, value)) if is_read => {
                    if key == POOL {
                        let why = WhyUnknown::NotANumber;
                        next.unknown.push(unknown(Some(*number), why));
                    }
                    next.vm.retain(|set| set.0 != key);
                    next.vm.extend(value.map(|value| (key, value, place)));
                }
                Some(Line::Unknown) if is_read => {
                    let why = WhyUnknown::SetsPool;
                    next.unknown.push(unknown(Some(*number), why));
                }
                _ => {}
            }
        }
    }
    next.requests.extend(pool);
}
