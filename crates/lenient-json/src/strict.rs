//! Converts schemas as schemars writes them into the subset that providers accept in strict mode.
//!
//! Anthropic and OpenAI require closed objects and do not know bounds; OpenAI requires every key.
//! Bounds become words in the description. [`crate::parse`] enforces them on the reply, against
//! the original schema.

use serde_json::{Map, Value, json};

/// Maximum depth to which a recursive schema is inlined. Sensible schemas are less deep.
const MAX_INLINING: usize = 16;

/// Keywords that some provider rejects and that have no meaning for a model.
const DROPPED: [&str; 5] = ["$schema", "title", "default", "examples", "format"];

/// Returns the schema in the subset that all providers accept in strict mode: no references, closed
/// objects, all properties required (optional ones nullable), bounds in words, enums for unions of
/// constants. Idempotent.
pub fn for_vendor(schema: &Value) -> Value {
    closed(&inlined(schema))
}

/// Returns the schema without `$ref` and `$defs`, with bounds. A recursive reference becomes
/// "anything" at its second occurrence.
pub fn inlined(schema: &Value) -> Value {
    let definitions = schema.get("$defs").and_then(Value::as_object);
    inline(schema, definitions.unwrap_or(&Map::new()), &mut vec![])
}

/// Replaces references by their targets. A keyword next to a reference overrides the target's
/// keyword.
fn inline<'a>(
    schema: &'a Value,
    definitions: &'a Map<String, Value>,
    open: &mut Vec<&'a str>,
) -> Value {
    let object = match schema {
        Value::Object(object) => object,
        Value::Array(items) => {
            let items = items.iter();
            return items.map(|it| inline(it, definitions, open)).collect();
        }
        scalar => return scalar.clone(),
    };
    let mut result = Map::new();
    let path = object.get("$ref").and_then(Value::as_str);
    let name = path.and_then(|path| path.rsplit('/').next());
    if let Some(name) = name.filter(|name| !open.contains(name) && open.len() < MAX_INLINING)
        && let Some(target) = definitions.get(name)
    {
        open.push(name);
        if let Value::Object(target) = inline(target, definitions, open) {
            result.extend(target);
        }
        open.pop();
    }
    for (key, value) in object {
        let value = match (key.as_str(), value) {
            ("$ref" | "$defs", _) => continue,
            // These contain data and not schemas.
            ("enum" | "const" | "default" | "examples" | "required", data) => data.clone(),
            // The keys are property names, which may equal keywords.
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                properties
                    .map(|(name, schema)| (name.clone(), inline(schema, definitions, open)))
                    .collect()
            }
            (_, schema) => inline(schema, definitions, open),
        };
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

/// Converts one inlined schema into the strict subset.
fn closed(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else {
        return json!({});
    };
    let mut result = object.clone();
    for name in DROPPED {
        result.remove(name);
    }
    unions(&mut result);
    if let Some(constant) = result.remove("const") {
        result.insert("enum".into(), json!([constant]));
    }
    // OpenAI wants a type for every schema.
    let words = result.get("enum").and_then(Value::as_array);
    if words.is_some_and(|words| words.iter().all(Value::is_string)) {
        result.entry("type").or_insert_with(|| json!("string"));
    }
    bounds(&mut result);
    if let Some(items) = result.get("items") {
        let items = closed(items);
        result.insert("items".into(), items);
    }
    if result.contains_key("properties") || result.get("type") == Some(&json!("object")) {
        close_object(&mut result);
    }
    Value::Object(result)
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
    for (least, most, unit) in [
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minimum", "maximum", ""),
    ] {
        words.extend(match (result.remove(least), result.remove(most)) {
            (Some(least), Some(most)) if least == most => Some(format!("exactly {least}{unit}")),
            (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
            (Some(least), None) => Some(format!("at least {least}{unit}")),
            (None, Some(most)) => Some(format!("at most {most}{unit}")),
            (None, None) => None,
        });
    }
    if !words.is_empty() {
        let text = words.join(", ");
        let first: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
        say(
            result,
            &format!("{first}{}.", text.get(1..).unwrap_or_default()),
        );
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
    let is_required = |name: &String| {
        let mut names = required.as_array().into_iter().flatten();
        names.any(|known| known == name)
    };
    let properties = match result.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let names: Vec<&String> = properties.keys().collect();
    let closing = json!({ "required": names, "additionalProperties": false });
    let properties: Map<String, Value> = properties
        .iter()
        .map(|(name, schema)| match (closed(schema), is_required(name)) {
            (schema, true) => (name.clone(), schema),
            (schema, false) => (name.clone(), nullable(schema)),
        })
        .collect();
    result.insert("properties".into(), Value::Object(properties));
    result.extend(closing.as_object().cloned().unwrap_or_default());
}

/// Returns the schema with null allowed.
fn nullable(mut schema: Value) -> Value {
    let null = json!({"type": "null"});
    let add = |list: &mut Vec<Value>, null: Value| {
        if !list.contains(&null) {
            list.push(null);
        }
    };
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        add(values, Value::Null);
    }
    if let Some(branches) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        add(branches, null);
        return schema;
    }
    match schema.get_mut("type") {
        Some(Value::String(kind)) if kind == "object" => json!({"anyOf": [schema, null]}),
        Some(kind @ Value::String(_)) if kind != "null" => {
            *kind = json!([kind.clone(), "null"]);
            schema
        }
        Some(Value::Array(kinds)) => {
            add(kinds, json!("null"));
            schema
        }
        _ => schema,
    }
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
