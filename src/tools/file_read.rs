//! `file_read`: returns a text file.

use super::call::{Role, Run, Spec, parameter};
use super::output::Output;

pub const SPEC: Spec = Spec {
    parameters: &[parameter("path", Role::File)],
    is_mutating: false,
    check: |call| call.workspace().read(call.argument("path")).map(drop),
    run: Run::Files(|call| {
        call.workspace()
            .read(call.argument("path"))
            .map(Output::new)
    }),
};
