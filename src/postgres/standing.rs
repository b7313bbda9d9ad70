//! How planned values stand to what the server runs with, and to its files.

use std::ffi::{CStr, CString, c_int};

use hugeinfo::server::setting::SettingSource;
use pgrx::pg_sys;

use super::{
    roles, setting_source,
    settings::{setting, with_setting},
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

/// A value as PostgreSQL understands it, however it is written.
#[derive(Debug, PartialEq)]
enum Value {
    /// Of a word, its number.
    Whole(c_int),
    Real(f64),
}

/// The variant of a setting that holds what is proper to its type.
macro_rules! typed {
    ($record:expr, $kind:ident, $field:ident) => {{
        let record: *const pg_sys::config_generic = $record;
        #[cfg(not(feature = "pg19"))]
        let typed = record.cast::<pg_sys::$kind>();
        // SAFETY: of a record that lives as long as the server.
        #[cfg(feature = "pg19")]
        let typed = unsafe { &raw const (*record).__bindgen_anon_1.$field };
        typed
    }};
}

impl Value {
    /// `None`: a string, or none that the setting can have.
    fn of(record: &pg_sys::config_generic, value: &CStr) -> Option<Self> {
        use pg_sys::config_type::{PGC_BOOL, PGC_ENUM, PGC_INT, PGC_REAL};
        let (mut whole, mut real, mut is_true) = (0, 0.0, false);
        let no_hint = std::ptr::null_mut();
        let text = value.as_ptr();
        // SAFETY: each reads a C string, and writes what it is told to; the record has the type
        // that it says.
        unsafe {
            match record.vartype {
                PGC_BOOL => pg_sys::parse_bool(text, &raw mut is_true)
                    .then_some(Self::Whole(c_int::from(is_true))),
                PGC_INT => pg_sys::parse_int(text, &raw mut whole, record.flags, no_hint)
                    .then_some(Self::Whole(whole)),
                PGC_REAL => pg_sys::parse_real(text, &raw mut real, record.flags, no_hint)
                    .then_some(Self::Real(real)),
                PGC_ENUM => {
                    let words = typed!(record, config_enum, _enum).cast_mut();
                    pg_sys::config_enum_lookup_by_name(words, text, &raw mut whole)
                        .then_some(Self::Whole(whole))
                }
                _ => None,
            }
        }
    }
}

/// What it is where nobody has set it. `None`: a string.
fn default_of(record: &pg_sys::config_generic) -> Option<Value> {
    use pg_sys::config_type::{PGC_BOOL, PGC_ENUM, PGC_INT, PGC_REAL};
    // SAFETY: the record has the type that it says.
    unsafe {
        match record.vartype {
            PGC_BOOL => Some(Value::Whole(c_int::from(
                (*typed!(record, config_bool, _bool)).boot_val,
            ))),
            PGC_INT => Some(Value::Whole((*typed!(record, config_int, _int)).boot_val)),
            PGC_REAL => Some(Value::Real((*typed!(record, config_real, _real)).boot_val)),
            PGC_ENUM => Some(Value::Whole((*typed!(record, config_enum, _enum)).boot_val)),
            _ => None,
        }
    }
}

fn is_same(record: &pg_sys::config_generic, one: &CStr, other: &CStr) -> bool {
    let value = Value::of(record, one);
    one == other || value.is_some() && value == Value::of(record, other)
}
