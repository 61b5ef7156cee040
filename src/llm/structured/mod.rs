//! From what a model wrote to a typed value.
//!
//! Strict first: exactly one JSON value that satisfies the schema. Failing that, the reply is looked for among fences,
//! prose and thoughts, mended where only one thing can be meant, coerced by a fixed table, and held to the same schema.
//! Every step is noted; what still does not fit is refused with named problems, in words fit for a repair call.

mod coerce;
mod extract;
mod lenient;

use std::fmt;

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use self::extract::{Places, Search, search, without_thinking};
use self::lenient::{CUT_SHORT, LastNumber};
use super::strict;

/// Longer replies are refused.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Deeper nesting is refused.
pub const MAX_NESTING: usize = 64;

const MAX_PROBLEMS: usize = 20;
const MAX_DETAIL_CHARS: usize = 240;

/// A reply that satisfies its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    pub value: T,
    /// The text was exactly one JSON value, and nothing had to be changed.
    pub clean: bool,
    /// What had to be mended or coerced, in order; empty if clean.
    pub notes: Vec<String>,
}

/// One reason why a reply was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer, empty for the reply as a whole.
    pub pointer: String,
    /// What, in words that the model can act on.
    pub detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.detail),
            pointer => write!(f, "at {pointer}: {}", self.detail),
        }
    }
}

/// Reads a reply that should satisfy a schema as schemars writes it.
///
/// # Errors
/// The problems of the best candidate, at least one; or that there was none.
pub fn parse<T: DeserializeOwned>(text: &str, schema: &Value) -> Result<Parsed<T>, Vec<Problem>> {
    if text.len() > MAX_BYTES {
        return Err(whole(&format!(
            "the reply is longer than {MAX_BYTES} bytes"
        )));
    }
    let judge = Judge::new(schema)?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let exact = serde_json::from_str::<Value>(text).ok();
    if exact
        .as_ref()
        .is_some_and(|value| nesting(value) > MAX_NESTING)
    {
        return Err(whole(&too_deep()));
    }
    let mut candidates = match exact {
        Some(Value::String(inner)) => found_in(&inner, Some("JSON inside a string")),
        Some(value) => Candidates {
            list: vec![Candidate {
                value,
                notes: vec![],
            }],
            too_deep: false,
        },
        None => found_in(text, None),
    };
    let mut verdicts = judge.all(candidates.list);
    if !verdicts.iter().any(Verdict::is_valid) {
        let more = found_elsewhere(text);
        candidates.too_deep |= more.too_deep;
        verdicts.extend(judge.all(more.list).into_iter().filter(Verdict::is_valid));
    }
    match best(verdicts) {
        Some(verdict) if verdict.is_valid() => typed(verdict),
        Some(verdict) => Err(verdict.problems),
        None if candidates.too_deep => Err(whole(&too_deep())),
        None if text.is_empty() => Err(whole("the reply is empty")),
        None => Err(whole("there is no JSON object in the reply")),
    }
}

/// Whether a text is nothing but one sound JSON value inside one Markdown fence: then it was read as it was written.
pub fn is_only_fenced(text: &str) -> bool {
    let inside = text
        .trim()
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"));
    let body = inside
        .and_then(|text| text.split_once('\n'))
        .map(|(_language, body)| body);
    body.is_some_and(|body| serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok())
}

/// The JSON value in a text, by no schema: the text itself, or the longest object or list in it, mended.
pub fn extract_any(text: &str) -> Option<Value> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    match serde_json::from_str::<Value>(text) {
        Ok(Value::String(inner)) => {
            let value = serde_json::from_str(&inner)
                .ok()
                .filter(|value: &Value| value.is_object() || value.is_array());
            return Some(value.unwrap_or(Value::String(inner)));
        }
        Ok(value) => return (nesting(&value) <= MAX_NESTING).then_some(value),
        Err(_) => {}
    }
    let text = without_thinking(text);
    let scalar = || {
        let chars: Vec<char> = text.chars().collect();
        let fuel = std::cell::Cell::new(16 * chars.len() + 1000);
        let reading = lenient::read(&chars, 0, LastNumber::Keep, &fuel).ok()?;
        (reading.end == chars.len()).then_some(reading.value)
    };
    if text.starts_with(['"', '\'', '“', '(']) {
        return scalar();
    }
    let mut found = search(text, Places::Outermost, LastNumber::Keep).found;
    found.sort_by_key(|found| found.length);
    found.pop().map(|found| found.reading.value).or_else(scalar)
}

/// A value that may be the reply, and how it was obtained.
struct Candidate {
    value: Value,
    notes: Vec<String>,
}

struct Candidates {
    list: Vec<Candidate>,
    too_deep: bool,
}

impl Candidates {
    fn from(search: Search, note: Option<&str>) -> Candidates {
        let list = search.found.into_iter().map(|found| {
            let notes = note
                .into_iter()
                .chain(found.reading.mended)
                .map(str::to_owned)
                .collect();
            Candidate {
                value: found.reading.value,
                notes,
            }
        });
        Candidates {
            list: list.collect(),
            too_deep: search.too_deep,
        }
    }
}

fn found_in(text: &str, note: Option<&'static str>) -> Candidates {
    let answer = without_thinking(text);
    let note = note.or(Some(if answer.len() == text.len() {
        "text around the JSON"
    } else {
        "thoughts before the JSON"
    }));
    let whole = answer.trim().chars().count();
    let mut search = search(answer, Places::Outermost, LastNumber::Drop);
    // The JSON was all there was: what was mended says enough.
    let alone = search.found.len() == 1
        && search
            .found
            .iter()
            .all(|found| found.length == whole && !found.reading.mended.is_empty());
    let note = note.filter(|note| !(alone && *note == "text around the JSON"));
    search.found.truncate(100);
    Candidates::from(search, note)
}

/// The places of last resort: objects that a stray bracket swallowed, and JSON whose quotes are all escaped.
fn found_elsewhere(text: &str) -> Candidates {
    let answer = without_thinking(text);
    let mut candidates = Candidates::from(
        search(answer, Places::EveryObject, LastNumber::Drop),
        Some("text around the JSON"),
    );
    if answer.contains("\\\"") {
        let escaped: String = answer
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t");
        if let Ok(inner) = serde_json::from_str::<String>(&format!("\"{escaped}\"")) {
            candidates
                .list
                .extend(found_in(&inner, Some("JSON with escaped quotes")).list);
        }
    }
    candidates
}

/// The schema, ready to be held against values.
struct Judge {
    schema: Value,
    required: Vec<String>,
    validator: Validator,
}

struct Verdict {
    candidate: Candidate,
    problems: Vec<Problem>,
    /// How many of the required keys are there.
    keys: usize,
}

impl Verdict {
    fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Judge {
    fn new(schema: &Value) -> Result<Judge, Vec<Problem>> {
        let schema = strict::inlined(schema);
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| whole(&format!("the schema cannot be used: {error}")))?;
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required = required
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Ok(Judge {
            schema,
            required,
            validator,
        })
    }

    fn all(&self, candidates: Vec<Candidate>) -> Vec<Verdict> {
        candidates
            .into_iter()
            .flat_map(|candidate| self.with_wrapped(candidate))
            .map(|c| self.one(c))
            .collect()
    }

    fn one(&self, candidate: Candidate) -> Verdict {
        let Candidate { value, mut notes } = candidate;
        let value = coerce::coerce(value, &self.schema, "", &mut notes);
        let keys = self
            .required
            .iter()
            .filter(|name| value.get(name.as_str()).is_some())
            .count();
        let problems = self
            .validator
            .iter_errors(&value)
            .take(MAX_PROBLEMS)
            .map(|error| Problem {
                pointer: error.instance_path().to_string(),
                detail: cut(&error.masked_with("the value").to_string()),
            });
        let problems = problems.collect();
        Verdict {
            candidate: Candidate { value, notes },
            problems,
            keys,
        }
    }

    /// The candidate, and the objects it may be a wrapper of: list items, the value of a lone foreign key, the arguments
    /// of a tool call written as text.
    fn with_wrapped(&self, candidate: Candidate) -> Vec<Candidate> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let (Some(properties), false) = (properties, self.validator.is_valid(&candidate.value))
        else {
            return vec![candidate];
        };
        let inner: Vec<Value> = match &candidate.value {
            Value::Array(items) => items
                .iter()
                .filter(|item| item.is_object())
                .take(100)
                .cloned()
                .collect(),
            Value::Object(members) => members
                .iter()
                .filter(|(key, value)| {
                    let alone = members.len() == 1
                        || matches!(key.as_str(), "arguments" | "parameters" | "input");
                    alone && value.is_object() && !properties.contains_key(*key)
                })
                .map(|(_, value)| value.clone())
                .collect(),
            _ => vec![],
        };
        let inner = inner.into_iter().map(|value| Candidate {
            value,
            notes: candidate
                .notes
                .iter()
                .cloned()
                .chain(["the reply was wrapped in another value".into()])
                .collect(),
        });
        let inner: Vec<Candidate> = inner.collect();
        std::iter::once(candidate).chain(inner).collect()
    }
}

/// The last valid one that was not cut short, else the last valid one, else the one with most of the required keys.
fn best(verdicts: Vec<Verdict>) -> Option<Verdict> {
    let cut_short =
        |verdict: &Verdict| verdict.candidate.notes.iter().any(|note| note == CUT_SHORT);
    verdicts.into_iter().max_by_key(|verdict| {
        (
            verdict.is_valid(),
            verdict.is_valid() && !cut_short(verdict),
            verdict.keys,
        )
    })
}

fn typed<T: DeserializeOwned>(verdict: Verdict) -> Result<Parsed<T>, Vec<Problem>> {
    let Candidate { value, notes } = verdict.candidate;
    let value = serde_path_to_error::deserialize(value).map_err(|error| {
        let pointer = error.path().iter().map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        });
        vec![Problem {
            pointer: pointer.collect(),
            detail: cut(&error.inner().to_string()),
        }]
    })?;
    Ok(Parsed {
        value,
        clean: notes.is_empty(),
        notes,
    })
}

fn whole(detail: &str) -> Vec<Problem> {
    vec![Problem {
        pointer: String::new(),
        detail: cut(detail),
    }]
}

fn too_deep() -> String {
    format!("the JSON is nested more than {MAX_NESTING} levels deep")
}

fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_DETAIL_CHARS) {
        Some(_) => text
            .chars()
            .take(MAX_DETAIL_CHARS - 1)
            .chain(['…'])
            .collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
