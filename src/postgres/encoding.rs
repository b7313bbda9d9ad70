//! What text of this database can hold.

use std::ffi::OsStr;

use hugeinfo::escape;
use pgrx::pg_sys;
use serde_json::Value;

/// Whether text of this database can hold every character.
fn is_utf8_database() -> bool {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    u32::try_from(encoding) == Ok(pg_sys::pg_enc::PG_UTF8)
}

/// A name, or a text of one line, for a person: what would not be visible is escaped, and what the
/// encoding of this database may lack.
pub(crate) fn shown(text: impl AsRef<OsStr>) -> String {
    in_encoding(escape::name(text))
}

/// A text of several lines. Names in it have been escaped already.
pub(crate) fn shown_lines(text: impl AsRef<OsStr>) -> String {
    in_encoding(escape::lines(text))
}

fn in_encoding(text: String) -> String {
    match text.is_ascii() || is_utf8_database() {
        true => text,
        false => escape::ascii(&text),
    }
}

/// All texts in a value, through one of the functions above.
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
