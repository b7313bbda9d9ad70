//! The data and the limits that all sections share.

use crate::{findings::Findings, subject::Subject, text};

/// The input of each section.
pub(crate) struct Context<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) findings: &'a Findings,
    /// Maximum number of entries shown of each list.
    pub(crate) most: usize,
    /// Maximum number of characters shown of each text.
    pub(crate) longest: usize,
    /// Whether the JSON figures are shortened so that they fit.
    pub(crate) is_short: bool,
    pub(crate) is_redacted: bool,
}

impl Context<'_> {
    /// The entries that are shown, and the number of those that are not.
    pub(crate) fn first<'l, T>(&self, list: &'l [T]) -> (&'l [T], usize) {
        let shown = list.len().min(self.most);
        (&list[..shown], list.len() - shown)
    }

    /// An untrusted text, truncated if it is too long.
    pub(crate) fn shown(&self, text: &str) -> String {
        text::shown(text, self.longest)
    }

    /// A command or an instruction, or `None` if it is too long. Half of a command is dangerous.
    pub(crate) fn whole(&self, command: &str) -> Option<String> {
        let fits = command.chars().count() <= self.longest;
        fits.then(|| self.shown(command))
    }
}
