//! `file_read`: returns a text file.

use serde_json::json;

use super::arguments::Arguments;
use super::file_error::FileError;
use super::output::ToolOutput;
use super::workspace::{Workspace, hash};

pub fn run(arguments: &Arguments, workspace: &Workspace) -> Result<ToolOutput, FileError> {
    let path = arguments.required("path");
    let text = workspace.read(path)?;
    let value = json!({
        "path": path,
        "bytes": text.len(),
        "lines": text.lines().count(),
        "hash": hash(&text),
    });
    Ok(ToolOutput::new(text, value))
}
