//! Generates the Zabbix template: items from the list of metrics, triggers from the list of alerts.

use std::error::Error;

use advice::muted;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

use crate::list::{List, Part};
use crate::rules::{Alert, Rules};

/// Name of the template, which precedes each key in an expression.
const TEMPLATE: &str = "PostgreSQL huge pages by pg_hugeinfo";

/// A trigger with the property names of Zabbix.
#[derive(Serialize)]
struct Trigger {
    alert: String,
    name: String,
    expression: String,
    priority: &'static str,
    description: String,
    /// Makes a trigger prototype for each row of this query.
    each: Option<String>,
}

pub fn make(list: &List) -> Result<String, Box<dyn Error>> {
    let rules = Rules::read(list, &list.prefix)?;
    let triggers: Vec<_> = rules
        .alerts
        .iter()
        .flat_map(|alert| triggers(alert, &list.prefix, &rules.runbook))
        .collect();
    Ok(list.render(
        Part::Always,
        include_str!("../templates/zabbix/template.yaml"),
        context! {
            template => TEMPLATE,
            checks => muted::known().collect::<Vec<_>>(),
            triggers => Serde(&triggers),
        },
    )?)
}

fn triggers(alert: &Alert, prefix: &str, runbook: &str) -> Vec<Trigger> {
    let priority = match alert.severity.as_str() {
        "critical" => "HIGH",
        "warning" => "WARNING",
        _ => "INFO",
    };
    let make = |expr: &str, check: &str, each: &Option<String>| {
        let text = |text: &str| {
            text.replace("{{ $labels.instance }}", "{HOST.NAME}")
                .replace("{{ $labels.page_size }}", "{#PAGE_SIZE}")
                .replace("{{ $labels.name }}", check)
                .replace("{{ $value | printf `%.0f` }}", "{ITEM.LASTVALUE1}")
        };
        let mut description = text(&alert.description);
        if !alert.remedy.is_empty() {
            description += &format!("\nRemedy: {}", text(&alert.remedy));
        }
        if !check.is_empty() {
            description += &format!("\n{runbook}#{check}");
        }
        Trigger {
            alert: alert.name.clone(),
            name: text(&alert.summary),
            expression: expr
                .replace("CHECK", &format!("{prefix}_check_severity[\"{check}\"]"))
                .replace(&format!("{prefix}_"), &format!("/{TEMPLATE}/{prefix}_"))
                .trim()
                .replace('\n', " "),
            priority,
            description,
            each: each.clone(),
        }
    };
    let mut made = Vec::new();
    for trigger in &alert.zabbix {
        let checks: Vec<&str> = match &trigger.except {
            Some(except) => muted::known()
                .filter(|name| !except.iter().any(|other| other == name))
                .collect(),
            None => trigger.checks.iter().map(String::as_str).collect(),
        };
        if checks.is_empty() {
            made.push(make(&trigger.expr, &alert.check, &trigger.each));
        }
        for check in checks {
            made.push(make(&trigger.expr, check, &trigger.each));
        }
    }
    made
}
