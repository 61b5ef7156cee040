//! `file_create`: creates a text file that does not exist yet.

use super::call::{Run, Spec};
use super::file_write::{PARAMETERS, written};
use super::output::Output;
use super::workspace::Before;

pub const SPEC: Spec = Spec {
    parameters: PARAMETERS,
    is_mutating: true,
    check: |call| call.workspace().check_free(call.argument("path")),
    run: Run::Files(|call| {
        let (path, bytes) = written(call, Before::Nothing)?;
        Ok(Output::new(format!("Created {path} with {bytes} bytes.")))
    }),
};
