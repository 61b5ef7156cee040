//! Narrated actions in Markdown emphasis: `*slips behind the altar*`, `_draws a dagger_`.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde_json::json;

use super::Found;
use crate::actions::speech::is_quotation_mark;
use crate::domain::CommandName;

/// Reads a message that is wholly or mainly in `*...*` or `_..._`. Mainly means at least two thirds
/// of its letters and digits outside of quotation marks, which mark what a character says. The
/// message stays as it was written, with its marks.
pub(super) fn read(text: &str) -> Option<Found> {
    let (mut emphasised, mut all, mut depth, mut is_speech) = (0, 0, 0, false);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Emphasis) => depth += 1,
            Event::End(TagEnd::Emphasis) => depth -= 1,
            Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                for c in part.chars() {
                    let counts = c.is_alphanumeric() && (depth > 0 || !is_speech);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_narrated_action_if_most_of_it_is_emphasised() {
        for text in [
            "*sneaks past the guard*",
            "_sneaks past the guard_",
            "*draws a dagger* \"Stay back.\"",
            "*waves*\n\n*sits down*",
            "*leans in.* \"You should not have come here,\" *she says.*",
            "***kicks the door in***",
            "« Bonjour à tous » *salue*",
            "»Hallo zusammen, ich bin der Neue« *winkt*",
            "„Hallo zusammen, ich bin der Neue“ *winkt*",
            "「こんにちは」*手を振る*",
            "*würfelt heimlich*",
        ] {
            assert_eq!(
                read(text),
                Some((CommandName::Do, json!({ "deed": text }))),
                "{text}"
            );
        }
    }

    #[test]
    fn other_uses_of_the_marks_are_no_narrated_action() {
        for text in [
            "**attention everybody**",
            "that is *really* good news",
            "*cough* deadline *cough*",
            "*waves* so when do we meet on Thursday?",
            "* a list item",
            "snake_case_name",
            "__init__",
            "2 * 3 * 4",
            "`*code*`",
            "**",
            "*",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
