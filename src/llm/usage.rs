//! Token counts as providers report them: a count that is missing, negative or broken makes the whole usage unknown. One
//! that is too large to be true is taken at the end of the scale: it is a bill, and nobody may overlook it.

use serde_json::Value;

/// More tokens than any call can have.
const MOST: u64 = 1_000_000_000;

/// A count that the provider always reports.
pub(super) fn required(usage: &Value, name: &str) -> Option<u64> {
    let count = usage.get(name)?;
    match count.as_u64() {
        Some(count) => Some(count.min(MOST)),
        // Larger than any integer.
        None => count.as_f64().filter(|count| *count >= MOST as f64).map(|_| MOST),
    }
}

/// A count that is 0 when absent or null; `None` when it is there and makes no sense.
pub(super) fn optional(usage: &Value, name: &str) -> Option<u64> {
    match usage.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(_) => required(usage, name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn too_large_a_count_is_a_bill_and_a_broken_one_is_unknown() {
        let read = |count: Value| required(&json!({ "n": count }), "n");
        assert_eq!([json!(0), json!(7)].map(read), [Some(0), Some(7)]);
        assert_eq!([json!(5_000_000_000_u64), json!(u64::MAX), json!(1e30)].map(read), [Some(MOST); 3]);
        assert_eq!([json!(-1), json!(-1e30), json!(1.5), json!("9"), json!(null), json!([])].map(read), [None; 6]);
        assert_eq!((optional(&json!({}), "n"), optional(&json!({ "n": -1 }), "n")), (Some(0), None));
    }
}
