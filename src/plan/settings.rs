//! The settings that can be planned.

use std::{
    ffi::{CStr, CString, OsString},
    os::unix::ffi::OsStringExt,
};

use host::{near::nearest, next_start::SIZING};
use pgrx::PgSqlErrorCode;

use crate::{
    error::Error,
    postgres::{
        jsonb::{Jsonb, LONGEST_SETTINGS, Member},
        settings::{check_setting, is_defined},
        values::default_number,
    },
};

/// The default of a setting that affects huge pages, or that a standby shares with its primary.
pub(super) fn default(name: &CStr) -> String {
    const WORDS: [(&CStr, &str); 2] = [(c"huge_pages", "try"), (c"shared_memory_type", "mmap")];
    match WORDS.iter().find(|(word, _)| *word == name) {
        Some((_, default)) => (*default).to_owned(),
        None => default_number(name).map_or_else(String::new, |number| number.to_string()),
    }
}

const KNOWN: &str = "Settings that determine the size of shared memory can be planned, such as shared_buffers and max_connections.";

const VALUES: &str =
    "Example: {\"shared_buffers\": \"64GB\", \"max_connections\": 500, \"hot_standby\": false}.";

fn members(settings: Option<Jsonb>) -> Result<Vec<Member>, Error> {
    let is_null = || {
        Error::new(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "settings must not be NULL",
        )
        .hint(format!(
            "To plan with the configuration files on disk, omit the argument. {VALUES}"
        ))
    };
    match settings.ok_or_else(is_null)? {
        Jsonb::Object(members) => Ok(members),
        Jsonb::Other => Err(Error::invalid("settings must be a JSON object").hint(VALUES)),
        Jsonb::TooLong => Err(Error::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("settings must not be longer than {LONGEST_SETTINGS} bytes"),
        )
        .hint(VALUES)),
    }
}

/// Settings that PostgreSQL has accepted one by one.
#[derive(Default)]
pub(crate) struct Planned(Vec<(&'static CStr, CString)>);

impl Planned {
    /// Checks the settings. Errors: NULL, not an object, a name that is not in the list or is
    /// repeated, a value of a wrong type; PostgreSQL's own error for an invalid value.
    pub(crate) fn checked(settings: Option<Jsonb>) -> Result<Self, Error> {
        let mut planned = Vec::new();
        for (name, value) in members(settings)? {
            let lower = name.to_ascii_lowercase();
            let Some(known) = SIZING
                .into_iter()
                .find(|known| known.to_bytes() == lower.as_bytes())
            else {
                let c_name = CString::new(lower.as_str()).ok();
                // A library can allocate shared memory.
                if !lower.contains("librar") && c_name.is_some_and(|name| is_defined(&name)) {
                    return Err(Error::invalid(format!(
                        "setting \"{lower}\" does not change the size of shared memory"
                    ))
                    .hint(KNOWN));
                }
                let names = SIZING.into_iter().filter_map(|name| name.to_str().ok());
                let hint = match nearest(&lower, names) {
                    Some(near) => format!("Did you mean \"{near}\"?"),
                    None => KNOWN.to_owned(),
                };
                return Err(
                    Error::invalid(format!("setting \"{name}\" cannot be planned")).hint(hint),
                );
            };
            let Some(value) = value else {
                return Err(Error::invalid(format!(
                    "setting \"{name}\" must be a string, a number or a boolean"
                ))
                .hint(VALUES));
            };
            if planned.iter().any(|&(other, _)| other == known) {
                return Err(Error::invalid(format!(
                    "setting \"{lower}\" is specified more than once"
                ))
                .hint("Names of settings are not case-sensitive."));
            }
            // PostgreSQL accepts any name with a dot, because its library could be loaded later.
            if known.to_bytes().contains(&b'.') && !is_defined(known) {
                return Err(Error::new(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                    format!("unrecognized configuration parameter \"{lower}\""),
                )
                .hint("Add the library of this setting to shared_preload_libraries and restart the server."));
            }
            check_setting(known, &value);
            planned.push((known, value));
        }
        Ok(Self(planned))
    }

    pub(crate) fn value(&self, name: &CStr) -> Option<&CStr> {
        let (_, value) = self.0.iter().find(|(planned, _)| *planned == name)?;
        Some(value)
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static CStr, &CStr)> {
        self.0.iter().map(|(name, value)| (*name, value.as_c_str()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings with these names, in this order.
    pub(super) fn only(&self, names: &[&CStr]) -> Self {
        let pair = |name: &&CStr| self.0.iter().find(|(planned, _)| planned == name).cloned();
        Self(names.iter().filter_map(pair).collect())
    }

    /// The settings as `name=value`.
    pub(super) fn assignments(&self) -> impl Iterator<Item = OsString> {
        self.0.iter().map(|(name, value)| {
            let assignment = [name.to_bytes(), b"=", value.to_bytes()].concat();
            OsString::from_vec(assignment)
        })
    }

    /// The error for settings that contradict each other, or for files with which PostgreSQL would
    /// not start.
    pub(crate) fn named_in(&self, error: Error) -> Error {
        let named = self.0.iter().map(|(name, value)| {
            format!("{} = '{}'", name.to_string_lossy(), value.to_string_lossy())
        });
        match error {
            Error::Refused { refusal, .. } => Error::Refused {
                refusal,
                planned: named.collect::<Vec<_>>().join(", "),
            },
            error => error,
        }
    }
}
