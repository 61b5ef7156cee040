//! Rules of real providers: a request that breaks one gets the 400 or 401 that the vendor would
//! send. Also generates a value that fits a schema, for steps that no scenario knows.

use serde_json::{Map, Value, json};

use super::record::Call;
use super::thinking;
use super::wire::Wire;

/// Keywords that Anthropic's structured output rejects.
const UNSUPPORTED: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
];

/// Returns the status and the reason with which the vendor would reject the request.
pub(super) fn complaint(call: &Call) -> Option<(u16, String)> {
    let has = |name: &str| call.headers.contains_key(name);
    if call.wire == Wire::Anthropic && !has("x-api-key") && !has("authorization") {
        return Some((401, "x-api-key header is required".to_owned()));
    }
    let reason = common(call).or_else(|| match call.wire {
        Wire::Anthropic => anthropic(call),
        Wire::OpenAi => openai(&call.body),
    });
    reason
        .or_else(|| thinking::complaint(call))
        .map(|reason| (400, reason))
}

fn common(call: &Call) -> Option<String> {
    let messages = call.body["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let empty = |message: &Value| match &message["content"] {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    };
    if !call
        .headers
        .get("content-type")
        .is_some_and(|kind| kind.starts_with("application/json"))
    {
        Some("content-type must be application/json".to_owned())
    } else if call.model.is_empty() {
        Some("model: field required".to_owned())
    } else if messages.is_empty() {
        Some("messages: at least one message is required".to_owned())
    } else if messages.iter().any(empty) {
        Some("messages: all messages must have non-empty content".to_owned())
    } else {
        None
    }
}

fn anthropic(call: &Call) -> Option<String> {
    let body = &call.body;
    let roles: Vec<&str> = body["messages"]
        .as_array()?
        .iter()
        .map(|m| m["role"].as_str().unwrap_or(""))
        .collect();
    if !call.headers.contains_key("anthropic-version") {
        return Some("anthropic-version: header is required".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|max| max == 0) {
        return Some("max_tokens: field required".to_owned());
    }
    if roles
        .iter()
        .any(|role| !matches!(*role, "user" | "assistant"))
    {
        return Some(
            "messages: unexpected role; the system prompt is a top-level field".to_owned(),
        );
    }
    if roles.first() != Some(&"user") || roles.last() != Some(&"user") {
        return Some("messages: the first and the last must be the user's".to_owned());
    }
    let schema = &body["output_config"]["format"]["schema"];
    if schema.is_object() {
        return fault_of(schema, "output_config.format.schema", &|object, place| {
            let keyword = UNSUPPORTED
                .iter()
                .find(|keyword| object.contains_key(**keyword))?;
            Some(format!("{place}: property '{keyword}' is not supported"))
        });
    }
    let tool = body["tool_choice"]["name"].as_str()?;
    let known = body["tools"]
        .as_array()?
        .iter()
        .any(|t| t["name"] == tool && t["input_schema"]["type"] == "object");
    (!known)
        .then(|| format!("tool_choice: tool '{tool}' not found, or its input_schema is no object"))
}

fn openai(body: &Value) -> Option<String> {
    let format = &body["response_format"];
    if format["type"] != "json_schema" {
        return None;
    }
    let name = format["json_schema"]["name"].as_str().unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        return Some(
            "response_format.json_schema.name: letters, digits, underscore and dash only"
                .to_owned(),
        );
    }
    if format["json_schema"]["strict"] != true {
        return None;
    }
    fault_of(
        &format["json_schema"]["schema"],
        "response_format.json_schema.schema",
        &|object, place| {
            let required = object.get("required").and_then(Value::as_array);
            let is_required =
                |key: &String| required.is_some_and(|list| list.iter().any(|name| name == key));
            let missing = object
                .get("properties")?
                .as_object()?
                .keys()
                .find(|key| !is_required(key))?;
            Some(format!(
                "{place}: 'required' must list every property; '{missing}' is missing"
            ))
        },
    )
}

/// Returns what is wrong with one subschema at the named place.
type Check<'a> = dyn Fn(&Map<String, Value>, &str) -> Option<String> + 'a;

/// Walks every subschema. Objects must be closed, and `check` must find nothing.
fn fault_of(schema: &Value, place: &str, check: &Check<'_>) -> Option<String> {
    let object = schema.as_object()?;
    if object.contains_key("properties")
        && object.get("additionalProperties") != Some(&Value::Bool(false))
    {
        return Some(format!("{place}: additionalProperties must be false"));
    }
    check(object, place).or_else(|| {
        object
            .iter()
            .find_map(|(key, value)| match (key.as_str(), value) {
                ("properties" | "$defs" | "definitions", Value::Object(map)) => map
                    .iter()
                    .find_map(|(name, sub)| fault_of(sub, &format!("{place}.{name}"), check)),
                ("items", sub) => fault_of(sub, &format!("{place}.items"), check),
                ("anyOf" | "allOf" | "oneOf", Value::Array(list)) => list
                    .iter()
                    .find_map(|sub| fault_of(sub, &format!("{place}.{key}"), check)),
                _ => None,
            })
    })
}

/// Returns the smallest value that fits: first choices, required keys only.
pub(super) fn sample(schema: &Value) -> Value {
    sample_within(schema, schema, 0)
}

fn sample_within(root: &Value, schema: &Value, depth: usize) -> Value {
    if depth > 12 {
        return Value::Null;
    }
    let next = |sub: &Value| sample_within(root, sub, depth + 1);
    if let Some(target) = schema["$ref"]
        .as_str()
        .and_then(|path| root.pointer(path.trim_start_matches('#')))
    {
        return next(target);
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    if let Some(sub) = ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|key| schema[*key].get(0))
    {
        return next(sub);
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str());
    match kind {
        Some("object") => {
            let required = schema["required"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let keys = required.iter().filter_map(Value::as_str);
            keys.map(|key| (key.to_owned(), next(&schema["properties"][key])))
                .collect::<Map<_, _>>()
                .into()
        }
        Some("array") => (0..schema["minItems"].as_u64().unwrap_or(0))
            .map(|_| next(&schema["items"]))
            .collect::<Vec<_>>()
            .into(),
        Some("integer") => json!(schema["minimum"].as_i64().unwrap_or(0)),
        Some("number") => json!(schema["minimum"].as_f64().unwrap_or(0.5)),
        Some("boolean") => json!(false),
        Some("string") => json!("ok"),
        _ => Value::Null,
    }
}
