//! Parses values of settings like PostgreSQL.

use std::ffi::{CStr, CString, c_int};

use pgrx::pg_sys;

use super::settings::with_setting;

/// Parses a whole number, such as `2MB`, in `unit` (0: none). `None`: not a number, or negative.
pub(super) fn whole_number(value: &str, unit: u32) -> Option<u64> {
    let number = whole(&CString::new(value).ok()?, unit.cast_signed())?;
    u64::try_from(number).ok()
}

/// Parses a boolean. `None`: not a boolean.
pub(super) fn switch(value: &CStr) -> Option<bool> {
    let mut is_on = false;
    // SAFETY: reads a C string, writes a boolean.
    let is_understood = unsafe { pg_sys::parse_bool(value.as_ptr(), &raw mut is_on) };
    is_understood.then_some(is_on)
}

/// Parses a whole number. `flags` of the setting contain its unit.
fn whole(value: &CStr, flags: c_int) -> Option<c_int> {
    let mut number = 0;
    // SAFETY: reads a C string, writes a number, and accepts a null pointer in place of a hint.
    let is_understood =
        unsafe { pg_sys::parse_int(value.as_ptr(), &raw mut number, flags, std::ptr::null_mut()) };
    is_understood.then_some(number)
}

/// Like [`whole`], with a fraction.
fn real(value: &CStr, flags: c_int) -> Option<f64> {
    let mut number = 0.0;
    // SAFETY: as in `whole`.
    let is_understood =
        unsafe { pg_sys::parse_real(value.as_ptr(), &raw mut number, flags, std::ptr::null_mut()) };
    is_understood.then_some(number)
}

/// The default of a setting that is a whole number, or the number of a word in a list. `None`:
/// there is no such setting, or it has another type.
pub(crate) fn default_number(name: &CStr) -> Option<c_int> {
    match with_setting(name, default_of)?? {
        Value::Whole(number) => Some(number),
        Value::Real(_) => None,
    }
}

/// The parsed value of a setting.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// A number, or the number of a word in a list.
    Whole(c_int),
    Real(f64),
}

/// The field of a setting's record that is specific to its type.
macro_rules! typed {
    ($record:expr, $kind:ident, $field:ident) => {{
        let record: *const pg_sys::config_generic = $record;
        #[cfg(not(feature = "pg19"))]
        let typed = record.cast::<pg_sys::$kind>();
        #[cfg(feature = "pg19")]
        let typed = &raw const (*record).__bindgen_anon_1.$field;
        typed
    }};
}

impl Value {
    /// Parses a value. `None`: a string setting, or an invalid value.
    pub(super) fn of(record: &pg_sys::config_generic, value: &CStr) -> Option<Self> {
        use pg_sys::config_type::{PGC_BOOL, PGC_ENUM, PGC_INT, PGC_REAL};
        // SAFETY: reads a C string, and writes a number. The record has the declared type.
        unsafe {
            match record.vartype {
                PGC_BOOL => Some(Self::Whole(c_int::from(switch(value)?))),
                PGC_INT => Some(Self::Whole(whole(value, record.flags)?)),
                PGC_REAL => Some(Self::Real(real(value, record.flags)?)),
                PGC_ENUM => {
                    let mut word = 0;
                    let words = typed!(record, config_enum, _enum).cast_mut();
                    pg_sys::config_enum_lookup_by_name(words, value.as_ptr(), &raw mut word)
                        .then_some(Self::Whole(word))
                }
                _ => None,
            }
        }
    }
}

/// The default. `None`: a string setting.
pub(super) fn default_of(record: &pg_sys::config_generic) -> Option<Value> {
    use pg_sys::config_type::{PGC_BOOL, PGC_ENUM, PGC_INT, PGC_REAL};
    // SAFETY: the record has the declared type.
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

pub(super) fn is_same(record: &pg_sys::config_generic, one: &CStr, other: &CStr) -> bool {
    let value = Value::of(record, one);
    one == other || value.is_some() && value == Value::of(record, other)
}
