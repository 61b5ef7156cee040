//! `references_from_file_to_symbol_name`: the indexed references to a name that one file contains.

use super::arguments::Arguments;
use super::magellan::{check_indexed, index};
use super::output::{ToolError, ToolOutput};
use super::programs::Programs;
use super::references_to_symbol_name::output;
use super::tool::Tool;
use super::workspace::Workspace;

const TOOL: Tool = Tool::ReferencesFromFileToSymbolName;

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let (file, name) = (arguments.required("file"), arguments.required("name"));
    let index = index(TOOL, workspace, programs).await?;
    check_indexed(TOOL, &index, file)?;
    let found = index
        .references
        .into_iter()
        .filter(|it| it.file == file && it.referenced_symbol == name);
    Ok(output(found.collect()))
}
