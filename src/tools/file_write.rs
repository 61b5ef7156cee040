//! `file_write`: replaces the content of an existing text file.

use serde_json::json;

use super::arguments::Arguments;
use super::file_error::FileError;
use super::output::ToolOutput;
use super::path::quoted;
use super::workspace::Workspace;

pub fn run(arguments: &Arguments, workspace: &Workspace) -> Result<ToolOutput, FileError> {
    let contents = arguments.required("contents");
    let change = workspace.write(arguments.required("path"), contents)?;
    let text = format!(
        "Wrote {} bytes to {}.",
        contents.len(),
        quoted(&change.path)
    );
    let value = json!({
        "path": change.path,
        "bytes": contents.len(),
        "before_hash": change.before_hash,
        "after_hash": change.after_hash,
    });
    Ok(ToolOutput::new(text, value).with_changes(vec![change]))
}
