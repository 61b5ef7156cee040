//! The stable prefix of a prompt.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::domain::Fingerprint;

/// The system text of a prompt, which all calls of a role share. Its JSON and its share of the
/// prompt's fingerprint are computed once.
#[derive(Debug, Clone)]
pub struct SystemText(Arc<Content>);

#[derive(Debug)]
struct Content {
    text: String,
    /// The text as a JSON string. `None` is for errors that a string cannot cause.
    json: Option<Box<RawValue>>,
    fingerprint: Fingerprint,
}

impl SystemText {
    /// Returns the fingerprint of a prompt with this system text.
    pub fn prompt_hash(&self, user: &str) -> String {
        self.0.fingerprint.clone().with(user.as_bytes()).finish()
    }
}

impl<T: Into<String>> From<T> for SystemText {
    fn from(text: T) -> Self {
        let text = text.into();
        Self(Arc::new(Content {
            json: to_raw_value(&text).ok(),
            fingerprint: Fingerprint::default().with(text.as_bytes()),
            text,
        }))
    }
}

impl Deref for SystemText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for SystemText {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for SystemText {}

/// A text in the body of a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum WireText<'a> {
    Json(&'a RawValue),
    Text(Cow<'a, str>),
}

impl<'a> WireText<'a> {
    /// Returns the system text, or `instructed` in its place; `None` if it is empty.
    pub fn of(system: &'a SystemText, instructed: Option<String>) -> Option<Self> {
        match (instructed, &system.0.json) {
            (Some(text), _) => Some(Self::Text(text.into())),
            (None, _) if system.is_empty() => None,
            (None, Some(json)) => Some(Self::Json(json)),
            (None, None) => Some(Self::Text(Cow::Borrowed(system))),
        }
    }
}
