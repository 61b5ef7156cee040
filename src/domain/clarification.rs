//! The clarification question that the gate may ask instead of answering.

use serde::{Deserialize, Serialize};

/// The letters of the three options, in order.
pub const OPTION_LETTERS: [char; 3] = ['A', 'B', 'C'];

/// A question with three options. The options are stored without their letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    pub question: String,
    pub options: [String; 3],
}

impl Clarification {
    /// Builds a question that can be shown to a user. It has three different, non-empty options,
    /// each part on one line, and one question mark in all, at the end of the question. Of several
    /// sentences, the first question is used. Returns `None` if the parts do not allow that.
    pub fn new(question: &str, options: &[String]) -> Option<Self> {
        let question = first_question(&one_line(question));
        let [a, b, c] = options else { return None };
        let lines = [a, b, c].map(|option| one_line(&option.replace(is_question_mark, " ")));
        let options = in_order(&lines).unwrap_or_else(|| without_letters(lines));
        let distinct = options.iter().enumerate().all(|(i, o)| {
            !o.is_empty()
                && options
                    .iter()
                    .skip(i + 1)
                    .all(|other| !o.eq_ignore_ascii_case(other))
        });
        (!question.is_empty() && distinct).then(|| Self {
            question: format!("{question}?"),
            options,
        })
    }

    /// Returns the options as a plan has them (SPEC 3.2): "A ...", "B ...", "C ...".
    pub fn lettered(&self) -> [String; 3] {
        let mut letters = OPTION_LETTERS.iter();
        self.options.clone().map(|option| {
            letters
                .next()
                .map_or_else(String::new, |letter| format!("{letter} {option}"))
        })
    }
}

/// Serializes a plan's question as in SPEC 3.2: the options start with their letters.
pub(super) mod with_letters {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Clarification, OPTION_LETTERS};

    pub fn serialize<S: Serializer>(
        question: &Option<Clarification>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let lettered = question.as_ref().map(|q| Clarification {
            options: q.lettered(),
            ..q.clone()
        });
        lettered.serialize(to)
    }

    /// Also accepts options without letters, as in plans of earlier versions.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Clarification>, D::Error> {
        let read = Option::<Clarification>::deserialize(from)?;
        Ok(read.map(|question| {
            let marks = OPTION_LETTERS.map(|letter| format!("{letter} "));
            let bare: Vec<String> = question
                .options
                .iter()
                .zip(&marks)
                .filter_map(|(option, mark)| option.strip_prefix(mark.as_str()).map(str::to_owned))
                .collect();
            match <[String; 3]>::try_from(bare) {
                Ok(options) => Clarification {
                    options,
                    ..question
                },
                Err(_) => question,
            }
        }))
    }
}

/// True for the question mark of any script: plain, fullwidth, small, Arabic, Greek, Armenian,
/// Ethiopic, reversed, doubled, and emoji.
pub fn is_question_mark(c: char) -> bool {
    "?？﹖؟\u{37e}՞፧⸮⁇⁈⁉‽❓❔".contains(c)
}

/// Words with which an English question may begin, used if no sentence has a question mark.
const ASKS: [&str; 28] = [
    "which", "what", "who", "whom", "whose", "where", "when", "why", "how", "is", "are", "was",
    "were", "do", "does", "did", "has", "have", "had", "can", "could", "shall", "should", "will",
    "would", "may", "must", "am",
];

/// Returns the first sentence with a question mark, without the mark. If there is none, returns the
/// first sentence that begins like a question, else the whole text.
fn first_question(text: &str) -> String {
    let trimmed = |sentence: &str| {
        let bare = sentence
            .trim()
            .trim_end_matches(|c: char| is_question_mark(c) || ".:;! 。！".contains(c));
        one_line(&bare.replace(is_question_mark, " "))
    };
    let speaks = |sentence: &str| sentence.chars().any(char::is_alphanumeric);
    let sentences = sentences(text);
    let marked = sentences
        .iter()
        .find(|sentence| sentence.ends_with(is_question_mark) && speaks(sentence));
    let begins = |sentence: &&String| {
        let first = sentence
            .split(|c: char| !c.is_alphabetic())
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        ASKS.contains(&first.to_lowercase().as_str())
    };
    if let Some(found) = marked.or_else(|| sentences.iter().find(begins)) {
        return trimmed(found);
    }
    let whole = trimmed(text);
    if speaks(&whole) { whole } else { String::new() }
}

/// Splits a text into sentences, each with its mark. A full stop ends a sentence only before a
/// space, and not after a single letter, which may be an abbreviation. A question mark of another
/// script ends a sentence at any place.
fn sentences(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut sentences, mut current) = (vec![], String::new());
    for (at, c) in chars.iter().enumerate() {
        current.push(*c);
        let next = chars.get(at + 1);
        let spaced = next.is_none_or(|next| next.is_whitespace());
        let again = next.is_some_and(|next| is_question_mark(*next));
        let abbreviated = current
            .trim_end_matches('.')
            .chars()
            .rev()
            .take_while(|c| c.is_alphanumeric())
            .count()
            < 2;
        let ends = match c {
            '?' => spaced,
            c if is_question_mark(*c) => !again,
            '!' | '。' | '！' => spaced || *c != '!',
            '.' => spaced && !abbreviated,
            _ => false,
        };
        if ends {
            sentences.push(std::mem::take(&mut current).trim().to_owned());
        }
    }
    sentences.push(current.trim().to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Returns the options without their letters, in the order of the letters, if all three letters
/// occur.
fn in_order(lines: &[String; 3]) -> Option<[String; 3]> {
    let found = OPTION_LETTERS.map(|letter| {
        lines
            .iter()
            .find_map(|line| after_letter(line, letter).map(|(text, _)| text))
    });
    let [Some(a), Some(b), Some(c)] = found else {
        return None;
    };
    Some([a, b, c])
}

/// Removes the letter of each option. A letter with a delimiter ("B) ...", "B. ...") is removed at
/// any position. A letter without one is removed only at its own position. A bare A is removed only
/// if another option has a letter too: in "A container" alone, it is an article.
fn without_letters(lines: [String; 3]) -> [String; 3] {
    let marked = |line: &str| {
        let read = OPTION_LETTERS
            .iter()
            .filter_map(|letter| after_letter(line, *letter));
        read.filter(|(_, marked)| *marked)
            .map(|(text, _)| text)
            .next()
    };
    let bare: Vec<Option<String>> = OPTION_LETTERS
        .iter()
        .zip(&lines)
        .map(|(own, line)| {
            after_letter(line, *own)
                .map(|(text, _)| text)
                .or_else(|| marked(line))
        })
        .collect();
    let first_alone = bare.iter().skip(1).all(Option::is_none);
    let mut bare = bare.into_iter().enumerate();
    lines.map(|line| match bare.next() {
        Some((0, Some(text))) if !first_alone || marked(&line).is_some() => text,
        Some((1.., Some(text))) => text,
        _ => line,
    })
}

/// Returns the text after the given letter ("A ...", "A) ...", "**A**: ...", "Option A - ..."), if
/// the option begins with it. The flag is true if more than a space separates them. A lower-case
/// letter followed only by a space is a word.
fn after_letter(option: &str, letter: char) -> Option<(String, bool)> {
    let (bare, named) = match option.split_once(' ') {
        Some((word, rest)) if word.eq_ignore_ascii_case("option") => (rest, true),
        _ => (option, false),
    };
    let opened = bare.trim_start_matches(['(', '*', '[']);
    let mut chars = opened.chars();
    let found = chars.next().filter(|c| c.eq_ignore_ascii_case(&letter))?;
    let rest = chars.as_str();
    let text = rest.trim_start_matches([')', '.', ':', '-', '*', ']', '–', '—', ' ']);
    let between = rest.get(..rest.len() - text.len()).unwrap_or_default();
    // "A-frame" and "B.Sc." are words; "A)frame" is not.
    let closed =
        between.contains([')', ']', ':', '*']) || between.ends_with(' ') || between.contains('—');
    let marked = named || opened.len() < bare.len() || between.trim() != "";
    (closed && !text.is_empty() && (marked || found == letter))
        .then(|| (text.trim().to_owned(), marked))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_before_options_are_dropped_and_articles_kept() {
        let options =
            |o: [&str; 3]| Clarification::new("Which", &o.map(str::to_owned)).map(|c| c.options);
        assert_eq!(
            options(["A use Docker", "b) Kubernetes", "Option C: neither"]),
            Some(["use Docker", "Kubernetes", "neither"].map(str::to_owned))
        );
        let bare = ["A single server", "Bare metal", "Cloud"];
        assert_eq!(options(bare), Some(bare.map(str::to_owned)));
    }

    #[test]
    fn a_question_has_one_question_mark_and_three_different_options() {
        let options = [
            "A Is it prod?".to_owned(),
            "B staging".to_owned(),
            "C both".to_owned(),
        ];
        let c =
            Clarification::new("Which one? Or\nwhat?", &options).map(|c| (c.question, c.options));
        let expected = (
            "Which one?".to_owned(),
            ["Is it prod", "staging", "both"].map(str::to_owned),
        );
        assert_eq!(c, Some(expected));
        assert_eq!(
            Clarification::new("Which?", &["A x".into(), "B x".into(), "C y".into()]),
            None
        );
        assert_eq!(Clarification::new("?", &options), None);
    }

    #[test]
    fn the_first_sentence_that_asks_is_the_question() {
        let options = ["x".to_owned(), "y".to_owned(), "z".to_owned()];
        for (text, expected) in [
            ("Which? And when? Also why", "Which?"),
            ("I am not sure. Which one is it?", "Which one is it?"),
            (
                "Which version of e.g. Debian 12.1 do you run? Tell me.",
                "Which version of e.g. Debian 12.1 do you run?",
            ),
            ("哪一天？起始日还是结束日？", "哪一天?"),
            ("أي يوم؟", "أي يوم?"),
            ("Ποια μέρα\u{37e}", "Ποια μέρα?"),
            ("¿Qué día?", "¿Qué día?"),
            ("Which day⁇", "Which day?"),
            ("Which day???", "Which day?"),
            ("Which day", "Which day?"),
            ("Tell me more. Which day.", "Which day?"),
            ("Tell me the day.", "Tell me the day?"),
            ("? Which day?", "Which day?"),
            (
                "Is https://a.example/?q=1 the address?",
                "Is https://a.example/ q=1 the address?",
            ),
        ] {
            let asked = Clarification::new(text, &options).map(|c| c.question);
            assert_eq!(asked.as_deref(), Some(expected), "{text}");
        }
        let marked = ["A 起始？", "B 结束？", "C 都算？"].map(str::to_owned);
        let read = Clarification::new("哪一天？", &marked).map(|c| c.options);
        assert_eq!(read, Some(["起始", "结束", "都算"].map(str::to_owned)));
        assert_eq!(Clarification::new("？", &options), None);
    }

    #[test]
    fn no_letter_is_shown_twice() {
        let options = |o: [&str; 3]| {
            Clarification::new("Which", &o.map(str::to_owned))
                .unwrap()
                .options
        };
        assert_eq!(options(["A Foo", "B. Bar", "Baz"]), ["Foo", "Bar", "Baz"]);
        assert_eq!(options(["Foo", "B) Bar", "C baz"]), ["Foo", "Bar", "baz"]);
        assert_eq!(options(["A) Foo", "Bar", "Baz"]), ["Foo", "Bar", "Baz"]);
        assert_eq!(
            options(["B. Foo", "A) Bar", "C Baz"]),
            ["Bar", "Foo", "Baz"]
        );
        assert_eq!(
            options(["A. Foo", "A. Bar", "A. Baz"]),
            ["Foo", "Bar", "Baz"]
        );
        let words = ["A-frame", "B.Sc. degree", "c compiler"];
        assert_eq!(options(words), words);
    }

    #[test]
    fn a_plan_has_its_options_with_letters_and_old_ones_without_are_read() {
        use crate::domain::{Mode, Plan, TaskType};
        let question = Clarification::new("Which", &["A x".into(), "B y".into(), "C z".into()]);
        let plan = Plan {
            task_type: TaskType::Mixed,
            agents_to_run: vec![],
            rounds: 1,
            needs_clarification: true,
            clarification_question: question,
            output_shape: Mode::Ask,
            demands: vec![],
        };
        let mut value = serde_json::to_value(&plan).unwrap();
        assert_eq!(
            value["clarificationQuestion"]["options"],
            serde_json::json!(["A x", "B y", "C z"])
        );
        assert_eq!(serde_json::from_value::<Plan>(value.clone()).unwrap(), plan);
        value["clarificationQuestion"]["options"] = serde_json::json!(["x", "y", "z"]);
        assert_eq!(serde_json::from_value::<Plan>(value).unwrap(), plan);
    }
}
