//! Finds a question or an offer to the user at the end of a main answer. A shipped reply asks
//! nothing (SPEC 6).

use std::sync::LazyLock;

use regex::Regex;

use crate::committee::reply::sections::outline::Outline;
use crate::domain::is_question_mark;
use crate::text::{self, listed};

/// The most closing sentences that are cut.
const MAX_SENTENCES: usize = 4;

static OFFER: LazyLock<Regex> = LazyLock::new(|| listed(include_str!("data/closing.tsv"), "offer"));

/// Returns where the last sentence begins, as a byte offset, if it asks or offers the user
/// something. A list, a table, a quotation, a heading and code belong to the answer, whatever they
/// end with.
pub fn closing_request(markdown: &str) -> Option<usize> {
    let end = markdown.trim_end().len();
    let whole = markdown.get(..end)?;
    let start = whole.rfind('\n').map_or(0, |at| at + 1);
    let line = whole.get(start..)?;
    let is_prose = line == text::without_marker(line) && !line.starts_with([' ', '\t', '|', '`']);
    if !is_prose || Outline::of(markdown).in_block(start) {
        return None;
    }
    let sentence = text::sentences(line).pop()?;
    let at = start + line.rfind(sentence)?;
    let bare = sentence.trim_end_matches(|c: char| c.is_whitespace() || "*_".contains(c));
    (bare.ends_with(is_question_mark) || OFFER.is_match(bare)).then_some(at)
}

/// Returns a main answer without the paragraphs at its end that are nothing but questions and offers.
/// A question at the end of a longer paragraph stays: it may belong to a text that the user asked
/// for. An answer that is nothing else stays too.
pub fn without_closing_request(markdown: &str) -> Option<String> {
    let whole = markdown.trim_end();
    let (mut kept, mut rest) = (whole, whole);
    for _ in 0..MAX_SENTENCES {
        let Some(at) = closing_request(rest) else {
            break;
        };
        let before = rest.get(..at).unwrap_or_default();
        rest = before.trim_end();
        if rest.is_empty() {
            return None;
        }
        let between = before.get(rest.len()..).unwrap_or_default();
        if between.matches('\n').count() > 1 {
            kept = rest;
        }
    }
    (kept.len() < whole.len()).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSING: [&str; 9] = [
        "Shall I write the script?",
        "Let me know if you want the script.",
        "Soll ich das Skript schreiben?",
        "Sag Bescheid, wenn du das Skript brauchst.",
        "¿Quiere que escriba el guion?",
        "Avíseme si necesita el guion.",
        "スクリプトも作りましょうか？",
        "ご不明な点があればお知らせください。",
        "Ready? Should I go on?",
    ];

    #[test]
    fn paragraphs_that_ask_or_offer_at_the_end_are_cut_in_every_language() {
        for closing in CLOSING {
            for text in [
                format!("Use WAL.\n\n{closing}"),
                format!("Use WAL.\n\nIs that all?\n\n{closing}\n"),
            ] {
                let kept = without_closing_request(&text);
                assert_eq!(kept.as_deref(), Some("Use WAL."), "{text}");
            }
        }
    }

    #[test]
    fn a_question_at_the_end_of_a_longer_paragraph_is_repaired_and_not_cut() {
        for closing in CLOSING {
            let post = format!("We moved to WAL last week. {closing}");
            assert!(closing_request(&post).is_some(), "{post}");
            assert_eq!(without_closing_request(&post), None, "{post}");
        }
    }

    #[test]
    fn questions_that_belong_to_the_answer_stay() {
        for text in [
            "Why WAL? Because readers do not block.",
            "Ask them:\n\n- Who owns the backup?",
            "She wrote:\n\n> Who owns the backup?",
            "The post:\n\n> We moved to WAL.\n>\n> What did you move to?",
            "The rule is called \"Who owns the backup?\"",
            "Run:\n\n```\nwhat?\n```",
            "| a | b? |\n| - | - |\n| c | d? |",
            "Who owns the backup?",
            "Let the operator know the port.",
            "Tell the customer when the pump stops.",
        ] {
            assert_eq!(without_closing_request(text), None, "{text}");
        }
    }
}
