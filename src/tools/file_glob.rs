//! `file_glob`: lists files whose path matches a glob, by ripgrep's libraries.

use std::time::Instant;

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::FileType;

use super::call::{Call, Parameter, Role, Run, Spec, parameter};
use super::output::{Output, ToolError, listing, quoted};
use super::path::split;
use super::walk::{MAX_TIME, files};
use super::workspace::not_text;

pub const ROOT: Parameter = parameter("root", Role::Path);

pub const SPEC: Spec = Spec {
    parameters: &[parameter("pattern", Role::Text), ROOT],
    is_mutating: false,
    check: root_exists,
    run: Run::Files(run),
};

/// Checks that the argument `root` is a file or a folder.
pub fn root_exists(call: &Call) -> Result<(), ToolError> {
    let root = call.argument("root");
    match call.workspace().kind(root)? {
        Some(FileType::Directory | FileType::RegularFile) => Ok(()),
        Some(kind) => Err(not_text(root, kind)),
        None => Err(format!("root {} does not exist", quoted(root)).into()),
    }
}

fn run(call: &Call) -> Result<Output, ToolError> {
    let root = call.argument("root");
    let matcher = matcher(call.argument("pattern"))?;
    let (mut paths, notes) = files(call.workspace(), root, Instant::now() + MAX_TIME)?;
    paths.retain(|path| {
        let relative = match path.strip_prefix(root) {
            _ if root == "." => path,
            Some("") | None => split(path).1,
            Some(rest) => rest.trim_start_matches('/'),
        };
        matcher.is_match(relative)
    });
    Ok(listing(paths, "No files match.", &notes))
}

/// Compiles a glob in which `*` and `?` do not match a slash.
pub fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let glob = GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(pattern))
        .literal_separator(true)
        .build()
        .map_err(|error| invalid(pattern, &error.kind().to_string()))?;
    Ok(glob.compile_matcher())
}

pub fn invalid(pattern: &str, reason: &str) -> ToolError {
    format!("invalid pattern {}: {reason}", quoted(pattern)).into()
}
