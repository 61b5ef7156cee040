//! `references_from_file_to_symbol_name`: the indexed references to a name that one file contains.

use super::call::{Role, Run, Spec, parameter};
use super::magellan::{SYMBOL_NAME, check, references};

pub const SPEC: Spec = Spec {
    parameters: &[parameter("file", Role::File), SYMBOL_NAME],
    is_mutating: false,
    check: |call| {
        check(&call.toolbox)?;
        call.workspace().read(call.argument("file")).map(drop)
    },
    run: Run::Program(|call| Box::pin(references(call))),
};
