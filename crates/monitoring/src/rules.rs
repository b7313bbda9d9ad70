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
    /// Name of the check, or empty: the section of the runbook.
    pub check: String,
    /// The query that prints the commands. By default, it prints all remedies if `check` is set.
    #[serde(default)]
    pub remedy: String,
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
    /// Reads the rules, replaces `pg_hugeinfo` in the names of metrics with `prefix`, and adds the
    /// queries for remedies.
    pub fn read(list: &List, prefix: &str) -> Result<Self, Box<dyn Error>> {
        let text = include_str!("../../../monitoring/alerts.toml")
            .replace("pg_hugeinfo_", &format!("{prefix}_"))
            .replace("{{ schema }}", &list.schema);
        let mut rules: Self = toml::from_str(&text)?;
        for alert in &mut rules.alerts {
            if alert.remedy.is_empty() && !alert.check.is_empty() {
                alert.remedy = format!(
                    "SELECT name, remedy FROM {}.hugeinfo_checks WHERE severity > 1 AND NOT is_muted",
                    list.schema
                );
            }
        }
        Ok(rules)
    }
}

/// Generates rules for an exporter that adds the prefix `exporter` to the names of metrics.
pub fn make(list: &List, exporter: &str, suffix: &str) -> Result<String, Box<dyn Error>> {
    let prefix = format!("{exporter}{}", list.prefix);
    let rules = Rules::read(list, &prefix)?;
    Ok(template::render(
        include_str!("../templates/prometheus/rules.yml"),
        context! {
            exporter,
            suffix,
            prefix,
            runbook => rules.runbook,
            records => Serde(&rules.records),
            alerts => Serde(&rules.alerts),
        },
    )?)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use advice::check::CheckId;

    use super::*;

    #[test]
    fn alerts_are_in_order_of_importance() {
        let list = List::read().unwrap();
        let rules = Rules::read(&list, &list.prefix).unwrap();
        let order = ["critical", "warning", "info"];
        let place = |alert: &Alert| order.iter().position(|name| *name == alert.severity);
        assert!(rules.alerts.iter().all(|alert| place(alert).is_some()));
        assert!(rules.alerts.is_sorted_by_key(place));
        // Alerts about one check.
        let check = |alert: &Alert| CheckId::all().position(|check| check.name() == alert.check);
        let one = rules.alerts.iter().filter(|alert| check(alert).is_some());
        assert!(one.is_sorted_by_key(|alert| (place(alert), check(alert))));
    }
}
