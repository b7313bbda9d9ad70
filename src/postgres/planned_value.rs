//! Compares planned values with those of the running server and of its files.

use std::ffi::{CStr, CString};

use host::server::setting::SettingSource;
use pgrx::pg_sys;

use super::{
    roles, setting_source,
    settings::{setting, with_setting},
    values::{Value, default_of, is_same},
};

/// The relation of a planned value to the running server and to its files.
pub(crate) struct PlannedValue {
    /// True if the server runs with this value.
    pub(crate) is_in_effect: bool,
    /// True if the next start gets it from the files or the command line.
    pub(crate) is_set: bool,
    pub(crate) source: SettingSource,
    /// True if it takes effect only at a restart.
    pub(crate) needs_start: bool,
}

/// Compares a checked value, if the files have `on_disk`. `None`: there is no such setting.
pub(crate) fn planned_value(
    name: &CStr,
    planned: &CStr,
    on_disk: Option<&CStr>,
) -> Option<PlannedValue> {
    let running = CString::new(setting(name)).ok()?;
    with_setting(name, |record| {
        let is_in_effect = runs_with(record, &running, planned);
        let source = setting_source::source(record, roles::may_read_all_settings());
        PlannedValue {
            is_in_effect,
            is_set: match on_disk {
                _ if source == SettingSource::CommandLine => is_in_effect,
                Some(value) => is_same(record, value, planned),
                None => default_of(record) == Value::of(record, planned),
            },
            source,
            needs_start: needs_start(record),
        }
    })
}

/// True if the next start gets a value from the files, which have `on_disk`, that differs from that
/// of the running server. `keeps_command_line`: the next start has the same command line.
pub(crate) fn waits(name: &CStr, on_disk: Option<&CStr>, keeps_command_line: bool) -> bool {
    use pg_sys::GucSource::{PGC_S_ARGV, PGC_S_FILE};
    let waits = |record: &pg_sys::config_generic| {
        let running = CString::new(setting(name)).ok()?;
        let is_argument = record.source == PGC_S_ARGV;
        Some(match on_disk {
            _ if !needs_start(record) || is_argument && keeps_command_line => false,
            Some(value) => !runs_with(record, &running, value),
            // The line was removed.
            None => {
                (is_argument || record.source == PGC_S_FILE)
                    && default_of(record) != Value::of(record, &running)
            }
        })
    };
    with_setting(name, waits).flatten().unwrap_or(false)
}

/// True if the server runs with this value, or has derived its own value from it.
fn runs_with(record: &pg_sys::config_generic, running: &CStr, value: &CStr) -> bool {
    use pg_sys::GucSource::{PGC_S_DYNAMIC_DEFAULT, PGC_S_OVERRIDE};
    let is_chosen = matches!(record.source, PGC_S_DYNAMIC_DEFAULT | PGC_S_OVERRIDE);
    is_same(record, running, value) || is_chosen && default_of(record) == Value::of(record, value)
}

fn needs_start(record: &pg_sys::config_generic) -> bool {
    record.context == pg_sys::GucContext::PGC_POSTMASTER
}
