//! The files in `monitoring/`, a line for each.

use std::error::Error;

use crate::list::{List, Part};
use crate::template::format;

type Make = fn(&List) -> Result<String, Box<dyn Error>>;

macro_rules! template {
    ($name:literal, $part:ident) => {
        |list| {
            Ok(format(
                list,
                Part::$part,
                include_str!(concat!("../templates/", $name)),
            )?)
        }
    };
}

/// File, and what makes it.
pub const OUTPUTS: &[(&str, Make)] = &[
    ("metrics.json", |list| {
        Ok(serde_json::to_string_pretty(&list.queries)? + "\n")
    }),
    (
        "postgres_exporter.yml",
        template!("postgres_exporter.yml", Always),
    ),
    (
        "postgres_exporter_findings.yml",
        template!("postgres_exporter.yml", Optional),
    ),
];
