//! Prints the JSON values that the extraction finds in recorded texts.
//!
//! Reads JSON Lines `{"id", "input"}` from standard input. Writes one line per input line: `{"id",
//! "value"}`, or `{"id", "error": true}` if the input has no JSON value. Ends with an error at a
//! line that is no such object.

use std::error::Error;
use std::io::{BufRead as _, Write as _};

use conclave_lenient_json::extract_any;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Row {
    id: Value,
    input: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Row =
            serde_json::from_str(&line).map_err(|error| format!("line {}: {error}", at + 1))?;
        let found = match extract_any(&row.input) {
            Some(value) => json!({ "id": row.id, "value": value }),
            None => json!({ "id": row.id, "error": true }),
        };
        writeln!(out, "{found}")?;
    }
    Ok(())
}
