//! The generated files.

use std::collections::BTreeMap;
use std::error::Error;

use minijinja::context;

use crate::dashboards;
use crate::list::List;
use crate::list::Part::{Always, Only, Optional};
use crate::rules;
use crate::zabbix;

/// Generated files by name.
type Files = Result<BTreeMap<String, String>, Box<dyn Error>>;

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../templates/", $name))
    };
}

/// Name, extension and template of formats with a second file for the optional collectors.
const WITH_FINDINGS: [(&str, &str, &str); 4] = [
    (
        "postgres_exporter",
        "yml",
        template!("postgres_exporter.yml"),
    ),
    (
        "justwatch_sql_exporter",
        "yml",
        template!("justwatch_sql_exporter.yml"),
    ),
    ("cloudnativepg", "yml", template!("cloudnativepg.yml")),
    ("telegraf/pg_hugeinfo", "conf", template!("telegraf.conf")),
];

/// All files, for exporters that do not add a prefix to the names of metrics.
pub fn all(list: &List) -> Files {
    let mut files = with_prefix(list, "")?;
    let mut add = |name: &str, text| files.insert(name.to_owned(), text);
    let render = |part, template| list.render(part, template, context! {});
    add(
        "metrics.json",
        serde_json::to_string_pretty(&list.queries)? + "\n",
    );
    for (name, extension, template) in WITH_FINDINGS {
        add(&format!("{name}.{extension}"), render(Always, template)?);
        add(
            &format!("{name}_findings.{extension}"),
            render(Optional, template)?,
        );
    }
    for name in list.collectors.keys() {
        add(
            &format!("zabbix/pg_hugeinfo/{name}.sql"),
            render(Only(name), template!("zabbix/query.sql"))?,
        );
    }
    add(
        "prometheus/justwatch.yml",
        template!("prometheus/justwatch.yml").to_owned(),
    );
    add("zabbix/template.yaml", zabbix::make(list)?);
    add(
        "zabbix/pg_hugeinfo.conf",
        render(Always, template!("zabbix/pg_hugeinfo.conf"))?,
    );
    Ok(files)
}

/// Rules and dashboards for an exporter that adds a prefix, such as `cnpg_`, to the names of
/// metrics.
pub fn with_prefix(list: &List, exporter: &str) -> Files {
    let suffix = match exporter {
        "" => String::new(),
        _ => format!("-{}", exporter.replace('_', "")),
    };
    let dashboard = |name| dashboards::make(list, exporter, name);
    Ok(BTreeMap::from([
        (
            format!("prometheus/rules{suffix}.yml"),
            rules::make(list, exporter, &suffix)?,
        ),
        (format!("grafana/server{suffix}.json"), dashboard("server")?),
        (format!("grafana/fleet{suffix}.json"), dashboard("fleet")?),
    ]))
}
