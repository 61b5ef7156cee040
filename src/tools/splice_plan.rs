//! `splice_plan`: performs the replacements of a splice plan file, in order.
//!
//! Splice stops at the first step that fails and keeps the earlier ones.

use super::arguments::Arguments;
use super::output::{ToolError, ToolOutput};
use super::programs::Programs;
use super::run::{blocking, changes};
use super::splice;
use super::tool::Tool;
use super::workspace::Workspace;

const TOOL: Tool = Tool::SplicePlan;

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let files = changes(TOOL, arguments, workspace).await?;
    let plan = arguments.required("file").to_owned();
    let plan = blocking(TOOL, workspace, move |workspace| {
        workspace.real_path(&plan).map_err(ToolError::file(TOOL))
    })
    .await?;
    let options = vec!["plan".into(), "--file".into(), plan.into()];
    splice::run(TOOL, options, files, workspace, programs).await
}
