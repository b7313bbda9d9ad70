//! Files of tmpfiles.d(5), as far as they write to pools (src/tmpfiles/tmpfiles.c of systemd).

use std::collections::TryReserveError;

use super::{
    drop_ins::DropIns,
    glob,
    kernel::Kernel,
    number::{parse_sysctl, parse_sysfs},
    request::{Asked, Doubt, Doubtful, Dropped, Phase, Place, Requests, What, Why},
};
use crate::linux::{
    growth::TryPush,
    hugepages,
    numa::nodes,
    text::{lines, parse_number},
};

/// A line of the type `w`, or one that has taken its place in the order.
#[derive(Debug)]
struct Write {
    path: Vec<u8>,
    /// `w+`.
    is_appended: bool,
    /// `None`: it changes the mode or the like of the path, and writes nothing.
    argument: Option<Vec<u8>>,
    place: Place,
}

/// What the files ask for, in the order in which it is written, and what is unknown.
pub fn combine(files: &DropIns, kernel: &Kernel) -> Result<Requests, TryReserveError> {
    let mut writes: Vec<Write> = Vec::new();
    let (mut dropped, mut doubts) = (Vec::new(), Vec::new());
    for file in &files.files {
        for (number, line) in lines(file.text()) {
            let place = || Place::new(&file.path, number, line.trim_ascii());
            match parse_line(line) {
                Line::Other => {}
                Line::Doubtful => {
                    for of in [What::Pages, What::Overcommit] {
                        doubts.try_push(Doubt {
                            phase: Phase::Tmpfiles,
                            of,
                            file: file.path.clone(),
                            what: Doubtful::Line(number),
                        })?;
                    }
                }
                Line::Write {
                    path,
                    is_appended,
                    argument,
                } => {
                    let targets = targets(&path, kernel)?;
                    if targets.is_empty() {
                        continue;
                    }
                    let write = Write {
                        path,
                        is_appended,
                        argument,
                        place: place(),
                    };
                    add(&mut writes, write, &targets, &mut dropped)?;
                }
            }
        }
    }
    let mut asked = Vec::new();
    for write in &writes {
        let Some(argument) = &write.argument else {
            continue;
        };
        for target in targets(&write.path, kernel)? {
            match target.value(argument) {
                Some(pages) => asked.try_push(Asked {
                    page_bytes: target.page_bytes,
                    what: target.what,
                    pages,
                    phase: Phase::Tmpfiles,
                    place: write.place.clone(),
                })?,
                None => dropped.try_push(Dropped {
                    place: write.place.clone(),
                    page_bytes: target.page_bytes,
                    why: Why::Malformed,
                })?,
            }
        }
    }
    Ok(Requests {
        asked,
        dropped,
        doubts,
    })
}

/// Whether a line may bear on pools.
pub(super) fn bears(line: &[u8], kernel: &Kernel) -> Result<bool, TryReserveError> {
    Ok(match parse_line(line) {
        Line::Other => false,
        Line::Doubtful => true,
        Line::Write { path, .. } => !targets(&path, kernel)?.is_empty(),
    })
}

/// Of two lines with one path the first counts, unless both append: then both are written. Those of
/// one path come one after the other, where the first of any kind stands (`item_compatible`).
fn add(
    writes: &mut Vec<Write>,
    write: Write,
    targets: &[Target],
    dropped: &mut Vec<Dropped>,
) -> Result<(), TryReserveError> {
    let Some(last) = writes.iter().rposition(|w| w.path == write.path) else {
        return writes.try_push(write);
    };
    let of_path = |w: &&Write| w.path == write.path && w.argument.is_some();
    let older = writes.iter().find(of_path);
    let older = older.filter(|older| !(older.is_appended && write.is_appended));
    let Some(older) = older.filter(|_| write.argument.is_some()) else {
        writes.try_reserve(1)?;
        writes.insert(last + 1, write);
        return Ok(());
    };
    dropped.try_push(Dropped {
        page_bytes: targets.first().and_then(|t| t.page_bytes),
        why: Why::Overridden(older.place.clone()),
        place: write.place,
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// It has nothing to do with pools.
    Other,
    /// It has, and is not worked out here.
    Doubtful,
    Write {
        path: Vec<u8>,
        is_appended: bool,
        argument: Option<Vec<u8>>,
    },
}

fn parse_line(line: &[u8]) -> Line {
    let (kind, rest) = field(line);
    let (path, mut rest) = field(rest);
    let Some((letter, modifiers)) = kind.split_first() else {
        return Line::Other;
    };
    // Mode, user, group and age come before the argument.
    for _ in 0..4 {
        rest = field(rest).1;
    }
    let argument = rest.trim_ascii();
    // systemd refuses lines with other modifiers, and those that have nothing to write.
    let is_refused =
        !modifiers.iter().all(|b| b"!-=~^+$?".contains(b)) || matches!(argument, b"" | b"-");
    let is_ours = path.windows(9).any(|w| w == b"hugepages") || path.starts_with(b"/proc/sys/vm/");
    let has_escapes = |text: &[u8]| text.iter().any(|b| matches!(b, b'%' | b'\\'));
    let is_plain = !has_escapes(path)
        && !has_escapes(argument)
        && !path.iter().any(|b| matches!(b, b'{' | b'"' | b'\''))
        && !modifiers
            .iter()
            .any(|b| matches!(b, b'~' | b'^' | b'$' | b'?'));
    match letter {
        b'w' if is_refused => Line::Other,
        b'm' | b'z' | b'Z' | b't' | b'T' | b'h' | b'H' | b'a' | b'A' => Line::Write {
            path: simplified(path),
            is_appended: false,
            argument: None,
        },
        b'w' if is_plain => Line::Write {
            path: simplified(path),
            is_appended: modifiers.contains(&b'+'),
            argument: Some(argument.to_vec()),
        },
        // Those write files, too, put something in their place, or keep others from it.
        b'w' | b'f' | b'F' | b'C' | b'L' | b'x' | b'X' | b'r' | b'R' | b'e' if is_ours => {
            Line::Doubtful
        }
        _ => Line::Other,
    }
}

/// The first field, without its quotes, and what comes after it.
fn field(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let quote = text.first().copied().filter(|b| matches!(b, b'"' | b'\''));
    let (start, ends): (usize, &dyn Fn(u8) -> bool) = match &quote {
        Some(quote) => (1, &move |b| b == *quote),
        None => (0, &|b: u8| b.is_ascii_whitespace()),
    };
    let length = text.iter().skip(start).position(|&b| ends(b));
    let end = length.map_or(text.len(), |length| start + length);
    let after = if quote.is_some() { end + 1 } else { end };
    (
        text.get(start..end).unwrap_or_default(),
        text.get(after..).unwrap_or_default(),
    )
}

/// Without double slashes, `/./` and a slash at the end (src/basic/path-util.c `path_simplify`).
fn simplified(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|&b| b == b'/');
    let mut simple = Vec::with_capacity(path.len());
    for part in parts.filter(|part| !part.is_empty() && part != b".") {
        simple.push(b'/');
        simple.extend_from_slice(part);
    }
    simple
}

/// A file of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Target {
    page_bytes: Option<u64>,
    what: What,
}

impl Target {
    fn value(&self, argument: &[u8]) -> Option<u64> {
        match self.page_bytes {
            Some(_) => parse_sysfs(argument),
            None => parse_sysctl(argument),
        }
    }
}

/// The files of pools that a path names, or a pattern fits.
fn targets(path: &[u8], kernel: &Kernel) -> Result<Vec<Target>, TryReserveError> {
    let mut all = Vec::new();
    if !glob::is_pattern(path) {
        if let Some(target) = target(path) {
            all.try_push(target)?;
        }
        return Ok(all);
    }
    let mut take = |file: &str| match target(file.as_bytes()) {
        Some(target) if glob::matches(path, file.as_bytes()) => all.try_push(target),
        _ => Ok(()),
    };
    for (name, _) in FILES {
        take(&format!("/proc/sys/vm/{name}"))?;
    }
    for &bytes in kernel.sizes.iter().flatten() {
        let pool = hugepages::directory(bytes);
        for (name, _) in FILES {
            take(&format!("{pool}/{name}"))?;
        }
        let name = pool.rsplit('/').next().unwrap_or_default();
        for &node in kernel.nodes.iter().flatten() {
            take(&format!(
                "{}/hugepages/{name}/nr_hugepages",
                nodes::directory(node)
            ))?;
        }
    }
    Ok(all)
}

/// What a pool is set by, below `/sys` and, for the default size, below `/proc`.
const FILES: [(&str, What); 3] = [
    ("nr_hugepages", What::Pages),
    ("nr_hugepages_mempolicy", What::Pages),
    ("nr_overcommit_hugepages", What::Overcommit),
];

/// The pool that a file belongs to (Documentation/admin-guide/mm/hugetlbpage.rst).
fn target(path: &[u8]) -> Option<Target> {
    let path = str::from_utf8(path).ok()?;
    let what = |file: &str| FILES.iter().find(|(name, _)| *name == file).map(|f| f.1);
    if let Some(file) = path.strip_prefix("/proc/sys/vm/") {
        return Some(Target {
            page_bytes: None,
            what: what(file)?,
        });
    }
    if let Some(rest) = path.strip_prefix("/sys/kernel/mm/hugepages/") {
        let (pool, file) = rest.split_once('/')?;
        return Some(Target {
            page_bytes: Some(hugepages::parse_name(pool)?),
            what: what(file)?,
        });
    }
    let of_node = [
        "/sys/devices/system/node/node",
        "/sys/bus/node/devices/node",
    ]
    .iter()
    .find_map(|prefix| path.strip_prefix(prefix))?;
    let (node, rest) = of_node.split_once("/hugepages/")?;
    let pool = rest.strip_suffix("/nr_hugepages")?;
    let node = u32::try_from(parse_number(node.as_bytes())?).ok()?;
    Some(Target {
        page_bytes: Some(hugepages::parse_name(pool)?),
        what: What::PagesOfNode(node),
    })
}

#[cfg(test)]
mod tests {
    use super::super::drop_ins::{Content, DropIn};
    use super::*;

    fn kernel() -> Kernel {
        Kernel {
            version: (6, 1),
            sizes: Some(vec![2 << 20, 1 << 30]),
            hpage_bytes: 2 << 20,
            nodes: Some(vec![0, 1]),
            most_sizes: 2,
            has_cma: true,
        }
    }

    const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";

    /// What systemd-tmpfiles 252 wrote below `--root`.
    #[test]
    fn which_line_counts() -> Result<(), TryReserveError> {
        for (texts, expected) in [
            (&["w POOL - - - - 1", "w POOL - - - - 2"][..], &[1][..]),
            (&["w POOL - - - - 1", "w+ POOL - - - - 2"], &[1]),
            (&["w+ POOL - - - - 1", "w POOL - - - - 2"], &[1]),
            (&["w+ POOL - - - - 1", "w+ POOL - - - - 2"], &[1, 2]),
            (
                &[
                    "w /sys/kernel/mm/*/hugepages-1048576kB/nr_hugepages - - - - 1",
                    "w POOL - - - - 2",
                ],
                &[1, 2],
            ),
            (
                &[
                    "w POOL - - - - 1",
                    "w! /sys//kernel/mm/./hugepages/hugepages-1048576kB/nr_hugepages - - - - 3",
                ],
                &[1],
            ),
            (&["w POOL - - - - 5 # x", "w POOL"], &[]),
            (&["  w-  \"POOL\"  0644 root root 10d 7"], &[7]),
            (&["w@ POOL - - - - 5"], &[]),
            (&["z POOL 0644 - - - 5", "# w POOL - - - - 5"], &[]),
            (
                &[
                    "z POOL 0644",
                    "w /sys/kernel/mm/hugepages/*/nr_hugepages_mempolicy - - - - 1",
                    "w POOL - - - - 2",
                ],
                &[2, 1, 1],
            ),
        ] {
            let file = |(text, name): (&&str, char)| DropIn {
                path: format!("/etc/tmpfiles.d/{name}.conf"),
                local: None,
                content: Content::Text(text.replace("POOL", POOL).into_bytes()),
            };
            let files = DropIns {
                files: texts.iter().zip('a'..).map(file).collect(),
                ..DropIns::default()
            };
            let Requests { asked, doubts, .. } = combine(&files, &kernel())?;
            let seen: Vec<_> = asked.iter().map(|a| a.pages).collect();
            assert_eq!(seen, expected, "{texts:?}");
            assert_eq!(doubts, []);
        }
        Ok(())
    }

    #[test]
    fn lines_that_are_not_worked_out() {
        for line in [
            "w POOL - - - - %m",
            "w POOL - - - - \\x35",
            "w~ POOL - - - - OQ==",
            "w /sys/kernel/mm/hugepages/hugepages-{1,2}kB/nr_hugepages - - - - 5",
            "f+ POOL - - - - 5",
        ] {
            let line = line.replace("POOL", POOL);
            assert_eq!(parse_line(line.as_bytes()), Line::Doubtful, "{line}");
        }
    }

    #[test]
    fn files_of_pools() {
        let target = |path: &str| target(path.as_bytes()).map(|t| (t.page_bytes, t.what));
        let node = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
        assert_eq!(target(POOL), Some((Some(1 << 30), What::Pages)));
        assert_eq!(target(node), Some((Some(2 << 20), What::PagesOfNode(1))));
        assert_eq!(
            target("/proc/sys/vm/nr_overcommit_hugepages"),
            Some((None, What::Overcommit))
        );
        assert_eq!(target("/sys/kernel/mm/hugepages/x/nr_hugepages"), None);
        assert_eq!(target("/proc/sys/vm/swappiness"), None);
        let all = targets(
            b"/sys/devices/system/node/*/hugepages/*/nr_hugepages",
            &kernel(),
        );
        assert_eq!(all.map(|all| all.len()), Ok(4));
    }
}
