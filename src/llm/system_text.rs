//! The stable prefix of a prompt.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use crate::domain::Fingerprint;

/// The system text of a prompt, which all calls of a role share. Its share of the prompt's fingerprint
/// is computed once.
#[derive(Debug, Clone)]
pub struct SystemText(Arc<Content>);

#[derive(Debug)]
struct Content {
    text: String,
    fingerprint: Fingerprint,
}

impl SystemText {
    /// Returns the fingerprint of a prompt with this system text.
    pub fn prompt_hash(&self, user: &str) -> String {
        self.0.fingerprint.clone().with(user.as_bytes()).finish()
    }

    /// Returns the text, or `instructed` in its place; `None` if it is empty.
    pub(super) fn or(&self, instructed: Option<String>) -> Option<Cow<'_, str>> {
        let text = instructed.map_or(Cow::Borrowed(&**self), Cow::Owned);
        Some(text).filter(|text| !text.is_empty())
    }
}

impl<T: Into<String>> From<T> for SystemText {
    fn from(text: T) -> Self {
        let text = text.into();
        Self(Arc::new(Content {
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
