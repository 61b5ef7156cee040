//! Schemas that several responses share and that the types alone cannot express.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::journal::RunState;

/// The schema of a run's id.
pub(in crate::http) fn run_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "uuid" })
}

pub(in crate::http) fn run_id_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "uuid" })
}

/// The schema of an RFC 3339 time.
pub(in crate::http) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

pub(in crate::http) fn time_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "format": "date-time" })
}

/// The schema of a run's state.
pub(in crate::http) fn state(_: &mut SchemaGenerator) -> Schema {
    let mut names = RunState::NAMES.to_vec();
    names.retain(|name| *name != RunState::Heuristic.into_str());
    json_schema!({ "type": "string", "enum": names })
}

/// The schema of a hash: 64 hexadecimal digits.
pub(in crate::http) fn hash(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

/// The schema of the audit appendix. A part that the run did not reach is null.
pub(in crate::http) fn audit(_: &mut SchemaGenerator) -> Schema {
    let audit = objects(include_str!("audit.tsv")).remove("Audit");
    Schema::try_from(with(audit.unwrap_or_default(), "title", "Audit")).unwrap_or_default()
}

/// Reads a table of objects, and returns the schema of each by its name. A block begins with the
/// name and the description of an object. If it has other fields too, `open` follows. Each further
/// line is a field: its name, with `?` if it may be missing, its type as [`typed`] reads it, and its
/// description.
pub(in crate::http) fn objects(table: &str) -> Map<String, Value> {
    let mut all = Map::new();
    for block in table.trim_end().split("\n\n") {
        let mut lines = block.lines().map(|line| line.split('\t'));
        let mut head = lines.next().into_iter().flatten();
        let (name, about, kind) = (head.next(), head.next(), head.next());
        let (mut properties, mut required) = (Map::new(), vec![]);
        for mut cells in lines {
            let (field, kind) = (cells.next(), cells.next());
            let field = field.unwrap_or_default();
            let schema = typed(kind.unwrap_or_default(), &all);
            let name = field.trim_end_matches('?');
            required.extend((name == field).then_some(name));
            properties.insert(name.to_owned(), described(schema, cells.next()));
        }
        let mut schema = match kind.filter(|kind| *kind != "open") {
            Some(kind) => typed(kind, &all),
            None => json!({ "type": "object", "properties": properties, "required": required }),
        };
        if kind.is_none() {
            schema = with(schema, "additionalProperties", false);
        }
        let name = name.unwrap_or_default().to_owned();
        all.insert(name, described(schema, about));
    }
    all
}

/// Returns the schema of a type. `?` at its end allows null, `[]` makes a list. The rest is the name
/// of an object above it (`:calls`) or of a component (`Agent`), a basic type with bounds
/// (`number>=0<=1`), or the allowed words (`ship|ask`).
fn typed(kind: &str, objects: &Map<String, Value>) -> Value {
    if let Some(kind) = kind.strip_suffix('?') {
        let mut schema = typed(kind, objects);
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.push(Value::Null);
            return schema;
        }
        let name = schema.get("type").and_then(Value::as_str);
        return match name.map(str::to_owned) {
            Some(name) => with(schema, "type", json!([name, "null"])),
            None => json!({ "oneOf": [schema, { "type": "null" }] }),
        };
    }
    if let Some(kind) = kind.strip_suffix("[]") {
        return json!({ "type": "array", "items": typed(kind, objects) });
    }
    let (rest, maximum) = kind.split_once("<=").unwrap_or((kind, ""));
    let (base, minimum) = rest.split_once(">=").unwrap_or((rest, ""));
    let schema = match base {
        "text" => json!({ "type": "string" }),
        "uuid" => json!({ "type": "string", "format": "uuid" }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "truth" => json!({ "type": "boolean" }),
        "integer" | "number" | "object" => json!({ "type": base }),
        name if name.starts_with(':') => objects.get(name).cloned().unwrap_or_default(),
        words if words.contains('|') => json!({ "enum": words.split('|').collect::<Vec<_>>() }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    };
    let bounds = [("minimum", minimum), ("maximum", maximum)];
    bounds
        .into_iter()
        .fold(schema, |schema, (name, bound)| match bound.parse::<u32>() {
            Ok(bound) => with(schema, name, bound),
            Err(_) => schema,
        })
}

fn described(schema: Value, about: Option<&str>) -> Value {
    match about.filter(|about| !about.is_empty()) {
        Some(about) => with(schema, "description", about),
        None => schema,
    }
}

/// Adds a text to a schema.
pub(in crate::http) fn with(mut schema: Value, key: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(schema) = &mut schema {
        schema.insert(key.to_owned(), value.into());
    }
    schema
}
