//! Token counts as providers report them: a count that makes no sense makes the whole usage unknown.

use serde_json::Value;

/// More tokens than any call can have.
const ABSURD: u64 = 1_000_000_000;

/// A count that the provider always reports.
pub(super) fn required(usage: &Value, name: &str) -> Option<u64> {
    usage.get(name)?.as_u64().filter(|count| *count < ABSURD)
}

/// A count that is 0 when absent or null; `None` when it is there and makes no sense.
pub(super) fn optional(usage: &Value, name: &str) -> Option<u64> {
    match usage.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(_) => required(usage, name),
    }
}
