//! `file_write`: replaces the content of an existing text file.

use super::call::{Call, Parameter, Role, Run, Spec, parameter};
use super::output::{Output, ToolError, quoted};
use super::workspace::Before;

pub const PARAMETERS: &[Parameter] = &[
    parameter("path", Role::Changed),
    parameter("contents", Role::Contents),
];

pub const SPEC: Spec = Spec {
    parameters: PARAMETERS,
    is_mutating: true,
    check: |call| call.changeable_exists(call.argument("path")),
    run: Run::Files(|call| {
        let before = call.before.as_deref();
        let (path, bytes) = written(call, before.map_or(Before::Anything, Before::Hash))?;
        Ok(Output::new(format!("Wrote {bytes} bytes to {path}.")))
    }),
};

/// Puts the contents at the path. Returns the quoted path and the number of bytes.
pub fn written(call: &Call, before: Before<'_>) -> Result<(String, usize), ToolError> {
    let (path, contents) = (call.argument("path"), call.argument("contents"));
    call.workspace().change(path, before, Some(contents))?;
    Ok((quoted(path), contents.len()))
}
