//! How planned values stand to what the server runs with, and to its files.

use std::ffi::{CStr, CString};

use hugeinfo::server::setting::SettingSource;
use pgrx::pg_sys;

use super::{
    roles, setting_source,
    settings::{setting, with_setting},
    values::{Value, default_of, is_same},
};

/// How a value that is planned stands to what the server runs with.
pub(crate) struct Standing {
    /// Whether the server runs with it.
    pub(crate) is_in_effect: bool,
    /// Whether the next start has it from the files, or from the command line.
    pub(crate) is_set: bool,
    pub(crate) source: SettingSource,
    /// Whether it takes a start to take effect.
    pub(crate) needs_start: bool,
}

/// Of a value that has been checked, where the files have `on_disk`. `None`: there is no such
/// setting.
pub(crate) fn standing(name: &CStr, planned: &CStr, on_disk: Option<&CStr>) -> Option<Standing> {
    use pg_sys::GucSource::{PGC_S_DYNAMIC_DEFAULT, PGC_S_OVERRIDE};
    let running = CString::new(setting(name)).ok()?;
    with_setting(name, |record| {
        let is_planned = |value: &CStr| is_same(record, value, planned);
        let is_default = default_of(record) == Value::of(record, planned);
        // The server has picked the value by itself.
        let is_chosen = matches!(record.source, PGC_S_DYNAMIC_DEFAULT | PGC_S_OVERRIDE);
        let is_in_effect = is_planned(&running) || is_chosen && is_default;
        let source = setting_source::source(record, roles::may_read_all_settings());
        Standing {
            is_in_effect,
            is_set: match on_disk {
                _ if source == SettingSource::CommandLine => is_in_effect,
                Some(value) => is_planned(value),
                None => is_default,
            },
            source,
            needs_start: record.context == pg_sys::GucContext::PGC_POSTMASTER,
        }
    })
}
