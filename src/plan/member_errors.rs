//! Errors about members of a JSON object with settings.

use crate::error::Error;

pub(super) const VALUES: &str =
    "Example: {\"shared_buffers\": \"64GB\", \"max_connections\": 500, \"hot_standby\": false}.";

pub(super) fn not_a_value(name: &str) -> Error {
    Error::invalid(format!(
        "setting \"{name}\" must be a string, a number or a boolean"
    ))
    .hint(VALUES)
}

pub(super) fn planned_twice(name: &str) -> Error {
    Error::invalid(format!("setting \"{name}\" is given more than once"))
        .hint("Names of settings are not case-sensitive.")
}
