//! The source of a setting of the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CStr,
    path::PathBuf,
};

use host::server::setting::{FileLine, Setting, SettingSource};
use pgrx::pg_sys;

use super::{c_string, places, roles, settings};

/// The settings of [`settings::WATCHED`], by name.
pub(crate) fn in_effect() -> BTreeMap<&'static str, Setting> {
    let shows_places = roles::may_read_all_settings();
    let settings = settings::WATCHED.into_iter().filter_map(|name| {
        let source = settings::with_setting(name, |record| source(record, shows_places))?;
        let value = settings::shown(name)?;
        Some((name.to_str().ok()?, Setting { value, source }))
    });
    settings.collect()
}

/// The files with settings that affect the size of shared memory.
pub(super) fn files() -> BTreeSet<PathBuf> {
    let file = |record| match source(record, true) {
        SettingSource::File(Some(line)) => Some(line.path),
        _ => None,
    };
    settings::sizing().filter_map(file).collect()
}

/// The source as in `pg_settings`, which shows files only to roles that can read all settings.
pub(super) fn source(record: &pg_sys::config_generic, shows_places: bool) -> SettingSource {
    use pg_sys::GucSource::{PGC_S_ARGV, PGC_S_DEFAULT, PGC_S_ENV_VAR, PGC_S_FILE};
    match record.source {
        PGC_S_DEFAULT => SettingSource::Default,
        PGC_S_ENV_VAR => SettingSource::Environment,
        PGC_S_ARGV => SettingSource::CommandLine,
        PGC_S_FILE => {
            // SAFETY: null, or a C string that stays until the files are read again.
            let file = (!record.sourcefile.is_null())
                .then(|| c_string::path(unsafe { CStr::from_ptr(record.sourcefile) }));
            match file {
                Some(file) if file == places::auto_conf() => SettingSource::AutoConf,
                file => SettingSource::File(file.filter(|_| shows_places).map(|path| FileLine {
                    path,
                    line: u32::try_from(record.sourceline).unwrap_or_default(),
                })),
            }
        }
        other => {
            // SAFETY: an array of C strings, with one entry for each source.
            let name = usize::try_from(other).map(|index| unsafe {
                c_string::text(*pg_sys::GucSource_Names.as_ptr().add(index))
            });
            SettingSource::Other(name.unwrap_or_default())
        }
    }
}
