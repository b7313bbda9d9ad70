//! The files in `monitoring/`, a line for each.

use std::error::Error;

use minijinja::context;

use crate::dashboards;
use crate::list::List;
use crate::list::Part::{Always, Only, Optional};
use crate::rules;
use crate::zabbix;

type Make = fn(&List) -> Result<String, Box<dyn Error>>;

macro_rules! template {
    ($name:literal, $part:expr) => {
        |list| {
            Ok(list.render(
                $part,
                include_str!(concat!("../templates/", $name)),
                context! {},
            )?)
        }
    };
}

macro_rules! rules {
    ($exporter:literal, $name:literal) => {
        |list| {
            rules::make(
                list,
                $exporter,
                include_str!(concat!("../templates/rules/", $name)),
            )
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
    (
        "sql_exporter/sql_exporter.yml",
        template!("sql_exporter.yml", Always),
    ),
    (
        "sql_exporter/pg_hugeinfo_status.collector.yml",
        template!("sql_exporter.collector.yml", Only("status")),
    ),
    (
        "sql_exporter/pg_hugeinfo_processes.collector.yml",
        template!("sql_exporter.collector.yml", Only("processes")),
    ),
    (
        "sql_exporter/pg_hugeinfo_numa.collector.yml",
        template!("sql_exporter.collector.yml", Only("numa")),
    ),
    (
        "sql_exporter/pg_hugeinfo_findings.collector.yml",
        template!("sql_exporter.collector.yml", Only("findings")),
    ),
    (
        "justwatch_sql_exporter.yml",
        template!("justwatch_sql_exporter.yml", Always),
    ),
    (
        "justwatch_sql_exporter_findings.yml",
        template!("justwatch_sql_exporter.yml", Optional),
    ),
    ("cloudnativepg.yml", template!("cloudnativepg.yml", Always)),
    (
        "cloudnativepg_findings.yml",
        template!("cloudnativepg.yml", Optional),
    ),
    (
        "telegraf/pg_hugeinfo.conf",
        template!("telegraf.conf", Always),
    ),
    (
        "telegraf/pg_hugeinfo_findings.conf",
        template!("telegraf.conf", Optional),
    ),
    (
        "datadog/pg_hugeinfo.yaml",
        template!("datadog.yaml", Always),
    ),
    (
        "datadog/pg_hugeinfo_findings.yaml",
        template!("datadog.yaml", Optional),
    ),
    (
        "pgwatch/pg_hugeinfo.yaml",
        template!("pgwatch.yaml", Always),
    ),
    (
        "pgwatch/pg_hugeinfo_findings.yaml",
        template!("pgwatch.yaml", Optional),
    ),
    ("zabbix/template.yaml", zabbix::make),
    (
        "zabbix/pg_hugeinfo.conf",
        template!("zabbix/pg_hugeinfo.conf", Always),
    ),
    (
        "zabbix/pg_hugeinfo/status.sql",
        template!("zabbix/query.sql", Only("status")),
    ),
    (
        "zabbix/pg_hugeinfo/processes.sql",
        template!("zabbix/query.sql", Only("processes")),
    ),
    (
        "zabbix/pg_hugeinfo/numa.sql",
        template!("zabbix/query.sql", Only("numa")),
    ),
    (
        "zabbix/pg_hugeinfo/findings.sql",
        template!("zabbix/query.sql", Only("findings")),
    ),
    ("prometheus/rules.yml", rules!("", "rules.yml")),
    ("prometheus/rules-cnpg.yml", rules!("cnpg_", "rules.yml")),
    (
        "prometheus/prometheusrule.yml",
        rules!("", "prometheusrule.yml"),
    ),
    (
        "prometheus/prometheusrule-cnpg.yml",
        rules!("cnpg_", "prometheusrule.yml"),
    ),
    ("grafana/server.json", |list| {
        dashboards::make(list, "", "server")
    }),
    ("grafana/fleet.json", |list| {
        dashboards::make(list, "", "fleet")
    }),
    ("grafana/server-cnpg.json", |list| {
        dashboards::make(list, "cnpg_", "server")
    }),
    ("grafana/fleet-cnpg.json", |list| {
        dashboards::make(list, "cnpg_", "fleet")
    }),
];
