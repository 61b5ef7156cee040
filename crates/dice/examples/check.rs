//! Checks dice expressions. Reads JSON Lines `{"id", "expr"}` from a file, or from standard input
//! with `-`. Prints `{"id", "valid", "min", "max"}` for each. A bound is `null` if it is infinite
//! or the expression is invalid.
//!
//! `cargo run -p conclave-dice --example check -- FILE`

use std::error::Error;
use std::io::{Write as _, stdin, stdout};

use conclave_dice::{Bounds, Expression};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: check FILE")?;
    let text = if file == "-" {
        std::io::read_to_string(stdin())?
    } else {
        std::fs::read_to_string(&file)?
    };
    let mut out = stdout().lock();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row: Value = serde_json::from_str(line)
            .map_err(|error| format!("line {} is not JSON: {error}", index + 1))?;
        writeln!(out, "{}", checked(&row))?;
    }
    Ok(())
}

fn checked(row: &Value) -> Value {
    let id = row.get("id").cloned().unwrap_or_default();
    let bounds: Option<Bounds> = row
        .get("expr")
        .and_then(Value::as_str)
        .and_then(|text| Expression::parse(text).ok())
        .and_then(|expression| expression.bounds().ok());
    let number = |value: f64| value.is_finite().then_some(value as i64);
    json!({
        "id": id,
        "valid": bounds.is_some(),
        "min": bounds.and_then(|bounds| number(bounds.min)),
        "max": bounds.and_then(|bounds| number(bounds.max)),
    })
}
