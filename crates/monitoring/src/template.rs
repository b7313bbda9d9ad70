//! Renders templates.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use uuid::{Builder, Uuid};

/// Renders a template with two additional filters: `quoted` quotes text for JSON, YAML and TOML;
/// [`uuid()`] generates a UUID from a name.
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
    environment.add_filter("uuid", uuid);
    environment.render_str(template, context)
}

fn quoted(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Generates a UUID that depends only on the name. Zabbix identifies imported objects by UUIDs, and
/// accepts only the format of random ones.
fn uuid(name: &str) -> String {
    let bytes = Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        format!("pg_hugeinfo {name}").as_bytes(),
    );
    Builder::from_random_bytes(bytes.into_bytes())
        .into_uuid()
        .simple()
        .to_string()
}
