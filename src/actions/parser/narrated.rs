//! Narrated actions in Markdown emphasis: `*slips behind the altar*`, `_draws a dagger_`.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::json;

use super::Found;
use crate::actions::speech::is_quotation_mark;
use crate::domain::CommandName;

/// Reads a message that is wholly or mainly in `*...*` or `_..._`. Mainly means at least two thirds
/// of its letters and digits outside of quotation marks, which mark what a character says. Emphasis
/// in such marks does not count, and neither does what is struck out or quoted from another message.
/// The message stays as it was written, with its marks.
pub(super) fn read(text: &str) -> Option<Found> {
    let (mut emphasised, mut all, mut depth, mut is_speech) = (0, 0, 0, false);
    let (mut is_said, mut left_out) = (false, 0);
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Emphasis) => {
                is_said = if depth == 0 { is_speech } else { is_said };
                depth += 1;
            }
            Event::End(TagEnd::Emphasis) => depth -= 1,
            Event::Start(Tag::BlockQuote(_) | Tag::Strikethrough) => left_out += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Strikethrough) => left_out -= 1,
            Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                for c in part.chars() {
                    let is_said = if depth > 0 { is_said } else { is_speech };
                    let counts = c.is_alphanumeric() && !is_said && left_out == 0;
                    all += usize::from(counts);
                    emphasised += usize::from(counts && depth > 0);
                    is_speech ^= is_quotation_mark(c);
                }
            }
            _ => {}
        }
    }
    (emphasised > 0 && 3 * emphasised >= 2 * all)
        .then(|| (CommandName::Do, json!({ "deed": text })))
}
