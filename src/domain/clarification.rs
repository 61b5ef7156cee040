//! The one blocking question that the gate may ask instead of answering.

use serde::{Deserialize, Serialize};

/// The letters of the three options, in order.
pub const OPTION_LETTERS: [char; 3] = ['A', 'B', 'C'];

/// One question with three options. The options are kept without their letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    pub question: String,
    pub options: [String; 3],
}

impl Clarification {
    /// A question fit to be shown: not empty, three different non-empty options, one question mark in all (the
    /// question's last), everything on one line each. `None` when the parts cannot make that.
    pub fn new(question: &str, options: &[String]) -> Option<Self> {
        let question = one_line(question).replace('?', "");
        let question = question.trim_end_matches(['.', ':', ' ', '!']).trim();
        let [a, b, c] = options else { return None };
        let lines = [a, b, c].map(|option| one_line(&option.replace('?', "")));
        let bare = [0, 1, 2].map(|i| after_letter(lines.get(i)?, *OPTION_LETTERS.get(i)?));
        let options = match bare {
            // Letters count as letters only if all three have theirs: "A container" alone begins with an article.
            [Some(a), Some(b), Some(c)] => [a, b, c],
            _ => lines,
        };
        let distinct = options
            .iter()
            .enumerate()
            .all(|(i, o)| !o.is_empty() && options.iter().skip(i + 1).all(|other| !o.eq_ignore_ascii_case(other)));
        (!question.is_empty() && distinct).then(|| Self { question: format!("{question}?"), options })
    }
}

/// The text behind the letter that stands before an option ("A ...", "A) ...", "**A**: ...", "Option A - ..."), if it
/// stands there.
fn after_letter(option: &str, letter: char) -> Option<String> {
    let bare = match option.split_once(' ') {
        Some((word, rest)) if word.eq_ignore_ascii_case("option") => rest,
        _ => option,
    };
    let mut chars = bare.trim_start_matches(['(', '*', '[']).chars();
    chars.next().filter(|c| c.eq_ignore_ascii_case(&letter))?;
    let rest = chars.as_str();
    let text = rest.trim_start_matches([')', '.', ':', '-', '*', ']', '–', '—', ' ']);
    (rest.len() > text.len() && !text.is_empty()).then(|| text.trim().to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_before_options_are_dropped_and_articles_kept() {
        let options = |o: [&str; 3]| Clarification::new("Which", &o.map(str::to_owned)).map(|c| c.options);
        assert_eq!(
            options(["A use Docker", "b) Kubernetes", "Option C: neither"]),
            Some(["use Docker", "Kubernetes", "neither"].map(str::to_owned))
        );
        let bare = ["A single server", "Bare metal", "Cloud"];
        assert_eq!(options(bare), Some(bare.map(str::to_owned)));
    }

    #[test]
    fn a_question_has_one_question_mark_and_three_different_options() {
        let options = ["A Is it prod?".to_owned(), "B staging".to_owned(), "C both".to_owned()];
        let c = Clarification::new("Which one? Or\nwhat?", &options).map(|c| (c.question, c.options));
        let expected = ("Which one Or what?".to_owned(), ["Is it prod", "staging", "both"].map(str::to_owned));
        assert_eq!(c, Some(expected));
        assert_eq!(Clarification::new("Which?", &["A x".into(), "B x".into(), "C y".into()]), None);
        assert_eq!(Clarification::new("?", &options), None);
    }
}
