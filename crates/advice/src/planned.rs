//! A planned configuration.

use crate::model::step::Pending;
use host::server::{setting::SettingSource, state::Server};

/// The changes that lead to a planned configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The settings that no file has yet, in the order in which they are changed: those of the
    /// command line last.
    pub settings: Vec<PlannedSetting>,
    /// Whether they decide if the server asks for huge pages. The files can have them already.
    pub is_about_request: bool,
    /// When the settings take effect that the files have already.
    pub pending: Pending,
    /// The settings of the next start with all of them.
    pub next: Server,
}

/// A planned setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSetting {
    pub name: String,
    pub value: String,
    /// The source of its present value.
    pub source: SettingSource,
    /// When it takes effect.
    pub pending: Pending,
    /// The settings of the next start with this change and those before it. Errors: why it would
    /// fail, in PostgreSQL's words.
    pub next: Result<Server, String>,
}

impl Planned {
    /// When all of them are in effect.
    pub(crate) fn pending(&self) -> Pending {
        let each = self.settings.iter().map(|setting| setting.pending);
        each.fold(self.pending, Pending::max)
    }
}
