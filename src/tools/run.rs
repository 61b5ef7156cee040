//! Runs a tool. The caller has asked the user and checked the preconditions.

use std::time::Duration;

use super::arguments::Arguments;
use super::output::{ToolError, ToolOutput};
use super::programs::Programs;
use super::tool::Tool;
use super::workspace::Workspace;
use super::{
    file_create, file_glob, file_read, file_search, file_write, lsp_check,
    references_from_file_to_symbol_name, references_to_symbol_name, splice, splice_patch,
    splice_plan, symbols_in_file,
};

/// Upper bound of the time of file operations. Search and glob end earlier by themselves.
pub const MAX_FILE_TIME: Duration = Duration::from_secs(30);

/// Performs one step.
///
/// # Errors
/// `ToolError`; its text is for the user, and `ToolError::changed` lists what changed all the same.
pub async fn run(
    tool: Tool,
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let own = arguments.clone();
    match tool {
        Tool::FileRead => {
            blocking(tool, workspace, move |workspace| {
                file_read::run(&own, workspace).map_err(ToolError::file(tool))
            })
            .await
        }
        Tool::FileWrite => {
            blocking(tool, workspace, move |workspace| {
                file_write::run(&own, workspace).map_err(ToolError::file(tool))
            })
            .await
        }
        Tool::FileCreate => {
            blocking(tool, workspace, move |workspace| {
                file_create::run(&own, workspace).map_err(ToolError::file(tool))
            })
            .await
        }
        Tool::FileSearch => {
            blocking(tool, workspace, move |workspace| {
                file_search::run(&own, workspace)
            })
            .await
        }
        Tool::FileGlob => {
            blocking(tool, workspace, move |workspace| {
                file_glob::run(&own, workspace)
            })
            .await
        }
        Tool::SplicePatch => splice_patch::run(arguments, workspace, programs).await,
        Tool::SplicePlan => splice_plan::run(arguments, workspace, programs).await,
        Tool::SymbolsInFile => symbols_in_file::run(arguments, workspace, programs).await,
        Tool::ReferencesToSymbolName => {
            references_to_symbol_name::run(arguments, workspace, programs).await
        }
        Tool::ReferencesFromFileToSymbolName => {
            references_from_file_to_symbol_name::run(arguments, workspace, programs).await
        }
        Tool::LspCheck => lsp_check::run(arguments, workspace, programs).await,
    }
}

/// The paths that a step will change, for the user's confirmation. Reads the plan of `splice_plan`.
///
/// # Errors
/// `ToolError` if that plan cannot be read.
pub async fn changes(
    tool: Tool,
    arguments: &Arguments,
    workspace: &Workspace,
) -> Result<Vec<String>, ToolError> {
    if tool != Tool::SplicePlan {
        return Ok(tool.changes(arguments));
    }
    let file = arguments.required("file").to_owned();
    blocking(tool, workspace, move |workspace| {
        splice::files_of_plan(workspace, &file).map_err(|error| splice::plan_error(tool, error))
    })
    .await
}

/// Runs file work on a thread where blocking is allowed, with a time limit.
pub(super) async fn blocking<T: Send + 'static>(
    tool: Tool,
    workspace: &Workspace,
    work: impl FnOnce(&Workspace) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let workspace = workspace.clone();
    let task = tokio::task::spawn_blocking(move || work(&workspace));
    match tokio::time::timeout(MAX_FILE_TIME, task).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(ToolError::program(tool, "internal error")),
        Err(_) => Err(ToolError::Unfinished {
            tool,
            seconds: MAX_FILE_TIME.as_secs(),
        }),
    }
}
