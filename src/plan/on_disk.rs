//! Some settings, as the configuration files have them now.

use std::{collections::HashMap, ffi::CStr, time::Instant};

use super::output::{Place, Running};
use crate::{
    error::Error,
    postgres::{
        child::{End, start_copy},
        places::config_file,
        settings_on_disk::settings_on_disk,
    },
};

/// A copy of this backend that has PostgreSQL's own parser read the files.
pub(super) struct Reader {
    running: Running,
    names: Vec<&'static CStr>,
}

impl Reader {
    /// Errors: no copy can be made.
    pub(super) fn start(names: Vec<&'static CStr>) -> Result<Self, Error> {
        let started = start_copy(|| settings_on_disk(&names));
        let running = started
            .map_err(Into::into)
            .and_then(|started| Running::new(started, Place::Reader));
        let running = running.map_err(|e| e.of(&config_file()))?;
        Ok(Self { running, names })
    }

    /// Values by name, as they are written; what is in no file is missing.
    pub(super) fn finish(self, deadline: Instant) -> Result<HashMap<&'static CStr, String>, Error> {
        let file = config_file();
        let output = self.running.wait(deadline).map_err(|e| e.of(&file))?;
        if output.end != End::Exited(0) {
            return Err(Error::NotRead {
                path: file,
                end: output.end.to_string(),
            });
        }
        let mut words = output.out.split(|&byte| byte == 0);
        let mut values = HashMap::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            let known = self.names.iter().find(|known| known.to_bytes() == name);
            if let Some(known) = known {
                values.insert(*known, String::from_utf8_lossy(value).into_owned());
            }
        }
        Ok(values)
    }
}
