//! Muted checks: they keep their findings but do not change the status of the server. For servers
//! that do not use huge pages on purpose, or whose pools are set by other tools.

use std::collections::BTreeSet;

use super::checks::ALL;

/// The value of the setting `pg_hugeinfo.muted_checks`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Muted {
    /// Names of checks.
    pub names: BTreeSet<&'static str>,
    /// Unknown names, as written in the list.
    pub unknown: Vec<String>,
}

impl Muted {
    /// Parses a comma-separated list of names in PostgreSQL's syntax: in any case, with optional
    /// blanks and double quotes.
    ///
    /// ```
    /// use advice::muted::Muted;
    ///
    /// let muted = Muted::parse("huge_pages, \"Reboot\", typo");
    /// assert_eq!(muted.names, ["huge_pages", "reboot"].into());
    /// assert_eq!(muted.unknown, ["typo"]);
    /// ```
    pub fn parse(list: &str) -> Self {
        let mut muted = Self::default();
        for name in list.split(',').map(without_quotes) {
            let known = known().find(|known| known.eq_ignore_ascii_case(name));
            match known {
                Some(known) => {
                    muted.names.insert(known);
                }
                None if name.is_empty() => {}
                None => muted.unknown.push(name.to_owned()),
            }
        }
        muted
    }
}

/// The names of all checks.
pub fn known() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|id| id.name())
}

fn without_quotes(name: &str) -> &str {
    let name = name.trim();
    let inner = name
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.map_or(name, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_like_postgresql_lists() {
        let none: [&str; 0] = [];
        for (list, names, unknown) in [
            ("", &none[..], &none[..]),
            (" , ,", &none, &none),
            ("huge_pages", &["huge_pages"], &none),
            ("huge_pages,restart", &["huge_pages", "restart"], &none),
            (
                " Huge_Pages ,\t\"RESTART\"\n",
                &["huge_pages", "restart"],
                &none,
            ),
            ("huge_pages, huge_pages", &["huge_pages"], &none),
            ("huge pages, swap", &["swap"], &["huge pages"]),
            ("hugepages, \"swop", &none, &["hugepages", "\"swop"]),
        ] {
            let muted = Muted::parse(list);
            assert!(muted.names.iter().eq(names), "{list}: {muted:?}");
            assert!(muted.unknown.iter().eq(unknown), "{list}: {muted:?}");
        }
    }
}
