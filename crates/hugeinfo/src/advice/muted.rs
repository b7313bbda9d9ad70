//! Checks that somebody has muted. They still say what they find, and alert nobody: for those who
//! run without huge pages on purpose, or set the pool by other means.

use std::collections::BTreeSet;

use super::checks::ALL;

/// What a list of names says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Muted {
    /// The checks in it.
    pub names: BTreeSet<&'static str>,
    /// What is no name of a check, as it is written there.
    pub unknown: Vec<String>,
}

impl Muted {
    /// Of a list as PostgreSQL writes them: names between commas, in any case, with blanks around
    /// them, in double quotes or not.
    ///
    /// ```
    /// use hugeinfo::advice::muted::Muted;
    ///
    /// let muted = Muted::of("huge_pages, \"Reboot\", typo");
    /// assert_eq!(muted.names, ["huge_pages", "reboot"].into());
    /// assert_eq!(muted.unknown, ["typo"]);
    /// ```
    pub fn of(list: &str) -> Self {
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
    fn lists_are_read_as_the_server_reads_its_own() {
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
            let muted = Muted::of(list);
            assert!(muted.names.iter().eq(names), "{list}: {muted:?}");
            assert!(muted.unknown.iter().eq(unknown), "{list}: {muted:?}");
        }
    }
}
