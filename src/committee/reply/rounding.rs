//! Rounds the figures of an audit for readers.

use serde_json::{Number, Value};

/// The decimals of an audit's fractions: those of a nano-dollar.
const AUDIT_DECIMALS: i32 = 9;

/// Returns an audit with its fractions rounded to nine decimals, so that they have no noise of sums
/// (0.30000000000000004). `c_final`, which the gate compares, keeps all digits.
pub fn rounded(mut audit: Value) -> Value {
    round(&mut audit, AUDIT_DECIMALS);
    audit
}

/// Returns a value with its fractions rounded to two decimals, as texts have them.
pub(super) fn with_two_decimals(mut value: Value) -> Value {
    round(&mut value, 2);
    value
}

fn round(value: &mut Value, decimals: i32) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let scale = 10_f64.powi(decimals);
            let rounded = number.as_f64().map(|x| (x * scale).round() / scale);
            if let Some(rounded) = rounded.and_then(Number::from_f64) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| round(value, decimals)),
        Value::Object(fields) => {
            let fields = fields.iter_mut().filter(|(name, _)| *name != "c_final");
            fields.for_each(|(_, value)| round(value, decimals));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fractions_lose_the_noise_of_sums_and_money_keeps_its_nano_dollars() {
        let third = 65.0 / 6.0;
        let audit = json!({ "points": [0.1 + 0.2, third], "costUsd": 0.000_024_416, "calls": 3,
                            "c_final": third });
        let expected = json!({ "points": [0.3, 10.833_333_333], "costUsd": 0.000_024_416, "calls": 3,
                               "c_final": third });
        assert_eq!(rounded(audit.clone()), expected);
        assert_eq!(
            with_two_decimals(audit["points"].clone()),
            json!([0.3, 10.83])
        );
    }
}
