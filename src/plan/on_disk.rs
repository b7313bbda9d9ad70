//! The settings that can be planned, with their present values in the configuration files.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    io::Write,
};

use host::{escape, next_start::SIZING};
use pgrx::PgSqlErrorCode;

use super::children::Running;
use crate::{
    error::Error,
    postgres::{child::start_copy, places::config_file, settings_on_disk::settings_on_disk},
};

/// Values by name, as written. Settings that are in no file are missing.
pub(crate) type OnDisk = HashMap<&'static CStr, CString>;

/// A copy of this backend that reads the files with PostgreSQL's own parser.
pub(super) struct Reader(Running);

impl Reader {
    /// Errors: the copy cannot be started.
    pub(super) fn start() -> Result<Self, Error> {
        let file = config_file();
        let started = start_copy(|out| out.write_all(&settings_on_disk(&SIZING)?).ok());
        let started = started.map_err(|error| Error::file("read", &file, error))?;
        Ok(Self(Running::new(started, &file)?))
    }

    pub(super) fn finish(self) -> Result<OnDisk, Error> {
        let output = self.0.wait()?;
        if !output.status.success() {
            return Err(Error::new(
                PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!(
                    "could not read \"{}\" and the files that it includes: {}",
                    escape::name(config_file()),
                    output.end()
                ),
            ));
        }
        let mut words = output.out.split(|&byte| byte == 0);
        let mut values = HashMap::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            let known = SIZING.into_iter().find(|known| known.to_bytes() == name);
            if let (Some(known), Ok(value)) = (known, CString::new(value)) {
                values.insert(known, value);
            }
        }
        Ok(values)
    }
}
