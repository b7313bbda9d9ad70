//! Generates Grafana dashboards, in classic JSON, from `monitoring/dashboards.toml`.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::list::List;

/// Selects the servers that are chosen at the top of a dashboard. Grafana escapes the value for a
/// regular expression only if several can be chosen.
const WHERE: &str = r#"job=~"$job",instance=~"$instance""#;
const WHERE_ONE: &str = r#"job=~"$job",instance="$instance""#;

/// The labels that identify a server. An exporter for several servers adds one of the last four.
const SERVER: &str = "job, instance, server, target, host, database";

/// Width of a dashboard, in Grafana's grid units.
const WIDTH: u32 = 24;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dashboards {
    values: BTreeMap<String, BTreeMap<String, Value>>,
    dashboards: Vec<Dashboard>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dashboard {
    name: String,
    title: String,
    description: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    title: String,
    panels: Vec<Panel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    r#type: String,
    title: String,
    description: String,
    width: u32,
    height: u32,
    unit: String,
    /// Texts and colors for numbers: a key of [`Dashboards::values`].
    values: Option<String>,
    #[serde(default)]
    stack: bool,
    /// The axis goes up to this number at least.
    soft_max: Option<f64>,
    /// Numbers from this one are orange, and lower ones green.
    warn_from: Option<u32>,
    /// For a table: labels to show, with the titles of their columns.
    columns: Option<Vec<(String, String)>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    expr: String,
    legend: Option<String>,
    /// Draws a dashed line over the stacked series.
    #[serde(default)]
    line: bool,
}

/// Generates a dashboard for an exporter that adds the prefix `exporter` to the names of metrics.
pub fn make(list: &List, exporter: &str, name: &str) -> Result<String, Box<dyn Error>> {
    let prefix = format!("{exporter}{}", list.prefix);
    let text = include_str!("../../../monitoring/dashboards.toml")
        .replace("pg_hugeinfo_", &format!("{prefix}_"));
    let all: Dashboards = toml::from_str(&text)?;
    let dashboard = all
        .dashboards
        .iter()
        .find(|dashboard| dashboard.name == name)
        .ok_or("no such dashboard")?;

    let is_fleet = dashboard.name == "fleet";
    let selects = if is_fleet { WHERE } else { WHERE_ONE };
    let mut panels = Vec::new();
    let mut y = 0;
    for row in &dashboard.rows {
        panels.push(json!({
            "type": "row", "id": panels.len() + 1, "title": row.title, "collapsed": false, "panels": [],
            "gridPos": { "x": 0, "y": y, "w": WIDTH, "h": 1 },
        }));
        y += 1;
        let (mut x, mut height) = (0, 0);
        for panel in &row.panels {
            if x + panel.width > WIDTH {
                (x, y) = (0, y + height);
            }
            let mut made = panel.make(&all.values, selects)?;
            made["id"] = json!(panels.len() + 1);
            made["gridPos"] = json!({ "x": x, "y": y, "w": panel.width, "h": panel.height });
            panels.push(made);
            (x, height) = (x + panel.width, panel.height);
        }
        y += height;
    }

    let made = json!({
        "uid": format!("{}-{name}", prefix.replace('_', "-")),
        "title": match exporter {
            "" => dashboard.title.clone(),
            _ => format!("{} ({exporter}…)", dashboard.title),
        },
        "description": format!(
            "{} Generated from monitoring/dashboards.toml by: make monitoring. \
             To import it: Dashboards, New, Import.",
            dashboard.description
        ),
        "tags": ["postgresql", "huge pages"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "1m",
        "time": { "from": "now-6h", "to": "now" },
        "annotations": { "list": [] },
        "templating": { "list": variables(&prefix, is_fleet) },
        "panels": panels,
    });
    Ok(render(&made))
}

/// Renders each property and each panel on a line of its own, so that a diff shows which panels
/// changed.
fn render(dashboard: &Value) -> String {
    let properties = dashboard.as_object().into_iter().flatten();
    let lines: Vec<_> = properties
        .map(|(name, value)| match value.as_array() {
            Some(panels) if name == "panels" => {
                let panels: Vec<_> = panels.iter().map(|panel| format!("    {panel}")).collect();
                format!("  \"{name}\": [\n{}\n  ]", panels.join(",\n"))
            }
            _ => format!("  \"{name}\": {value}"),
        })
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Without `all_instances`, one server can be chosen: sums and stacks of several servers of a host
/// would count its pools several times.
fn variables(prefix: &str, all_instances: bool) -> Value {
    let of_label = |label: &str, metric: &str, all: bool| {
        let query = format!("label_values({metric}, {label})");
        let mut variable = json!({
            "type": "query", "name": label, "label": label, "datasource": source(),
            "query": { "query": query, "refId": label },
            "multi": all, "includeAll": all, "refresh": 2, "sort": 1,
            "hide": 0, "skipUrlSync": false, "options": [], "regex": "",
        });
        if all {
            variable["allValue"] = json!(".+");
            variable["current"] = json!({ "text": ["All"], "value": ["$__all"] });
        }
        variable
    };
    json!([
        {
            "type": "datasource", "name": "datasource", "label": "data source", "query": "prometheus",
            "refresh": 1, "multi": false, "includeAll": false, "hide": 0, "skipUrlSync": false,
            "options": [], "regex": "",
        },
        of_label("job", &format!("{prefix}_in_use"), true),
        of_label("instance", &format!(r#"{prefix}_in_use{{job=~"$job"}}"#), all_instances),
    ])
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

impl Panel {
    fn make(
        &self,
        values: &BTreeMap<String, BTreeMap<String, Value>>,
        selects: &str,
    ) -> Result<Value, Box<dyn Error>> {
        let is_instant = matches!(self.r#type.as_str(), "stat" | "table");
        let targets: Vec<_> = self
            .targets
            .iter()
            .zip('A'..)
            .map(|(target, id)| {
                json!({
                    "refId": id, "datasource": source(), "expr": target.expr.replace("WHERE", selects).replace("SERVER", SERVER),
                    "legendFormat": target.legend.as_deref().unwrap_or("__auto"),
                    "instant": is_instant, "range": !is_instant,
                    "format": if self.r#type == "table" { "table" } else { "time_series" },
                })
            })
            .collect();
        let lines: Vec<_> = self
            .targets
            .iter()
            .zip('A'..)
            .filter(|(target, _)| target.line)
            .map(|(_, id)| {
                json!({
                    "matcher": { "id": "byFrameRefID", "options": id },
                    "properties": [
                        { "id": "custom.stacking", "value": { "mode": "none" } },
                        { "id": "custom.fillOpacity", "value": 0 },
                        { "id": "custom.lineWidth", "value": 2 },
                        { "id": "custom.lineStyle", "value": { "fill": "dash", "dash": [10, 10] } },
                    ],
                })
            })
            .collect();
        let mappings = match &self.values {
            Some(name) => {
                let options = values.get(name).ok_or("no such list of values")?;
                json!([{ "type": "value", "options": options }])
            }
            None => json!([]),
        };
        let mut thresholds = vec![json!({ "color": "green", "value": null })];
        thresholds.extend(
            self.warn_from
                .map(|number| json!({ "color": "orange", "value": number })),
        );
        let color = if self.r#type == "timeseries" {
            json!({ "mode": "palette-classic" })
        } else if self.values.is_some() || self.warn_from.is_some() {
            json!({ "mode": "thresholds" })
        } else {
            json!({ "mode": "fixed", "fixedColor": "text" })
        };
        let (options, custom) = self.looks();
        let mut made = json!({
            "type": self.r#type, "title": self.title, "description": self.description,
            "datasource": source(), "targets": targets, "options": options,
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit, "min": 0, "mappings": mappings, "custom": custom,
                    "color": color,
                    "thresholds": { "mode": "absolute", "steps": thresholds },
                },
                "overrides": lines,
            },
        });
        if let Some(number) = self.soft_max {
            made["fieldConfig"]["defaults"]["custom"]["axisSoftMax"] = json!(number);
        }
        if let Some(columns) = &self.columns {
            let names: Vec<_> = columns.iter().map(|(name, _)| name).collect();
            let titles: BTreeMap<_, _> = columns.iter().cloned().collect();
            let places: BTreeMap<_, _> = names.iter().zip(0..).collect();
            made["transformations"] = json!([
                { "id": "filterFieldsByName", "options": { "include": { "names": names } } },
                { "id": "organize", "options": { "indexByName": places, "renameByName": titles } },
            ]);
        }
        Ok(made)
    }

    /// Display options of the panel, and of its fields.
    fn looks(&self) -> (Value, Value) {
        let legend = json!({ "displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": [] });
        let tooltip = json!({ "mode": "multi", "sort": "desc" });
        match self.r#type.as_str() {
            "stat" => (
                json!({
                    "colorMode": if self.values.is_some() { "background" } else { "value" },
                    "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
                    "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                }),
                json!({}),
            ),
            "state-timeline" => (
                json!({
                    "showValue": "never", "mergeValues": true, "rowHeight": 0.9, "alignValue": "left",
                    "legend": legend, "tooltip": tooltip,
                }),
                json!({ "fillOpacity": 80, "lineWidth": 0 }),
            ),
            "table" => (
                json!({ "showHeader": true, "cellHeight": "sm" }),
                json!({ "align": "auto", "cellOptions": { "type": "auto" }, "inspect": false }),
            ),
            _ => (
                json!({ "legend": legend, "tooltip": tooltip }),
                json!({
                    "drawStyle": "line", "lineWidth": 1, "showPoints": "never", "spanNulls": false,
                    "fillOpacity": if self.stack { 30 } else { 0 },
                    "stacking": { "mode": if self.stack { "normal" } else { "none" }, "group": "A" },
                }),
            ),
        }
    }
}
