//! Reads a user's answer to a clarification question: as one of its options if it names one, else
//! as free text.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::domain::{Clarification, OPTION_LETTERS};
use crate::journal::Continuation;
use crate::text::pattern;

const COURTESY: &str = "(?:please|pls|plz|many thanks|thanks|thank you|thx)";

/// Matches a choice that stands alone, with a courtesy, or set off from additional text. It is a
/// letter, perhaps in quotes or brackets, or an ordinal ("the second one", "option 2"). Words of
/// choosing may surround it ("I'd go with B", "B it is"). A dash sets off only with a space beside
/// it: an "A-frame" is not option A.
static CHOICE: LazyLock<Regex> = LazyLock::new(|| {
    let (open, close) = (r#"[(\[*`"'“”‘’„«]*"#, r#"[)\]*`"'“”‘’».:!…]"#);
    let before = r"(?:(?:yes|yep|yeah|yup|ok|okay|well|hm+|um|so|then|sure|definitely|clearly|probably|actually)\b\s*[,.:;!–—-]*\s*)*";
    let who = r"(?:(?:(?:i|we)(?:\s*['’]\s*(?:d|ll)|\s+(?:would|will|think|guess|say))?|let\s*['’]?\s*s|let\s+us|my\s+(?:answer|choice|pick|vote)(?:\s+is|\s*['’]\s*s|\s*:)|(?:it|that)(?:\s+is|\s+would\s+be|\s*['’]\s*s)|please)\s+)*";
    let how = r"(?:(?:rather|just|simply|like\s+to|prefer\s+to|want\s+to)\s+)*";
    let verb = r"(?:(?:choose|chose|pick|take|select|want|prefer|like|vote(?:\s+for)?|go(?:ing)?\s+(?:with|for)|opt\s+for|use|try|say)\s*:?\s+)?";
    let noun = r"(?:option|answer|choice|possibility|antwort)";
    let letter = format!(r"(?:(?:the\s+)?{noun}\s+{open})?(?<letter>[abc])");
    let place = format!(
        r"(?:the\s+(?<the>first|second|third|last|middle|1st|2nd|3rd)(?:\s+(?:one|{noun}))?|(?<one>first|second|third|last|middle|1st|2nd|3rd)\s+(?:one|{noun})|(?:{noun}|number|no\.|nr\.|\#)\s*(?<number>[123])|(?<bare>[123]))"
    );
    let after = r"(?:\s+(?:it\s+is|it\s+shall\s+be|then|(?:is|would\s+be|sounds|looks)\s+(?:fine|good|great|ok|okay|right|correct|best|better|it|mine|the\s+one|what\s+i\s+want)|works|for\s+(?:me|us)))*";
    let courtesy = COURTESY.replace(' ', r"\s+");
    pattern(&format!(
        r"(?is)^\s*{before}{who}{how}{verb}{open}(?:{letter}|{place}){close}*{after}(?:\s*[,;:]\s*(?<listed>.*)|(?:\s+[\-–—]+\s*|[\-–—]+\s+)(?<dashed>.*)|{close}+\s+(?<closed>.*)|\s+(?<reason>(?:because|since|but|and\s+also)\b.*)|\s+(?<courtesy>{courtesy}(?:\s*[,;:.!…)].*)?)|\s*[?!.]*{close}*\s*)$"
    ))
});

static ONLY_COURTESY: LazyLock<Regex> =
    LazyLock::new(|| pattern(&format!(r"(?is)^\W*(?:{COURTESY}\W*)*$")));

/// Matches additional text that names a second option. Then the message is not a choice.
static ANOTHER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)^(?:(?:and|or|and/or|und|oder)\s+)?(?:(?:option|answer)\s+)?[abc123]\b[\s.?!)]*$")
});

/// Reads an answer to a question with three options: a chosen option, an option's text, or free
/// text.
pub fn read_answer(asked: &Clarification, message: &str) -> Continuation {
    let question = asked.question.clone();
    let plain = |text: &str| {
        let quotes = |c: char| c.is_whitespace() || "\"'“”‘’„«»`*.!".contains(c);
        text.trim_matches(quotes).to_lowercase()
    };
    for (own, option) in OPTION_LETTERS.into_iter().zip(&asked.options) {
        if plain(message) == plain(option) || plain(message) == plain(&format!("{own} {option}")) {
            return Continuation::Answer {
                question,
                answer: option.clone(),
                option: Some(own),
            };
        }
    }
    if let Some((at, more)) = chosen(asked, message)
        && let (Some(own), Some(option)) = (OPTION_LETTERS.get(at), asked.options.get(at))
    {
        let repeats = more.is_empty() || plain(&more) == plain(option);
        let answer = if repeats {
            option.clone()
        } else {
            format!("{option} ({more})")
        };
        return Continuation::Answer {
            question,
            answer,
            option: Some(*own),
        };
    }
    // Free text may refer to the options, so the models that read it are given them.
    let options: Vec<String> = OPTION_LETTERS
        .iter()
        .zip(&asked.options)
        .map(|(letter, option)| format!("{letter}: {option}"))
        .collect();
    let question = format!("{question} ({})", options.join("; "));
    Continuation::Answer {
        question,
        answer: message.to_owned(),
        option: None,
    }
}

/// Returns the index of the option that a message chooses, and the text that it adds.
fn chosen(asked: &Clarification, message: &str) -> Option<(usize, String)> {
    let captures = CHOICE.captures(message)?;
    let at = place_of(asked, &captures)?;
    let added = ["listed", "dashed", "closed", "reason", "courtesy"];
    let more = added
        .iter()
        .find_map(|name| captures.name(name))
        .map_or("", |m| m.as_str().trim());
    if ANOTHER.is_match(more) {
        return None;
    }
    let adds = !ONLY_COURTESY.is_match(more);
    Some((at, if adds { more.to_owned() } else { String::new() }))
}

fn place_of(asked: &Clarification, captures: &Captures<'_>) -> Option<usize> {
    let said = |name| captures.name(name).map(|m| m.as_str().to_lowercase());
    if let Some(letter) = said("letter") {
        return OPTION_LETTERS
            .iter()
            .position(|own| letter.eq_ignore_ascii_case(&own.to_string()));
    }
    let counts = |text: &String| {
        let mut words = text
            .split(|c: char| !c.is_alphanumeric())
            .map(str::to_lowercase);
        words.any(|word| ["1", "2", "3", "two", "three"].contains(&word.as_str()))
    };
    let bare = said("bare");
    // If the question or an option is about small numbers, a bare number is an answer in itself.
    let asks_a_number = || {
        let question = asked.question.to_lowercase();
        let words = [
            "how m", "how o", "how l", "number", "version", "hour", "year", "port", "percent",
        ];
        words.iter().any(|word| question.contains(word))
    };
    if bare.is_some() && (asked.options.iter().any(counts) || asks_a_number()) {
        return None;
    }
    let place = bare
        .or_else(|| said("number"))
        .or_else(|| said("the"))
        .or_else(|| said("one"))?;
    match place.as_str() {
        "1" | "1st" | "first" => Some(0),
        "2" | "2nd" | "second" | "middle" => Some(1),
        "3" | "3rd" | "third" | "last" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> (String, Option<char>) {
        let options = ["Docker on one host", "Kubernetes", "Bare metal"].map(str::to_owned);
        let asked = Clarification {
            question: "Where does it run?".into(),
            options,
            choices: None,
        };
        match read_answer(&asked, message) {
            Continuation::Answer { answer, option, .. } => (answer, option),
            Continuation::Correction { .. } => (String::new(), None),
        }
    }

    #[test]
    fn an_answer_may_be_a_letter_an_options_text_or_free_text() {
        for message in [
            "B",
            "b)",
            "(b)",
            "option b",
            "Option B.",
            "kubernetes",
            "B: Kubernetes",
            "b) kubernetes.",
        ] {
            assert_eq!(read(message), ("Kubernetes".into(), Some('B')), "{message}");
        }
        assert_eq!(
            read("C, but only two machines"),
            ("Bare metal (but only two machines)".into(), Some('C'))
        );
        assert_eq!(read("A Raspberry Pi"), ("A Raspberry Pi".into(), None));
        assert_eq!(read("because of cost"), ("because of cost".into(), None));
    }

    #[test]
    fn a_letter_may_come_with_quotes_punctuation_and_a_courtesy() {
        let plain = [
            "B!",
            "\"B\"",
            "“b”",
            "'B'.",
            "**B**",
            "B?",
            "`b`",
            "option \"B\"",
            "\"Kubernetes\"",
            "B .",
        ];
        let polite = [
            "B please",
            "b, please",
            "option B please",
            "B pls!",
            "B, thanks.",
            "B. Thank you!",
            "B - please",
            "B please, thanks",
        ];
        for message in plain.into_iter().chain(polite) {
            assert_eq!(read(message), ("Kubernetes".into(), Some('B')), "{message}");
        }
        let more = "Kubernetes (please use two nodes)";
        assert_eq!(read("B, please use two nodes"), (more.into(), Some('B')));
    }

    #[test]
    fn a_dash_sets_a_letter_off_only_with_a_space_beside_it() {
        for message in [
            "C - two machines",
            "C- two machines",
            "C – two machines",
            "C -two machines",
        ] {
            assert_eq!(
                read(message),
                ("Bare metal (two machines)".into(), Some('C')),
                "{message}"
            );
        }
        let free = [
            "A-frame deps on a hill",
            "B-tree index",
            "A thanks to Docker",
            "C++ please",
            "A.I. decides",
            "a's",
        ];
        for message in free {
            assert_eq!(read(message), (message.into(), None));
        }
    }

    #[test]
    fn free_text_keeps_the_options_that_it_may_speak_of() {
        let options = ["Docker", "Kubernetes", "bare metal"].map(str::to_owned);
        let asked = Clarification {
            question: "Where does it run?".into(),
            options,
            choices: None,
        };
        let question = |message: &str| match read_answer(&asked, message) {
            Continuation::Answer { question, .. } => question,
            Continuation::Correction { .. } => String::new(),
        };
        let with_options = "Where does it run? (A: Docker; B: Kubernetes; C: bare metal)";
        assert_eq!(question("either B or C will do"), with_options);
        assert_eq!(question("B"), "Where does it run?");
    }

    #[test]
    fn a_choice_may_be_made_in_words() {
        for message in [
            "I choose B",
            "I'd go with B",
            "I’d go with b.",
            "let's take option B",
            "Let us take B",
            "B it is",
            "B it is!",
            "the second one",
            "The second option, please",
            "second one",
            "2",
            "2.",
            "(2)",
            "#2",
            "option 2",
            "number 2",
            "B is fine",
            "B for me",
            "b sounds good",
            "my answer is B",
            "It's B",
            "yes, B",
            "ok, let's go with B",
            "I would rather take B",
            "we'll use option b",
            "I think B",
            "the 2nd",
            "definitely B",
            "Antwort B",
            "please take B",
            "I prefer B, thanks",
            "going with B then",
        ] {
            assert_eq!(read(message), ("Kubernetes".into(), Some('B')), "{message}");
        }
        let because = "Kubernetes (because it scales)";
        assert_eq!(
            read("I choose B because it scales"),
            (because.into(), Some('B'))
        );
        assert_eq!(
            read("the last one, but on two machines"),
            ("Bare metal (but on two machines)".into(), Some('C'))
        );
    }

    #[test]
    fn what_speaks_of_an_option_without_choosing_it_is_free_text() {
        for message in [
            "B is wrong because we have no cluster",
            "not B",
            "I don't want B",
            "B or C",
            "B, C",
            "B and C",
            "I choose B or C",
            "either B or C will do",
            "B would cost too much",
            "the second server is down",
            "first we need a backup",
            "I take a bus",
            "I'd use a cluster",
            "2 machines",
            "22",
            "what is B",
            "It's a Raspberry Pi",
            "4",
            "B?  or what",
        ] {
            assert_eq!(read(message), (message.into(), None), "{message}");
        }
    }

    #[test]
    fn a_bare_number_is_an_answer_in_itself_where_numbers_are_asked_for() {
        let options = ["One node", "Up to 3 nodes", "Many"].map(str::to_owned);
        let asked = Clarification {
            question: "Which size?".into(),
            options,
            choices: None,
        };
        let option = |message: &str| match read_answer(&asked, message) {
            Continuation::Answer { option, .. } => option,
            Continuation::Correction { .. } => None,
        };
        assert_eq!(
            (option("2"), option("option 2"), option("the second one")),
            (None, Some('B'), Some('B'))
        );
        let options = [
            "The first day, which gives 61",
            "Neither, which gives 60",
            "Both, which gives 62",
        ]
        .map(str::to_owned);
        let asked = Clarification {
            question: "Which days count?".into(),
            options,
            choices: None,
        };
        let chosen = |message: &str| {
            matches!(
                read_answer(&asked, message),
                Continuation::Answer {
                    option: Some('B'),
                    ..
                }
            )
        };
        assert!(chosen("2") && !chosen("60"));
        let options = ["v3", "v2", "v1"].map(str::to_owned);
        let asked = Clarification {
            question: "Which version?".into(),
            options,
            choices: None,
        };
        let answer = read_answer(&asked, "3");
        assert!(
            matches!(answer, Continuation::Answer { option: None, .. }),
            "{answer:?}"
        );
    }
}
