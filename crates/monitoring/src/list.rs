//! Reads `monitoring/metrics.toml`, and derives full names and queries.

use std::collections::BTreeMap;
use std::error::Error;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::{Deserialize, Serialize};

use crate::template;

/// All metrics, independent of any monitoring tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Schema of the extension.
    pub schema: String,
    /// Prefix of the names of all metrics.
    pub prefix: String,
    /// Collectors by name.
    pub collectors: BTreeMap<String, Collector>,
    pub queries: Vec<Query>,
}

/// A group of queries that run at the same interval.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    pub interval_seconds: u32,
    /// Content and cost.
    pub about: String,
    /// Whether the collector is in a separate file that not everybody uses.
    #[serde(default)]
    pub optional: bool,
}

/// One SELECT: its labels, then its metrics.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Unique name.
    pub name: String,
    /// Part of the full name between the prefix and the name of a metric; the name of the query by
    /// default. [`List::read`] adds the prefix.
    #[serde(default)]
    pub namespace: Option<String>,
    /// A key of [`List::collectors`].
    pub collector: String,
    /// Text columns.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Numeric columns.
    pub metrics: Vec<Metric>,
    /// A template that [`List::read`] renders.
    pub sql: String,
    /// The interval of the collector.
    #[serde(skip_deserializing)]
    pub interval_seconds: u32,
}

/// A numeric column.
#[derive(Deserialize, Serialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name of the column.
    pub name: String,
    /// Name of the metric, with prefix and namespace.
    #[serde(skip_deserializing)]
    pub full_name: String,
    /// Metric type of Prometheus.
    #[serde(rename = "type", skip_deserializing)]
    pub kind: &'static str,
    /// By default, the end of the name.
    #[serde(default)]
    pub unit: String,
    /// Description without a final period.
    pub help: String,
}

impl Metric {
    fn complete(&mut self, namespace: &str) {
        self.full_name = format!("{namespace}_{}", self.name);
        let (name, kind) = match self.name.strip_suffix("_total") {
            Some(name) => (name, "counter"),
            None => (self.name.as_str(), "gauge"),
        };
        self.kind = kind;
        if self.unit.is_empty() {
            let units = ["bytes", "pages", "severity", "info"];
            let unit = units.into_iter().find(|unit| name.ends_with(unit));
            self.unit = unit.unwrap_or("count").to_owned();
        }
    }
}

/// Selects the collectors of a file.
#[derive(Clone, Copy, PartialEq)]
pub enum Part<'a> {
    /// All collectors that are not optional.
    Always,
    /// The optional collectors.
    Optional,
    /// The collector with this name.
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

/// SQL expression for a page size such as `2MB`.
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
                metric.complete(&namespace);
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
    fn names_are_unique() {
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
    fn help_is_one_line_without_a_period() {
        for query in &list().queries {
            for metric in &query.metrics {
                assert!(
                    !metric.help.ends_with('.') && !metric.help.contains('\n'),
                    "{}",
                    metric.full_name
                );
            }
        }
    }

    #[test]
    fn labels_have_few_values() {
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
