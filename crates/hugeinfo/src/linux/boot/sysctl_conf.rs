//! Files of sysctl.d(5), as src/sysctl/sysctl.c of systemd reads them. `sysctl --system` of procps
//! comes to the same, but that it writes a line that says nothing new once more.

use std::collections::TryReserveError;

use super::{
    drop_ins::DropIns,
    glob,
    number::parse_sysctl,
    request::{Asked, Dropped, Phase, Place, Requests, What, Why},
};
use crate::linux::{
    growth::TryPush,
    text::{lines, split_once},
};

/// What bears on pools: all of them of the default size.
pub(super) const KEYS: [(&[u8], What); 3] = [
    (b"vm/nr_hugepages", What::Pages),
    (b"vm/nr_hugepages_mempolicy", What::Pages),
    (b"vm/nr_overcommit_hugepages", What::Overcommit),
];

/// What makes up `CommitLimit`: to set one of them is to set the other to 0 (mm/util.c
/// `overcommit_ratio_handler`).
const COMMIT_LIMIT: [(&[u8], &str); 2] = [
    (b"vm/overcommit_ratio", "overcommit_ratio"),
    (b"vm/overcommit_kbytes", "overcommit_kbytes"),
];

/// A line that bears on what is looked for.
#[derive(Debug)]
struct Setting {
    /// With slashes, or a pattern.
    key: Vec<u8>,
    /// `None`: the key is kept from patterns.
    value: Option<Vec<u8>>,
    place: Place,
}

/// Whether a line may bear on what is looked for in these files: pools, and `CommitLimit`.
pub(super) fn bears(line: &[u8]) -> bool {
    let of_pools = KEYS.iter().map(|(key, _)| *key);
    let mut names = of_pools.chain(COMMIT_LIMIT.iter().map(|(key, _)| *key));
    parse_line(line).is_some_and(|(key, _)| names.any(|name| fits(&key, name)))
}

/// What the files ask for, in the order in which it is written.
pub fn combine(files: &DropIns) -> Result<Requests, TryReserveError> {
    let mut requests = Requests::default();
    let settings = settings(files, &KEYS.map(|(name, _)| name), &mut requests.dropped)?;
    for setting in &settings {
        let Some(value) = &setting.value else {
            continue;
        };
        for (name, what) in KEYS {
            if !fits(&setting.key, name) {
                continue;
            }
            let place = setting.place.clone();
            let request = match (own(&settings, name), parse_sysctl(value)) {
                (Some(own), _) if own.key != setting.key => Err(Why::Overridden(own.place.clone())),
                (_, None) => Err(Why::Malformed),
                (_, Some(pages)) => Ok(pages),
            };
            match request {
                Ok(pages) => requests.asked.try_push(Asked {
                    page_bytes: None,
                    what,
                    pages,
                    phase: Phase::Sysctl,
                    place,
                })?,
                Err(why) => drop_setting(&mut requests.dropped, place, why)?,
            }
        }
    }
    Ok(requests)
}

/// What of `CommitLimit` is set, in the order in which it is written. The last one counts.
pub(super) fn commit_limit(
    files: &DropIns,
) -> Result<Vec<(&'static str, u64, Place)>, TryReserveError> {
    let mut all = Vec::new();
    let settings = settings(files, &COMMIT_LIMIT.map(|(key, _)| key), &mut Vec::new())?;
    for setting in &settings {
        for (key, name) in COMMIT_LIMIT {
            let is_own = own(&settings, key).is_none_or(|own| own.key == setting.key);
            let fitting = setting.value.as_ref();
            let value = fitting.filter(|_| fits(&setting.key, key) && is_own);
            if let Some(value) = value.and_then(|value| parse_sysctl(value)) {
                all.try_push((name, value, setting.place.clone()))?;
            }
        }
    }
    Ok(all)
}

/// A pattern leaves alone what has a line of its own.
fn own<'s>(settings: &'s [Setting], name: &[u8]) -> Option<&'s Setting> {
    settings.iter().find(|s| s.key == name)
}

/// The lines that bear on these names, in the order in which they are carried out.
fn settings(
    files: &DropIns,
    names: &[&[u8]],
    dropped: &mut Vec<Dropped>,
) -> Result<Vec<Setting>, TryReserveError> {
    let mut settings = Vec::new();
    for file in &files.files {
        for (number, line) in lines(file.text()) {
            let Some((key, value)) = parse_line(line) else {
                continue;
            };
            if names.iter().any(|name| fits(&key, name)) {
                let place = Place::new(&file.path, number, line.trim_ascii());
                let value = value.map(<[u8]>::to_vec);
                add(&mut settings, key, value, place, dropped)?;
            }
        }
    }
    Ok(settings)
}

/// The later line of one key counts. It is written where it stands, or, if it says nothing new,
/// where the older one stands (`parse_file`).
fn add(
    settings: &mut Vec<Setting>,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    place: Place,
    dropped: &mut Vec<Dropped>,
) -> Result<(), TryReserveError> {
    if let Some(at) = settings.iter().position(|s| s.key == key) {
        let why = Why::Overridden(place.clone());
        let older = &mut settings[at];
        if older.value == value {
            let older = std::mem::replace(&mut older.place, place);
            return drop_setting(dropped, older, why);
        }
        let older = settings.remove(at);
        if older.value.is_some() {
            drop_setting(dropped, older.place, why)?;
        }
    }
    settings.try_push(Setting { key, value, place })
}

fn drop_setting(dropped: &mut Vec<Dropped>, place: Place, why: Why) -> Result<(), TryReserveError> {
    dropped.try_push(Dropped {
        place,
        page_bytes: None,
        why,
    })
}

fn fits(key: &[u8], name: &[u8]) -> bool {
    key == name || (glob::is_pattern(key) && glob::matches(key, name))
}

/// The key with slashes, and the value. `None`: the line is a comment, or assigns nothing.
fn parse_line(line: &[u8]) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let line = line.trim_ascii();
    if matches!(line.first()?, b'#' | b';') {
        return None;
    }
    let without_dash = line.strip_prefix(b"-");
    let (key, value) = match split_once(without_dash.unwrap_or(line), b'=') {
        Some((key, value)) => (key, Some(value.trim_ascii())),
        None => (without_dash?, None),
    };
    Some((normalized(key.trim_ascii()), value))
}

/// With slashes between the parts: a dot as the first separator stands for a slash, and all others
/// change sides with it (src/shared/sysctl-util.c `sysctl_normalize`).
fn normalized(key: &[u8]) -> Vec<u8> {
    let first = key.iter().find(|b| matches!(b, b'.' | b'/'));
    let swaps = first == Some(&b'.');
    let swapped = key.iter().map(|&b| match b {
        b'.' if swaps => b'/',
        b'/' if swaps => b'.',
        other => other,
    });
    let mut path: Vec<u8> = swapped.collect();
    path.dedup_by(|b, a| *a == b'/' && *b == b'/');
    if path.first() == Some(&b'/') {
        path.remove(0);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::drop_ins::{Content, DropIn};
    use super::*;

    fn files(texts: &[&str]) -> DropIns {
        let file = |(text, name): (&&str, char)| DropIn {
            path: format!("/etc/sysctl.d/{name}.conf"),
            local: None,
            content: Content::Text(text.as_bytes().to_vec()),
        };
        DropIns {
            files: texts.iter().zip('a'..).map(file).collect(),
            ..DropIns::default()
        }
    }

    /// The order and the values that systemd-sysctl 252 writes, traced.
    #[test]
    fn what_is_written_and_in_which_order() -> Result<(), TryReserveError> {
        use What::{Overcommit, Pages};
        for (texts, expected) in [
            (
                &["", "# vm.nr_hugepages=5\n; vm.nr_hugepages=6"][..],
                vec![],
            ),
            (&["vm.nr_hugepages = 537\n"], vec![(Pages, 537, "a:1")]),
            (
                &["\n vm/nr_hugepages=1", "-vm.nr_hugepages=2 # why"],
                vec![(Pages, 2, "b:1")],
            ),
            // A line of its own counts, whatever comes after.
            (
                &["vm.nr_hugepages=1", "vm.nr_*=2"],
                vec![(Pages, 1, "a:1"), (Pages, 2, "b:1"), (Overcommit, 2, "b:1")],
            ),
            (
                &["-vm.nr_hugepages", "vm.nr_*hugepages=2"],
                vec![(Overcommit, 2, "b:1")],
            ),
            // Said again, it stays where it was.
            (
                &[
                    "vm.nr_hugepages=5",
                    "vm.nr_hugepages_mempolicy=7",
                    "vm.nr_hugepages=5",
                ],
                vec![(Pages, 5, "c:1"), (Pages, 7, "b:1")],
            ),
            (
                &[
                    "vm.nr_hugepages=5",
                    "vm.nr_hugepages_mempolicy=7",
                    "vm.nr_hugepages=6",
                ],
                vec![(Pages, 7, "b:1"), (Pages, 6, "c:1")],
            ),
            (&["vm.nr_hugepages = many", "vm.nr_hugepages"], vec![]),
        ] {
            let asked = combine(&files(texts))?.asked;
            let seen: Vec<_> = asked
                .iter()
                .map(|a| {
                    let name = a.place.file.trim_start_matches("/etc/sysctl.d/");
                    let name = name.trim_end_matches(".conf");
                    (a.what, a.pages, format!("{name}:{}", a.place.line))
                })
                .collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(what, pages, place): (_, u64, &str)| (what, pages, place.to_owned()))
                .collect();
            assert_eq!(seen, expected, "{texts:?}");
        }
        Ok(())
    }

    #[test]
    fn keys_with_dots_and_slashes() {
        for (key, normal) in [
            ("vm.nr_hugepages", "vm/nr_hugepages"),
            ("vm/nr_hugepages", "vm/nr_hugepages"),
            ("/vm//nr_hugepages", "vm/nr_hugepages"),
            ("net.ipv4.conf.a/b.x", "net/ipv4/conf/a.b/x"),
            ("net/ipv4/conf/a.b/x", "net/ipv4/conf/a.b/x"),
        ] {
            assert_eq!(normalized(key.as_bytes()), normal.as_bytes(), "{key}");
        }
    }
}
