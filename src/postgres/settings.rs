//! The settings of the server, and where each comes from.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char},
};

use hugeinfo::server::setting::{FileLine, Setting, SettingSource};
use pgrx::pg_sys;

/// Those that decide over the main segment and its pages, and whose place advice has to know.
const WATCHED: [&CStr; 6] = [
    c"huge_page_size",
    c"huge_pages",
    c"max_connections",
    c"min_dynamic_shared_memory",
    c"shared_buffers",
    c"shared_memory_type",
];

/// The settings of [`WATCHED`], by name.
pub(crate) fn in_effect() -> BTreeMap<&'static str, Setting> {
    let shows_places = may_read_all_settings();
    let settings = WATCHED.into_iter().filter_map(|name| {
        let source = super::with_setting(name, |record| source(record, shows_places))?;
        let value = shown(name)?;
        Some((name.to_str().ok()?, Setting { value, source }))
    });
    settings.collect()
}

/// Whether one of [`WATCHED`] has been changed in the files, as of the last reload, and takes
/// effect at the next start.
pub(crate) fn wait_for_restart() -> bool {
    let waits = pg_sys::GUC_PENDING_RESTART.cast_signed();
    let waits = |name| super::with_setting(name, |record| record.status & waits != 0);
    WATCHED.into_iter().any(|name| waits(name).unwrap_or(false))
}

/// PostgreSQL 17 can forbid `ALTER SYSTEM`.
pub(crate) fn allows_alter_system() -> bool {
    shown(c"allow_alter_system").is_none_or(|value| value == "on")
}

/// `shared_buffers`.
pub(crate) fn shared_buffers_bytes() -> u64 {
    // SAFETY: set before the server starts its first process.
    let blocks = unsafe { pg_sys::NBuffers };
    u64::try_from(blocks).unwrap_or_default() * u64::from(pg_sys::BLCKSZ)
}

/// As `SHOW` shows it; `None` if there is none of that name.
fn shown(name: &CStr) -> Option<String> {
    // SAFETY: with `missing_ok` true a null pointer says that there is none; else a C string in the
    // current memory context, copied at once.
    unsafe {
        let value = pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true);
        (!value.is_null()).then(|| text(value))
    }
}

/// As `pg_settings` has it, which tells files to those alone who may read all settings.
fn source(record: &pg_sys::config_generic, shows_places: bool) -> SettingSource {
    use pg_sys::GucSource::{PGC_S_ARGV, PGC_S_DEFAULT, PGC_S_ENV_VAR, PGC_S_FILE};
    match record.source {
        PGC_S_DEFAULT => SettingSource::Default,
        PGC_S_ENV_VAR => SettingSource::Environment,
        PGC_S_ARGV => SettingSource::CommandLine,
        PGC_S_FILE => {
            // SAFETY: null, or a C string that stays until the files are read anew.
            let file = (!record.sourcefile.is_null())
                .then(|| super::path(unsafe { CStr::from_ptr(record.sourcefile) }));
            match file {
                Some(file) if file == super::data_directory().join("postgresql.auto.conf") => {
                    SettingSource::AutoConf
                }
                file => SettingSource::File(file.filter(|_| shows_places).map(|path| FileLine {
                    path,
                    line: u32::try_from(record.sourceline).unwrap_or_default(),
                })),
            }
        }
        other => {
            // SAFETY: an array of C strings, as long as there are sources.
            let name = usize::try_from(other)
                .map(|index| unsafe { text(*pg_sys::GucSource_Names.as_ptr().add(index)) });
            SettingSource::Other(name.unwrap_or_default())
        }
    }
}

fn may_read_all_settings() -> bool {
    // SAFETY: looks up what the caches of this backend have.
    unsafe {
        let role = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS);
        pg_sys::has_privs_of_role(pg_sys::GetUserId(), role)
    }
}

/// # Safety
///
/// A C string.
unsafe fn text(string: *const c_char) -> String {
    // SAFETY: as declared.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}
