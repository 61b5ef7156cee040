//! `references_to_symbol_name`: every indexed reference to a name.
//!
//! Magellan indexes references by name: symbols of the same name are not told apart.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::file_glob::listing;
use super::magellan::{MAX_ROWS, Reference, index};
use super::output::{ToolError, ToolOutput};
use super::path::one_line;
use super::programs::Programs;
use super::tool::Tool;
use super::workspace::Workspace;

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let name = arguments.required("name");
    let index = index(Tool::ReferencesToSymbolName, workspace, programs).await?;
    let found = index
        .references
        .into_iter()
        .filter(|it| it.referenced_symbol == name);
    Ok(output(found.collect()))
}

/// The references as text and rows.
pub(super) fn output(mut references: Vec<Reference>) -> ToolOutput {
    let mut notes = Vec::new();
    let all = references.len();
    if all > MAX_ROWS {
        notes.push(format!(
            "only the first {MAX_ROWS} of {all} references are listed"
        ));
        references.truncate(MAX_ROWS);
    }
    let lines = references.iter().map(|it| {
        let column = it.start_col.saturating_add(1);
        one_line(&format!(
            "{}:{}:{column}: {}",
            it.file, it.start_line, it.referenced_symbol
        ))
    });
    let text = listing(lines, "No references.", &notes);
    let rows: Vec<Value> = references
        .iter()
        .map(|it| {
            json!({
                "file": it.file,
                "line": it.start_line,
                "column": it.start_col.saturating_add(1),
                "name": it.referenced_symbol,
            })
        })
        .collect();
    ToolOutput::new(
        text,
        json!({ "count": rows.len(), "references": rows, "notes": notes }),
    )
}
