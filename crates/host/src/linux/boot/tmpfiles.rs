//! Lines of tmpfiles.d(5) and profiles of tuned that set pools or modes of transparent huge pages.

use super::{
    Inputs, NextBoot,
    entry::{File, Kind, Place, Scope, Unknown, WhyUnknown, might_match},
};
use crate::linux::{hugepages, transparent_hugepage::DIRECTORY};

/// Files that set a pool, for patterns.
const POOLS: [&str; 2] = [
    "/proc/sys/vm/nr_hugepages",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
];

/// A relevant line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// Might set pools.
    Pool(Scope),
    /// Sets a mode of transparent huge pages. The path can be a pattern.
    Mode { path: &'l str, mode: &'l str },
}

/// `None`: the line is a comment, or about other files.
pub(super) fn parse_line(kind: Kind, line: &str) -> Option<Line<'_>> {
    if kind == Kind::Other {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        return (line.contains("nr_hugepages") && !is_comment).then(|| Line::Pool(scope(line)));
    }
    let mut words = line.split_ascii_whitespace();
    // Types that write to an existing file or replace it.
    words
        .next()
        .filter(|kind| kind.starts_with(['w', 'f', 'F', 'C', 'L']))?;
    let path = words.next()?.trim_matches(['"', '\'']);
    if path.starts_with(DIRECTORY) {
        // Mode, user, group and age come before the argument.
        let mode = words.nth(4).unwrap_or_default();
        return Some(Line::Mode { path, mode });
    }
    let is_pool = path.contains("hugepages") || POOLS.iter().any(|file| might_match(path, file));
    is_pool.then(|| Line::Pool(scope(path)))
}

/// Returns the pools that a path or a line of tuned sets.
fn scope(text: &str) -> Scope {
    match text.split(['/', '=', ' ']).find_map(hugepages::parse_name) {
        Some(bytes) => Scope::Size(bytes),
        None if text.starts_with("vm.") || text.starts_with("/proc/sys/vm/") => Scope::DefaultSize,
        None => Scope::AnySize,
    }
}

/// Finds the lines that might set pools, and the files that cannot be read.
pub(super) fn evaluate(next: &mut NextBoot, inputs: &Inputs) {
    let is_ours = |file: &&File| matches!(file.kind, Kind::Tmpfiles | Kind::Other);
    for file in inputs.files.iter().filter(is_ours) {
        let unknown = |line, scope, why| Unknown::new(&file.path, line, scope, why);
        if let Err(why) = file.lines {
            next.unknown.push(unknown(None, Scope::AnySize, why));
        }
        for (number, text) in file.lines.iter().flatten() {
            if let Some(Line::Pool(scope)) = parse_line(file.kind, text) {
                let why = WhyUnknown::SetsPool;
                next.unknown.push(unknown(Some(*number), scope, why));
            }
        }
    }
}

/// Returns the mode that tmpfiles.d writes to a file below [`DIRECTORY`]. Of two lines with one
/// path, the first counts.
///
/// Errors: unknown, because of a pattern or an unreadable file.
pub(super) fn mode(files: &[File], file: &str) -> Result<Option<(String, Place)>, ()> {
    let wanted = format!("{DIRECTORY}/{file}");
    let mut found = None;
    for file in files.iter().filter(|file| file.kind == Kind::Tmpfiles) {
        for (number, text) in file.lines.as_ref().map_err(|_| ())? {
            match parse_line(file.kind, text) {
                Some(Line::Mode { path, .. }) if might_match(path, &wanted) => return Err(()),
                Some(Line::Mode { path, mode }) if path == wanted && found.is_none() => {
                    found = Some((mode.to_owned(), Place::new(&file.path, *number, text)));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}
