//! What a tool returns, or why it failed. The words are shown to users as they are.

use std::io;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::text::pattern;

/// Upper bound of the text of an output, in bytes; the note of what is left out comes on top.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// The bytes of it for notes, which are few and short.
const NOTES_BYTES: usize = 1 << 10;

/// The result of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// What the user and the model see.
    pub text: String,
    /// The codes of the diagnostics in it, once for each, and their files in the workspace.
    pub codes: Vec<String>,
    pub files: Vec<String>,
    /// The diagnostics as data.
    pub value: Value,
}

impl Output {
    /// Makes an output without diagnostics; a text that is too long is cut, and says so.
    pub fn new(text: String) -> Self {
        Self {
            text: bounded(text, MAX_TEXT_BYTES),
            ..Self::default()
        }
    }
}

/// The kind of a failure, where it decides something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No plan may do this, whatever the user confirms.
    Forbidden,
    Missing,
    /// A file operation hangs in the system. It may still take effect.
    Unfinished,
    Other,
}

/// Why a path, a condition, a file operation or a program failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: FailureKind,
    pub message: String,
}

impl ToolError {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Refuses a path: it `does` something that is not allowed.
    pub fn forbidden(path: &str, does: &str) -> Self {
        let message = format!("Operation not allowed: path {} {does}", quoted(path));
        Self::new(FailureKind::Forbidden, message)
    }

    pub fn missing(path: &str) -> Self {
        let message = format!("file {} does not exist", quoted(path));
        Self::new(FailureKind::Missing, message)
    }

    pub fn exists(path: &str) -> Self {
        format!("file {} already exists", quoted(path)).into()
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

    /// The message after what failed, such as `file_read failed`. A refusal needs no name.
    pub fn of(&self, what: &str) -> String {
        match self.kind {
            FailureKind::Forbidden => self.message.clone(),
            _ => format!("{what}: {}", self.message),
        }
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::new(FailureKind::Other, message)
    }
}

/// Finds where [`bounded`] cut a text, also in JSON.
pub static CUT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:\s|\\n)\[[0-9]+ of [0-9]+ bytes left out\]"));

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

/// One line for each item, `none` if there are none, cut to fit an output; then the notes in brackets.
pub fn listing<'n>(
    items: impl IntoIterator<Item = String>,
    none: &str,
    notes: impl IntoIterator<Item = &'n String>,
) -> Output {
    let lines = items.into_iter().map(|item| escaped(&item));
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        lines.push(none.to_owned());
    }
    let mut text = bounded(lines.join("\n"), MAX_TEXT_BYTES - NOTES_BYTES);
    for note in notes {
        text.push_str(&format!("\n[{note}]"));
    }
    Output::new(text)
}

/// Returns the text in single quotes and on one line.
pub fn quoted(text: &str) -> String {
    format!("'{}'", escaped(text))
}

/// Escapes control characters, so that the text stays on one line.
pub fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
