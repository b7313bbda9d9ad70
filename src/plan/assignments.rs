//! Settings as text: `shared_buffers=64GB max_connections='500'`, as in a libpq connection string.

use std::ffi::CString;

use crate::{
    error::Error,
    postgres::jsonb::{LONGEST_WORD, Member},
};

/// Parses pairs separated by whitespace. A value in single quotes can contain whitespace, and
/// quotes and backslashes after a backslash. Spaces around `=` are allowed.
///
/// Errors: 22023 for any other text.
pub(crate) fn parse(text: &str) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(not_assignments)?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(not_assignments());
        }
        let (value, after) = value(after.trim_start())?;
        let value = CString::new(value).map_err(|_| not_assignments())?;
        // Longer than the name of any setting: used only in the message.
        let name = name.chars().take(LONGEST_WORD).collect();
        members.push((name, Some(value)));
        rest = after.trim_start();
    }
    Ok(members)
}

fn value(text: &str) -> Result<(String, &str), Error> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        if value.is_empty() {
            return Err(not_assignments());
        }
        return Ok((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => return Ok((value, &quoted[at + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    Err(not_assignments())
}

fn not_assignments() -> Error {
    Error::invalid("settings must be name=value pairs or a JSON object").hint(
        "Examples: 'shared_buffers=64GB max_connections=500', '{\"shared_buffers\": \"64GB\"}'.",
    )
}
