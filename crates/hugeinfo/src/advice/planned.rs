//! A planned configuration.

use crate::{
    model::step::Waits,
    server::{facts::Server, setting::SettingSource},
};

/// What has to be changed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The names of all: what is planned stays.
    pub names: Vec<String>,
    /// What no file has yet, in the order in which it is changed: the command line last.
    pub settings: Vec<Setting>,
    /// What settings wait for that the files have already.
    pub waits: Waits,
    /// What the next start will use with all of them.
    pub next: Server,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where the value that it has now comes from.
    pub source: SettingSource,
    /// When it takes effect.
    pub waits: Waits,
    /// What the next start will use with it and those before. Errors: why it would fail, in
    /// PostgreSQL's words.
    pub next: Result<Server, String>,
}

impl Planned {
    /// What all of them wait for once they are changed.
    pub(crate) fn waits(&self) -> Waits {
        let each = self.settings.iter().map(|setting| setting.waits);
        each.fold(self.waits, Waits::max)
    }
}
