//! `monitoring/alerts.toml` as rules of Prometheus.

use std::error::Error;

use minijinja::context;
use minijinja::value::Serde;
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::template;

/// What Prometheus computes and alerts on, and Zabbix has triggers for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub runbook: String,
    records: Vec<Record>,
    pub alerts: Vec<Alert>,
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

/// The same for Zabbix.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    pub expr: String,
    /// One for each of these checks.
    #[serde(default)]
    pub checks: Vec<String>,
    /// One for each check but these.
    pub except: Option<Vec<String>>,
    /// One for each row of this query.
    pub each: Option<String>,
}

impl Rules {
    /// For metrics whose names begin with this, not with `pg_hugeinfo`.
    pub fn read(prefix: &str) -> Result<Self, Box<dyn Error>> {
        let text = include_str!("../../../monitoring/alerts.toml");
        Ok(toml::from_str(
            &text.replace("pg_hugeinfo_", &format!("{prefix}_")),
        )?)
    }
}

/// Rules for metrics whose names an exporter begins with a prefix of its own.
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
