//! Checks a config file against the schema. Invalid parts are reported and removed, so that they
//! hide no other problem.

use std::collections::BTreeSet;

use conclave_lenient_json::{allowed_words, pointer};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

pub(super) use conclave_lenient_json::below;

use super::Problem;
use super::file::{File, json_schema};

/// The valid part of a config file, and the problems of the rest.
#[derive(Default)]
pub(super) struct Shaped {
    pub file: File,
    pub problems: Vec<Problem>,
    /// The places that were removed. Nothing is reported as missing there.
    broken: BTreeSet<String>,
}

impl Shaped {
    /// Returns the result for a file that cannot be parsed: one problem, which covers all its
    /// places.
    pub fn unreadable(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
            broken: BTreeSet::from([String::new()]),
            ..Self::default()
        }
    }

    /// True if the value at a place is what the user wrote, and no part around it was removed.
    pub fn is_sound(&self, place: &str) -> bool {
        let above = |broken: &String| {
            place
                .strip_prefix(broken.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        };
        !self.broken.contains(place) && !self.broken.iter().any(above)
    }

    fn take_out(&mut self, value: &mut Value, place: String, detail: String) {
        take_out(value, &place);
        let shown = if place.is_empty() { "/" } else { &place };
        self.problems.push(Problem::new(shown, detail));
        self.broken.insert(place);
    }
}

/// Parses a file's value after checking it against the schema.
pub(super) fn shape(mut value: Value) -> Shaped {
    let mut shaped = Shaped::default();
    let unreadable = |detail: String| Shaped::unreadable(Problem::new("/", detail));
    let Ok(schema) = jsonschema::validator_for(&json_schema()) else {
        return unreadable("the schema of the config is broken".to_owned());
    };
    let mut found = vec![];
    for error in schema.iter_errors(&value) {
        mistakes(&error, &mut found);
    }
    for (place, detail) in found {
        shaped.take_out(&mut value, place, detail);
    }
    // Some types are narrower than the schema: 60.0 is an integer in JSON Schema.
    loop {
        match serde_path_to_error::deserialize::<_, File>(&value) {
            Ok(file) => {
                shaped.file = file;
                return shaped;
            }
            Err(error) => {
                let place = pointer(error.path());
                let detail = error.into_inner().to_string();
                if value.pointer(&place).is_none() || shaped.broken.contains(&place) {
                    return unreadable(detail);
                }
                let inside = format!("{place}/");
                // A list or map may not be the same type without a part that was taken out.
                if shaped.broken.iter().any(|it| it.starts_with(&inside)) {
                    take_out(&mut value, &place);
                    shaped.broken.insert(place);
                } else {
                    shaped.take_out(&mut value, place, detail);
                }
            }
        }
    }
}

/// Collects place and text of a schema error. For an optional part that is present, it collects the
/// errors inside.
fn mistakes(error: &ValidationError<'_>, found: &mut Vec<(String, String)>) {
    let place = error.instance_path().to_string();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unknown = |key: &String| (below(&place, key), "unknown setting".to_owned());
            found.extend(unexpected.iter().map(unknown));
        }
        ValidationErrorKind::AnyOf { context } => {
            let inside = |errors: &&Vec<ValidationError<'_>>| {
                let deeper = |e: &ValidationError<'_>| {
                    e.instance_path().to_string() != place
                        || matches!(e.kind(), ValidationErrorKind::AdditionalProperties { .. })
                };
                !errors.is_empty() && errors.iter().all(deeper)
            };
            match context.iter().find(inside) {
                Some(errors) => errors.iter().for_each(|error| mistakes(error, found)),
                None => found.push((place, one_of(error.kind(), context))),
            }
        }
        ValidationErrorKind::OneOfNotValid { context } => {
            found.push((place, one_of(error.kind(), context)));
        }
        _ => found.push((place, error.to_string())),
    }
}

/// Returns the problem of a value that has none of some forms: the words that it can be, else what
/// each form lacks.
fn one_of(error: &ValidationErrorKind, context: &[Vec<ValidationError<'_>>]) -> String {
    let words = allowed_words(error);
    if words.is_empty() {
        let each = context.iter().flatten().map(ToString::to_string);
        return each.collect::<Vec<_>>().join(", and ");
    }
    format!("not one of {}", words.join(", "))
}

/// Removes the value at a JSON pointer, if there is one. An entry of a list becomes null, so that
/// the others keep their places.
fn take_out(value: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        *value = Value::Object(serde_json::Map::new());
        return;
    };
    let key = key.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&key);
        }
        Some(Value::Array(items)) => {
            let index = key.parse::<usize>().ok();
            if let Some(item) = index.and_then(|index| items.get_mut(index)) {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}
