//! The SQL objects.

mod hugeinfo_backends;
mod hugeinfo_checks;
mod hugeinfo_fault_rates;
mod hugeinfo_host;
mod hugeinfo_instances;
mod hugeinfo_mappings;
mod hugeinfo_meminfo;
mod hugeinfo_memory;
mod hugeinfo_numa;
mod hugeinfo_page_tables;
mod hugeinfo_plan;
mod hugeinfo_pools;
mod hugeinfo_sources;
mod hugeinfo_status;
mod hugeinfo_vmstat;

use hugeinfo::{facts::Facts, root::Root};

use serde_json::Value;

use crate::{error::Error, postgres};

/// The facts about this server, read now.
fn facts() -> Result<Facts, Error> {
    Ok(Facts::read(
        &Root::system(),
        postgres::server()?,
        &postgres::subject(),
    )?)
}

/// Text for this database. Names of control groups and files can hold characters that its encoding lacks: these are escaped.
pub(crate) fn shown(text: String) -> String {
    if text.is_ascii() || postgres::is_utf8_database() {
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
fn shown_in(value: &mut Value) {
    match value {
        Value::String(text) => *text = shown(std::mem::take(text)),
        Value::Array(values) => values.iter_mut().for_each(shown_in),
        Value::Object(members) => members.values_mut().for_each(shown_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
