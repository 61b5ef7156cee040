//! `file_glob`: lists files whose path matches a glob, by ripgrep's libraries.

use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::json;

use super::arguments::Arguments;
use super::output::{ToolError, ToolOutput};
use super::path::one_line;
use super::tool::Tool;
use super::walk::Walk;
use super::workspace::Workspace;

/// Upper bound of listed files.
pub const MAX_FILES: usize = 5_000;

const TOOL: Tool = Tool::FileGlob;

pub fn run(arguments: &Arguments, workspace: &Workspace) -> Result<ToolOutput, ToolError> {
    let root = arguments.required("root");
    let matcher = matcher(TOOL, arguments.required("pattern"))?;
    let mut paths = Vec::new();
    let mut more = false;
    let mut walk = Walk::run(workspace, root, &mut |found| {
        let relative = match found.path.strip_prefix(root) {
            _ if root == "." => found.path,
            Some("") | None => found.name,
            Some(rest) => rest.strip_prefix('/').unwrap_or(rest),
        };
        if matcher.is_match(relative) {
            if paths.len() >= MAX_FILES {
                more = true;
                return ControlFlow::Break(());
            }
            paths.push(found.path.to_owned());
        }
        ControlFlow::Continue(())
    })
    .map_err(ToolError::file(TOOL))?;
    if more {
        walk.note(&format!("stopped after {MAX_FILES} files"));
    }
    let text = listing(
        paths.iter().map(|path| one_line(path)),
        "No files match.",
        &walk.notes,
    );
    let value = json!({ "count": paths.len(), "paths": paths, "notes": walk.notes });
    Ok(ToolOutput::new(text, value))
}

/// Compiles a glob in which `*` and `?` do not match a slash.
pub(super) fn matcher(tool: Tool, pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
        .literal_separator(true)
        .build()
        .map_err(|error| ToolError::Pattern {
            tool,
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })?;
    Ok(glob.compile_matcher())
}

/// One line for each item, `none` if there are none, then the notes in brackets.
pub(super) fn listing(
    items: impl IntoIterator<Item = String>,
    none: &str,
    notes: &[String],
) -> String {
    let mut lines: Vec<String> = items.into_iter().collect();
    if lines.is_empty() {
        lines.push(none.to_owned());
    }
    lines.extend(notes.iter().map(|note| format!("[{note}]")));
    lines.join("\n")
}
