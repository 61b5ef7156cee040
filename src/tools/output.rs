//! What a tool returns: bounded text, data, the changed files with their old content, or an error.

use serde_json::Value;

use super::file_error::FileError;
use super::path::{ForbiddenOperation, quoted};
use super::process::ProcessError;
use super::tool::Tool;
use super::workspace::hash;

/// Upper bound of the text of an output, in bytes; the note of what is left out comes on top.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// Upper bound of an output as data, in bytes of JSON. Beyond it there is only the text.
pub const MAX_VALUE_BYTES: usize = 256 << 10;

/// The result of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the user and the model see.
    pub text: String,
    /// The same as data, without file contents.
    pub value: Value,
    pub changed: Vec<Change>,
}

/// A changed file, with what an undo needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    /// The old content; `None`: the file did not exist.
    pub before: Option<String>,
    /// SHA-256 of the old content.
    pub before_hash: Option<String>,
    /// SHA-256 of the new content; `None`: the file is gone.
    pub after_hash: Option<String>,
}

impl ToolOutput {
    /// Makes an output without changes; a text that is too long is cut, and says so.
    #[must_use]
    pub fn new(text: String, value: Value) -> Self {
        Self {
            text: bounded(text, MAX_TEXT_BYTES),
            value: if value.to_string().len() > MAX_VALUE_BYTES {
                Value::Null
            } else {
                value
            },
            changed: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_changes(self, changed: Vec<Change>) -> Self {
        Self { changed, ..self }
    }
}

impl Change {
    #[must_use]
    pub fn new(path: &str, before: Option<String>, after: Option<&str>) -> Self {
        let before_hash = before.as_deref().map(hash);
        Self {
            path: path.to_owned(),
            before,
            before_hash,
            after_hash: after.map(hash),
        }
    }
}

/// A step that failed. The display text reaches the user as it is.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error(transparent)]
    Forbidden(#[from] ForbiddenOperation),
    #[error("{tool} failed: {source}")]
    File { tool: Tool, source: FileError },
    #[error("{tool} failed: invalid pattern {}: {reason}", quoted(pattern))]
    Pattern {
        tool: Tool,
        pattern: String,
        reason: String,
    },
    #[error("{tool} failed: {source}")]
    Process { tool: Tool, source: ProcessError },
    /// The program ran and reported a failure, in its own words.
    #[error("{tool} failed: {message}")]
    Program {
        tool: Tool,
        message: String,
        changed: Vec<Change>,
    },
    /// A file operation hangs in the system. It may still take effect.
    #[error("{tool} failed: no result within {seconds} s; its effect is not known")]
    Unfinished { tool: Tool, seconds: u64 },
}

impl ToolError {
    /// Files that the failed step changed all the same.
    #[must_use]
    pub fn changed(&self) -> &[Change] {
        match self {
            Self::Program { changed, .. } => changed,
            Self::Forbidden(_)
            | Self::File { .. }
            | Self::Pattern { .. }
            | Self::Process { .. }
            | Self::Unfinished { .. } => &[],
        }
    }

    /// Adds the files that the failed step changed.
    #[must_use]
    pub(super) fn with_changes(self, changed: Vec<Change>) -> Self {
        match self {
            Self::Program { tool, message, .. } => Self::Program {
                tool,
                message,
                changed,
            },
            Self::Process { tool, source } if !changed.is_empty() => Self::Program {
                tool,
                message: source.to_string(),
                changed,
            },
            other => other,
        }
    }

    pub(super) fn file(tool: Tool) -> impl Fn(FileError) -> Self {
        move |source| match source {
            FileError::Forbidden(refusal) => Self::Forbidden(refusal),
            source => Self::File { tool, source },
        }
    }

    pub(super) fn process(tool: Tool) -> impl Fn(ProcessError) -> Self {
        move |source| Self::Process { tool, source }
    }

    pub(super) fn program(tool: Tool, message: &str) -> Self {
        let message = bounded(message.trim().to_owned(), MAX_TEXT_BYTES);
        Self::Program {
            tool,
            message,
            changed: Vec::new(),
        }
    }
}

/// Cuts a text to `limit` bytes, at a character, and says how much is left out.
#[must_use]
pub fn bounded(mut text: String, limit: usize) -> String {
    let all = text.len();
    if all > limit {
        text.truncate(text.floor_char_boundary(limit));
        let left_out = all.saturating_sub(text.len());
        text.push_str(&format!("\n[{left_out} of {all} bytes left out]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        assert_eq!(bounded("häh".to_owned(), 2), "h\n[3 of 4 bytes left out]");
        assert_eq!(bounded("häh".to_owned(), 4), "häh");
    }
}
