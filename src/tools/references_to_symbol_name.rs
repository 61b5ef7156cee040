//! `references_to_symbol_name`: every indexed reference to a name.

use super::call::{Run, Spec};
use super::magellan::{SYMBOL_NAME, check, references};

pub const SPEC: Spec = Spec {
    parameters: &[SYMBOL_NAME],
    is_mutating: false,
    check: |call| check(&call.toolbox),
    run: Run::Program(|call| Box::pin(references(call))),
};
