//! The documentation of checks and their codes: docs/checks.md, `hugeinfo explain` and
//! `hugeinfo_explain()` print the same text.

use super::{
    checks::CheckId,
    text::{reflowed, wrap},
};

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

    /// The rows of its table: the codes, their status, and their meaning.
    fn rows(&self) -> impl Iterator<Item = [&'static str; 3]> {
        let rows = self.text.lines().filter(|line| line.starts_with("| `"));
        rows.filter_map(|row| {
            let mut cells = row.split('|').skip(1).map(str::trim);
            Some([cells.next()?, cells.next()?, cells.next()?])
        })
    }

    fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.rows().flat_map(|[codes, ..]| names(codes))
    }

    fn print(&self) -> String {
        format!("## {}\n\n{}", self.title, self.text)
    }

    /// The purpose of the check, the meaning of a code, and what to do.
    fn print_code(&self, code: &str) -> Option<String> {
        let is_meant = |[codes, ..]: &[&'static str; 3]| names(codes).any(|name| name == code);
        let [_, status, meaning] = self.rows().find(is_meant)?;
        let mut paragraphs = self.text.split("\n\n");
        let purpose = paragraphs.next()?.replace('\n', " ");
        let purpose = purpose
            .split_once(". ")
            .map_or(&*purpose, |(first, _)| first);
        let is_advice = |paragraph: &&str| paragraph.starts_with("**What to do.**");
        let advice = paragraphs.skip_while(|paragraph| !is_advice(paragraph));
        let advice = advice.filter(|_| status != "ok").map(str::to_owned);
        let title = self.title;
        let first = [
            format!("{}.", purpose.trim_end_matches('.')),
            format!("`{code}` ({status}): {meaning}."),
        ];
        let last = format!("To read the whole section, use the name of the check: `{title}`.");
        let parts = first.into_iter().chain(advice).chain([last]);
        let parts: Vec<_> = parts.map(|part| reflowed(&part)).collect();
        Some(format!("## {title}\n\n{}\n", parts.join("\n\n")))
    }
}

/// The names in a cell.
fn names(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

/// The section of a check, or the entries about a code in all sections, in Markdown. `None`: there
/// is no such check or code.
///
/// ```
/// use advice::explain::explain;
///
/// let text = explain("would_not_start").unwrap();
/// assert!(text.starts_with("## restart\n\nLooks at what a restart would get"));
/// assert!(text.contains("\n\n## pending_settings\n\nLooks at"));
/// assert!(text.contains("\n\n**What to do.** Set the pool or the limit"));
/// assert!(!text.contains("only_a_start_shows"));
/// assert!(explain("swap").unwrap().ends_with("add memory.\n"));
/// assert_eq!(explain("swop"), None);
/// ```
pub fn explain(word: &str) -> Option<String> {
    let mut sections = Section::all();
    if let Some(section) = sections.find(|section| section.title == word) {
        return Some(section.print());
    }
    let sections: Vec<_> = Section::all()
        .filter_map(|section| section.print_code(word))
        .collect();
    (!sections.is_empty()).then(|| sections.join("\n"))
}

/// The names of all checks, each with its codes.
pub fn list() -> String {
    let sections = Section::all().map(|section| {
        let codes: Vec<_> = section.codes().collect();
        wrap(&format!("{}: ", section.title), &codes.join(", ")) + "\n"
    });
    sections.collect()
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
