//! Makes text from clients and models harmless for a terminal.

use std::borrow::Cow;

use crate::domain::changes_direction;

/// Returns the text without control characters, except newline and tab, and without characters that
/// reverse the writing direction. This also applies to a pipe, because a pager or a log behind it
/// may obey them. `--json` escapes control characters instead.
pub(super) fn without_controls(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || changes_direction(c);
    if text.contains(harmful) {
        Cow::Owned(text.replace(harmful, ""))
    } else {
        Cow::Borrowed(text)
    }
}

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
