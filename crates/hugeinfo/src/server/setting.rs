//! A setting of the server, and where it comes from: that decides where it can be changed.

use std::path::PathBuf;

/// A setting as the server runs with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As `SHOW` shows it.
    pub value: String,
    /// Where that comes from.
    pub source: SettingSource,
}

/// As `pg_settings.source` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// Nobody has set it.
    Default,
    /// A configuration file. `None`: the caller may not know which, or there was no memory to keep
    /// it.
    File(Option<FileLine>),
    /// `postgresql.auto.conf` of the data directory, which `ALTER SYSTEM` writes.
    AutoConf,
    /// The command line of the server, which goes before any file.
    CommandLine,
    /// The environment of the server, which any file goes before.
    Environment,
    /// Anything else, as PostgreSQL calls it.
    Other(String),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// The file, absolute.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: u32,
}
