//! Finds a question or an offer to the user at the end of a main answer. A shipped reply asks
//! nothing (SPEC 6).

use std::sync::LazyLock;

use regex::Regex;

use crate::committee::reply::sections::outline::Outline;
use crate::domain::is_question_mark;
use crate::text::{self, listed, pattern};

/// The most closing sentences that are cut.
const MAX_SENTENCES: usize = 4;
/// The most sentences that are read to see whether an answer is nothing but questions.
const MAX_QUESTIONS: usize = 50;

static OFFER: LazyLock<Regex> = LazyLock::new(|| listed(include_str!("data/closing.tsv"), "offer"));

/// Returns where the last sentence begins, as a byte offset, if it asks or offers the user
/// something, perhaps with three options behind it. A list, a table, a quotation, a heading and code
/// belong to the answer, whatever they end with.
pub fn closing_request(markdown: &str) -> Option<usize> {
    let whole = markdown.trim_end();
    let whole = before_options(whole).unwrap_or(whole);
    let start = whole.rfind('\n').map_or(0, |at| at + 1);
    let line = whole.get(start..)?;
    let is_prose = line == text::without_marker(line) && !line.starts_with([' ', '\t', '|', '`']);
    if !is_prose {
        return None;
    }
    let sentence = text::sentences(line).pop()?;
    let at = start + line.rfind(sentence)?;
    let bare = sentence.trim_end_matches(|c: char| c.is_whitespace() || "*_".contains(c));
    let asks = bare.ends_with(is_question_mark) || OFFER.is_match(bare);
    (asks && !Outline::of(markdown).in_block(start)).then_some(at)
}

/// Returns the text before its last three lines, if these are the options A, B and C.
fn before_options(text: &str) -> Option<&str> {
    static OPTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\s*_-]*\(?([A-C])[).:]"));
    ['C', 'B', 'A'].iter().try_fold(text, |text, letter| {
        let start = text.rfind('\n')?;
        let line = text.get(start + 1..)?;
        let found = OPTION.captures(line)?.get(1)?;
        let before = text.get(..start)?.trim_end();
        found.as_str().starts_with(*letter).then_some(before)
    })
}

/// Returns a main answer without the questions and offers at its end. An answer that is nothing
/// else stays.
pub fn without_closing_request(markdown: &str) -> Option<String> {
    let kept = without_last(markdown, MAX_SENTENCES);
    let is_shorter = kept.len() < markdown.trim_end().len();
    (is_shorter && !kept.is_empty()).then(|| kept.to_owned())
}

/// True if a main answer is nothing but questions and offers to the user.
pub fn is_only_request(markdown: &str) -> bool {
    !markdown.trim().is_empty() && without_last(markdown, MAX_QUESTIONS).is_empty()
}

/// Returns a text without its last sentences that ask or offer something, at most `most`.
fn without_last(markdown: &str, most: usize) -> &str {
    let mut kept = markdown.trim_end();
    for _ in 0..most {
        let Some(at) = closing_request(kept) else {
            break;
        };
        kept = kept.get(..at).unwrap_or_default().trim_end();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_offers_at_the_end_are_cut_in_every_language() {
        for (text, kept) in [
            ("Use WAL. Shall I write the script?", "Use WAL."),
            (
                "Use WAL.\n\nLet me know if you want the script.",
                "Use WAL.",
            ),
            ("Nimm WAL.\n\nSoll ich das Skript schreiben?", "Nimm WAL."),
            (
                "Nimm WAL. Sag Bescheid, wenn du das Skript brauchst.",
                "Nimm WAL.",
            ),
            ("Use WAL. ¿Quiere que escriba el guion?", "Use WAL."),
            ("Usa WAL. Avíseme si necesita el guion.", "Usa WAL."),
            (
                "WALを使います。スクリプトも作りましょうか？",
                "WALを使います。",
            ),
            (
                "WALを使います。ご不明な点があればお知らせください。",
                "WALを使います。",
            ),
            ("Use WAL. Ready? Should I go on?", "Use WAL."),
            (
                "Nimm WAL.\n\nWelcher Rechner?\n\n- A) der alte\n- B) der neue\n- C) beide",
                "Nimm WAL.",
            ),
            (
                "Use WAL. Which host?\nA. The old one\n**B.** The new one\n\nC. Both",
                "Use WAL.",
            ),
        ] {
            let rest = without_closing_request(text);
            assert_eq!(rest.as_deref(), Some(kept), "{text}");
        }
    }

    #[test]
    fn an_answer_of_questions_alone_is_known() {
        for (text, is_only) in [
            ("Should I continue?", true),
            ("One? Two? Three? Four? Five? Six?", true),
            (
                "Which France?\n\n- A) modern\n- B) Vichy\n- C) Kingdom",
                true,
            ),
            ("", false),
            ("Paris. Which one do you mean?", false),
            ("> Which is prime?", false),
        ] {
            assert_eq!(is_only_request(text), is_only, "{text}");
        }
    }

    #[test]
    fn questions_that_belong_to_the_answer_stay() {
        for text in [
            "Why WAL? Because readers do not block.",
            "Ask them:\n\n- Who owns the backup?",
            "She wrote:\n\n> Who owns the backup?",
            "> We moved to WAL.\n>\n> What did you move to?",
            "The rule is called \"Who owns the backup?\"",
            "Run:\n\n```\nwhat?\n```",
            "| a | b? |\n| - | - |\n| c | d? |",
            "Who owns the backup?",
            "Three hosts remain:\n\nA) old\nB) new\nC) spare",
            "Use this item:\n\n> Which is prime?\n>\n> A) 4\n> B) 5\n> C) 6",
            "Let the operator know the port.",
            "Tell the customer when the pump stops.",
        ] {
            assert_eq!(without_closing_request(text), None, "{text}");
        }
    }
}
