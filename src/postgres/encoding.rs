//! What text of this database can hold.

use pgrx::pg_sys;
use serde_json::Value;

/// Whether text of this database can hold every character.
pub(crate) fn is_utf8_database() -> bool {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    u32::try_from(encoding) == Ok(pg_sys::pg_enc::PG_UTF8)
}

/// Text for this database. Names of control groups and files can have characters that its encoding
/// lacks: these are escaped.
pub(crate) fn shown(text: String) -> String {
    if text.is_ascii() || is_utf8_database() {
        return text;
    }
    let escaped = text.chars().map(|character| {
        if character.is_ascii() {
            character.to_string()
        } else {
            character.escape_unicode().to_string()
        }
    });
    escaped.collect()
}

/// The same for all texts in a value.
pub(crate) fn shown_in(value: &mut Value) {
    match value {
        Value::String(text) => *text = shown(std::mem::take(text)),
        Value::Array(values) => values.iter_mut().for_each(shown_in),
        Value::Object(members) => members.values_mut().for_each(shown_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
