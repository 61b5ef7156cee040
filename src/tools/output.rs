//! What a tool returns, or why it failed. The words are shown to users as they are.

use std::io;

use serde_json::Value;

use crate::journal::FileChange;

/// Upper bound of the text of an output, in bytes; the note of what is left out comes on top.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// Upper bound of an output as data, in bytes of JSON. Beyond it there is only the text.
const MAX_VALUE_BYTES: usize = 256 << 10;

/// The result of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// What the user and the model see.
    pub text: String,
    /// The same as data, without file contents.
    pub value: Value,
    pub changed: Vec<FileChange>,
}

impl Output {
    /// Makes an output without changes; a text that is too long is cut, and says so.
    pub fn new(text: String, value: Value) -> Self {
        let is_long = value.to_string().len() > MAX_VALUE_BYTES;
        Self {
            text: bounded(text, MAX_TEXT_BYTES),
            value: if is_long { Value::Null } else { value },
            changed: vec![],
        }
    }
}

/// The kind of a failure, where it decides something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No plan may do this, whatever the user confirms.
    Forbidden,
    Missing,
    Exists,
    /// A file operation hangs in the system. It may still take effect.
    Unfinished,
    Other,
}

/// Why a path, a condition, a file operation or a program failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub why: Why,
    pub message: String,
    /// Files that changed all the same.
    pub changed: Vec<FileChange>,
}

impl ToolError {
    pub fn new(why: Why, message: impl Into<String>) -> Self {
        Self {
            why,
            message: message.into(),
            changed: vec![],
        }
    }

    /// Refuses a path: it `does` something that is not allowed.
    pub fn forbidden(path: &str, does: &str) -> Self {
        let message = format!("Operation not allowed: path {} {does}", quoted(path));
        Self::new(Why::Forbidden, message)
    }

    pub fn missing(path: &str) -> Self {
        let message = format!("file {} does not exist", quoted(path));
        Self::new(Why::Missing, message)
    }

    pub fn exists(path: &str) -> Self {
        Self::new(Why::Exists, format!("file {} already exists", quoted(path)))
    }

    /// Names the error of a system call on `path`.
    pub fn io(path: &str, action: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        match error.kind() {
            // So cap-std reports a path that leaves its folder.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                Self::forbidden(path, "leaves the workspace")
            }
            io::ErrorKind::NotFound => Self::missing(path),
            io::ErrorKind::AlreadyExists => Self::exists(path),
            _ => format!("cannot {action} {}: {error}", quoted(path)).into(),
        }
    }

    /// The message after what failed, such as `file_read failed`. A refusal stands for itself.
    pub fn of(&self, what: &str) -> String {
        match self.why {
            Why::Forbidden => self.message.clone(),
            _ => format!("{what}: {}", self.message),
        }
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::new(Why::Other, message)
    }
}

/// Adds what changed to a result, be it an error.
pub fn with_changes(
    result: Result<Output, ToolError>,
    changed: Vec<FileChange>,
) -> Result<Output, ToolError> {
    match result {
        Ok(output) => Ok(Output { changed, ..output }),
        Err(error) => Err(ToolError { changed, ..error }),
    }
}

/// Cuts a text to `limit` bytes, at a character, and says how much is left out.
pub fn bounded(mut text: String, limit: usize) -> String {
    let all = text.len();
    if all > limit {
        text.truncate(text.floor_char_boundary(limit));
        let left_out = all.saturating_sub(text.len());
        text.push_str(&format!("\n[{left_out} of {all} bytes left out]"));
    }
    text
}

/// One line for each item, `none` if there are none, then the notes in brackets.
pub fn listing<'n>(
    items: impl IntoIterator<Item = String>,
    none: &str,
    notes: impl IntoIterator<Item = &'n String>,
) -> String {
    let mut lines: Vec<String> = items.into_iter().collect();
    if lines.is_empty() {
        lines.push(none.to_owned());
    }
    lines.extend(notes.into_iter().map(|note| format!("[{note}]")));
    lines.join("\n")
}

/// Returns the text in single quotes and on one line.
pub fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text))
}

/// Escapes control characters, so that the text stays on one line.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}
