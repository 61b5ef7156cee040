//! `references_to_symbol_name`: every indexed reference to a name.

use super::call::{Call, Run, Spec};
use super::magellan::{SYMBOL_NAME, check, index, references};
use super::output::{Output, ToolError};

pub const SPEC: Spec = Spec {
    description: "List the indexed references to a symbol.",
    parameters: &[SYMBOL_NAME],
    is_mutating: false,
    check: |call| check(&call.toolbox),
    run: Run::Program(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Result<Output, ToolError> {
    let name = call.argument("name");
    let index = index(&call).await?;
    Ok(references(index, |it| it.referenced_symbol == name))
}
