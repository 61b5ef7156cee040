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

/// Collects problems up to the bound.
#[derive(Debug, Default)]
pub struct ProblemList {
    listed: Vec<FieldProblem>,
    unlisted: usize,
}

impl ProblemList {
    /// Adds a problem. Beyond the bound it is only counted, and neither closure is called.
    pub fn add(&mut self, pointer: impl FnOnce() -> String, detail: impl FnOnce() -> String) {
        if self.listed.len() < MAX_LISTED_PROBLEMS {
            self.listed.push(FieldProblem {
                pointer: cut(pointer()),
                detail: cut(detail()),
            });
        } else {
            self.unlisted += 1;
        }
    }

    /// Returns the list. Its last entry says how many problems are not listed, if there are any.
    pub fn finish(mut self) -> Vec<FieldProblem> {
        if self.unlisted > 0 {
            let detail = format!(
                "and {} not listed",
                counted(
                    self.unlisted,
                    "further problem that is",
                    "further problems that are"
                )
            );
            self.listed.push(FieldProblem {
                pointer: String::new(),
                detail,
            });
        }
        self.listed
    }

    /// Checks that there are no problems.
    ///
    /// # Errors
    /// As [`ProblemList::finish`] returns them.
    pub fn none(self) -> Result<(), Vec<FieldProblem>> {
        let problems = self.finish();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "...",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_beyond_the_bound_are_counted() {
        let mut problems = ProblemList::default();
        for n in 0..MAX_LISTED_PROBLEMS + 7 {
            problems.add(
                || format!("/{n}/{}", "\u{e4}".repeat(500)),
                || "is missing".to_owned(),
            );
        }
        let problems = problems.finish();
        assert_eq!(problems.len(), MAX_LISTED_PROBLEMS + 1);
        assert_eq!(
            problems[0].pointer,
            format!("/0/{}...", "\u{e4}".repeat(197))
        );
        let last = FieldProblem {
            pointer: String::new(),
            detail: "and 7 further problems that are not listed".into(),
        };
        assert_eq!(problems.last(), Some(&last));
    }
}
