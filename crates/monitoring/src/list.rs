//! `monitoring/metrics.toml` as it is read, with what follows from it.

use std::collections::BTreeMap;
use std::error::Error;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::{Deserialize, Serialize};

use crate::template;

/// All that is to be monitored, in the words of no tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Where the extension lives.
    pub schema: String,
    /// What the names of all metrics begin with.
    pub prefix: String,
    /// How often what is asked.
    pub collectors: BTreeMap<String, Collector>,
    /// What is asked.
    pub queries: Vec<Query>,
}

/// Queries that are asked equally often.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    /// How often.
    pub interval_seconds: u32,
    /// What it tells, and what that costs.
    pub about: String,
    /// Whether a file of its own has it.
    #[serde(default)]
    pub optional: bool,
}

/// One SELECT: its labels, then its metrics.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// No other query has it.
    pub name: String,
    /// Between the prefix and the name of a metric: the name of the query, if not given. Once read,
    /// with the prefix.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its place in [`List::collectors`].
    pub collector: String,
    /// Columns of text.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Columns of numbers.
    pub metrics: Vec<Metric>,
    /// Once read, ready to run.
    pub sql: String,
    /// That of its collector.
    #[serde(skip_deserializing)]
    pub interval_seconds: u32,
}

/// A column of numbers.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// That of the column.
    pub name: String,
    /// That of the metric.
    #[serde(skip_deserializing)]
    pub full_name: String,
    /// How it moves.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// What it says.
    pub help: String,
}

/// How a metric moves.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Up and down.
    Gauge,
    /// Up only.
    Counter,
}

/// What a metric counts.
#[derive(Deserialize, Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// 0 or 1.
    Bool,
    /// Bytes.
    Bytes,
    /// Things or events.
    Count,
    /// Always 1: what it says is in its labels.
    Info,
    /// Huge pages of the size that a label or another metric tells.
    Pages,
    /// Seconds.
    Seconds,
    /// 0 ok, 1 unknown, 2 warning, 3 critical.
    Severity,
}

/// Which collectors a file has.
#[derive(Clone, Copy, PartialEq)]
pub enum Part<'a> {
    /// Those that everybody wants.
    Always,
    /// Those that have to be asked for.
    Optional,
    /// This one.
    Only(&'a str),
}

impl Part<'_> {
    fn has(self, name: &str, collector: &Collector) -> bool {
        match self {
            Self::Always => !collector.optional,
            Self::Optional => collector.optional,
            Self::Only(only) => name == only,
        }
    }
}

/// A page size as people write it.
const PAGE_SIZE: &str = "CASE WHEN page_size_bytes >= 1 << 30 THEN (page_size_bytes >> 30) || 'GB'
            WHEN page_size_bytes >= 1 << 20 THEN (page_size_bytes >> 20) || 'MB'
            ELSE (page_size_bytes >> 10) || 'kB' END";

impl List {
    pub fn read() -> Result<Self, Box<dyn Error>> {
        let mut list: Self = toml::from_str(include_str!("../../../monitoring/metrics.toml"))?;
        for query in &mut list.queries {
            let collector = list
                .collectors
                .get(&query.collector)
                .ok_or_else(|| format!("there is no collector {}", query.collector))?;
            query.interval_seconds = collector.interval_seconds;
            let namespace = match query.namespace.as_deref().unwrap_or(&query.name) {
                "" => list.prefix.clone(),
                name => format!("{}_{name}", list.prefix),
            };
            for metric in &mut query.metrics {
                metric.full_name = format!("{namespace}_{}", metric.name);
            }
            query.namespace = Some(namespace);
            query.sql = template::render(
                query.sql.trim(),
                context! { schema => &list.schema, page_size => PAGE_SIZE },
            )?;
        }
        Ok(list)
    }

    /// Renders the template of a file. It can use `generated`, the line at its top, `schema`,
    /// `prefix`, `collectors` with their `queries`, the most frequent first, all `queries`, and
    /// `more`.
    pub fn render(
        &self,
        part: Part<'_>,
        template: &str,
        more: Value,
    ) -> Result<String, minijinja::Error> {
        #[derive(Serialize)]
        struct Collectors<'a> {
            name: &'a str,
            #[serde(flatten)]
            collector: &'a Collector,
            queries: Vec<&'a Query>,
        }
        let mut collectors: Vec<_> = self
            .collectors
            .iter()
            .filter(|(name, collector)| part.has(name, collector))
            .map(|(name, collector)| Collectors {
                name,
                collector,
                queries: self
                    .queries
                    .iter()
                    .filter(|query| &query.collector == name)
                    .collect(),
            })
            .collect();
        collectors.sort_by_key(|one| one.collector.interval_seconds);
        let queries: Vec<_> = collectors
            .iter()
            .flat_map(|collector| &collector.queries)
            .collect();
        template::render(
            template,
            context! {
                generated => "Generated from monitoring/metrics.toml by: make monitoring",
                schema => &self.schema,
                prefix => &self.prefix,
                optional => part == Part::Optional,
                collectors => Serde(&collectors),
                queries => Serde(&queries),
                ..more
            },
        )
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use std::collections::BTreeSet;

    use super::*;

    fn list() -> List {
        List::read().unwrap()
    }

    #[test]
    fn nothing_is_there_twice() {
        let list = list();
        let mut seen = BTreeSet::new();
        for query in &list.queries {
            assert!(
                seen.insert(query.namespace.clone().unwrap()),
                "namespace of {}",
                query.name
            );
            for metric in &query.metrics {
                assert!(
                    seen.insert(metric.full_name.clone()),
                    "{}",
                    metric.full_name
                );
                assert!(!query.labels.contains(&metric.name), "{}", metric.full_name);
            }
        }
    }

    #[test]
    fn names_are_as_prometheus_wants_them() {
        for query in &list().queries {
            for metric in &query.metrics {
                let name = &metric.full_name;
                assert_eq!(
                    metric.kind == Kind::Counter,
                    name.ends_with("_total"),
                    "{name}"
                );
                let unit = match metric.unit {
                    Unit::Bytes => "_bytes",
                    Unit::Info => "_info",
                    Unit::Pages => "_pages",
                    Unit::Seconds => "_seconds",
                    Unit::Severity => "severity",
                    Unit::Bool | Unit::Count => "",
                };
                assert!(
                    name.trim_end_matches("_total").ends_with(unit),
                    "{name}: {unit}"
                );
                assert!(
                    !metric.help.ends_with('.') && !metric.help.contains('\n'),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn no_label_is_new_each_time() {
        for query in &list().queries {
            for label in &query.labels {
                assert!(
                    ![
                        "pid",
                        "application_name",
                        "client_addr",
                        "datname",
                        "usename",
                        "path"
                    ]
                    .contains(&label.as_str()),
                    "{}: {label}",
                    query.name
                );
            }
        }
    }
}
