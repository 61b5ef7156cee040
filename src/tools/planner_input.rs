//! What a planner reads of a request.

use serde_json::Value;

use super::citations::{QUERIES, is_empty};
use super::output::escaped;
use crate::domain::EvidenceFocus;

/// Returns what the model reads: the request, its context and the summaries of the evidence.
pub fn input(request: &str, focus: &EvidenceFocus, evidence: &Value) -> String {
    let file = escaped(focus.file.as_deref().unwrap_or("none"));
    let diagnostic = escaped(focus.diagnostic.as_deref().unwrap_or("none"));
    let index = focus.no_index.iter();
    let index = index.map(|why| format!("- {why}: plan without the tools that read the index\n"));
    let index: String = index.collect();
    let summaries = summaries(evidence);
    format!(
        "User request: {request}\n\nContext:\n- Current file: {file}\n- Current diagnostic: {diagnostic}\n{index}\n\
         Evidence summary (read-only):\n{summaries}"
    )
}

/// Returns the summaries of the evidence, one line for each query.
pub fn summaries(evidence: &Value) -> String {
    let mut text = String::new();
    for (query, what) in QUERIES {
        let shown = match evidence.get(query) {
            Some(rows) if !is_empty(evidence, query) => rows.to_string(),
            _ => "no evidence found".to_owned(),
        };
        text.push_str(&format!("- {query} ({what}): {shown}\n"));
    }
    text
}
