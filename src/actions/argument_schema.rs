//! Reads the JSON schema of one argument.

use serde_json::Value;

/// Returns the names of the types that a schema allows.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => entries(schema, "anyOf").flat_map(types).collect(),
    }
}

/// Returns the elements of an array in a schema.
fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema[key].as_array().into_iter().flatten()
}

/// Returns true for a list or an object.
pub(super) fn is_composed(schema: &Value) -> bool {
    let is_composed = |name: &&str| matches!(*name, "object" | "array");
    types(schema).iter().any(is_composed)
}

/// Returns the allowed words of a value.
pub(super) fn choices(schema: &Value) -> Vec<String> {
    let constants = entries(schema, "oneOf").filter_map(|s| s.get("const"));
    let words = entries(schema, "enum").chain(constants);
    let words = words.filter_map(Value::as_str).map(str::to_owned);
    let inner = entries(schema, "anyOf").flat_map(choices);
    words.chain(inner).collect()
}
