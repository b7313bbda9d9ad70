//! The settings that can be planned, with their present values in the configuration files.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    io::Write,
    time::Instant,
};

use host::escape;
use pgrx::PgSqlErrorCode;

use super::output::{Place, Running};
use crate::{
    error::Error,
    postgres::{
        child::{End, start_copy},
        places::config_file,
        settings::SIZING,
        settings_on_disk::settings_on_disk,
    },
};

/// Values by name, as written. Settings that are in no file are missing.
pub(crate) type OnDisk = HashMap<&'static CStr, CString>;

/// A copy of this backend that reads the files with PostgreSQL's own parser.
pub(super) struct Reader(Running);

impl Reader {
    /// Errors: the copy cannot be started.
    pub(super) fn start() -> Result<Self, Error> {
        let started = start_copy(|out| out.write_all(&settings_on_disk(&SIZING)?).ok());
        let running = started
            .map_err(Into::into)
            .and_then(|started| Running::new(started, Place::Reader));
        Ok(Self(running.map_err(|e| e.of(&config_file()))?))
    }

    pub(super) fn finish(self, deadline: Instant) -> Result<OnDisk, Error> {
        let file = config_file();
        let output = self.0.wait(deadline).map_err(|e| e.of(&file))?;
        if output.end != End::Exited(0) {
            return Err(Error::new(
                PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!(
                    "could not read \"{}\" and the files that it includes: {}",
                    escape::name(&file),
                    output.end
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
