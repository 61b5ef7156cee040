//! `file_create`: creates a text file that does not exist yet.

use serde_json::json;

use super::arguments::Arguments;
use super::file_error::FileError;
use super::output::ToolOutput;
use super::path::quoted;
use super::workspace::Workspace;

pub fn run(arguments: &Arguments, workspace: &Workspace) -> Result<ToolOutput, FileError> {
    let contents = arguments.required("contents");
    let change = workspace.create(arguments.required("path"), contents)?;
    let text = format!(
        "Created {} with {} bytes.",
        quoted(&change.path),
        contents.len()
    );
    let value = json!({
        "path": change.path,
        "bytes": contents.len(),
        "before_hash": change.before_hash,
        "after_hash": change.after_hash,
    });
    Ok(ToolOutput::new(text, value).with_changes(vec![change]))
}
