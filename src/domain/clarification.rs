//! The clarification question that the gate may ask instead of answering.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Agent;

/// The letters of the three options, in order.
pub const OPTION_LETTERS: [char; 3] = ['A', 'B', 'C'];

/// A question with three options. The options are stored without their letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clarification {
    pub question: String,
    pub options: [String; 3],
    /// What the options mean to the service, if fixed rules made the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<[Choice; 3]>,
    /// For each option, the agents whose report stays as it is if the user chooses it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreeing: Option<[Vec<Agent>; 3]>,
}

/// What an option of a question that fixed rules made asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The reply that gives this position.
    Position,
    /// New reports of all agents.
    Anew,
    /// The reply that the reports allow, with its doubts.
    BestAnswer,
    /// New reports of all agents.
    Deeper,
    /// No reply.
    Stop,
}

impl Clarification {
    /// Builds a question that can be shown to a user. It ends in its only question mark, and it has
    /// three different options that are more than their letters. Each part is one line. Of several
    /// sentences, the first question is used. Returns `None` if the parts do not allow that, or the
    /// options have their letters in another order.
    pub fn new(question: &str, options: &[String]) -> Option<Self> {
        let question = first_question(&one_line(question));
        let [a, b, c] = options else { return None };
        let lines = [a, b, c].map(|option| one_line(&option.replace(is_question_mark, " ")));
        let options = without_letters(&lines);
        // "5 mW" is not "5 MW".
        let different: BTreeSet<&str> = options.iter().map(String::as_str).collect();
        let is_distinct = different.len() == options.len() && !different.contains("");
        let is_letter = |(letter, option): (char, &String)| {
            let bare = option.trim_matches(|c: char| !c.is_alphanumeric());
            bare.eq_ignore_ascii_case(letter.encode_utf8(&mut [0; 4]))
        };
        let mut lettered = OPTION_LETTERS.into_iter().zip(&options);
        let is_distinct = is_distinct && !lettered.all(is_letter);
        let letters_of = |line: &String| {
            let mut letters = OPTION_LETTERS.into_iter();
            letters.find(|letter| after_letter(line, *letter).is_some())
        };
        let mut letters = lines.each_ref().map(letters_of);
        let is_in_order = letters.is_sorted();
        letters.sort();
        let is_mixed_up = !is_in_order && letters == OPTION_LETTERS.map(Some);
        (!question.is_empty() && is_distinct && !is_mixed_up).then(|| Self {
            question: format!("{question}?"),
            options,
            choices: None,
            agreeing: None,
        })
    }

    /// Returns what the option with this letter asks for, if fixed rules made the question.
    pub fn choice(&self, letter: char) -> Option<Choice> {
        let at = OPTION_LETTERS.iter().position(|own| *own == letter)?;
        self.choices?.get(at).copied()
    }

    /// Returns the agents that agree with the option with this letter, if that is known.
    pub fn agreeing(&self, letter: char) -> Option<&[Agent]> {
        let at = OPTION_LETTERS.iter().position(|own| *own == letter)?;
        Some(self.agreeing.as_ref()?.get(at)?)
    }

    /// Returns the options as a plan has them (SPEC 3.2): "A ...", "B ...", "C ...".
    pub fn lettered(&self) -> [String; 3] {
        let ([a, b, c], [x, y, z]) = (&self.options, OPTION_LETTERS);
        [(x, a), (y, b), (z, c)].map(|(letter, option)| format!("{letter} {option}"))
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
            let lettered = question.options.iter().zip(OPTION_LETTERS);
            let bare = lettered.filter_map(|(option, letter)| {
                let rest = option.strip_prefix(letter)?.strip_prefix(' ')?;
                Some(rest.to_owned())
            });
            match <[String; 3]>::try_from(bare.collect::<Vec<_>>()) {
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
    c == '?' || (!c.is_ascii() && "？﹖؟\u{37e}՞፧⸮⁇⁈⁉‽❓❔".contains(c))
}

/// Returns the first sentence with a question mark, without the mark. If there is none, returns the
/// whole text.
fn first_question(text: &str) -> String {
    let speaks = |text: &str| text.chars().any(char::is_alphanumeric);
    let next = |at: usize| text.get(at..).and_then(|rest| rest.chars().next());
    let spaced = |at: usize| next(at).is_none_or(char::is_whitespace);
    // A plain question mark may be part of an address.
    let ends = |(at, mark): &(usize, &str)| {
        let behind = at + mark.len();
        let is_end = *mark != "?" || spaced(behind) || next(behind).is_some_and(is_question_mark);
        is_end && text.get(..*at).is_some_and(speaks)
    };
    let end = text.match_indices(is_question_mark).find(ends);
    let head = end.map_or(text, |(at, _)| text.get(..at).unwrap_or(text));
    let begins = |(at, c): &(usize, char)| {
        let behind = at + c.len_utf8();
        match c {
            '.' => spaced(behind) && !is_abbreviated(head.get(..*at).unwrap_or_default()),
            '!' | '?' => spaced(behind),
            '。' | '！' => true,
            c => is_question_mark(*c),
        }
    };
    let begin = end.and_then(|_| head.char_indices().rfind(begins));
    let sentence = begin.and_then(|(at, c)| head.get(at + c.len_utf8()..));
    let bare = sentence.unwrap_or(head).trim();
    let bare = bare.trim_end_matches(|c: char| is_question_mark(c) || ".:;! 。！".contains(c));
    let bare = without_marks(&one_line(&bare.replace(is_question_mark, " ")));
    if speaks(&bare) { bare } else { String::new() }
}

/// Returns a line without the Markdown marks of headings, quotations and lists at its start. One that
/// needs no space after it, such as that of a code block, is escaped.
fn without_marks(line: &str) -> String {
    let is_mark = |mark: &str| {
        let number = mark.trim_end_matches(['.', ')']);
        let is_number = number != mark && number.chars().all(|c| c.is_ascii_digit());
        is_number || !mark.is_empty() && mark.chars().all(|c| "#>-+*".contains(c))
    };
    let mut rest = line;
    while let Some((mark, after)) = rest.split_once(' ')
        && is_mark(mark)
    {
        rest = after;
    }
    let is_open = [">", "```", "~~~"].iter().any(|it| rest.starts_with(it));
    format!("{}{rest}", if is_open { "\\" } else { "" })
}

/// True if a single letter comes before a full stop, which may be an abbreviation.
fn is_abbreviated(before: &str) -> bool {
    let last = before.rsplit(|c: char| !c.is_alphanumeric()).next();
    last.is_some_and(|word| word.chars().count() < 2)
}

/// Removes the letters of the options, if two or more begin with theirs. Otherwise removes only one
/// with a delimiter ("B) ...", "B: ..."), because "A container" begins with an article.
fn without_letters(lines: &[String; 3]) -> [String; 3] {
    let mut letters = OPTION_LETTERS.into_iter();
    let read = lines
        .each_ref()
        .map(|line| after_letter(line, letters.next()?));
    let lettered = read.iter().flatten().count() > 1;
    let mut read = read.into_iter();
    lines.each_ref().map(|line| match read.next().flatten() {
        Some((text, delimited)) if lettered || delimited => text.to_owned(),
        _ => line.clone(),
    })
}

/// Returns the text after the given letter ("A ...", "A) ...", "**A**: ...", "Option A - ..."), if
/// the option begins with it, and whether more than a space separates them. "A-frame" and "B.Sc."
/// are words.
fn after_letter(option: &str, letter: char) -> Option<(&str, bool)> {
    let bare = option.strip_prefix("Option ").unwrap_or(option);
    let bare = bare.trim_start_matches(['(', '*', '[']);
    let rest = bare.strip_prefix([letter, letter.to_ascii_lowercase()])?;
    let behind = rest.trim_start_matches([')', ']', ':', '.', '*']);
    let marks = rest.get(..rest.len() - behind.len())?;
    let text = behind.trim_start();
    let is_spaced = text.len() < behind.len();
    // A dash with a space behind it separates, and any other may be a sign: "A -5 °C".
    let dash = |after: &&str| after.starts_with(' ') || !is_spaced && text.starts_with('—');
    let dashed = text.strip_prefix(['-', '–', '—']).filter(dash);
    let closed = is_spaced || dashed.is_some() || marks.contains([')', ']', ':', '*']);
    let is_delimited = dashed.is_some() || !marks.is_empty();
    let text = dashed.map_or(text, str::trim_start);
    (closed && !text.is_empty()).then_some((text, is_delimited))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(options: [&str; 3]) -> Option<[String; 3]> {
        let asked = Clarification::new("Which", &options.map(str::to_owned));
        asked.map(|asked| asked.options)
    }

    #[test]
    fn letters_before_options_are_dropped_and_words_kept() {
        for (given, expected) in [
            (
                ["A use Docker", "b) Kubernetes", "Option C: neither"],
                ["use Docker", "Kubernetes", "neither"],
            ),
            (["Foo", "B) Bar", "Baz"], ["Foo", "Bar", "Baz"]),
            (["A. Foo", "b Bar", "**C**: Baz"], ["Foo", "Bar", "Baz"]),
            (
                ["A 起始？", "B 结束？", "C 都算？"],
                ["起始", "结束", "都算"],
            ),
            (
                ["A) -18 °C", "B - 18 °C", "C -- is it .5"],
                ["-18 °C", "18 °C", "-- is it .5"],
            ),
            (
                ["A .NET", "B) *.txt", "**C:** :8080"],
                [".NET", "*.txt", ":8080"],
            ),
            (
                ["A Is it prod?", "B staging", "C both"],
                ["Is it prod", "staging", "both"],
            ),
        ] {
            assert_eq!(options(given), Some(expected.map(str::to_owned)));
        }
        for words in [
            ["A single server", "Bare metal", "Cloud"],
            ["A-frame", "B.Sc. degree", "c compiler"],
        ] {
            assert_eq!(options(words), Some(words.map(str::to_owned)));
        }
        assert_eq!(options(["A x", "B x", "C y"]), None, "two are the same");
        assert!(options(["5 mW", "5 MW", "neither"]).is_some());
        assert_eq!(options(["B hex", "A decimal", "C octal"]), None, "mixed up");
        for letters in [["A", "B", "C"], ["A A", "B) b.", "C: C"]] {
            assert_eq!(options(letters), None, "they say nothing");
        }
    }

    #[test]
    fn the_first_sentence_that_asks_is_the_question() {
        let options = ["x", "y", "z"].map(str::to_owned);
        for (text, expected) in [
            ("Which? And when? Also why", "Which?"),
            ("Which one? Or\nwhat?", "Which one?"),
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
            ("Tell me the day.", "Tell me the day?"),
            ("? Which day?", "Which day?"),
            ("Well. > ## 1. Which day?", "Which day?"),
            ("- >Which day", "\\>Which day?"),
            ("*Which* day of 2?", "*Which* day of 2?"),
            (
                "Is https://a.example/?q=1 the address?",
                "Is https://a.example/ q=1 the address?",
            ),
        ] {
            let asked = Clarification::new(text, &options).map(|asked| asked.question);
            assert_eq!(asked.as_deref(), Some(expected), "{text}");
        }
        for none in ["?", "？"] {
            assert_eq!(Clarification::new(none, &options), None);
        }
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
            language: None,
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
