//! Says how the arguments of a command differ from its schema.

use conclave_lenient_json::allowed_words;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

use super::sanitize::sanitize;

/// The most differences that are named.
const MAX_NAMED: usize = 3;

/// Returns the first differences between arguments and their schema, for people.
pub(super) fn misfit(arguments: &Value, schema: &Value) -> String {
    let validator = jsonschema::validator_for(schema).ok();
    let errors = validator.iter().flat_map(|it| it.iter_errors(arguments));
    let named = errors
        .take(MAX_NAMED)
        .map(|error| sanitize(&difference(&error)));
    let mut named: Vec<String> = named.collect();
    // A value of another type is not one of the choices either.
    named.dedup();
    if named.is_empty() {
        "the arguments do not have the form of this command".to_owned()
    } else {
        named.join("; ")
    }
}

/// Returns one difference. It names the place and not the value, which may be long.
fn difference(error: &ValidationError<'_>) -> String {
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
        ValidationErrorKind::Type { kind } => format!("{place} is {}", named_type(kind)),
        // Of "X or null", the difference from X comes first.
        ValidationErrorKind::AnyOf { context } => {
            let inner = context.iter().flatten().next();
            inner.map_or_else(|| format!("{place}: {}", error.masked()), difference)
        }
        kind => match allowed_words(kind).as_slice() {
            [] => format!("{place}: {}", error.masked()),
            words => format!("{place} is one of {}", words.join(", ")),
        },
    }
}

/// Returns what a value of these types is, for people.
fn named_type(kind: &TypeKind) -> String {
    let types = match kind {
        TypeKind::Single(one) => JsonTypeSet::from(*one),
        TypeKind::Multiple(several) => *several,
    };
    let names = types.into_iter().filter_map(|it| match it {
        JsonType::Integer => Some("a whole number"),
        JsonType::Number => Some("a number"),
        JsonType::Boolean => Some("true or false"),
        JsonType::String => Some("a text"),
        JsonType::Array => Some("a list"),
        JsonType::Object => Some("an object"),
        JsonType::Null => None,
    });
    names.collect::<Vec<_>>().join(" or ")
}
