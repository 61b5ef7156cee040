//! Reads a user's answer to a clarification question: as one of its options if it names one, else
//! as free text. Free text goes to the models with the options, and they read what it means.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization as _;

use crate::domain::{Clarification, OPTION_LETTERS};
use crate::journal::Continuation;
use crate::text::pattern;

/// Matches a single letter, perhaps in quotes or brackets, after "option" or after a word with a colon
/// ("Antwort: B"). Punctuation and a space may separate it from more text. "A-frame", "C++" and "B-"
/// are no options. Keyboards for Japanese and Chinese write "Ｂ".
static CHOICE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?is)^\W*(?:option\s+\W*|\w+\s*[:：]\s*)?(?<letter>[abcａｂｃ])(?:[\W--+#=&\-−]*|[^\w\s+#]*(?:(?:[,;:)]|\s*[-–—])\s+|[，；：、）]\s*)(?<more>.*))$",
    )
});

/// Reads an answer to a question with three options: a chosen option, an option's text, or free
/// text.
pub fn read_answer(asked: &Clarification, message: &str) -> Continuation {
    let question = asked.question.clone();
    if let Some((letter, option, more)) = chosen(asked, message) {
        let repeats = more.is_empty() || plain(more) == plain(option);
        return Continuation::Answer {
            question,
            answer: if repeats {
                option.to_owned()
            } else {
                format!("{option} ({more})")
            },
            option: Some(letter),
        };
    }
    // Free text may refer to the options, so the models that read it are given them.
    let options = OPTION_LETTERS.iter().zip(&asked.options);
    let options: Vec<String> = options
        .map(|(letter, option)| format!("{letter}: {option}"))
        .collect();
    Continuation::Answer {
        question: format!("{question} ({})", options.join("; ")),
        answer: message.to_owned(),
        option: None,
    }
}

/// Returns the option that a message chooses, with its letter, and the text that the message adds.
fn chosen<'a>(asked: &'a Clarification, message: &'a str) -> Option<(char, &'a str, &'a str)> {
    let mut options = OPTION_LETTERS.into_iter().zip(&asked.options);
    let text = plain(message);
    // What stands before a colon names the option ("Kubernetes: the plan covers two hosts").
    let head = |option: &str| option.split_once(": ").map(|(head, _)| plain(head));
    let is_unique = |name: &String| {
        let heads = asked.options.iter().filter_map(|option| head(option));
        heads.filter(|other| other == name).count() == 1
    };
    let is_said = |letter: char, option: &str| {
        text == plain(option)
            || text == plain(&format!("{letter} {option}"))
            || head(option)
                .filter(is_unique)
                .is_some_and(|name| name == text)
    };
    let found = CHOICE.captures(message);
    let part = |name| {
        let found = found.as_ref().and_then(|found| found.name(name));
        found.map_or("", |part| part.as_str().trim())
    };
    let more = part("more");
    // A letter alone is that letter, even where an option's text is a letter too.
    let is_bare = found.is_some() && more.is_empty();
    let said = options
        .clone()
        .find(|(letter, option)| is_said(*letter, option));
    if let (false, Some((letter, option))) = (is_bare, said) {
        return Some((letter, option, ""));
    }
    // "B, C" chooses none.
    if CHOICE.is_match(more) {
        return None;
    }
    let named: String = part("letter").nfkc().collect();
    let (letter, option) =
        options.find(|(letter, _)| named.eq_ignore_ascii_case(&letter.to_string()))?;
    Some((letter, option, more))
}

/// Returns the text in lower case, without quotes, spaces and full stops around it.
fn plain(text: &str) -> String {
    let around = |c: char| c.is_whitespace() || "\"'“”‘’„«»`*.!".contains(c);
    text.trim_matches(around).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(options: [&str; 3]) -> Clarification {
        Clarification {
            question: "Where does it run?".into(),
            options: options.map(str::to_owned),
            choices: None,
            agreeing: None,
        }
    }

    fn read(message: &str) -> (String, Option<char>) {
        let asked = asked(["Docker on one host", "Kubernetes", "Bare metal"]);
        match read_answer(&asked, message) {
            Continuation::Answer { answer, option, .. } => (answer, option),
            Continuation::Correction { .. } => (String::new(), None),
        }
    }

    #[test]
    fn a_letter_or_an_options_text_chooses_the_option() {
        for message in [
            "B",
            "b)",
            "(b)",
            "B?",
            "option b",
            "Option B.",
            "option \"B\"",
            "“b”",
            "Ｂ",
            "（ｂ）",
            "**B**",
            "kubernetes",
            "\"Kubernetes\"",
            "B: Kubernetes",
            "Answer: B",
            "Ответ: B",
            "B kubernetes",
            "b) kubernetes.",
        ] {
            assert_eq!(read(message), ("Kubernetes".into(), Some('B')), "{message}");
        }
    }

    #[test]
    fn a_letter_alone_is_no_options_text() {
        let asked = asked(["C: plain", "B: the second", "C#"]);
        for (message, letter) in [("C", 'C'), ("a", 'A'), ("C#", 'C'), ("C: plain", 'A')] {
            assert_eq!(chosen(&asked, message).unwrap().0, letter, "{message}");
        }
    }

    #[test]
    fn text_that_punctuation_sets_off_is_added_to_the_option() {
        let with = "Bare metal (but only two machines)";
        for message in [
            "C, but only two machines",
            "Ｃ：but only two machines",
            "c) but only two machines",
            "C - but only two machines",
            "C– but only two machines",
            "\"C\": but only two machines",
        ] {
            assert_eq!(read(message), (with.into(), Some('C')), "{message}");
        }
    }

    #[test]
    fn everything_else_is_free_text() {
        for message in [
            "because of cost",
            "A Raspberry Pi",
            "A-frame houses on a hill",
            "C++ please",
            "C++",
            "C#",
            "B-",
            "A.I. decides",
            "a's",
            "not B",
            "B or C",
            "B, C",
            "Ｂ、Ｃ",
            "B is wrong because we have no cluster",
            "the second one",
            "2",
        ] {
            assert_eq!(read(message), (message.into(), None), "{message}");
        }
    }

    #[test]
    fn free_text_keeps_the_options_that_it_may_speak_of() {
        let asked = asked(["Docker", "Kubernetes", "bare metal"]);
        let question = |message: &str| match read_answer(&asked, message) {
            Continuation::Answer { question, .. } => question,
            Continuation::Correction { .. } => String::new(),
        };
        let with_options = "Where does it run? (A: Docker; B: Kubernetes; C: bare metal)";
        assert_eq!(question("I'd go with B"), with_options);
        assert_eq!(question("B"), "Where does it run?");
    }
}
