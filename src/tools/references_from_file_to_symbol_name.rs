//! `references_from_file_to_symbol_name`: the indexed references to a name that one file contains.

use super::call::{Call, Role, Run, Spec, parameter};
use super::magellan::{self, DATABASE, SYMBOL_NAME, index, references};
use super::output::{Output, ToolError, quoted};

pub const SPEC: Spec = Spec {
    description: "List the indexed references to a symbol that one file contains.",
    parameters: &[
        parameter(
            "file",
            Role::File,
            "Path of the source file, relative to the workspace.",
        ),
        SYMBOL_NAME,
    ],
    is_mutating: false,
    check: |call| {
        magellan::check(&call.toolbox)?;
        call.workspace().read(call.argument("file")).map(drop)
    },
    run: Run::Program(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Result<Output, ToolError> {
    let (file, name) = (call.argument("file"), call.argument("name"));
    let index = index(&call).await?;
    if !index.files.iter().any(|it| it.path == file) {
        let file = quoted(file);
        return Err(ToolError::other(format!(
            "{file} is not indexed in {DATABASE}"
        )));
    }
    Ok(references(index, |it| {
        it.file == file && it.referenced_symbol == name
    }))
}
