//! A setting of the server and its source, which determines where it can be changed.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::escape;

/// A setting of the running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value that `SHOW` prints.
    pub value: String,
    pub source: SettingSource,
}

/// The source of a setting, as in `pg_settings.source`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettingSource {
    Default,
    /// A configuration file. `None`: the caller is not allowed to see which file, or out of memory.
    File(Option<FileLine>),
    /// `postgresql.auto.conf` of the data directory, which `ALTER SYSTEM` writes.
    AutoConf,
    /// The command line of the server, which takes precedence over all files.
    CommandLine,
    /// The environment of the server. All files take precedence over it.
    Environment,
    /// Any other source, with its name in PostgreSQL.
    Other(String),
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLine {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// Line number, starting at 1. 0: the setting is not in this file yet.
    pub line: u32,
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", escape::name(&self.path))?;
        match self.line {
            0 => Ok(()),
            line => write!(f, ", line {line}"),
        }
    }
}
