//! What has to be changed for a configuration that is planned.

use std::{
    ffi::{CStr, CString},
    time::Instant,
};

use hugeinfo::{
    advice::planned::{Planned, Setting},
    model::step::Waits,
    server::{facts::Server, setting::SettingSource},
};

use super::{
    held::{Tidy, tidy},
    next_start::next_start,
    on_disk::Reader,
    output, settings,
};
use crate::{
    error::Error,
    postgres::{
        exit,
        standing::{Standing, standing},
    },
};

/// From the files, the command line and the server as they are now; `next` is what the next start
/// will use with all of them.
///
/// Errors: as [`next_start`].
pub(crate) fn changes(planned: &settings::Planned, next: Server) -> Result<Planned, Error> {
    let mut waits = Waits::ForNothing;
    let mut missing = Vec::new();
    for (name, value, standing) in standings(planned)? {
        let until = match standing {
            Standing {
                is_in_effect: true, ..
            } => Waits::ForNothing,
            Standing {
                needs_start: true, ..
            }
            // No reload reads the command line.
            | Standing {
                source: SettingSource::CommandLine,
                ..
            } => Waits::ForStart,
            _ => Waits::ForReload,
        };
        if standing.is_set {
            waits = waits.max(until);
        } else {
            missing.push((name, value, standing.source, until));
        }
    }
    // The server sees nothing of its next command line.
    missing.sort_by_key(|(_, _, source, _)| *source == SettingSource::CommandLine);
    let names: Vec<&CStr> = missing.iter().map(|(name, ..)| *name).collect();
    let mut settings = Vec::new();
    for (at, (name, value, source, waits)) in missing.into_iter().enumerate() {
        let is_last = at + 1 == names.len();
        settings.push(Setting {
            name: name.to_string_lossy().into_owned(),
            value: value.to_string_lossy().into_owned(),
            source,
            waits,
            next: if is_last {
                Ok(next.clone())
            } else {
                on_the_way(&planned.only(&names[..=at]))?
            },
        });
    }
    let shown = |(name, _): (&CStr, _)| name.to_string_lossy().into_owned();
    Ok(Planned {
        names: planned.pairs().map(shown).collect(),
        settings,
        waits,
        next,
    })
}

/// What the next start will use when some of the settings are typed, or why it would fail.
fn on_the_way(planned: &settings::Planned) -> Result<Result<Server, String>, Error> {
    match next_start(planned) {
        Ok(next) => Ok(Ok(next.server)),
        Err(Error::Refused { refusal, .. }) => Ok(Err(refusal.into_sentence())),
        Err(error) => Err(error),
    }
}

fn standings(planned: &settings::Planned) -> Result<Vec<(&'static CStr, &CStr, Standing)>, Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let deadline = Instant::now() + output::TIME_LIMIT;
    let names = planned.pairs().map(|(name, _)| name).collect();
    let on_disk = Reader::start(names)?.finish(deadline)?;
    let stands = |(name, value)| {
        let on_disk = on_disk
            .get(name)
            .and_then(|text| CString::new(text.as_str()).ok());
        Some((name, value, standing(name, value, on_disk.as_deref())?))
    };
    Ok(planned.pairs().filter_map(stands).collect())
}
