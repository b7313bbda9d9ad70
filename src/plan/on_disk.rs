//! The settings that decide over huge pages, as the configuration files have them now.

use std::{collections::HashMap, ffi::CStr, time::Instant};

use super::{output, settings::DECIDING};
use crate::{
    error::Error,
    postgres::{
        self,
        child::{End, settings_on_disk, start_copy},
    },
};

/// Values by name, as they are written; what is in no file is missing.
///
/// PostgreSQL itself reads the files, in a copy of this backend that can be ended.
pub(super) fn read(deadline: Instant) -> Result<HashMap<&'static CStr, String>, Error> {
    let file = postgres::config_file();
    let failed = |error| Error::file("read", &file, error);
    let reader = start_copy(|| settings_on_disk(&DECIDING.map(|(name, _)| name)));
    let output = output::of(reader.map_err(failed)?, deadline).map_err(|e| e.of(&file))?;
    if output.end != End::Exited(0) {
        return Err(Error::NotRead(file, output.end));
    }
    let mut words = output.out.split(|&byte| byte == 0);
    let mut values = HashMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let known = DECIDING.iter().find(|(known, _)| known.to_bytes() == name);
        if let Some((known, _)) = known {
            values.insert(*known, String::from_utf8_lossy(value).into_owned());
        }
    }
    Ok(values)
}
