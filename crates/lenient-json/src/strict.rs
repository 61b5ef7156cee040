//! Converts schemas as schemars writes them into the subset that providers accept in strict mode.
//!
//! Anthropic and OpenAI require closed objects and do not know bounds; OpenAI requires every key.
//! Bounds become words in the description. [`crate::parse`] enforces them on the reply, against
//! the original schema.

use serde_json::{Map, Value, json};

/// Maximum depth to which a recursive schema is inlined. Sensible schemas are less deep.
const MAX_INLINING: usize = 16;

/// Keywords that some provider rejects and that have no meaning for a model.
const DROPPED: [&str; 9] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "default",
    "examples",
    "format",
];

/// Returns the schema in the subset that all providers accept in strict mode: no references, closed
/// objects, all properties required (optional ones nullable), bounds in words, enums for unions of
/// constants. Idempotent.
pub fn for_vendor(schema: &Value) -> Value {
    closed(&inlined(schema))
}

/// Returns the schema without `$ref` and `$defs`, with bounds. A recursive reference becomes
/// "anything" at its second occurrence.
pub fn inlined(schema: &Value) -> Value {
    let definitions = |name: &str| {
        schema
            .get(name)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let mut root = inline(
        schema,
        &[definitions("$defs"), definitions("definitions")],
        &mut vec![],
    );
    if let Some(root) = root.as_object_mut() {
        root.remove("$defs");
        root.remove("definitions");
    }
    root
}

/// Replaces references by their targets. A keyword next to a reference overrides the target's
/// keyword.
fn inline(schema: &Value, definitions: &[Map<String, Value>; 2], open: &mut Vec<String>) -> Value {
    match schema {
        Value::Object(object) => {
            let mut result = Map::new();
            if let Some(name) = object
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|path| path.rsplit('/').next())
            {
                let known = definitions.iter().find_map(|map| map.get(name));
                if let Some(target) = known
                    && !open.iter().any(|visited| visited == name)
                    && open.len() < MAX_INLINING
                {
                    open.push(name.to_owned());
                    if let Value::Object(target) = inline(target, definitions, open) {
                        result.extend(target);
                    }
                    open.pop();
                }
            }
            for (key, value) in object {
                match key.as_str() {
                    "$ref" | "$defs" | "definitions" => {}
                    // These contain data and not schemas.
                    "enum" | "const" | "default" | "examples" | "required" => {
                        result.insert(key.clone(), value.clone());
                    }
                    // The keys are property names, which may equal keywords.
                    "properties" if value.is_object() => {
                        let properties = value.as_object().into_iter().flatten();
                        let properties: Map<String, Value> = properties
                            .map(|(name, schema)| (name.clone(), inline(schema, definitions, open)))
                            .collect();
                        result.insert(key.clone(), Value::Object(properties));
                    }
                    _ => {
                        result.insert(key.clone(), inline(value, definitions, open));
                    }
                }
            }
            Value::Object(result)
        }
        Value::Array(items) => items
            .iter()
            .map(|item| inline(item, definitions, open))
            .collect(),
        scalar => scalar.clone(),
    }
}

/// Converts one inlined schema into the strict subset.
fn closed(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else {
        return json!({});
    };
    let mut result = merged(object);
    for name in DROPPED {
        result.remove(name);
    }
    unions(&mut result);
    if let Some(constant) = result.remove("const") {
        result.insert("enum".into(), json!([constant]));
    }
    bounds(&mut result);
    if let Some(items) = result.get("items") {
        let items = closed(items);
        result.insert("items".into(), items);
    }
    if result.contains_key("properties")
        || result.get("type").and_then(Value::as_str) == Some("object")
    {
        close_object(&mut result);
    }
    Value::Object(result)
}

/// Returns the schema with every `allOf` merged into it. The outer keyword takes precedence.
fn merged(object: &Map<String, Value>) -> Map<String, Value> {
    let mut result = object.clone();
    let Some(Value::Array(parts)) = result.remove("allOf") else {
        return result;
    };
    for part in parts.iter().filter_map(Value::as_object).map(merged) {
        for (key, value) in part {
            match (result.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                    known.extend(more);
                }
                (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                    known.extend(more);
                }
                (Some(_), _) => {}
                (None, value) => {
                    result.insert(key, value);
                }
            }
        }
    }
    result
}

/// Converts `oneOf` into an enum if all branches are constants, as schemars writes documented
/// variants. Otherwise converts it into `anyOf`.
fn unions(result: &mut Map<String, Value>) {
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = result.remove(keyword) else {
            continue;
        };
        let constants: Option<Vec<(Vec<Value>, Option<&str>)>> =
            branches.iter().map(constants).collect();
        let Some(constants) = constants.filter(|constants| !constants.is_empty()) else {
            let branches: Vec<Value> = branches.iter().map(closed).collect();
            result.insert("anyOf".into(), Value::Array(branches));
            continue;
        };
        let words: Vec<String> = constants
            .iter()
            .filter_map(|(values, text)| Some(format!("{}: {}", shown(values), text.as_ref()?)))
            .collect();
        if !words.is_empty() {
            say(result, &words.join("; "));
        }
        let values: Vec<Value> = constants
            .into_iter()
            .flat_map(|(values, _)| values)
            .collect();
        if values.iter().all(Value::is_string) {
            result.insert("type".into(), json!("string"));
        }
        result.insert("enum".into(), Value::Array(values));
    }
}

/// Returns the constants of a branch and its description, or `None` for any other branch.
fn constants(branch: &Value) -> Option<(Vec<Value>, Option<&str>)> {
    let branch = branch.as_object()?;
    let values = match (branch.get("const"), branch.get("enum"), branch.get("type")) {
        (Some(constant), ..) => vec![constant.clone()],
        (None, Some(Value::Array(values)), _) => values.clone(),
        (None, None, Some(Value::String(kind))) if kind == "null" => vec![Value::Null],
        _ => return None,
    };
    Some((values, branch.get("description").and_then(Value::as_str)))
}

fn shown(values: &[Value]) -> String {
    let shown = values.iter().map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Moves bounds into the description, as words.
fn bounds(result: &mut Map<String, Value>) {
    let mut words = vec![];
    let mut range = |result: &mut Map<String, Value>, least: &str, most: &str, unit: &str| {
        let text = match (result.remove(least), result.remove(most)) {
            (Some(least), Some(most)) if least == most => format!("exactly {least}{unit}"),
            (Some(least), Some(most)) => format!("{least} to {most}{unit}"),
            (Some(least), None) => format!("at least {least}{unit}"),
            (None, Some(most)) => format!("at most {most}{unit}"),
            (None, None) => return,
        };
        words.push(text);
    };
    range(result, "minLength", "maxLength", " characters");
    range(result, "minItems", "maxItems", " items");
    range(result, "minimum", "maximum", "");
    range(result, "minProperties", "maxProperties", " keys");
    let mut rest = |result: &mut Map<String, Value>, keyword: &str, text: &str| {
        if let Some(value) = result.remove(keyword) {
            words.push(format!("{text} {value}"));
        }
    };
    rest(result, "exclusiveMinimum", "more than");
    rest(result, "exclusiveMaximum", "less than");
    rest(result, "multipleOf", "a multiple of");
    rest(result, "pattern", "matching the pattern");
    if result.remove("uniqueItems") == Some(Value::Bool(true)) {
        words.push("no duplicates".into());
    }
    if !words.is_empty() {
        let mut text = words.join(", ");
        if let Some(first) = text.get(..1).map(str::to_uppercase) {
            text.replace_range(..1, &first);
        }
        text.push('.');
        say(result, &text);
    }
}

/// Appends a text to the description.
fn say(result: &mut Map<String, Value>, text: &str) {
    let description = match result.get("description").and_then(Value::as_str) {
        Some(known) if !known.is_empty() => format!("{known} {text}"),
        _ => text.to_owned(),
    };
    result.insert("description".into(), Value::String(description));
}

/// Closes the object, requires all of its properties, and makes the optional ones nullable.
fn close_object(result: &mut Map<String, Value>) {
    let required = result.remove("required").unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(Value::Object(properties)) = result.remove("properties") else {
        result.extend([
            ("properties".into(), json!({})),
            ("required".into(), json!([])),
        ]);
        result.insert("additionalProperties".into(), json!(false));
        return;
    };
    let names: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
    let properties: Map<String, Value> = properties
        .into_iter()
        .map(|(name, schema)| {
            let schema = closed(&schema);
            let schema = if is_required(&name) {
                schema
            } else {
                nullable(schema)
            };
            (name, schema)
        })
        .collect();
    result.insert("properties".into(), Value::Object(properties));
    result.insert("required".into(), Value::Array(names));
    result.insert("additionalProperties".into(), json!(false));
}

/// Returns the schema with null allowed.
fn nullable(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    if object.is_empty() {
        return schema;
    }
    if let Some(Value::Array(values)) = object.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
        let null = json!({"type": "null"});
        if !branches.contains(&null) {
            branches.push(null);
        }
        return schema;
    }
    match object.get_mut("type") {
        Some(Value::String(kind)) if kind == "null" => {}
        Some(Value::String(kind)) if kind == "object" => {
            return json!({"anyOf": [schema, {"type": "null"}]});
        }
        Some(kind @ Value::String(_)) => *kind = json!([kind.clone(), "null"]),
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => {
            kinds.push(json!("null"));
        }
        _ => {}
    }
    schema
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
