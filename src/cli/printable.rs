//! Makes text from clients and models harmless for a terminal.

use std::borrow::Cow;

use crate::domain::changes_direction;
pub(super) use crate::domain::without_controls;

/// Returns JSON on one line in which each character that a terminal may obey is escaped. The value
/// stays the same.
pub(super) fn escaped_json(json: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    let harmful = |c: char| ('\u{7f}'..='\u{9f}').contains(&c) || changes_direction(c);
    if !json.contains(harmful) {
        return Cow::Borrowed(json);
    }
    Cow::Owned(
        json.chars()
            .fold(String::with_capacity(json.len()), |mut text, c| {
                if harmful(c) {
                    let _ = write!(text, "\\u{:04x}", u32::from(c));
                } else {
                    text.push(c);
                }
                text
            }),
    )
}
