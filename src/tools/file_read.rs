//! `file_read`: returns a text file.

use serde_json::json;

use super::call::{Call, Role, Run, Spec, parameter};
use super::output::{Output, ToolError};
use super::workspace::hash;

pub const SPEC: Spec = Spec {
    parameters: &[parameter("path", Role::File)],
    is_mutating: false,
    check: |call| call.workspace().read(call.argument("path")).map(drop),
    run: Run::Files(run),
};

fn run(call: &Call) -> Result<Output, ToolError> {
    let path = call.argument("path");
    let text = call.workspace().read(path)?;
    let (bytes, lines) = (text.len(), text.lines().count());
    let value = json!({ "path": path, "bytes": bytes, "lines": lines, "hash": hash(&text) });
    Ok(Output::new(text, value))
}
