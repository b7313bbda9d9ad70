//! `monitoring/alerts.toml` as rules of Prometheus.

use std::error::Error;
use std::fs;

use minijinja::context;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::template;

/// What Prometheus computes and alerts on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    runbook: String,
    records: Vec<Record>,
    alerts: Vec<Alert>,
}

/// A series that is computed from others.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    name: String,
    about: String,
    expr: String,
}

/// When somebody has to look.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Alert {
    name: String,
    expr: String,
    r#for: String,
    severity: String,
    /// Section of the runbook, or empty.
    check: String,
    summary: String,
    description: String,
}

/// Rules for metrics whose names an exporter begins with a prefix of its own.
pub fn make(list: &List, exporter: &str, template: &str) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(crate::directory().join("alerts.toml"))?;
    let rules: Rules =
        toml::from_str(&text.replace("pg_hugeinfo_", &format!("{exporter}{}_", list.prefix)))?;
    let groups = template::render(
        include_str!("../templates/rules/groups.yml"),
        context! {
            exporter,
            prefix => format!("{exporter}{}", list.prefix),
            runbook => rules.runbook,
            records => Serde(&rules.records),
            alerts => Serde(&rules.alerts),
        },
    )?;
    Ok(template::render(template, context! { exporter, groups })?)
}
