//! Says how the arguments of a command differ from its schema.

use conclave_lenient_json::strict;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::argument_schema::{choices, expected};
use super::sanitize::sanitize;

/// The most differences that are named.
const MAX_NAMED: usize = 3;

/// Returns the first differences between arguments and their schema, for people.
pub(super) fn misfit(arguments: &Value, schema: &Value) -> String {
    let mut inlined = strict::inlined(schema);
    without_null(&mut inlined);
    let validator = jsonschema::validator_for(&inlined).ok();
    let errors = validator.iter().flat_map(|it| it.iter_errors(arguments));
    let named = errors
        .take(MAX_NAMED)
        .map(|error| sanitize(&difference(&error, &inlined)));
    let mut named: Vec<String> = named.collect();
    // A value of another type is not one of the choices either.
    named.dedup();
    if named.is_empty() {
        "the arguments do not have the form of this command".to_owned()
    } else {
        named.join("; ")
    }
}

/// Replaces "X or null" by X, so that a difference is one from X.
fn without_null(schema: &mut Value) {
    let only = schema["anyOf"].as_array().and_then(|options| {
        let mut real = options.iter().filter(|option| option["type"] != "null");
        real.next().filter(|_| real.next().is_none()).cloned()
    });
    if let Some(only) = only {
        *schema = only;
    }
    match schema {
        Value::Object(parts) => parts.values_mut().for_each(without_null),
        Value::Array(parts) => parts.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Returns one difference. It names the place and not the value, which may be long.
fn difference(error: &ValidationError<'_>, schema: &Value) -> String {
    let path = error.instance_path().to_string();
    let place = match path.trim_start_matches('/') {
        "" => "the arguments".to_owned(),
        place => place.replace('/', "."),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("there is no argument {}", unexpected.join(", "))
        }
        ValidationErrorKind::Required { property } => {
            format!("{} is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::Type { .. } => match property(schema, &path) {
            Some(part) => format!("{place} is {}", expected(part)),
            None => format!("{place} has the wrong type"),
        },
        _ => match property(schema, &path).map(choices) {
            Some(words) if !words.is_empty() => format!("{place} is one of {}", words.join(", ")),
            _ => format!("{place}: {}", error.masked()),
        },
    }
}

/// Returns the schema of a property at a JSON pointer.
fn property<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('/').skip(1);
    keys.try_fold(schema, |schema, key| schema.get("properties")?.get(key))
}
