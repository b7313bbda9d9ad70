//! Converts text to the encoding of this database.

use std::ffi::OsStr;

use host::escape;
use pgrx::pg_sys;
use serde_json::Value;

/// True if the encoding of this database has every character.
fn is_utf8_database() -> bool {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    u32::try_from(encoding) == Ok(pg_sys::pg_enc::PG_UTF8)
}

/// Prepares a name or any other single-line text for display. Escapes hidden characters, and
/// characters that the encoding of this database might lack.
pub(crate) fn shown(text: impl AsRef<OsStr>) -> String {
    in_encoding(escape::name(text))
}

/// Prepares multi-line text for display. Names in it are already escaped.
pub(crate) fn shown_lines(text: impl AsRef<OsStr>) -> String {
    in_encoding(escape::lines(text))
}

fn in_encoding(text: String) -> String {
    match text.is_ascii() || is_utf8_database() {
        true => text,
        false => escape::ascii(&text),
    }
}

/// Applies one of the functions above to every string in a JSON value.
pub(crate) fn shown_in(value: &mut Value, shown: fn(String) -> String) {
    match value {
        Value::String(text) => *text = shown(std::mem::take(text)),
        Value::Array(values) => values.iter_mut().for_each(|value| shown_in(value, shown)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|value| shown_in(value, shown)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
