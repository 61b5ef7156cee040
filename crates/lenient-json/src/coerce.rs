//! The coercion table: converts values of almost the right type where only one meaning is possible.
//!
//! A percentage is not a fraction, "9/10" is not a number and "yes" is not true: these stay as they
//! are, and validation reports them. Null for an optional property is removed without a note:
//! vendors' strict modes write "absent" like that.

use std::cell::Cell;

use serde_json::{Map, Number, Value};

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
    let wants = |kind: &str| kinds.contains(&kind);
    let value = if kinds.is_empty() || fits(&value, &kinds) {
        value
    } else {
        convert(value, branch, &wants, pointer, notes)
    };
    match value {
        Value::Object(members) => object(members, branch, pointer, notes),
        Value::Array(items) => {
            let Some(schema) = branch.get("items") else {
                return Value::Array(items);
            };
            let items = items.into_iter().enumerate();
            let items = items.map(|(index, item)| {
                (
                    index,
                    coerce(item, schema, &format!("{pointer}/{index}"), notes),
                )
            });
            let items: Vec<(usize, Value)> = items.collect();
            let words = if is_closed(schema) {
                allowed_words(schema)
            } else {
                vec![]
            };
            let kept = items
                .into_iter()
                .filter(|(index, item)| match item.as_str() {
                    Some(word) if !words.is_empty() && !words.contains(&word) => {
                        notes.push(format!(
                            "{pointer}/{index}: the unknown word {:?} was dropped",
                            cut(word)
                        ));
                        false
                    }
                    _ => true,
                });
            kept.map(|(_, item)| item).collect()
        }
        value => in_enum(value, branch, pointer, notes),
    }
}

/// Returns the branch of a union that the value belongs to: the only one that is not null, else the
/// first that it fits.
fn branch_for<'a>(value: &Value, schema: &'a Value) -> Option<&'a Value> {
    let Some(branches) = ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|name| schema.get(name)?.as_array())
    else {
        return Some(schema);
    };
    if value.is_null() && branches.iter().any(allows_null) {
        return None;
    }
    let real: Vec<&Value> = branches
        .iter()
        .filter(|branch| kinds(branch) != ["null"])
        .collect();
    match real.as_slice() {
        [only] => branch_for(value, only),
        // The documented variants of an enum: `in_enum` handles them.
        constants
            if constants
                .iter()
                .all(|branch| branch.get("const").or(branch.get("enum")).is_some()) =>
        {
            Some(schema)
        }
        several => several
            .iter()
            .copied()
            .find(|branch| fits(value, &kinds(branch)) && tag_fits(value, branch)),
    }
}

/// True if the object has the constants that the branch requires.
fn tag_fits(value: &Value, branch: &Value) -> bool {
    let properties = branch
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    properties.into_iter().all(|(name, schema)| {
        schema
            .get("const")
            .is_none_or(|tag| value.get(name) == Some(tag))
    })
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
    kinds(schema).contains(&"null")
        || schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|values| values.contains(&Value::Null))
        || ["anyOf", "oneOf"]
            .into_iter()
            .filter_map(|name| schema.get(name)?.as_array())
            .any(|branches| branches.iter().any(allows_null))
        || (schema.as_object().is_some_and(Map::is_empty))
}

fn convert(
    value: Value,
    schema: &Value,
    wants: &dyn Fn(&str) -> bool,
    pointer: &str,
    notes: &mut Vec<String>,
) -> Value {
    let mut note = |what: &str| notes.push(format!("{}: {what}", place(pointer)));
    match value {
        Value::String(text) if wants("object") || wants("array") => {
            if let Some(inner) = stringified(&text).filter(|inner| fits(inner, &kinds(schema))) {
                note("JSON inside a string");
                return inner;
            }
            if wants("array") && !text.trim().is_empty() && takes_strings(schema) {
                note("a single string for a list");
                return Value::Array(vec![Value::String(text)]);
            }
            Value::String(text)
        }
        Value::String(text) => match scalar(&text, wants) {
            Some(value) => {
                note("a string for a number or truth value");
                value
            }
            None => Value::String(text),
        },
        Value::Number(number) if wants("integer") && whole(&number).is_some() => {
            note("a fraction for a whole number");
            whole(&number).map_or(Value::Number(number), Value::from)
        }
        Value::Number(number) if wants("string") => {
            note("a number for a string");
            Value::String(number.to_string())
        }
        Value::Array(items)
            if wants("string") && !items.is_empty() && items.iter().all(Value::is_string) =>
        {
            note("a list for a text");
            let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Value::String(lines.join("\n"))
        }
        Value::Object(members) if wants("array") && takes_objects(schema) => {
            note("a single object for a list");
            Value::Array(vec![Value::Object(members)])
        }
        Value::Null if wants("array") => {
            note("null for a list");
            Value::Array(vec![])
        }
        value => value,
    }
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
    let chars: Vec<char> = text.chars().collect();
    let fuel = Cell::new(16 * chars.len() + 1000);
    let reading = reader::read(&chars, 0, LastNumber::Drop, &fuel).ok()?;
    (reading.end == chars.len() && !reading.repaired.contains(&reader::CUT_SHORT))
        .then_some(reading.value)
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
        return number().and_then(|number| {
            if number.is_f64() {
                whole(&number).map(Value::from)
            } else {
                Some(number.into())
            }
        });
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
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // Renames keys in another spelling: `answer_summary` for `answerSummary`.
    for name in properties
        .keys()
        .filter(|name| !members.contains_key(*name))
        .cloned()
        .collect::<Vec<_>>()
    {
        let mut alike = members
            .keys()
            .filter(|key| !properties.contains_key(*key) && folded(key) == folded(&name));
        if let (Some(key), None) = (alike.next().cloned(), alike.next())
            && let Some(value) = members.remove(&key)
        {
            notes.push(format!(
                "{}: the key {key:?} is spelled {name:?}",
                place(pointer)
            ));
            members.insert(name, value);
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let mut result = Map::new();
    for (name, value) in members {
        let Some(schema) = properties.get(&name) else {
            if closed {
                notes.push(format!(
                    "{}: the unknown key {:?} was dropped",
                    place(pointer),
                    cut(&name)
                ));
            } else {
                result.insert(name, value);
            }
            continue;
        };
        if value.is_null() && !allows_null(schema) && !required.contains(&name.as_str()) {
            continue;
        }
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        let value = coerce(value, schema, &pointer, notes);
        result.insert(name, value);
    }
    Value::Object(result)
}

/// True if a schema is only an enum of constants.
fn is_closed(schema: &Value) -> bool {
    let constant = |schema: &Value| schema.get("const").or(schema.get("enum")).is_some();
    let mut unions = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array());
    constant(schema)
        || unions
            .next()
            .is_some_and(|branches| !branches.is_empty() && branches.iter().all(constant))
}

/// Returns the words that an enum of strings allows; none for any other schema.
fn allowed_words(schema: &Value) -> Vec<&str> {
    let constants = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array())
        .flatten();
    let constants = constants.chain([schema]);
    constants
        .flat_map(|schema| {
            let listed = schema
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            listed.chain(schema.get("const"))
        })
        .filter_map(Value::as_str)
        .collect()
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
    match (alike.next(), alike.next()) {
        (Some(known), None) => {
            notes.push(format!(
                "{}: {:?} is spelled {known:?}",
                place(pointer),
                cut(text)
            ));
            Value::String((*known).to_owned())
        }
        _ => value,
    }
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
