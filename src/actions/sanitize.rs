//! Text of users on its way back to where others read it.

use crate::text::one_line;

/// The most characters of a user's text that are repeated.
const MAX_CHARS: usize = 300;

/// The most characters of an answer to what was not done; a message on Discord has 2,000.
const MAX_ANSWER_CHARS: usize = 1_900;

/// Returns the text as one line without control characters and working mentions, cut to [`MAX_CHARS`].
/// A second line could pass for an answer of its own.
pub fn sanitize(text: &str) -> String {
    without_mentions(&shortened(&one_line(text)))
}

/// Like [`sanitize`], whatever the length of the text.
pub fn sanitize_uncut(text: &str) -> String {
    without_mentions(&one_line(text))
}

/// Like [`sanitize`], with the lines of the text. Show it [`quoted`].
pub fn sanitize_lines(text: &str) -> String {
    let shown = text.replace(['\u{2028}', '\u{2029}'], "\n");
    let shown: String = shown
        .chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .collect();
    without_mentions(&shortened(&shown))
}

/// Returns an answer, which may repeat words of a user, without working mentions and cut to what fits
/// into a message.
pub fn harmless(answer: &str) -> String {
    without_mentions(&cut(answer, MAX_ANSWER_CHARS))
}

/// Marks every line of a text as a quotation.
pub fn quoted(text: &str) -> String {
    format!("> {}", text.replace('\n', "\n> "))
}

fn shortened(text: &str) -> String {
    let kept = cut(text, MAX_CHARS);
    if kept.len() < text.len() {
        kept + "..."
    } else {
        kept
    }
}

/// Breaks the mentions of Discord, so that they notify no user.
fn without_mentions(text: &str) -> String {
    let text = text.replace("@\u{200b}", "@");
    text.replace('@', "@\u{200b}").replace("<#", "<\u{200b}#")
}

/// Returns the first characters of a text, for a log or a field with a bound.
pub fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_notifies_nobody_and_fits_into_a_message() {
        let answer = harmless(&format!("@everyone <#5> {}", "y".repeat(30_000)));
        assert!(answer.starts_with("@\u{200b}everyone <\u{200b}#5> y"));
        assert!(answer.chars().count() <= 2_000);
        assert_eq!(harmless(&sanitize("@a")), sanitize("@a"));
    }
}
