//! `splice_patch`: replaces one symbol of a source file by the content of another file.

use super::arguments::Arguments;
use super::output::{ToolError, ToolOutput};
use super::programs::Programs;
use super::run::blocking;
use super::splice;
use super::tool::Tool;
use super::workspace::Workspace;

const TOOL: Tool = Tool::SplicePatch;

pub async fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    programs: &Programs,
) -> Result<ToolOutput, ToolError> {
    let file = arguments.required("file").to_owned();
    let (source, with) = (file.clone(), arguments.required("with").to_owned());
    let (source, with) = blocking(TOOL, workspace, move |workspace| {
        let real = |path: &str| workspace.real_path(path).map_err(ToolError::file(TOOL));
        Ok((real(&source)?, real(&with)?))
    })
    .await?;
    // `--name=value` keeps a symbol that begins with a dash from being read as an option.
    let mut options = vec!["patch".into(), "--file".into(), source.into()];
    options.push(format!("--symbol={}", arguments.required("symbol")).into());
    if let Some(kind) = arguments.get("kind").and_then(kind_option) {
        options.push(format!("--kind={kind}").into());
    }
    options.extend(["--with".into(), with.into()]);
    splice::run(TOOL, options, vec![file], workspace, programs).await
}

/// Splice spells kinds out where Rust uses keywords. Splice 3.1 finds no function under any kind
/// (it looks for `fn` among symbols of kind `function`), so for functions only the name counts;
/// splice refuses a name that is ambiguous.
fn kind_option(kind: &str) -> Option<&str> {
    match kind {
        "fn" | "function" => None,
        "mod" => Some("module"),
        "type" => Some("type-alias"),
        other => Some(other),
    }
}
