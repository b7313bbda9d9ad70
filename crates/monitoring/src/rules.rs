//! Generates Prometheus rules from `monitoring/alerts.toml`.

use std::error::Error;

use minijinja::context;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::template;

/// Recording rules and alerts of Prometheus, with the triggers of Zabbix.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub runbook: String,
    records: Vec<Record>,
    pub alerts: Vec<Alert>,
}

/// A recording rule.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    name: String,
    about: String,
    expr: String,
}

/// An alerting rule.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    pub name: String,
    expr: String,
    r#for: String,
    pub severity: String,
    /// Section of the runbook, or empty.
    pub check: String,
    pub summary: String,
    pub description: String,
    pub zabbix: Vec<Trigger>,
}

/// The condition of an alert for Zabbix.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    pub expr: String,
    /// One trigger for each of these checks.
    #[serde(default)]
    pub checks: Vec<String>,
    /// One trigger for each check except these.
    pub except: Option<Vec<String>>,
    /// One trigger for each row of this query.
    pub each: Option<String>,
}

impl Rules {
    /// Reads the rules, and replaces `pg_hugeinfo` in the names of metrics with `prefix`.
    pub fn read(prefix: &str) -> Result<Self, Box<dyn Error>> {
        let text = include_str!("../../../monitoring/alerts.toml");
        Ok(toml::from_str(
            &text.replace("pg_hugeinfo_", &format!("{prefix}_")),
        )?)
    }
}

/// Generates rules for an exporter that adds the prefix `exporter` to the names of metrics.
pub fn make(
    list: &List,
    exporter: &str,
    suffix: &str,
    template: &str,
) -> Result<String, Box<dyn Error>> {
    let rules = Rules::read(&format!("{exporter}{}", list.prefix))?;
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
    Ok(template::render(
        template,
        context! { exporter, suffix, groups },
    )?)
}
