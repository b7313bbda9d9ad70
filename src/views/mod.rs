//! The SQL objects.

/// The SQL functions of one name: they return the same columns, for which `Row` stands, and differ
/// in what they take.
///
/// What people type has to be an exact signature of ours, that without arguments too: nothing goes
/// before an exact match. Else whoever may create functions in the extension's schema could make
/// one that fits better, for a superuser to run. There is one for text where people type a quoted
/// literal, which goes to it first. `t/025_hostile_roles.pl` tries to come before us.
macro_rules! overloads {
    ($name:literal, $columns:tt;
     $($(#[$doc:meta])* fn $function:ident($($argument:ident: $type:ident)?) $rows:block)+) => {
        #[allow(clippy::type_complexity)]
        type Row = $columns;

        $(
            $(#[$doc])*
            #[pg_extern(name = $name, parallel_restricted, cost = 1000000)]
            #[allow(clippy::type_complexity)]
            fn $function($($argument: $type)?) -> Result<TableIterator<'static, $columns>, ErrorReport> {
                Ok(TableIterator::new($crate::postgres::memory::with_room(|| $rows)?))
            }
        )+
    };
}

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

use hugeinfo::{linux::root::Root, server::facts::Facts};
use pgrx::extension_sql_file;

use serde_json::Value;

use crate::{error::Error, postgres};

extension_sql_file!("names.sql");

/// The facts about this server, read now.
fn facts() -> Result<Facts, Error> {
    Ok(Facts::read(
        &Root::system(),
        postgres::server()?,
        &postgres::subject(),
    )?)
}

/// Text for this database. Names of control groups and files can hold characters that its encoding
/// lacks: these are escaped.
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
