//! Rounds the figures of an audit for readers.

use serde_json::{Number, Value};

/// The decimals of an audit's fractions, and of its amounts of money.
const DECIMALS: i32 = 6;
const USD_DECIMALS: i32 = 9;

/// The smallest decimals that a sum is read with, and the noise that it may have.
const SUM_DECIMALS: i32 = 9;
const MAX_NOISE: f64 = 1e-12;

/// Returns an audit with its fractions rounded to six decimals. Amounts of money keep their
/// nano-dollars. `c_final`, which the gate compares, and the estimate's figures lose only the noise
/// of their sums.
pub fn rounded(mut audit: Value) -> Value {
    round(&mut audit, Some(DECIMALS));
    audit
}

/// Returns a value with its fractions rounded to two decimals, as texts have them.
pub(super) fn with_two_decimals(mut value: Value) -> Value {
    round(&mut value, Some(2));
    value
}

/// Rounds fractions to so many decimals; without a number, removes only the noise of a floating-point
/// sum: 0.30000000000000004 is 0.3, and a third stays as it is.
fn round(value: &mut Value, decimals: Option<i32>) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let x = number.as_f64().unwrap_or_default();
            let scale = 10_f64.powi(decimals.unwrap_or(SUM_DECIMALS));
            let rounded = (x * scale).round() / scale;
            if (decimals.is_some() || (x - rounded).abs() < MAX_NOISE)
                && let Some(rounded) = Number::from_f64(rounded)
            {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| round(value, decimals)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let own = match name.as_str() {
                    "c_final" | "executionEstimate" => None,
                    name if name.ends_with("Usd") => Some(USD_DECIMALS),
                    _ => decimals,
                };
                round(value, own);
            }
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
                            "c_final": third,
                            "executionEstimate": { "O": 0.1 + 0.2, "E": third } });
        let expected = json!({ "points": [0.3, 10.833_333], "costUsd": 0.000_024_416, "calls": 3,
                               "c_final": third,
                               "executionEstimate": { "O": 0.3, "E": third } });
        assert_eq!(rounded(audit.clone()), expected);
        assert_eq!(
            with_two_decimals(audit["points"].clone()),
            json!([0.3, 10.83])
        );
    }
}
