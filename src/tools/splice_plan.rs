//! `splice_plan`: performs the replacements of a splice plan file, in order.
//!
//! Splice stops at the first step that fails and keeps the earlier ones.

use super::call::{Call, Role, Run, Spec, parameter};
use super::lsp_check::manifest_of;
use super::output::{Output, ToolError};
use super::splice;

pub const SPEC: Spec = Spec {
    parameters: &[parameter("file", Role::File)],
    is_mutating: true,
    check,
    run: Run::Program(|call| Box::pin(run(call))),
};

fn check(call: &Call) -> Result<(), ToolError> {
    call.programs().installed("splice")?;
    let file = call.argument("file");
    let files = splice::files_of_plan(call)?;
    manifest_of(call.workspace(), file)?;
    splice::check_replacements(call)?;
    let mut files = files.iter();
    files.try_for_each(|changed| call.changeable_exists(changed))
}

async fn run(call: Call) -> Result<Output, ToolError> {
    let files = call.blocking(|call| {
        splice::check_replacements(call)?;
        splice::files_of_plan(call)
    });
    let files = files.await?;
    splice::run(&call, vec!["plan".into()], &["file"], files).await
}
