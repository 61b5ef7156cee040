//! `file_write`: replaces the content of an existing text file.

use serde_json::json;

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
        let path = quoted(call.argument("path"));
        let bytes = call.argument("contents").len();
        written(
            call,
            Before::Anything,
            format!("Wrote {bytes} bytes to {path}."),
        )
    }),
};

/// Puts the contents at the path.
pub fn written(call: &Call, before: Before<'_>, text: String) -> Result<Output, ToolError> {
    let (path, contents) = (call.argument("path"), call.argument("contents"));
    let change = call.workspace().change(path, before, Some(contents))?;
    let value = json!({ "path": path, "bytes": contents.len(), "before_hash": change.before,
                        "after_hash": change.after });
    Ok(Output {
        changed: vec![change],
        ..Output::new(text, value)
    })
}
