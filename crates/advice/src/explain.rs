//! The documentation of checks and their codes: docs/checks.md, `hugeinfo explain` and
//! `hugeinfo_explain()` print the same text.

use super::checks::CheckId;

/// The code that every check can have.
const UNKNOWN: &str = "\
Every check has this code if a source that it needs is missing or cannot be read. The finding has
the reason, and `hugeinfo_sources` shows which sources cannot be read. Do not treat it as `ok`.
";

/// A section of the documentation.
struct Section {
    title: &'static str,
    text: &'static str,
}

impl Section {
    fn all() -> impl Iterator<Item = Self> {
        let unknown = Self {
            title: "unknown",
            text: UNKNOWN,
        };
        let checks = CheckId::all().map(|id| Self {
            title: id.name(),
            text: id.docs(),
        });
        checks.chain([unknown])
    }

    /// The codes in its table.
    fn codes(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.text.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
    }

    fn print(&self) -> String {
        format!("## {}\n\n{}", self.title, self.text)
    }
}

/// The sections about a check or a code, in Markdown. `None`: there is no such check or code.
///
/// ```
/// use advice::explain::explain;
///
/// let text = explain("would_not_start").unwrap();
/// assert!(text.starts_with("## restart\n\nLooks at"));
/// assert!(text.contains("\n\n## pending_settings\n\nLooks at"));
/// assert!(explain("swap").unwrap().starts_with("## swap\n\n"));
/// assert_eq!(explain("swop"), None);
/// ```
pub fn explain(word: &str) -> Option<String> {
    let sections: Vec<_> = Section::all()
        .filter(|section| section.title == word || section.codes().any(|code| code == word))
        .map(|section| section.print())
        .collect();
    (!sections.is_empty()).then(|| sections.join("\n"))
}

/// All checks and codes, each once, in order of the documentation.
pub fn words() -> Vec<&'static str> {
    let mut words = Vec::new();
    for section in Section::all() {
        for word in std::iter::once(section.title).chain(section.codes()) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words
}

/// All sections, for docs/checks.md.
pub fn page() -> String {
    let sections: Vec<_> = Section::all().map(|section| section.print()).collect();
    sections.join("\n")
}
