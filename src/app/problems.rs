//! The problems of a request, bounded in number. A body with many small mistakes must not produce a
//! response that is many times as long.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::counted;

/// The maximum number of listed problems; further ones are only counted.
pub const MAX_LISTED_PROBLEMS: usize = 50;

/// The maximum length in characters of a pointer or a detail. Both may repeat what the client sent.
const MAX_CHARS: usize = 200;

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FieldError", description = "", deny_unknown_fields)]
pub struct FieldProblem {
    /// JSON pointer into the body, or a slash with the parameter's name.
    pub pointer: String,
    pub detail: String,
}

impl FieldProblem {
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (pointer.into(), detail.into());
        Self { pointer, detail }
    }
}

/// Returns the problems up to the bound. A last entry says how many others there are, if any.
pub fn bounded(mut problems: Vec<FieldProblem>) -> Vec<FieldProblem> {
    let unlisted = problems.len().saturating_sub(MAX_LISTED_PROBLEMS);
    problems.truncate(MAX_LISTED_PROBLEMS);
    for problem in &mut problems {
        cut(&mut problem.pointer);
        cut(&mut problem.detail);
    }
    if unlisted > 0 {
        let (one, several) = ("further problem that is", "further problems that are");
        let detail = format!("and {} not listed", counted(unlisted, one, several));
        problems.push(FieldProblem::new("", detail));
    }
    problems
}

/// Checks that there are no problems.
///
/// # Errors
/// As [`bounded`] returns them.
pub(super) fn none(problems: Vec<FieldProblem>) -> Result<(), Vec<FieldProblem>> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(bounded(problems))
    }
}

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push_str("...");
    }
}
