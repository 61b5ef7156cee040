//! The coercion table: converts values of almost the right type where only one meaning is possible.
//!
//! A percentage is not a fraction, "9/10" is not a number and "yes" is not true: these stay as they
//! are, and validation reports them. Null for an optional property is removed without a note:
//! vendors' strict modes write "absent" like that.

use serde_json::{Map, Number, Value, json};

use super::below;
use super::reader::{self, LastNumber};

/// Coerces a value to the inlined schema and notes every change.
pub(crate) fn coerce(
    value: Value,
    schema: &Value,
    pointer: &str,
    notes: &mut Vec<String>,
) -> Value {
    let Some(branch) = branch_for(&value, schema) else {
        return value;
    };
    let kinds = kinds(branch);
    let value = if kinds.is_empty() || fits(&value, &kinds) {
        value
    } else {
        let (value, what) = convert(value, branch, &kinds);
        notes.extend(what.map(|what| format!("{}: {what}", place(pointer))));
        value
    };
    match value {
        Value::Object(members) => object(members, branch, pointer, notes),
        Value::Array(items) => list(items, branch, pointer, notes),
        value => in_enum(value, branch, pointer, notes),
    }
}

fn list(items: Vec<Value>, schema: &Value, pointer: &str, notes: &mut Vec<String>) -> Value {
    let Some(schema) = schema.get("items") else {
        return Value::Array(items);
    };
    let items = items.into_iter().enumerate();
    let items = items.map(|(at, item)| coerce(item, schema, &format!("{pointer}/{at}"), notes));
    let items: Vec<Value> = items.collect();
    let words = if is_closed(schema) {
        allowed_words(schema)
    } else {
        vec![]
    };
    let mut kept = vec![];
    for (at, item) in items.into_iter().enumerate() {
        let is_unknown = |word: &&str| !words.is_empty() && !words.contains(word);
        match item.as_str().filter(is_unknown) {
            Some(word) => {
                let word = cut(word);
                notes.push(format!(
                    "{pointer}/{at}: the unknown word {word:?} was dropped"
                ));
            }
            None => kept.push(item),
        }
    }
    Value::Array(kept)
}

/// Returns the branches of a union; none for any other schema.
fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    let unions = ["anyOf", "oneOf"].into_iter();
    let unions = unions.filter_map(|name| schema.get(name)?.as_array());
    unions.flatten()
}

/// Returns the schema that a value belongs to: in a union with null the other branch, or none for
/// null. The documented variants of an enum stay together: `in_enum` handles them.
fn branch_for<'a>(value: &Value, schema: &'a Value) -> Option<&'a Value> {
    if value.is_null() && branches(schema).any(allows_null) {
        return None;
    }
    let mut real = branches(schema).filter(|branch| kinds(branch) != ["null"]);
    match (real.next(), real.next()) {
        (Some(only), None) => branch_for(value, only),
        _ => Some(schema),
    }
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => vec![],
    }
}

fn fits(value: &Value, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| match *kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    })
}

fn allows_null(schema: &Value) -> bool {
    let listed = schema.get("enum").and_then(Value::as_array);
    kinds(schema).contains(&"null")
        || listed.is_some_and(|values| values.contains(&Value::Null))
        || branches(schema).any(allows_null)
        || schema.as_object().is_some_and(Map::is_empty)
}

/// Converts a value to one of these types, and says from what; else returns it as it is.
fn convert(value: Value, schema: &Value, kinds: &[&str]) -> (Value, Option<&'static str>) {
    let wants = |kind: &str| kinds.contains(&kind);
    let (value, what) = match value {
        Value::String(text) if wants("object") || wants("array") => {
            let inner = stringified(&text).filter(|inner| fits(inner, kinds));
            match inner {
                Some(inner) => (inner, "JSON inside a string"),
                None if wants("array") && !text.trim().is_empty() && takes_strings(schema) => {
                    (json!([text]), "a single string for a list")
                }
                None => return (text.into(), None),
            }
        }
        Value::String(text) => match scalar(&text, &wants) {
            Some(value) => (value, "a string for a number or truth value"),
            None => return (text.into(), None),
        },
        Value::Number(number) if wants("integer") && whole(&number).is_some() => {
            (json!(whole(&number)), "a fraction for a whole number")
        }
        Value::Number(number) if wants("string") => {
            (number.to_string().into(), "a number for a string")
        }
        Value::Array(items)
            if wants("string") && !items.is_empty() && items.iter().all(Value::is_string) =>
        {
            let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            (lines.join("\n").into(), "a list for a text")
        }
        Value::Object(members) if wants("array") && takes_objects(schema) => {
            (json!([members]), "a single object for a list")
        }
        Value::Null if wants("array") => (json!([]), "null for a list"),
        value => return (value, None),
    };
    (value, Some(what))
}

fn takes_strings(schema: &Value) -> bool {
    schema
        .get("items")
        .is_none_or(|items| kinds(items).contains(&"string"))
}

fn takes_objects(schema: &Value) -> bool {
    schema
        .get("items")
        .is_some_and(|items| kinds(items).contains(&"object"))
}

fn stringified(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let reading = reader::read_whole(text, LastNumber::Drop)?;
    (!reading.repaired.contains(&reader::CUT_SHORT)).then_some(reading.value)
}

fn scalar(text: &str, wants: &dyn Fn(&str) -> bool) -> Option<Value> {
    let text = text.trim();
    let number = || {
        text.strip_prefix('+')
            .unwrap_or(text)
            .parse::<Number>()
            .ok()
    };
    if wants("integer") {
        let number = number()?;
        return if number.is_f64() {
            whole(&number).map(Value::from)
        } else {
            Some(number.into())
        };
    }
    if wants("number") {
        return number().map(Value::Number);
    }
    match text.to_ascii_lowercase().as_str() {
        "true" if wants("boolean") => Some(true.into()),
        "false" if wants("boolean") => Some(false.into()),
        _ => None,
    }
}

/// Returns the whole number that a float such as `9.0` equals.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64()?;
    // From 2^53 on, a float may stand for several whole numbers.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and small"
    )]
    (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
}

fn object(
    mut members: Map<String, Value>,
    schema: &Value,
    pointer: &str,
    notes: &mut Vec<String>,
) -> Value {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Value::Object(members);
    };
    // Renames keys in another spelling: `answer_summary` for `answerSummary`.
    for name in properties.keys() {
        if members.contains_key(name) {
            continue;
        }
        let is_alike =
            |key: &&String| !properties.contains_key(*key) && folded(key) == folded(name);
        let mut alike = members.keys().filter(is_alike);
        if let (Some(key), None) = (alike.next().cloned(), alike.next())
            && let Some(value) = members.remove(&key)
        {
            let place = place(pointer);
            notes.push(format!("{place}: the key {key:?} is spelled {name:?}"));
            members.insert(name.clone(), value);
        }
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let mut result = Map::new();
    for (name, value) in members {
        match properties.get(&name) {
            None if is_closed => {
                let (place, name) = (place(pointer), cut(&name));
                notes.push(format!("{place}: the unknown key {name:?} was dropped"));
            }
            None => {
                result.insert(name, value);
            }
            Some(schema) if value.is_null() && !allows_null(schema) && !is_required(&name) => {}
            Some(schema) => {
                let pointer = below(pointer, &name);
                let value = coerce(value, schema, &pointer, notes);
                result.insert(name, value);
            }
        }
    }
    Value::Object(result)
}

/// True if a schema is only an enum of constants.
fn is_closed(schema: &Value) -> bool {
    let constant = |schema: &Value| schema.get("const").or(schema.get("enum")).is_some();
    constant(schema) || branches(schema).next().is_some() && branches(schema).all(constant)
}

/// Returns the words that an enum of strings allows; none for any other schema.
fn allowed_words(schema: &Value) -> Vec<&str> {
    let constants = branches(schema).chain([schema]).flat_map(|schema| {
        let listed = schema.get("enum").and_then(Value::as_array);
        listed.into_iter().flatten().chain(schema.get("const"))
    });
    constants.filter_map(Value::as_str).collect()
}

/// Corrects the spelling of an enum value.
fn in_enum(value: Value, schema: &Value, pointer: &str, notes: &mut Vec<String>) -> Value {
    let Some(text) = value.as_str() else {
        return value;
    };
    let allowed = allowed_words(schema);
    if allowed.is_empty() || allowed.contains(&text) {
        return value;
    }
    let mut alike = allowed.iter().filter(|known| folded(known) == folded(text));
    let (Some(known), None) = (alike.next(), alike.next()) else {
        return value;
    };
    notes.push(format!(
        "{}: {:?} is spelled {known:?}",
        place(pointer),
        cut(text)
    ));
    Value::String((*known).to_owned())
}

/// Returns the letters and digits of a text in lower case.
fn folded(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "/" } else { pointer }
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}
