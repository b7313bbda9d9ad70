//! Templates, with what every format needs: text in quotes, and SQL in its place.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value, context};
use serde::Serialize;

use crate::list::{Collector, List, Part, Query};
use crate::zabbix;

/// A format: which sees `generated`, a line for its top, `schema`, `prefix`, `collectors` with
/// their `queries`, and all `queries`.
pub fn format(list: &List, part: Part, template: &str) -> Result<String, Error> {
    format_with(list, part, template, context! {})
}

/// The same, which sees more.
pub fn format_with(list: &List, part: Part, template: &str, more: Value) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Collectors<'a> {
        name: &'a str,
        #[serde(flatten)]
        collector: &'a Collector,
        queries: Vec<&'a Query>,
    }
    let collectors: Vec<_> = list
        .collectors(part)
        .into_iter()
        .map(|(name, collector, queries)| Collectors {
            name,
            collector,
            queries,
        })
        .collect();
    let queries: Vec<_> = collectors
        .iter()
        .flat_map(|collector| &collector.queries)
        .collect();
    render(
        template,
        context! {
            generated => "Made from monitoring/metrics.toml by: scripts/cargo run -p hugeinfo-monitoring",
            schema => &list.schema,
            prefix => &list.prefix,
            optional => part == Part::Optional,
            collectors => Serde(&collectors),
            queries => Serde(&queries),
            ..more
        },
    )
}

/// What a template says of a context. Filters beside minijinja's own: `quoted`, text as JSON, YAML
/// and TOML quote it.
pub fn render(template: &str, context: Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.add_filter("quoted", quoted);
    environment.add_filter("uuid", zabbix::uuid);
    environment.render_str(template, context)
}

fn quoted(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}
