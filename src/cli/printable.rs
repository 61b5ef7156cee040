//! Makes text from clients and models harmless for a terminal.

use std::borrow::Cow;

use crate::app::escaped;
use crate::domain::changes_direction;
pub(super) use crate::domain::without_controls;

/// Returns JSON on one line in which each character that a terminal may obey is escaped. The value
/// stays the same.
pub(super) fn escaped_json(json: &str) -> Cow<'_, str> {
    escaped(json, |c: char| {
        ('\u{7f}'..='\u{9f}').contains(&c) || changes_direction(c)
    })
}
