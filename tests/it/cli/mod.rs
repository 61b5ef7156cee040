//! Tests the real binary: its commands, exit codes and output.

mod asking;
mod printed;
mod recorded;
mod setup;

use std::process::Output;

use tempfile::TempDir;

use crate::support::MockProvider;
use crate::support::app::PLANTED_KEY;
use crate::support::process::conclave;

const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

async fn run(folder: &TempDir, arguments: &[&str], provider: &MockProvider) -> Output {
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", PLANTED_KEY),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let output = conclave(folder.path(), arguments, &variables)
        .output()
        .await
        .unwrap();
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!all.contains(PLANTED_KEY), "the key is shown: {all}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the run id in the first line below the headings of `conclave runs`.
fn newest(runs: &str) -> &str {
    runs.lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
}
