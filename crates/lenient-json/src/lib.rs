//! Reads the JSON that a language model wrote as a typed value.
//!
//! [`parse`] first expects exactly one JSON value that satisfies the schema. If the text is not
//! that, it searches code fences, prose and thinking for candidates. It repairs a candidate where
//! only one meaning is possible, coerces its values by a fixed table, and validates it against the
//! same schema. Every change is noted. A reply that still does not fit is refused with named
//! problems, which can be sent back to the model.
//!
//! [`strict`] converts schemas to the subset that vendors accept in their strict modes. A [`Schema`]
//! is compiled once and serves both purposes.

mod coerce;
mod extract;
mod reader;
mod schema;
pub mod strict;
mod unambiguous;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use self::extract::{Places, Search, search};
use self::reader::{CUT_SHORT, LastNumber};
use self::schema::SchemaCheck;

pub use self::extract::without_thinking;
pub use self::schema::{Schema, allowed_words};
pub use self::unambiguous::Unambiguous;

/// The longest reply that is read.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The deepest nesting that is read.
pub const MAX_NESTING: usize = 64;

/// The note on JSON of which the last of two equal keys was taken.
const DUPLICATE_KEY: &str = "a key stands twice in one object";

const MAX_PROBLEMS: usize = 20;
const MAX_DETAIL_CHARS: usize = 240;

/// A reply that satisfies its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed<T> {
    pub value: T,
    /// The text was exactly one JSON value, and nothing had to be changed.
    pub clean: bool,
    /// What was repaired or coerced, in order; empty if clean.
    pub notes: Vec<String>,
}

/// One reason why a reply was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer, empty for the reply as a whole.
    pub pointer: String,
    /// What is wrong, in words that a model can act on.
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

/// Reads a reply that should satisfy a schema.
///
/// # Errors
/// The problems of the best candidate, at least one; or one problem that says that there is no
/// candidate.
pub fn parse<T: DeserializeOwned>(text: &str, schema: &Schema) -> Result<Parsed<T>, Vec<Problem>> {
    if text.len() > MAX_BYTES {
        return Err(whole(&format!(
            "the reply is longer than {MAX_BYTES} bytes"
        )));
    }
    let check = schema.check()?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let read = || serde_json::from_str::<Value>(text);
    let (exact, notes) = match serde_json::from_str::<Unambiguous>(text) {
        Ok(Unambiguous(value)) => (Ok(value), vec![]),
        Err(_) => (read(), vec![DUPLICATE_KEY.to_owned()]),
    };
    let exact = match exact {
        Ok(value) if nesting(&value) > MAX_NESTING => return Err(whole(&nested_too_deep())),
        Ok(value) if check.is_as_wanted(&value) => match T::deserialize(value) {
            Ok(value) => {
                return Ok(Parsed {
                    value,
                    clean: notes.is_empty(),
                    notes,
                });
            }
            // The schema allows more than the type.
            Err(_) => read(),
        },
        other => other,
    };
    let (candidates, mut too_deep) = match exact {
        Ok(Value::String(inner)) => found_in(&inner, Some("JSON inside a string")),
        Ok(value) => (vec![Candidate::new(value, notes)], false),
        Err(_) => found_in(text, None),
    };
    let mut checked = check.all(candidates);
    if !checked.iter().any(Candidate::is_valid) {
        let (more, more_too_deep) = found_elsewhere(text);
        too_deep |= more_too_deep;
        checked.extend(check.all(more).into_iter().filter(Candidate::is_valid));
    }
    match best(checked) {
        Some(checked) if checked.is_valid() => typed(checked),
        Some(checked) => Err(checked.problems),
        None if too_deep => Err(whole(&nested_too_deep())),
        None if text.is_empty() => Err(whole("the reply is empty")),
        None => Err(whole("there is no JSON object in the reply")),
    }
}

/// As [`parse`], but refuses a reply that was cut short: what is missing may matter.
///
/// # Errors
/// As [`parse`], and one problem for such a reply.
pub fn parse_whole<T: DeserializeOwned>(
    text: &str,
    schema: &Schema,
) -> Result<Parsed<T>, Vec<Problem>> {
    let parsed = parse(text, schema)?;
    if parsed.notes.iter().any(|note| note == CUT_SHORT) {
        return Err(whole("the reply is cut short"));
    }
    Ok(parsed)
}

/// True if a text is exactly one valid JSON value inside one Markdown code fence.
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

/// Returns the JSON value in a text without a schema: the whole text, or else the longest object or
/// list in it, repaired.
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
    let scalar = || reader::read_whole(text, LastNumber::Keep).map(|reading| reading.value);
    if text.starts_with(['"', '\'', '“', '(']) {
        return scalar();
    }
    let mut found = search(text, Places::Outermost, LastNumber::Keep).found;
    found.sort_by_key(|found| found.length);
    found.pop().map(|found| found.reading.value).or_else(scalar)
}

/// Returns the JSON pointer of a key below another pointer.
pub fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns the JSON pointer of a path.
pub fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter()
        .fold(String::new(), |above, segment| match segment {
            Segment::Seq { index } => format!("{above}/{index}"),
            Segment::Map { key } => below(&above, key),
            Segment::Enum { .. } | Segment::Unknown => above,
        })
}

/// A value that may be the reply.
struct Candidate {
    value: Value,
    /// How it was obtained.
    notes: Vec<String>,
    problems: Vec<Problem>,
    /// The number of required keys that are present.
    keys: usize,
}

impl Candidate {
    fn new(value: Value, notes: Vec<String>) -> Self {
        Self {
            value,
            notes,
            problems: vec![],
            keys: 0,
        }
    }

    fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Candidates, and whether a value was nested too deep.
type Candidates = (Vec<Candidate>, bool);

fn candidates(search: Search, note: Option<&str>) -> Candidates {
    let list = search.found.into_iter().map(|found| {
        let notes = note.into_iter().chain(found.reading.repaired);
        Candidate::new(found.reading.value, notes.map(str::to_owned).collect())
    });
    (list.collect(), search.too_deep)
}

fn found_in(text: &str, note: Option<&'static str>) -> Candidates {
    let answer = without_thinking(text);
    let whole = answer.trim().chars().count();
    let mut search = search(answer, Places::Outermost, LastNumber::Drop);
    // If the JSON was the whole text, only the repairs are noted.
    let is_alone = matches!(search.found.as_slice(), [only]
        if only.length == whole && !only.reading.repaired.is_empty());
    let around = if answer.len() == text.len() {
        (!is_alone).then_some("text around the JSON")
    } else {
        Some("thoughts before the JSON")
    };
    search.found.truncate(100);
    candidates(search, note.or(around))
}

/// Returns the candidates of last resort: objects after a stray opening bracket, and JSON whose
/// quotes are all escaped.
fn found_elsewhere(text: &str) -> Candidates {
    let answer = without_thinking(text);
    let search = search(answer, Places::EveryObject, LastNumber::Drop);
    let (mut list, too_deep) = candidates(search, Some("text around the JSON"));
    if answer.contains("\\\"") {
        let escaped = answer
            .replace('\n', "\\n")
            .replace('\r', "\\r")
            .replace('\t', "\\t");
        if let Ok(inner) = serde_json::from_str::<String>(&format!("\"{escaped}\"")) {
            list.extend(found_in(&inner, Some("JSON with escaped quotes")).0);
        }
    }
    (list, too_deep)
}

impl SchemaCheck {
    fn all(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let all = candidates.into_iter().flat_map(|it| self.with_wrapped(it));
        all.map(|candidate| self.checked(candidate)).collect()
    }

    fn checked(&self, candidate: Candidate) -> Candidate {
        let Candidate {
            value, mut notes, ..
        } = candidate;
        let value = coerce::coerce(value, &self.schema, "", &mut notes);
        let is_present = |name: &&String| value.get(name.as_str()).is_some();
        let errors = self.validator.iter_errors(&value).take(MAX_PROBLEMS);
        let problem = |error: jsonschema::ValidationError<'_>| Problem {
            pointer: error.instance_path().to_string(),
            detail: cut(&error.masked_with("the value").to_string()),
        };
        Candidate {
            problems: errors.map(problem).collect(),
            keys: self.required.iter().filter(is_present).count(),
            value,
            notes,
        }
    }

    /// Returns the candidate and the objects that it may wrap: list items, the value of a single
    /// unknown key, or the arguments of a tool call written as text.
    fn with_wrapped(&self, candidate: Candidate) -> Vec<Candidate> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let (Some(properties), false) = (properties, self.validator.is_valid(&candidate.value))
        else {
            return vec![candidate];
        };
        let inner: Vec<&Value> = match &candidate.value {
            Value::Array(items) => items.iter().take(100).collect(),
            Value::Object(members) => {
                let wraps = |key: &String| {
                    let is_call = matches!(key.as_str(), "arguments" | "parameters" | "input");
                    (is_call || members.len() == 1) && !properties.contains_key(key)
                };
                let inner = members.iter().filter(|(key, _)| wraps(key));
                inner.map(|(_, value)| value).collect()
            }
            _ => vec![],
        };
        let note = "the reply was wrapped in another value".to_owned();
        let notes = || {
            candidate
                .notes
                .iter()
                .cloned()
                .chain([note.clone()])
                .collect()
        };
        let inner = inner.into_iter().filter(|value| value.is_object());
        let inner: Vec<Candidate> = inner
            .map(|value| Candidate::new(value.clone(), notes()))
            .collect();
        std::iter::once(candidate).chain(inner).collect()
    }
}

/// Returns the last valid value that was not cut short, else the last valid one, else the one with
/// the most required keys.
fn best(checked: Vec<Candidate>) -> Option<Candidate> {
    checked.into_iter().max_by_key(|it| {
        let is_whole = !it.notes.iter().any(|note| note == CUT_SHORT);
        (it.is_valid(), it.is_valid() && is_whole, it.keys)
    })
}

fn typed<T: DeserializeOwned>(checked: Candidate) -> Result<Parsed<T>, Vec<Problem>> {
    let Candidate { value, notes, .. } = checked;
    let value = serde_path_to_error::deserialize(value).map_err(|error| {
        vec![Problem {
            pointer: pointer(error.path()),
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

fn nested_too_deep() -> String {
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
