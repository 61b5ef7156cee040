//! Rounds the figures of an audit for readers.

use serde_json::{Number, Value};

/// How fractions are rounded.
#[derive(Debug, Clone, Copy)]
enum Rounding {
    /// To so many decimals.
    Decimals(i32),
    /// Only where the rest is the noise of a floating-point sum: 0.30000000000000004 is 0.3, and a
    /// third stays as it is.
    Noise,
}

/// The smallest decimals that a sum is read with, and the noise that it may have.
const SUM_DECIMALS: i32 = 9;
const MAX_NOISE: f64 = 1e-12;

/// The decimals of an audit's fractions.
const AUDIT_DECIMALS: i32 = 6;

/// Returns an audit with its fractions rounded to six decimals. Amounts of money keep their
/// nano-dollars. `c_final`, which the gate compares, and the estimate's figures lose only the noise
/// of their sums.
pub fn rounded(mut audit: Value) -> Value {
    round(&mut audit, Rounding::Decimals(AUDIT_DECIMALS));
    audit
}

/// Returns a value with its fractions rounded to two decimals, as texts have them.
pub(super) fn with_two_decimals(mut value: Value) -> Value {
    round(&mut value, Rounding::Decimals(2));
    value
}

fn round(value: &mut Value, rounding: Rounding) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|x| rounding.of(x));
            if let Some(rounded) = rounded.and_then(Number::from_f64) {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| round(value, rounding)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let own = match name.as_str() {
                    "c_final" if matches!(rounding, Rounding::Decimals(AUDIT_DECIMALS)) => {
                        Rounding::Noise
                    }
                    "executionEstimate" => Rounding::Noise,
                    name if name.ends_with("Usd") => Rounding::Decimals(9),
                    _ => rounding,
                };
                round(value, own);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Rounding {
    fn of(self, x: f64) -> f64 {
        let to = |decimals: i32| {
            let scale = 10_f64.powi(decimals);
            (x * scale).round() / scale
        };
        match self {
            Self::Decimals(decimals) => to(decimals),
            Self::Noise if (x - to(SUM_DECIMALS)).abs() < MAX_NOISE => to(SUM_DECIMALS),
            Self::Noise => x,
        }
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
